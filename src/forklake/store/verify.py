"""What a check of a lake reads of its rows: those that do not hold together, and files to look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from forklake.model.entities import Column
from forklake.model.ids import FOREVER, CatalogId, ColumnId, DataFileId, TableId
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import Bounds
from forklake.store.backend import Database, Row, Session
from forklake.store.entity_rows import STORED
from forklake.store.file_values import column_stats
from forklake.store.row_sets import COLUMN_STATS, MENDED_FILE_STATS, TABLE_STATS

MOST = 10_000
"""How many rows that do not hold together one question tells of."""


class Misfit(NamedTuple):
    """A row that does not hold together with others."""

    check: str
    catalog: CatalogId
    table: TableId | None
    path: str | None
    found: int | None
    expected: int | None


class CheckedFile(NamedTuple):
    """A Parquet file as a row has it."""

    catalog: CatalogId
    id: int
    table: TableId
    path: str
    path_is_relative: bool
    record_count: int
    """Its rows."""
    file_size_bytes: int
    footer_size: int | None
    other: int | None
    """The mapping of a data file; for a delete file, the rows of the data file that it is about."""


class CheckedRows(NamedTuple):
    """Inlined rows as they are stored."""

    catalog: CatalogId
    id: int
    table: TableId
    record_count: int
    content: str | None


class Count(NamedTuple):
    """What a catalog has counted of a table, and what is there."""

    catalog: CatalogId
    table: TableId
    rows: int
    size: int
    next_row_id: int
    found_rows: int
    found_size: int


class NarrowBounds(NamedTuple):
    """Bounds of a column, and a file that goes beyond them."""

    catalog: CatalogId
    table: TableId
    column: ColumnId
    bounds: Bounds
    file: ColumnStats


def misfits(database: Database) -> Iterator[Misfit]:
    """Rows about catalogs, files and tables that do not hold together."""
    for statement in (
        "check_heads",
        "check_names",
        "check_positions",
        "check_parents",
        "check_ancestors",
        "check_sources",
        "check_masks",
        "check_files_of_tables",
        "check_deletes_of_files",
        "check_files_of_indexes",
        "check_spans",
        "check_parts",
        "check_mappings",
        "check_table_names",
        "check_row_ids",
    ):
        for row in database.rows(statement, most=MOST):
            yield Misfit(statement, *row)
    for entity in STORED:
        for row in database.rows(f"masks_of_nothing_{entity}", most=MOST):
            yield Misfit("masks_of_nothing", *row)


def low_counters(database: Database) -> list[tuple[str, int, int]]:
    """Counters that would give out a number again: what comes next, and the highest that is in use."""
    # Numbers that are drawn meanwhile are below what is read afterwards.
    highest = dict(database.rows("highest_numbers"))
    return [
        (name, following, highest[name])
        for name, following in database.rows("counters")
        if highest.get(name) is not None and following <= highest[name]
    ]


def wrong_counts(reader: Database | Session, catalog: CatalogId | None = None) -> list[Count]:
    """Tables whose rows or bytes a catalog has counted otherwise than they are."""
    first, last = _range(catalog)
    return [Count(*row) for row in reader.rows("check_counts", first=first, last=last, most=MOST)]


def narrow_bounds(reader: Database | Session, catalog: CatalogId | None = None) -> list[NarrowBounds]:
    """Bounds of columns that files go beyond."""
    first, last = _range(catalog)
    found: list[NarrowBounds] = []
    for row in reader.rows("check_bounds", first=first, last=last, most=MOST):
        catalog_id, table, column, null, nan, low, high, low_key, high_key, *values = row
        bounds = Bounds(bool(null), None if nan is None else bool(nan), low, high, low_key, high_key)
        found.append(
            NarrowBounds(catalog_id, table, column, bounds, column_stats([column, *values, None, None]))
        )
    return found


def data_files(database: Database, at_once: int) -> Iterator[list[CheckedFile]]:
    """Every Parquet file of every catalog."""
    return _batches(
        lambda catalog, file: [
            CheckedFile(*row)
            for row in database.rows("data_files_after", catalog=catalog, file=file, most=at_once)
        ]
    )


def delete_files(database: Database, at_once: int) -> Iterator[list[CheckedFile]]:
    """Every delete file of every catalog."""
    return _batches(
        lambda catalog, file: [
            CheckedFile(*row)
            for row in database.rows("delete_files_after", catalog=catalog, file=file, most=at_once)
        ]
    )


def inlined_files(database: Database, at_once: int) -> Iterator[list[CheckedRows]]:
    """Every file whose rows live in the database."""
    return _batches(
        lambda catalog, file: [
            CheckedRows(*row)
            for row in database.rows("inlined_files_after", catalog=catalog, file=file, most=at_once)
        ]
    )


def stats_of_files(
    database: Database, files: Iterable[int]
) -> dict[tuple[CatalogId, DataFileId], dict[ColumnId, ColumnStats]]:
    """What is stored of the columns of some files, for every catalog that has them."""
    found: dict[tuple[CatalogId, DataFileId], dict[ColumnId, ColumnStats]] = {}
    for catalog, file, *values in database.rows("stats_anywhere", files=_ids(files)):
        found.setdefault((catalog, file), {})[values[0]] = column_stats(values)
    return found


BoundsOf = dict[tuple[CatalogId, TableId, ColumnId], Bounds]
"""Bounds of columns, by catalog, table and column."""


def bounds_of_tables(
    reader: Database | Session, catalogs: Iterable[CatalogId], tables: Iterable[TableId]
) -> BoundsOf:
    """The bounds that catalogs have stored for columns of tables."""
    rows = reader.rows("bounds_anywhere", catalogs=_ids(catalogs), tables=_ids(tables))
    return {
        (catalog, table, column): Bounds(bool(null), None if nan is None else bool(nan), *values)
        for catalog, table, column, null, nan, *values in rows
    }


def columns_of_tables(
    database: Database, tables: Iterable[TableId]
) -> dict[TableId, dict[ColumnId, tuple[Column, bool]]]:
    """Every column and field without parts that tables ever had, and whether it always had this type."""
    found: dict[TableId, dict[ColumnId, tuple[Column, bool]]] = {}
    for table, column, name, kind in database.rows("column_types", tables=_ids(tables)):
        if kind in ("list", "struct", "map"):
            continue
        known = found.setdefault(table, {})
        before = known.get(column)
        same = before is None or (before[1] and before[0].type == kind)
        known[column] = (Column(column, name, kind), same)
    return found


def names_of_mappings(database: Database, mappings: Iterable[int]) -> dict[int, dict[str, ColumnId]]:
    """Columns by what imported files call them."""
    found: dict[int, dict[str, ColumnId]] = {}
    for mapping, name, column in database.rows("names_of_mappings", mappings=_ids(mappings)):
        found.setdefault(mapping, {})[name] = column
    return found


def names_of(
    database: Database, catalogs: Iterable[CatalogId], tables: Iterable[TableId]
) -> tuple[dict[CatalogId, str], dict[TableId, tuple[str, str]]]:
    """What catalogs and tables are called."""
    named = dict(database.rows("latest_names", catalogs=_ids(catalogs)))
    rows = database.rows("names_of_tables", tables=_ids(tables))
    return named, {table: (schema, name) for table, _, schema, name in rows}


def mend_file_stats(session: Session, mended: Iterable[tuple[CatalogId, int, ColumnStats]]) -> None:
    """Store other statistics of columns of files."""
    rows = [
        (
            catalog,
            file,
            one.column_id,
            one.value_count,
            one.null_count,
            one.min_value,
            one.max_value,
            one.min_key,
            one.max_key,
            one.contains_nan,
        )
        for catalog, file, one in mended
    ]
    session.update(MENDED_FILE_STATS, rows)


def mend_counts(session: Session, counts: Iterable[Count]) -> None:
    """Store what is there as what was counted."""
    rows = [(one.catalog, one.table, one.found_rows, one.next_row_id, one.found_size) for one in counts]
    session.update(TABLE_STATS, rows)


def mend_bounds(session: Session, bounds: Iterable[tuple[CatalogId, TableId, ColumnId, Bounds]]) -> None:
    """Store other bounds of columns of tables."""
    rows: list[Row] = [
        (
            catalog,
            table,
            column,
            one.contains_null,
            one.contains_nan,
            one.min_value,
            one.max_value,
            one.min_key,
            one.max_key,
        )
        for catalog, table, column, one in bounds
    ]
    session.update(COLUMN_STATS, rows)


def _batches(after: Callable[[int, int], list[Any]]) -> Iterator[list[Any]]:
    """Rows in order, so many at a time, each time after the last one."""
    catalog, file = -1, -1
    while batch := after(catalog, file):
        yield batch
        catalog, file = batch[-1].catalog, batch[-1].id


def _range(catalog: CatalogId | None) -> tuple[int, int]:
    return (0, FOREVER) if catalog is None else (catalog, catalog)


def _ids(numbers: Iterable[int]) -> str:
    return json.dumps(sorted(set(numbers)))
