"""Which rows an entity is stored as, and how a stored row is named so that it can be ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from forklake.model.entities import Column, Macro, Origin, Schema, Table, Tag, View
from forklake.model.ids import IndexId, MacroId, SchemaId, TableId, ViewId
from forklake.model.index import Index
from forklake.model.names import is_absolute
from forklake.model.table.layout import Partitioning, SortOrder

Renumber = Callable[[int], int]
EntityName = Literal[
    "schema",
    "table",
    "column",
    "view",
    "macro",
    "tag",
    "column_tag",
    "partition_info",
    "sort_info",
    "index",
    "data_file",
    "delete_file",
    "index_file",
]
Entity = Schema | Table | View | Macro | Tag | Partitioning | SortOrder | Index


@dataclass(frozen=True, slots=True)
class RowKey:
    """The name of a versioned row inside a catalog: its entity, and up to three parts of a key."""

    entity: EntityName
    entity_id: int
    sub_id: int = 0
    sub_key: str = ""


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Where rows of an entity live. The key columns of the table hold these parts of a `RowKey`."""

    table: str
    keys: tuple[str, ...]
    parts: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def key_values(self, key: RowKey) -> tuple[Any, ...]:
        """The values of the key columns."""
        return tuple(getattr(key, part) for part in self.parts)


STORED: dict[EntityName, StoredAs] = {
    "schema": StoredAs(
        "ducklake_schema",
        ("schema_id",),
        ("entity_id",),
        ("schema_id", "schema_uuid", "schema_name", "path", "path_is_relative"),
    ),
    "table": StoredAs(
        "ducklake_table",
        ("table_id",),
        ("entity_id",),
        ("table_id", "table_uuid", "schema_id", "table_name", "path", "path_is_relative"),
    ),
    "column": StoredAs(
        "ducklake_column",
        ("table_id", "column_id"),
        ("entity_id", "sub_id"),
        (
            "table_id",
            "column_id",
            "parent_column",
            "column_order",
            "column_name",
            "column_type",
            "initial_default",
            "default_value",
            "nulls_allowed",
            "default_value_type",
            "default_value_dialect",
        ),
    ),
    "view": StoredAs(
        "ducklake_view",
        ("view_id",),
        ("entity_id",),
        ("view_id", "view_uuid", "schema_id", "view_name", "sql", "dialect", "column_aliases"),
    ),
    "macro": StoredAs(
        "ducklake_macro", ("macro_id",), ("entity_id",), ("macro_id", "schema_id", "macro_name")
    ),
    "tag": StoredAs(
        "ducklake_tag", ("object_id", "key"), ("entity_id", "sub_key"), ("object_id", "key", "value")
    ),
    "column_tag": StoredAs(
        "ducklake_column_tag",
        ("table_id", "column_id", "key"),
        ("entity_id", "sub_id", "sub_key"),
        ("table_id", "column_id", "key", "value"),
    ),
    "partition_info": StoredAs(
        "ducklake_partition_info", ("partition_id",), ("entity_id",), ("partition_id", "table_id")
    ),
    "sort_info": StoredAs("ducklake_sort_info", ("sort_id",), ("entity_id",), ("sort_id", "table_id")),
    "index": StoredAs(
        "ducklake_index",
        ("index_id",),
        ("entity_id",),
        ("index_id", "index_uuid", "table_id", "index_name", "kind", "maintain", "params"),
    ),
    "data_file": StoredAs("ducklake_data_file", ("data_file_id",), ("entity_id",)),
    "delete_file": StoredAs("ducklake_delete_file", ("delete_file_id",), ("entity_id",)),
    "index_file": StoredAs("ducklake_index_file", ("index_file_id",), ("entity_id",)),
}


def entity_rows(entity: Entity) -> dict[RowKey, tuple[Any, ...]]:
    """The versioned rows of an entity: their keys and, in the order of `STORED`, their values."""
    match entity:
        case Schema():
            values = (entity.id, entity.uuid, entity.name, entity.path, not is_absolute(entity.path))
            return {RowKey("schema", entity.id): values}
        case Table():
            relative = not is_absolute(entity.path)
            values = (entity.id, entity.uuid, entity.schema_id, entity.name, entity.path, relative)
            return {RowKey("table", entity.id): values} | dict(_column_rows(entity))
        case View():
            aliases = json.dumps(entity.column_aliases, ensure_ascii=False) if entity.column_aliases else ""
            values = (
                entity.id,
                entity.uuid,
                entity.schema_id,
                entity.name,
                entity.sql,
                entity.dialect,
                aliases,
            )
            return {RowKey("view", entity.id): values}
        case Macro():
            return {RowKey("macro", entity.id): (entity.id, entity.schema_id, entity.name)}
        case Tag(column_id=None):
            return {
                RowKey("tag", entity.object_id, 0, entity.key): (entity.object_id, entity.key, entity.value)
            }
        case Tag(column_id=column):
            values = (entity.object_id, column, entity.key, entity.value)
            return {RowKey("column_tag", entity.object_id, column or 0, entity.key): values}
        case Partitioning():
            return {RowKey("partition_info", entity.id): (entity.id, entity.table_id)}
        case SortOrder():
            return {RowKey("sort_info", entity.id): (entity.id, entity.table_id)}
        case Index():
            about = (entity.table_id, entity.name, entity.kind, entity.maintain)
            params = json.dumps(dict(entity.params), ensure_ascii=False, sort_keys=True)
            return {RowKey("index", entity.id): (entity.id, entity.uuid, *about, params)}


def _column_rows(table: Table) -> Iterator[tuple[RowKey, tuple[Any, ...]]]:
    parents = {child.id: column.id for column in table.walk() for child in column.children}
    for column in table.walk():
        values = (table.id, column.id, parents.get(column.id), *_column_values(column))
        yield RowKey("column", table.id, column.id), values


def _column_values(column: Column) -> tuple[Any, ...]:
    default = column.default
    return (
        column.order,
        column.name,
        column.type,
        column.initial_default,
        None if default is None else default.value,
        column.nullable,
        # As in DuckLake, no default is the literal NULL.
        "literal" if default is None else default.kind,
        "duckdb" if default is None else default.dialect,
    )


def renumbered(entity: Entity, ids: Renumber) -> Entity:
    """The entity after provisional ids were replaced by those that the commit was given."""
    match entity:
        case Schema():
            return replace(entity, id=SchemaId(ids(entity.id)))
        case Table():
            return replace(entity, id=TableId(ids(entity.id)), schema_id=SchemaId(ids(entity.schema_id)))
        case View():
            return replace(entity, id=ViewId(ids(entity.id)), schema_id=SchemaId(ids(entity.schema_id)))
        case Macro():
            return replace(entity, id=MacroId(ids(entity.id)), schema_id=SchemaId(ids(entity.schema_id)))
        case Tag():
            return replace(entity, object_id=ids(entity.object_id))
        case Partitioning() | SortOrder():
            return replace(entity, id=ids(entity.id), table_id=ids(entity.table_id))
        case Index():
            return replace(entity, id=IndexId(ids(entity.id)), table_id=TableId(ids(entity.table_id)))


def origins_of(entity: Entity) -> dict[RowKey, Origin]:
    """Where the stored rows of an entity live; rows that are not stored yet are left out."""
    match entity:
        case Table():
            rows = [(RowKey("table", entity.id), entity.origin)]
            rows += [(RowKey("column", entity.id, column.id), column.origin) for column in entity.walk()]
        case _:
            rows = [(key, entity.origin) for key in entity_rows(entity)]
    return {key: origin for key, origin in rows if origin is not None}


def stamped(entity: Entity, kept: Mapping[RowKey, Origin], fresh: Origin) -> Entity:
    """The entity as it is stored after a commit: only rows that changed live in the new snapshot."""
    if not isinstance(entity, Table):
        (key,) = entity_rows(entity)
        return replace(entity, origin=kept.get(key, fresh))

    def stamp(column: Column) -> Column:
        origin = kept.get(RowKey("column", entity.id, column.id), fresh)
        return replace(column, origin=origin, children=tuple(map(stamp, column.children)))

    origin = kept.get(RowKey("table", entity.id), fresh)
    return replace(entity, origin=origin, columns=tuple(map(stamp, entity.columns)))
