"""Rows → entities: schemas, tables with their columns, views, tags and layouts as frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from forklake.errors import CorruptMetadata
from forklake.model.entities import Column, Default, Origin, Schema, Table, Tag, View
from forklake.model.ids import CatalogId, ColumnId, SchemaId, SnapshotId, TableId, ViewId
from forklake.store.backend import Row
from forklake.store.entity_rows import RowKey


class ColumnName(NamedTuple):
    """A name and a type that a column had from some snapshot on."""

    column_id: ColumnId
    parent: ColumnId | None
    name: str
    type: str
    """The type that it had then, as DuckLake spells it."""
    begin: SnapshotId | None
    """None for a name that a column had only in a fork which was merged."""


def column_names(rows: Iterable[Row]) -> list[ColumnName]:
    """Names and types of columns from their versions, in order; one that was gone in between begins anew."""
    names: dict[ColumnName, None] = {}
    ends: dict[ColumnId, tuple[SnapshotId, SnapshotId | None]] = {}
    for column, parent, name, type, begin, end in rows:
        if begin == end:
            names[ColumnName(column, parent, name, type, None)] = None
            continue
        start, last = ends.get(column, (begin, begin))
        if last is not None and last < begin:
            start = begin
        ends[column] = (start, end)
        names[ColumnName(column, parent, name, type, start)] = None
    return list(names)


def origin_of(source: int, begin: int) -> Origin:
    """The catalog and the snapshot that a row was written by."""
    return Origin(CatalogId(source), SnapshotId(begin))


def schema_of(row: Row) -> Schema:
    """A schema."""
    source, begin, schema, uuid, name, path = row
    return Schema(SchemaId(schema), str(uuid), name, path, origin_of(source, begin))


def table_of(row: Row, columns: tuple[Column, ...]) -> Table:
    """A table with its columns."""
    source, begin, table, uuid, schema, name, path = row
    return Table(TableId(table), str(uuid), SchemaId(schema), name, path, columns, origin_of(source, begin))


def by_table(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Rows by the table that each begins with."""
    found: dict[int, list[Row]] = {}
    for table, *row in rows:
        found.setdefault(table, []).append(tuple(row))
    return found


def tag_of(row: Row) -> Tag:
    """A tag of a schema, table, view or macro."""
    source, begin, owner, key, value = row
    return Tag(owner, key, value, origin=origin_of(source, begin))


def column_tag_of(row: Row) -> Tag:
    """A tag of a column."""
    source, begin, owner, key, value, column = row
    return Tag(owner, key, value, ColumnId(column), origin=origin_of(source, begin))


def view_of(row: Row) -> View:
    """A view."""
    source, begin, view, uuid, schema, name, sql, dialect, aliases = row
    names = tuple(json.loads(aliases)) if aliases else ()
    return View(
        ViewId(view), str(uuid), SchemaId(schema), name, sql, dialect, names, origin_of(source, begin)
    )


def row_keys(rows: Iterable[Row]) -> dict[RowKey, Origin]:
    """The names of stored rows, and where they live."""
    return {
        RowKey(entity, entity_id, sub_id, sub_key): origin_of(source, begin)
        for _, entity, entity_id, sub_id, sub_key, source, begin in rows
    }


def build_columns(rows: Iterable[Row]) -> tuple[Column, ...]:
    """Put nested fields under their parents."""
    children: dict[int | None, list[Row]] = {}
    for row in rows:
        children.setdefault(row[3], []).append(row)

    def build(row: Row) -> Column:
        source, begin, column, _, order, name, kind, initial, default, nullable, default_kind, dialect = row
        nested = tuple(build(child) for child in children.pop(column, ()))
        if kind in ("list", "struct", "map") and not nested:
            raise CorruptMetadata(f'column "{name}" is a {kind} without fields')
        return Column(
            ColumnId(column),
            name,
            kind,
            bool(nullable),
            initial,
            None if default is None else Default(default, default_kind or "literal", dialect or "duckdb"),
            nested,
            order,
            origin_of(source, begin),
        )

    columns = tuple(build(row) for row in children.pop(None, ()))
    if children:
        raise CorruptMetadata(
            f"fields {sorted(row[2] for rows in children.values() for row in rows)} have no parent"
        )
    return columns
