"""Sets of rows are inserted as they are, whatever their values, number, columns and time zones."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, as_time
from forklake.store.row_sets import RowSet
from tests.contract.store.rows import INTEGERS, SCHEMA_COLUMNS, TEXTS, TIMES, RunSql, keyed, schema_rows

NAME_COLUMNS = ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot")

READ_SCHEMAS = (
    f"SELECT {', '.join(SCHEMA_COLUMNS)} FROM ducklake_schema WHERE catalog_id >= 900 ORDER BY schema_id"
)


def as_stored(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as the drivers return them, in one form: SQLite has texts for uuids and numbers for booleans."""
    return [
        (
            *row[:4],
            None if row[4] is None else str(row[4]),
            *row[5:7],
            None if row[7] is None else bool(row[7]),
        )
        for row in rows
    ]


@pytest.mark.parametrize("count", [1, len(TEXTS) * len(INTEGERS), 1000, 20_000])
def test_rows_of_every_kind_are_inserted_as_they_are(database: Database, raw: RunSql, count: int) -> None:
    rows = schema_rows(count)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", SCHEMA_COLUMNS), rows)
        session.commit()
    assert as_stored(raw(READ_SCHEMAS)) == rows


def test_a_set_larger_than_any_buffer_on_the_way_is_inserted(database: Database, raw: RunSql) -> None:
    # 40 MB: the statistics of some hundred thousand files.
    rows = [(900, number, 1, f"{number:06}" + "x" * 20_000) for number in range(2000)]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", ("catalog_id", "schema_id", "begin_snapshot", "path")), rows)
        session.commit()
    assert raw("SELECT count(*), sum(length(path)), max(path) FROM ducklake_schema") == [
        (2000, 2000 * 20_006, rows[-1][3])
    ]


def test_columns_may_be_given_in_any_order_and_left_out(database: Database, raw: RunSql) -> None:
    with database.transaction() as session:
        session.insert(
            RowSet("ducklake_schema", ("path", "begin_snapshot", "schema_id", "catalog_id")),
            [("p", 7, 1, 900), (None, 8, 2, 900)],
        )
        session.commit()
    assert as_stored(raw(READ_SCHEMAS)) == [
        (900, 1, 7, None, None, None, "p", None),
        (900, 2, 8, None, None, None, None, None),
    ]


def test_times_keep_their_microseconds_and_their_zone(database: Database, raw: RunSql) -> None:
    columns = ("catalog_id", "path", "schedule_start")
    rows = [(900, f"{number:02}", timestamp) for number, timestamp in enumerate(TIMES)]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_files_scheduled_for_deletion", columns), rows)
        session.commit()
    found = raw("SELECT schedule_start FROM ducklake_files_scheduled_for_deletion ORDER BY path")
    assert [None if timestamp is None else as_time(timestamp) for (timestamp,) in found] == TIMES


def test_a_time_means_the_same_moment_in_whichever_zone_it_is_asked_for(database: Database) -> None:
    columns = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
    timestamp = datetime(2100, 1, 1, 12, 0, 0, 500, UTC)
    with database.transaction() as session:
        session.insert(RowSet("ducklake_snapshot", columns), [(77, timestamp, 0, 0, 0)])
        session.insert(RowSet("ducklake_catalog", NAME_COLUMNS), [(9, str(uuid.UUID(int=9)), "c", 77)])
        session.commit()
    for hours in (-11, -5, 0, 5.5, 14):
        zone = timezone(timedelta(hours=hours))
        just_before = (timestamp - timedelta(microseconds=1)).astimezone(zone)
        found = [
            database.rows("catalog_by_name_at_time", name="c", time=asked)
            for asked in (just_before, timestamp.astimezone(zone))
        ]
        assert found == [[], [(9,)]], f"in the zone {zone}"


def test_a_time_is_stored_as_its_moment_in_whichever_zone_it_is_given(database: Database) -> None:
    columns = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
    timestamp = datetime(2100, 1, 1, 12, 0, 0, 500, UTC)
    zones = [timezone(timedelta(hours=hours)) for hours in (-11, 0, 14)]
    rows = [
        (70 + place, (timestamp + timedelta(hours=place)).astimezone(zone), 0, 0, 0)
        for place, zone in enumerate(zones)
    ]
    with database.transaction() as session:
        session.insert(RowSet("ducklake_snapshot", columns), rows)
        names = [(place, str(uuid.UUID(int=place)), "c", 70 + place) for place in range(3)]
        session.insert(
            RowSet("ducklake_catalog", ("end_snapshot", *NAME_COLUMNS)), [(71, *names[0]), (72, *names[1])]
        )
        session.insert(RowSet("ducklake_catalog", NAME_COLUMNS), names[2:])
        session.commit()
    asked = [timestamp + timedelta(hours=place, minutes=1) for place in range(3)]
    assert [database.rows("catalog_by_name_at_time", name="c", time=time) for time in asked] == [
        [(0,)],
        [(1,)],
        [(2,)],
    ]


def test_no_rows_are_no_work(database: Database, raw: RunSql) -> None:
    with database.transaction() as session:
        session.insert(RowSet("ducklake_schema", SCHEMA_COLUMNS), [])
        session.end_rows(
            keyed("ducklake_schema", ("schema_id",)), [], catalog=CatalogId(900), end=SnapshotId(1)
        )
        session.commit()
    assert raw(READ_SCHEMAS) == []
