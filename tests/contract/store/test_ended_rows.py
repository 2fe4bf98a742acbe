"""Rows end by their keys, and neither a key nor the name of something live can be given twice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import forklake
from forklake.errors import CatalogExists, CorruptMetadata, StoreError
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, UniqueViolation
from forklake.store.postgres import PostgresDatabase
from forklake.store.row_sets import SETTINGS, RowSet
from tests.contract.store.rows import (
    TEXTS,
    InThreads,
    RunSql,
    commit_one,
    keyed,
    many_processes,
    write,
    written,
)

TAG_COLUMNS = ("catalog_id", "table_id", "column_id", "key", "begin_snapshot", "value")
TAG_KEYS = ("table_id", "column_id", "key", "begin_snapshot")


def tag_rows(count: int) -> list[tuple[Any, ...]]:
    keys = [text for text in TEXTS if text is not None]
    return [(900, number, number % 7, keys[number % len(keys)], 10, "v") for number in range(count)]


@pytest.mark.parametrize("count", [1, 1000, 20_000])
def test_live_rows_end_by_their_keys_and_others_live_on(database: Database, raw: RunSql, count: int) -> None:
    if isinstance(database, PostgresDatabase):
        # It was counted when it was empty, which makes plans for other tables than this will be.
        raw("VACUUM ANALYZE ducklake_column_tag")
    rows = tag_rows(count)
    bystanders = [(900, -1, 0, "other key", 10, "v"), (901, 0, 0, "other catalog", 10, "v")]
    bystanders += [(901, *row[1:]) for row in rows[:50]]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows + bystanders)
        session.commit()
    with database.transaction() as session:
        session.end_rows(
            keyed("ducklake_column_tag", TAG_KEYS),
            [row[1:5] for row in rows],
            catalog=CatalogId(900),
            end=SnapshotId(11),
        )
        session.commit()
    count_ended = "SELECT count(*) FROM ducklake_column_tag WHERE end_snapshot = 11 AND catalog_id = 900"
    assert raw(count_ended) == [(count,)]
    assert raw("SELECT count(*) FROM ducklake_column_tag WHERE end_snapshot IS NULL") == [(len(bystanders),)]


def test_rows_that_a_transaction_has_added_can_end_in_it(database: Database, raw: RunSql) -> None:
    rows = tag_rows(10)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows)
        session.end_rows(
            keyed("ducklake_column_tag", TAG_KEYS),
            [row[1:5] for row in rows],
            catalog=CatalogId(900),
            end=SnapshotId(11),
        )
        session.commit()
    assert raw("SELECT count(*), min(end_snapshot) FROM ducklake_column_tag") == [(10, 11)]


NOT_LIVE = {
    "that never was": (5, 5, "none", 10),
    "that has ended": (2, 2, "ended", 10),
    "of another catalog": (3, 3, "elsewhere", 10),
    "that began at another snapshot": (1, 1, "live", 9),
}


@pytest.mark.parametrize("key", NOT_LIVE.values(), ids=[name.replace(" ", "_") for name in NOT_LIVE])
def test_ending_a_row_that_is_not_live_is_refused_and_leaves_nothing(
    database: Database, raw: RunSql, key: tuple[Any, ...]
) -> None:
    with database.transaction() as session:
        session.insert(
            RowSet("ducklake_column_tag", (*TAG_COLUMNS, "end_snapshot")),
            [
                (900, 1, 1, "live", 10, "v", None),
                (900, 2, 2, "ended", 10, "v", 11),
                (901, 3, 3, "elsewhere", 10, "v", None),
            ],
        )
        session.commit()
    before = raw("SELECT * FROM ducklake_column_tag ORDER BY table_id")

    def end() -> None:
        with database.transaction() as session:
            write(session, "lost")
            session.end_rows(
                keyed("ducklake_column_tag", TAG_KEYS),
                [(1, 1, "live", 10), key],
                catalog=CatalogId(900),
                end=SnapshotId(12),
            )
            session.commit()

    with pytest.raises(CorruptMetadata, match="ducklake_column_tag"):
        end()
    assert raw("SELECT * FROM ducklake_column_tag ORDER BY table_id") == before
    assert written(raw) == []
    commit_one(database, "kept")


def test_a_key_that_is_taken_is_refused_and_leaves_nothing(database: Database, raw: RunSql) -> None:
    rows = tag_rows(3)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), rows)
        session.commit()
    for again in ([rows[1]], [*tag_rows(2000)[1000:], rows[2]], [(902, 1, 1, "k", 1, "v")] * 2):
        with pytest.raises(UniqueViolation), database.transaction() as session:
            write(session, "lost")
            session.insert(RowSet("ducklake_column_tag", TAG_COLUMNS), again)
            session.commit()
    assert raw("SELECT count(*) FROM ducklake_column_tag") == [(3,)]
    assert written(raw) == []


# Not of macros: one that is an expression and one that is a query may have the same name.
LIVE_NAMES = {
    "catalog": (
        "ducklake_catalog",
        ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (number, str(uuid.UUID(int=number)), "same", 1, end),
    ),
    "schema": (
        "ducklake_schema",
        ("catalog_id", "schema_id", "schema_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, "same", 1, end),
    ),
    "table": (
        "ducklake_table",
        ("catalog_id", "table_id", "schema_id", "table_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, 1, "same", 1, end),
    ),
    "view": (
        "ducklake_view",
        ("catalog_id", "view_id", "schema_id", "view_name", "begin_snapshot", "end_snapshot"),
        lambda number, end: (900, number, 1, "same", 1, end),
    ),
}


@many_processes  # DuckDB has no partial indexes; there the one process that may write checks names itself.
@pytest.mark.parametrize(("table", "columns", "row"), LIVE_NAMES.values(), ids=LIVE_NAMES.keys())
def test_a_name_that_is_live_cannot_be_given_twice_and_one_that_ended_can(
    database: Database,
    raw: RunSql,
    table: str,
    columns: tuple[str, ...],
    row: Callable[[int, int | None], tuple[Any, ...]],
) -> None:
    with database.transaction() as session:
        session.insert(RowSet(table, columns), [row(1, 5), row(2, 6), row(3, None)])
        session.commit()
    with pytest.raises(UniqueViolation), database.transaction() as session:
        session.insert(RowSet(table, columns), [row(4, None)])
        session.commit()
    assert raw(f"SELECT count(*) FROM {table}") == [(3,)]


def test_only_one_of_many_writers_gets_a_name(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], in_threads: InThreads
) -> None:
    def create(handle: forklake.Lake) -> bool:
        try:
            handle.create_catalog("wanted")
        except CatalogExists:
            return False
        return True

    handles = [lake, lake, lake, reopen(), reopen(), reopen()]
    won = in_threads(*(lambda handle=handle: create(handle) for handle in handles))
    assert sorted(won) == [False] * 5 + [True]
    assert [catalog.name for catalog in lake.catalogs()] == ["wanted"]
    assert len(lake.snapshots()) == 2


def test_a_missing_value_is_not_taken_for_a_key_that_exists(database: Database, raw: RunSql) -> None:
    # Callers read UniqueViolation as "the name is taken": nothing else may be called that.
    with pytest.raises(StoreError) as caught, database.transaction() as session:
        session.insert(SETTINGS, [("lost", None)])
        session.commit()
    assert not isinstance(caught.value, UniqueViolation)
    assert raw("SELECT count(*) FROM ducklake_metadata WHERE key = 'lost'") == [(0,)]
