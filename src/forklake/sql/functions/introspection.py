"""What a catalog holds, as functions and views show it in which DuckDB lists its own databases.

`duckdb_tables()` and `information_schema.tables` look as they do in DuckDB, and list what is in the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from forklake.api.scoped import scope_of
from forklake.api.table_statistics import sizes_of
from forklake.commit.write_target import without_options
from forklake.lazy.arrow import pa
from forklake.lazy.properties import lazy_property
from forklake.model.entities import Column, Macro, MacroImpl, Schema, Table, View
from forklake.model.sql.macro_sql import UNKNOWN, parameter_sql
from forklake.sql.functions import introspection_columns as columns
from forklake.sql.functions.answers import Columns, answer
from forklake.sql.functions.described import (
    create_index,
    create_table,
    create_view,
    default_of,
    numbers_of,
    shown_type,
)
from forklake.sql.functions.function import Caller
from forklake.store.files import TableSize

Row = dict[str, Any]
"""Values by column; those that are missing are NULL."""


class _Shown(NamedTuple):
    """A column of a table or of a view."""

    name: str
    type: str
    column: Column | None
    comment: str | None


class _Catalog:
    """A catalog, read once for a listing."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.draft = scope_of(caller.work).read()
        self.oid = int(caller.catalog.id)
        self.name = caller.catalog.name
        self.schemas: dict[int, Schema] = {schema.id: schema for schema in self.draft.schemas()}

    @lazy_property
    def tables(self) -> list[Table]:
        """Every table, with its columns."""
        listed = [info.id for info in self.draft.tables()]
        self.draft.state.prepare([number for number in listed if number >= 0])
        return [self.draft.table(number) for number in listed]

    @lazy_property
    def views(self) -> list[View]:
        """Every view, by schema and name."""
        found = self.draft.views()
        self.draft.state.prepare([view.id for view in found if view.id >= 0])
        return sorted(found, key=lambda view: (self.schemas[view.schema_id].name, view.name))

    @lazy_property
    def macros(self) -> list[Macro]:
        """Every macro, by schema and name."""
        found = self.draft.macros()
        self.draft.state.prepare([macro.id for macro in found if macro.id >= 0])
        return sorted(found, key=lambda macro: (self.schemas[macro.schema_id].name, macro.name))

    def place(self, item: Table | View | Macro) -> Row:
        """Where something is."""
        schema = self.schemas[item.schema_id]
        return {
            "database_name": self.name,
            "database_oid": self.oid,
            "schema_name": schema.name,
            "schema_oid": schema.id,
        }

    def tagged(self, number: int) -> Row:
        """The comment and the other tags of something."""
        tags = without_options(self.draft.tags(number))
        comment = tags.pop("comment", None)
        return {"comment": comment, "tags": list(tags.items())}

    def columns_of(self, item: Table | View) -> list[_Shown] | None:
        """The columns of a table or view; None of a view that cannot be read."""
        if isinstance(item, Table):
            tags = self.draft.column_tags(item.id)
            return [
                _Shown(
                    column.name,
                    shown_type(column.data_type),
                    column,
                    tags.get(column.id, {}).get("comment"),
                )
                for column in item.columns
            ]
        found = self.caller.view_columns(item)
        return None if found is None else [_Shown(name, type, None, None) for name, type in found]


def _duckdb_tables(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    sizes = sizes_of(catalog.draft)
    for table in catalog.tables:
        yield {
            **catalog.place(table),
            "table_name": table.name,
            "table_oid": table.id,
            **catalog.tagged(table.id),
            "internal": False,
            "temporary": False,
            "has_primary_key": False,
            "estimated_size": sizes.get(table.id, TableSize()).rows,
            "column_count": len(table.columns),
            "index_count": 0,
            "check_constraint_count": 0,
            "sql": create_table(catalog.schemas[table.schema_id].name, table),
        }


def _duckdb_columns(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for item in (*catalog.tables, *catalog.views):
        place = {**catalog.place(item), "table_name": item.name, "table_oid": item.id}
        for at, shown in enumerate(catalog.columns_of(item) or (), 1):
            numbers = numbers_of(shown.type)
            yield {
                **place,
                "column_name": shown.name,
                "column_index": at,
                "comment": shown.comment,
                "internal": False,
                "column_default": None if shown.column is None else default_of(shown.column),
                "is_nullable": shown.column is None or shown.column.nullable,
                "data_type": shown.type,
                "data_type_id": numbers.type_id,
                "numeric_precision": numbers.precision,
                "numeric_precision_radix": numbers.radix,
                "numeric_scale": numbers.scale,
            }


def _duckdb_views(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for view in catalog.views:
        shown = catalog.columns_of(view)
        yield {
            **catalog.place(view),
            "view_name": view.name,
            "view_oid": view.id,
            **catalog.tagged(view.id),
            "internal": False,
            "temporary": False,
            "column_count": None if shown is None else len(shown),
            "sql": create_view(catalog.schemas[view.schema_id].name, view),
            "is_bound": shown is not None,
        }


def _duckdb_schemas(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for schema in catalog.schemas.values():
        yield {
            "oid": schema.id,
            "database_name": catalog.name,
            "database_oid": catalog.oid,
            "schema_name": schema.name,
            **catalog.tagged(schema.id),
            "internal": False,
        }


def _duckdb_functions(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for macro in catalog.macros:
        place = catalog.place(macro)
        for overload in macro.implementations:
            yield {
                "database_name": place["database_name"],
                "database_oid": str(place["database_oid"]),
                "schema_name": place["schema_name"],
                "function_name": macro.name,
                "function_type": "table_macro" if overload.kind == "table" else "macro",
                **catalog.tagged(macro.id),
                "parameters": [parameter.name for parameter in overload.parameters],
                "parameter_types": _types_of(overload),
                "macro_definition": overload.sql,
                "internal": False,
                "function_oid": macro.id,
                "examples": [],
                "categories": [],
            }


def _types_of(overload: MacroImpl) -> list[str | None]:
    return [
        None if parameter.type == UNKNOWN else parameter_sql(parameter.type)
        for parameter in overload.parameters
    ]


def _duckdb_constraints(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    numbers = count()
    for table in catalog.tables:
        for at, column in enumerate(table.columns):
            if column.nullable:
                continue
            yield {
                **catalog.place(table),
                "table_name": table.name,
                "table_oid": table.id,
                "constraint_index": next(numbers),
                "constraint_type": "NOT NULL",
                "constraint_text": "NOT NULL",
                "constraint_column_indexes": [at],
                "constraint_column_names": [column.name],
                "constraint_name": f"{table.name}_{column.name.lower()}_not_null",
                "referenced_column_names": [],
            }


def _duckdb_indexes(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for table in catalog.tables:
        for index in catalog.draft.indexes(table):
            schema = catalog.schemas[table.schema_id].name
            yield {
                **catalog.place(table),
                "index_name": index.name,
                "index_oid": index.id,
                "table_name": table.name,
                "table_oid": table.id,
                "tags": {},
                "is_unique": False,
                "is_primary": False,
                "expressions": str([column.name for column in table.columns if column.id in index.keys]),
                "sql": create_index(schema, table, index),
            }


def _duckdb_databases(caller: Caller) -> Iterator[Row]:
    path = str(caller.lake.data_path)
    yield {
        "database_name": caller.catalog.name,
        "database_oid": int(caller.catalog.id),
        "path": caller.lake.url,
        "tags": [("data_path", path)],
        "internal": False,
        "type": "forklake",
        "readonly": caller.is_read_only,
        "encrypted": False,
        "options": [("data_path", path)],
    }


def _tables(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for item in (*catalog.tables, *catalog.views):
        is_table = isinstance(item, Table)
        yield {
            "table_catalog": catalog.name,
            "table_schema": catalog.schemas[item.schema_id].name,
            "table_name": item.name,
            "table_type": "BASE TABLE" if is_table else "VIEW",
            "is_insertable_into": "YES" if is_table else "NO",
            "is_typed": "NO",
            "TABLE_COMMENT": catalog.tagged(item.id)["comment"],
        }


def _columns(caller: Caller) -> Iterator[Row]:
    for row in _duckdb_columns(caller):
        yield {
            "table_catalog": row["database_name"],
            "table_schema": row["schema_name"],
            "ordinal_position": row["column_index"],
            "COLUMN_COMMENT": row["comment"],
            **row,
            "is_nullable": "YES" if row["is_nullable"] else "NO",
        }


def _schemata(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for schema in catalog.schemas.values():
        yield {"catalog_name": catalog.name, "schema_name": schema.name, "schema_owner": "duckdb"}


def _views(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for view in catalog.views:
        schema = catalog.schemas[view.schema_id].name
        yield {
            "table_catalog": catalog.name,
            "table_schema": schema,
            "table_name": view.name,
            "view_definition": create_view(schema, view),
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def _show_tables(caller: Caller) -> Iterator[Row]:
    draft = scope_of(caller.work).read()
    schemas = {schema.id: schema.name for schema in draft.schemas()}
    names = [info.name for info in draft.tables() if info.schema == caller.schema]
    names += [view.name for view in draft.views() if schemas[view.schema_id] == caller.schema]
    return ({"name": name} for name in sorted(names))


def _show_schemas(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    for schema in sorted(catalog.schemas.values(), key=lambda one: one.name):
        yield {
            "database_name": catalog.name,
            "schema_name": schema.name,
            "current": schema.name == caller.schema,
        }


def _show_databases(caller: Caller) -> Iterator[Row]:
    return ({"database_name": row["database_name"]} for row in _duckdb_databases(caller))


def _show_all_tables(caller: Caller) -> Iterator[Row]:
    catalog = _Catalog(caller)
    found = [(catalog.schemas[item.schema_id].name, item.name, item) for item in catalog.tables]
    listed = [*found, *((catalog.schemas[view.schema_id].name, view.name, view) for view in catalog.views)]
    for schema, name, item in sorted(listed, key=lambda one: one[:2]):
        shown = catalog.columns_of(item) or []
        yield {
            "database": catalog.name,
            "schema": schema,
            "name": name,
            "column_names": [one.name for one in shown],
            "column_types": [one.type for one in shown],
            "temporary": False,
        }


_LISTINGS: dict[str, tuple[Columns, Callable[[Caller], Iterable[Row]]]] = {
    "duckdb_tables": (columns.TABLES, _duckdb_tables),
    "duckdb_columns": (columns.COLUMNS, _duckdb_columns),
    "duckdb_views": (columns.VIEWS, _duckdb_views),
    "duckdb_schemas": (columns.SCHEMAS, _duckdb_schemas),
    "duckdb_functions": (columns.FUNCTIONS, _duckdb_functions),
    "duckdb_constraints": (columns.CONSTRAINTS, _duckdb_constraints),
    "duckdb_databases": (columns.DATABASES, _duckdb_databases),
    "duckdb_indexes": (columns.INDEXES, _duckdb_indexes),
    "information_schema.tables": (columns.STANDARD_TABLES, _tables),
    "information_schema.columns": (columns.STANDARD_COLUMNS, _columns),
    "information_schema.schemata": (columns.STANDARD_SCHEMAS, _schemata),
    "information_schema.views": (columns.STANDARD_VIEWS, _views),
    "show_tables": (columns.SHOWN, _show_tables),
    "show_schemas": (columns.SCHEMAS_SHOWN, _show_schemas),
    "show_databases": (columns.DATABASES_SHOWN, _show_databases),
    "show_all_tables": (columns.ALL_SHOWN, _show_all_tables),
}


def _listing(name: str) -> Callable[[Caller], pa.Table]:
    shown, rows = _LISTINGS[name]

    def listed(caller: Caller) -> pa.Table:
        return answer(shown, [[row.get(column) for column in shown] for row in rows(caller)])

    return listed


INTROSPECTION: Mapping[str, Callable[[Caller], pa.Table]] = MappingProxyType(
    {name: _listing(name) for name in _LISTINGS}
)
"""What is listed, by the name of the function or of the view; `show_tables` is SHOW TABLES."""
