"""Statistics of tables as a catalog has counted them itself; nobody inherits these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple

from forklake.model.ids import CatalogId, TableId
from forklake.model.snapshots import Head
from forklake.model.table.statistics import Bounds, TableStatistics
from forklake.store.backend import Database, Row, Session
from forklake.store.row_sets import COLUMN_STATS, TABLE_STATS, RowSet


def stored_statistics(
    session: Session, catalog: CatalogId, tables: Sequence[TableId]
) -> dict[TableId, TableStatistics]:
    """What a catalog has counted of some tables; those that it has not counted are left out."""
    found: dict[TableId, TableStatistics] = {}
    for table, records, next_row_id, size, column, null, nan, *values in session.rows(
        "table_statistics", catalog=catalog, tables=json.dumps(tables)
    ):
        statistics = found.setdefault(table, TableStatistics(records, next_row_id, size, is_stored=True))
        if column is not None:
            statistics.bounds[column] = Bounds(bool(null), None if nan is None else bool(nan), *values)
    return found


def has_statistics(database: Database, catalog: CatalogId, table: TableId) -> bool:
    """Whether a catalog itself has counted rows of a table before."""
    return bool(database.rows("table_statistics", catalog=catalog, tables=json.dumps([table])))


def write_statistics(
    session: Session, head: Head, statistics: Sequence[tuple[int, TableStatistics, TableStatistics]]
) -> None:
    """Store the statistics of some tables, given as they were and as they are."""
    _write(session, TABLE_STATS, list(_statistics_rows(head, statistics)))
    _write(session, COLUMN_STATS, list(_bounds_rows(head, statistics)))


def _write(session: Session, into: RowSet, rows: Sequence[tuple[bool, Row]]) -> None:
    """Rows that are there are updated, others are added."""
    known = [row for is_known, row in rows if is_known]
    fresh = [row for is_known, row in rows if not is_known]
    if known:
        session.update(into, known)
    if fresh:
        session.insert(into, fresh)


def _statistics_rows(
    head: Head, statistics: Sequence[tuple[int, TableStatistics, TableStatistics]]
) -> Iterator[tuple[bool, Row]]:
    for table, before, after in statistics:
        values = (after.record_count, after.next_row_id, after.file_size_bytes)
        yield before.is_stored, (head.catalog_id, table, *values)


def _bounds_rows(
    head: Head, statistics: Sequence[tuple[int, TableStatistics, TableStatistics]]
) -> Iterator[tuple[bool, Row]]:
    for table, before, after in statistics:
        for column, bounds in after.bounds.items() if after.is_counted else ():
            if before.bounds.get(column) != bounds:
                yield column in before.bounds, (head.catalog_id, table, column, *astuple(bounds))
