"""Every set of rows that is declared can be written, and reads back as it was given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import forklake
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, as_time
from forklake.store.row_sets import (
    DATA_FILES,
    DELETE_FILES,
    ENDS,
    ENTITIES,
    INDEX_FILES,
    INSERTED,
    OLDEST_SNAPSHOTS,
    UPDATED,
    RowSet,
)
from forklake.store.tables import TABLES
from tests.contract.conftest import RunSql

TIME = datetime(2024, 1, 31, 12, tzinfo=UTC)
CATALOG = CatalogId(900_000)
# Up to and above what DuckDB writes out row by row.
COUNTS = (1, 2, 40)


def row_of(rows: RowSet, number: int, catalog: int = CATALOG) -> tuple[Any, ...]:
    """A row with another value in each column, and for each number."""
    values = {
        "int": number,
        "text": f"text {number}",
        "uuid": str(UUID(int=number)),
        "bool": bool(number % 2),
        "time": TIME + timedelta(seconds=number),
    }
    own = {"catalog_id": catalog}
    kinds = TABLES[rows.table]
    return tuple(own.get(column, values[kinds[column]]) for column in rows.columns)


def live(rows: RowSet, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same row without an end."""
    values = zip(rows.columns, row, strict=True)
    return tuple(None if column == "end_snapshot" else value for column, value in values)


def stored(raw: RunSql, rows: RowSet) -> list[tuple[Any, ...]]:
    """What is there, as it is given."""
    found = raw(f"SELECT {', '.join(rows.columns)} FROM {rows.table}")
    as_given = {"int": int, "text": str, "uuid": str, "bool": bool, "time": as_time}
    kinds = [TABLES[rows.table][column] for column in rows.columns]
    return [
        tuple(
            None if value is None else as_given[kind](value) for kind, value in zip(kinds, row, strict=True)
        )
        for row in found
    ]


def test_every_set_is_inserted_as_it_is_given(database: Database, raw: RunSql) -> None:
    given: dict[RowSet, list[tuple[Any, ...]]] = {}
    number = 1_000
    with database.transaction() as session:
        for rows in INSERTED:
            given[rows] = []
            for count in COUNTS:
                fresh = [row_of(rows, number + place, number + place) for place in range(count)]
                session.insert(rows, fresh)
                given[rows] += fresh
                number += count
        session.commit()
    for rows, expected in given.items():
        found = stored(raw, rows)
        assert set(expected) <= set(found), rows


def test_updates_reach_the_rows_that_they_name_and_no_others(database: Database, raw: RunSql) -> None:
    for rows in set(UPDATED) - {OLDEST_SNAPSHOTS}:
        before = [row_of(rows, number) for number in range(1000, 1003)]
        after = (*before[1][: rows.key_count], *row_of(rows, 2000)[rows.key_count :])
        # The same keys in another catalog.
        other = tuple(901 if c == "catalog_id" else v for c, v in zip(rows.columns, before[1], strict=True))
        with database.transaction() as session:
            session.insert(rows, [*before, other])
            session.update(rows, [after])
            session.commit()
        assert set(stored(raw, rows)) == {before[0], after, before[2], other}


def test_heads_are_updated_by_their_catalogs(lake: forklake.Lake, database: Database, raw: RunSql) -> None:
    one, other = lake.create_catalog("one"), lake.create_catalog("other")
    with database.transaction() as session:
        session.update(OLDEST_SNAPSHOTS, [(one.id, 5)])
        session.commit()
    found = raw("SELECT catalog_id, oldest_snapshot FROM ducklake_catalog_head ORDER BY catalog_id")
    assert [tuple(row) for row in found] == [(one.id, 5), (other.id, None)]


def test_ends_reach_live_rows_of_one_catalog(database: Database, raw: RunSql) -> None:
    files = {"data_file": DATA_FILES, "delete_file": DELETE_FILES, "index_file": INDEX_FILES}
    written: dict[str, RowSet] = {**ENTITIES, **files}
    assert written.keys() == ENDS.keys()
    for entity, ended in ENDS.items():
        rows = written[entity]
        mine = [live(rows, row_of(rows, number)) for number in range(1000, 1003)]
        place = rows.columns.index("catalog_id")
        theirs = [(*row[:place], CATALOG + 1, *row[place + 1 :]) for row in mine]
        keys = tuple(mine[1][rows.columns.index(column)] for column in ended.keys)
        with database.transaction() as session:
            session.insert(rows, [*mine, *theirs])
            session.end_rows(ended, [keys], catalog=CATALOG, end=SnapshotId(5000))
            session.commit()
        asked = f"SELECT catalog_id, {ended.keys[0]} FROM {rows.table} WHERE end_snapshot = 5000"
        assert [tuple(row) for row in raw(asked)] == [(CATALOG, keys[0])], entity
