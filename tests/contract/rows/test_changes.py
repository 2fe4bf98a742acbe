"""The change feed and the places of rows, across files, inlined rows, updates, deletes and drops."""

from __future__ import annotations

import duckdb
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import InvalidArgument, SnapshotNotFound, TableNotFound
from tests.contract.rows.shown import MANY, content, feed, many, numbered


def test_every_change_is_told_once_with_its_snapshot_and_row_id(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    start = catalog.snapshot
    table.append(numbered(1, 2))
    table.append(many(100))
    table.update({"v": "'u'"}, "id IN (2, 100)")
    table.delete("id IN (1, 101)")
    table.delete("id >= 110")
    table.delete("id > 100")
    table.delete()
    expected = [
        *(("insert", start + 1, at, at + 1, "x") for at in (0, 1)),
        *(("insert", start + 2, at + 2, at + 100, "x") for at in range(MANY)),
        ("update_preimage", start + 3, 1, 2, "x"),
        ("update_postimage", start + 3, 1, 2, "u"),
        ("update_preimage", start + 3, 2, 100, "x"),
        ("update_postimage", start + 3, 2, 100, "u"),
        ("delete", start + 4, 0, 1, "x"),
        ("delete", start + 4, 3, 101, "x"),
        *(("delete", start + 5, at - 98, at, "x") for at in range(110, 250)),
        *(("delete", start + 6, at - 98, at, "x") for at in range(102, 110)),
        ("delete", start + 7, 1, 2, "u"),
        ("delete", start + 7, 2, 100, "u"),
    ]
    assert feed(table, start) == expected
    for first in range(start, start + 8):
        for last in range(first, start + 8):
            inside = [change for change in expected if first < change[1] <= last]
            assert feed(table, first, last) == inside, (first, last)


def test_the_feed_has_all_forms_and_conditions(catalog: forklake.Catalog, table: forklake.Table) -> None:
    start = catalog.snapshot
    table.append(numbered(1, 2))
    table.update({"v": "'u'"}, "id = 1")
    changes = table.changes(start)
    assert changes.schema.names == ["change_type", "snapshot_id", "row_id", "id", "v"]
    assert (changes.count(), changes.to_arrow().num_rows, len(changes.to_pandas())) == (4, 4, 4)
    assert changes.to_polars().height == 4
    with duckdb.connect() as connection:
        assert changes.to_duckdb(connection).filter("change_type = 'insert'").count("*").fetchall() == [(2,)]
    kinds = [row["change_type"] for row in table.changes(start, where="v = 'u'").to_pylist()]
    assert kinds == ["update_postimage"]
    assert [row["id"] for row in table.changes(start, where="id = 2").to_pylist()] == [2]
    table.delete()
    assert changes.count() == 4


def test_a_feed_ends_before_it_begins_or_nowhere(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(numbered(1))
    now = catalog.snapshot
    with pytest.raises(InvalidArgument):
        table.changes(now, now - 1)
    with pytest.raises(SnapshotNotFound):
        table.changes(0, 10_000)
    assert feed(table, now, now) == []
    odd = catalog.create_table("odd", "row_id INT")
    with pytest.raises(InvalidArgument, match="row_id"):
        odd.changes(now)


def test_rows_that_come_and_go_in_one_transaction_were_never_there(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(numbered(1))
    start = catalog.snapshot
    with catalog.transaction() as tx:
        inside = tx.table("t")
        inside.append(many(100))
        inside.append(numbered(2, 3))
        inside.delete("id IN (2, 100)")
        inside.update({"v": "'u'"}, "id IN (1, 3, 101)")
        inside.update({"v": "v || 'v'"}, "id IN (1, 3)")
    changes = feed(table, start)
    assert {change[1] for change in changes} == {start + 1}
    assert sorted(change[0] for change in changes if change[0] != "insert") == [
        "update_postimage",
        "update_preimage",
    ]
    after = {row[0]: row[1:] for row in content(table)}
    assert {change[2]: change[3:] for change in changes if change[0] != "update_preimage"} == after
    assert after[0] == (1, "uv")
    assert sorted(row[0] for row in after.values()) == [1, 3, *range(101, 250)]


def test_an_overwrite_is_told_as_deletes_and_inserts(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.append(numbered(1))
    start = catalog.snapshot
    table.overwrite(numbered(1, v="new"))
    assert feed(table, start) == [("delete", start + 1, 0, 1, "x"), ("insert", start + 1, 1, 1, "new")]


def test_the_feed_shows_rows_under_the_columns_of_its_end(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    start = catalog.snapshot
    table.append(numbered(1))
    table.append(many(100))
    table.rename_column("v", "w")
    table.add_column("n", "INT", default="7")
    before = catalog.snapshot
    table.delete("id < 101")
    table.drop_column("w")
    changes = table.changes(start).to_pylist()
    assert set(changes[0]) == {"change_type", "snapshot_id", "row_id", "id", "n"}
    assert {change["n"] for change in changes} == {7}
    assert len(changes) == MANY + 1 + 2
    assert set(table.changes(start, before).to_pylist()[0]) >= {"w", "n"}
    assert "v" in table.changes(start, start + 1).to_pylist()[0]


def test_a_dropped_table_can_still_tell_what_happened_before(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    start = catalog.snapshot
    table.append(numbered(1))
    table.append(many(100))
    table.delete("id = 1")
    end = catalog.snapshot
    told = feed(table, start)
    table.drop()
    catalog.create_table("t", "id BIGINT").append([{"id": 77}])
    with pytest.raises(TableNotFound):
        table.changes(start)
    assert feed(catalog.table("t", at=end), start, end) == told
    assert len(told) == MANY + 2
    new = catalog.table("t")
    assert [change[3] for change in feed(new, start)] == [77]


def test_a_row_is_found_wherever_it_goes(catalog: forklake.Catalog, table: forklake.Table, lake) -> None:
    table.append(numbered(1, 2))
    table.append(many(100))

    def value(row_id: int) -> tuple[bool, int, object]:
        place = table.locate(row_id)
        assert place is not None
        assert place.row_id == row_id
        if place.path is None:
            return True, place.position, None
        row = pq.read_table(f"{lake.data_path}{place.path}").slice(place.position, 1).to_pylist()[0]
        return False, place.position, row["id"]

    assert value(1) == (True, 1, None)
    assert value(12) == (False, 10, 110)
    first = table.locate(12)
    table.update({"v": "'u'"}, "id IN (2, 110)")
    assert value(1)[0] is value(12)[0] is True
    assert table.locate(1).data_file_id == table.locate(12).data_file_id != first.data_file_id
    catalog.flush_inlined()
    assert value(0)[2] == 1
    assert value(1)[2] == 2
    assert value(12)[2] == 110
    assert value(13) == (False, 11, 111)
    table.update({"v": "'many'"}, "id >= 100")
    assert value(12)[2] == 110
    assert value(151)[2] == 249
    table.delete("id = 110")
    assert table.locate(12) is None
    for unknown in (152, 10**12, -1):
        assert table.locate(unknown) is None
    table.delete()
    assert table.locate(13) is None
    old = catalog.table("t", at=catalog.snapshot - 1).locate(13)
    assert old is not None
    with pytest.raises(InvalidArgument):
        table.locate("12")
