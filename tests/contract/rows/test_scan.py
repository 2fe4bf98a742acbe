"""Scanning: columns, conditions, limits, snapshots and row ids, in every form that people want rows in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forklake
from forklake.errors import (
    ColumnNotFound,
    FileMissing,
    InvalidArgument,
    InvalidPredicate,
    SnapshotNotFound,
    StorageError,
)
from tests.contract.rows.shown import MANY, content, ids, many, numbered


@pytest.fixture
def mixed(table: forklake.Table) -> forklake.Table:
    """Rows 0 to 149 in a file without 5 and 6, and 150 to 152 in the database without 151."""
    table.append(many())
    table.append(numbered(150, 151, 152, v="y"))
    table.delete("id IN (5, 6, 151)")
    return table


LEFT = [at for at in range(153) if at not in (5, 6, 151)]


def test_every_form_has_the_same_rows(mixed: forklake.Table) -> None:
    scan = mixed.scan("id > 147", row_ids=True)
    rows = [(148, "x", 148), (149, "x", 149), (150, "y", 150), (152, "y", 152)]
    expected = [dict(zip(("id", "v", "row_id"), row, strict=True)) for row in rows]
    types = pa.schema([("id", pa.int64()), ("v", pa.string()), ("row_id", pa.int64())])
    assert scan.schema == types

    def ordered(found: pa.Table) -> list[dict[str, object]]:
        return found.sort_by("id").to_pylist()

    assert scan.to_arrow().schema == types
    assert ordered(scan.to_arrow()) == expected
    assert ordered(pa.Table.from_batches(list(scan.to_batches()), types)) == expected
    assert ordered(scan.to_reader().read_all()) == expected
    assert sorted(scan.to_pylist(), key=lambda row: row["id"]) == expected
    assert ordered(pa.table(scan)) == expected
    df = scan.to_pandas().sort_values("id")
    assert isinstance(df, pd.DataFrame)
    assert df.to_dict("records") == expected
    polars = scan.to_polars().sort("id")
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dicts() == expected
    with duckdb.connect() as connection:
        assert scan.to_duckdb(connection).order("id").fetchall() == rows


def test_a_scan_shows_the_rows_of_the_moment_when_it_was_made(mixed: forklake.Table) -> None:
    scan = mixed.scan()
    mixed.delete()
    mixed.append(many(1000))
    mixed.drop_column("v")
    for _ in range(2):
        assert sorted(scan.to_arrow().column("id").to_pylist()) == LEFT
    assert scan.count() == 150


def test_columns_come_in_the_order_in_which_they_are_asked_for(mixed: forklake.Table) -> None:
    assert mixed.scan("id = 7", ["v", "id"]).to_arrow().column_names == ["v", "id"]
    assert mixed.scan("id = 7", ["V"]).to_pylist() == [{"v": "x"}]
    for columns, error in ((["w"], ColumnNotFound), ([], InvalidArgument), ("v", InvalidArgument)):
        with pytest.raises(error):
            mixed.scan(columns=columns)
    with pytest.raises(InvalidArgument, match="named twice"):
        mixed.scan(columns=["v", "V"])


def test_a_condition_may_need_columns_that_are_not_shown(mixed: forklake.Table) -> None:
    assert mixed.scan("v = 'y' AND id <> 150", ["id"]).to_pylist() == [{"id": 152}]
    assert mixed.scan("v = 'y'", ["v"]).count() == 2


@pytest.mark.parametrize("limit", [0, 1, 149, 150, 1000])
def test_a_limit_is_the_most_rows_that_come(mixed: forklake.Table, limit: int) -> None:
    expected = min(limit, 150)
    assert mixed.scan(limit=limit).to_arrow().num_rows == expected
    assert mixed.scan(limit=limit).count() == expected
    assert mixed.scan("id >= 0", limit=limit).count() == expected
    assert sum(batch.num_rows for batch in mixed.scan(limit=limit).to_batches()) == expected


@pytest.mark.parametrize("limit", [-1, True, "3", 1.0])
def test_a_limit_is_a_whole_number(table: forklake.Table, limit: object) -> None:
    with pytest.raises(InvalidArgument, match="limit"):
        table.scan(limit=limit)


def test_an_empty_table_has_columns_and_no_rows(table: forklake.Table) -> None:
    scan = table.scan("id = 1", row_ids=True)
    assert scan.to_arrow() == scan.schema.empty_table()
    assert (scan.count(), list(scan.to_batches()), scan.plan().files) == (0, [], ())
    assert (table.scan().min("id"), table.scan().max("v")) == (None, None)


def test_batches_are_bounded_and_come_as_they_are_read(table: forklake.Table) -> None:
    rows = 300_000
    table.append(pa.table({"id": range(rows), "v": ["x"] * rows}))
    sizes = [batch.num_rows for batch in table.scan().to_batches()]
    assert sum(sizes) == rows
    assert max(sizes) <= 122_880
    batches = table.scan().to_batches()
    assert next(batches).num_rows < rows
    batches.close()
    assert table.count() == rows


def test_relations_of_several_tables_meet_on_one_connection(
    catalog: forklake.Catalog, mixed: forklake.Table
) -> None:
    other = catalog.create_table("other", "id BIGINT, w VARCHAR")
    other.append(pa.table({"id": range(100, 100 + MANY), "w": ["w"] * MANY}))
    other.append([{"id": 7, "w": "seven"}])
    other.delete("id BETWEEN 101 AND 148")
    before = catalog.snapshot
    mixed.update({"v": "'new'"}, "id = 149")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE mine AS SELECT 149 AS id, 'm' AS m")
        left = mixed.scan().to_duckdb(connection).set_alias("l")
        right = other.scan().to_duckdb(connection).set_alias("r")
        old = mixed.scan("id > 100", at=before).to_duckdb(connection).set_alias("o")
        joined = left.join(right, "l.id = r.id").order("l.id")
        assert joined.fetchall() == [
            (7, "x", 7, "seven"),
            (100, "x", 100, "w"),
            (149, "new", 149, "w"),
            (150, "y", 150, "w"),
            (152, "y", 152, "w"),
        ]
        mine = connection.table("mine").set_alias("m")
        changed = left.join(old, "l.id = o.id AND l.v <> o.v").join(mine, "m.id = l.id")
        assert changed.fetchall() == [(149, "new", 149, "x", 149, "m")]
        assert connection.sql("SELECT count(*) FROM joined").fetchall() == [(5,)]
        # A later change does not reach a relation that was made before.
        mixed.delete()
        assert left.count("*").fetchall() == [(150,)]


def test_any_snapshot_and_any_time_can_be_scanned(catalog: forklake.Catalog, table: forklake.Table) -> None:
    states: list[tuple[int, list[int]]] = [(catalog.snapshot, [])]
    for change in (
        lambda: table.append(numbered(1, 2)),
        lambda: table.append(many(10)),
        lambda: table.delete("id IN (1, 10)"),
        lambda: table.update({"v": "'u'"}, "id < 12"),
        lambda: table.delete("id >= 12"),
        lambda: table.overwrite(numbered(99)),
    ):
        change()
        states.append((catalog.snapshot, ids(table)))
    assert [len(found) for _, found in states] == [0, 2, 152, 150, 150, 2, 1]
    times = {snapshot.id: snapshot.time for snapshot in catalog.snapshots()}
    for snapshot, expected in states:
        assert ids(table, at=snapshot) == expected
        assert ids(table, at=times[snapshot]) == expected
        assert ids(catalog.at(snapshot).table("t")) == expected
        assert table.scan(at=snapshot).count() == len(expected)
    with pytest.raises(SnapshotNotFound):
        table.scan(at=10_000)
    with pytest.raises(SnapshotNotFound):
        table.scan(at=datetime(2000, 1, 1, tzinfo=UTC))


def test_row_ids_are_those_of_the_order_of_arrival(mixed: forklake.Table) -> None:
    assert content(mixed) == [(at, at, "x" if at < 150 else "y") for at in LEFT]


@pytest.mark.parametrize(
    "where", ["w = 1", "id =", "id = 1; DROP TABLE t", "count(*) > 1", "", "id = (SELECT 1)"]
)
def test_what_is_no_condition_is_refused_before_anything_is_read(table: forklake.Table, where: str) -> None:
    with pytest.raises((InvalidPredicate, ColumnNotFound)):
        table.scan(where)
    with pytest.raises((InvalidPredicate, ColumnNotFound)):
        table.delete(where)


def test_a_condition_that_fails_on_a_row_says_so(mixed: forklake.Table) -> None:
    with pytest.raises(InvalidPredicate, match="fails on the rows"):
        mixed.scan("CAST(v AS INTEGER) = 1").to_arrow()
    with pytest.raises(InvalidPredicate, match="fails on the rows"):
        mixed.delete("CAST(v AS INTEGER) = 1")


def test_a_file_that_is_gone_or_cut_is_named(
    mixed: forklake.Table, lake: forklake.Lake, stored: Callable[[], list[str]], reopen
) -> None:
    (name,) = stored()
    path = Path(lake.data_path, name)
    content = path.read_bytes()
    fresh = reopen().catalog("main_catalog").table("t")
    path.write_bytes(content[:-10])
    with pytest.raises(StorageError, match=name):
        fresh.scan().to_arrow()
    path.unlink()
    with pytest.raises(FileMissing, match=name):
        fresh.scan().to_arrow()
    assert fresh.scan("id > 1000").to_pylist() == []
    path.write_bytes(content)
    assert ids(fresh) == LEFT


def test_an_error_that_comes_after_the_first_rows_is_said_in_our_words(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("late", "id BIGINT, name VARCHAR")
    many = pa.array(range(600_000), pa.int64())
    table.append(pa.table({"id": many, "name": many.cast(pa.string())}))
    table.append([{"id": 600_000, "name": "no number"}])
    with pytest.raises(
        forklake.InvalidPredicate, match=r"fails on the rows .*: Conversion Error: .*no number"
    ):
        for _ in table.scan("CAST(name AS BIGINT) >= 0").to_batches():
            pass
    with pytest.raises(forklake.InvalidPredicate, match=r"fails on the rows .*: Invalid Input Error: late"):
        for _ in table.scan("CASE WHEN id = 599999 THEN error('late')::BOOLEAN ELSE true END").to_batches():
            pass
