"""Deleting: inline up to a limit, in one cumulative file beyond, and whole files when nothing is left."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import InvalidPredicate
from tests.contract.rows.shown import MANY, content, ids, many, numbered
from tests.invariants import check_files

FILES = (
    "SELECT data_file_id, record_count, end_snapshot IS NULL FROM ducklake_data_file ORDER BY data_file_id"
)
DELETES = (
    "SELECT data_file_id, delete_count, begin_snapshot, end_snapshot FROM ducklake_delete_file "
    "ORDER BY delete_file_id"
)
INLINE = "SELECT data_file_id, position, begin_snapshot FROM ducklake_inlined_delete ORDER BY 1, 2"


def test_deletes_stay_inline_up_to_the_limit_and_become_one_file_beyond(
    catalog: forklake.Catalog, table: forklake.Table, lake: forklake.Lake, raw
) -> None:
    table.set_option("data_inlining_row_limit", 4)
    table.append(many())
    ((file, _, _),) = raw(FILES)
    assert table.delete("id IN (1, 3, 5)") == 3
    first = catalog.snapshot
    assert raw(INLINE) == [(file, at, first) for at in (1, 3, 5)]
    assert raw(DELETES) == []
    table.delete("id = 7")
    second = catalog.snapshot
    assert raw(INLINE) == [(file, at, first) for at in (1, 3, 5)] + [(file, 7, second)]
    table.delete("id = 9")
    third = catalog.snapshot
    # What is inlined is not named again: clients of others do not remove duplicates.
    assert raw(DELETES) == [(file, 1, third, None)]
    assert len(raw(INLINE)) == 4
    # A few more stay inline beside the file, and then a new file replaces it.
    table.delete("id IN (11, 13)")
    fourth = catalog.snapshot
    assert raw(DELETES) == [(file, 1, third, None)]
    table.delete("id IN (15, 17, 19)")
    fifth = catalog.snapshot
    assert raw(DELETES) == [(file, 1, third, fifth), (file, 4, fifth, None)]
    assert [position for _, position, _ in raw(INLINE)] == [1, 3, 5, 7, 11, 13]
    gone = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert ids(table) == [at for at in range(MANY) if at not in gone]
    ((path,),) = raw("SELECT path FROM ducklake_delete_file WHERE end_snapshot IS NULL")
    stored = pq.read_table(f"{lake.data_path}{path}")
    assert stored.column_names == ["file_path", "pos"]
    assert stored.column("pos").to_pylist() == [9, 15, 17, 19]
    assert {field.name: field.metadata[b"PARQUET:field_id"] for field in stored.schema} == {
        "file_path": b"2147483546",
        "pos": b"2147483545",
    }
    assert check_files(lake) == 2
    for snapshot, count in ((first, 3), (second, 4), (third, 5), (fourth, 7), (fifth, 10)):
        assert ids(table, at=snapshot) == [at for at in range(MANY) if at not in gone[:count]]
        assert table.scan(at=snapshot).count() == MANY - count
    assert [file.deleted_count for file in table.files()] == [10]


def test_deletes_from_inlined_rows_stay_inline_however_many(table: forklake.Table, raw) -> None:
    table.append(numbered(*range(100)))
    table.set_option("data_inlining_row_limit", 2)
    assert table.delete("id >= 10") == 90
    assert (len(raw(INLINE)), raw(DELETES)) == (90, [])
    assert ids(table) == list(range(10))
    assert table.count() == 10


@pytest.mark.parametrize("rows", [50, MANY], ids=["inlined", "file"])
def test_deleting_all_rows_retires_the_file(
    catalog: forklake.Catalog, table: forklake.Table, raw, rows: int
) -> None:
    table.append(numbered(*range(rows)))
    ((file, _, _),) = raw(FILES)
    assert table.delete("id >= 0") == rows
    assert raw(FILES) == [(file, rows, False)]
    assert (raw(DELETES), raw(INLINE)) == ([], [])
    assert (table.count(), table.files(), ids(table)) == (0, [], [])
    assert ids(table, at=catalog.snapshot - 1) == list(range(rows))


@pytest.mark.parametrize("limit", [0, 5, 1000])
def test_deleting_all_rows_step_by_step_retires_the_file(
    catalog: forklake.Catalog, table: forklake.Table, raw, limit: int
) -> None:
    table.append(many())
    table.set_option("data_inlining_row_limit", limit)
    for low, high in ((0, 3), (4, 9), (10, 148)):
        table.delete(f"id BETWEEN {low} AND {high}")
    before = catalog.snapshot
    assert ids(table) == [149]
    assert table.delete("id = 149") == 1
    assert [alive for _, _, alive in raw(FILES)] == [False]
    assert [row for row in raw(DELETES) if row[3] is None] == []
    assert (table.count(), ids(table)) == (0, [])
    assert ids(table, at=before) == [149]
    assert table.scan(at=before).count() == 1


def test_deleting_without_a_condition_reads_nothing(table: forklake.Table, hidden, raw) -> None:
    table.append(many())
    table.append(numbered(1, 2))
    table.delete("id = 3")
    with hidden():
        assert table.delete() == MANY + 1
        assert table.count() == 0
    assert [alive for _, _, alive in raw(FILES)] == [False, False]
    assert table.delete() == 0


def test_a_delete_that_finds_nothing_is_no_change(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(many())
    before = catalog.snapshot
    assert table.delete("id > 1000") == 0
    assert table.delete("v IS NULL AND id % 2 = 0") == 0
    assert table.delete("false") == 0
    assert catalog.snapshot == before


def test_null_and_nan_are_deleted_only_if_the_condition_is_true(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT, f DOUBLE")
    rows = [{"id": 1, "f": 1.0}, {"id": 2, "f": None}, {"id": 3, "f": float("nan")}]
    table.append(rows)
    table.append([{"id": at, "f": 0.0} for at in range(10, 10 + MANY)])
    assert table.delete("f <> 0 AND f < 10") == 1
    assert ids(table, "id < 10") == [2, 3]
    assert table.delete("NOT (f = 0)") == 1
    assert ids(table, "id < 10") == [2]
    assert table.delete("f IS NULL") == 1
    assert table.count() == MANY


def test_overwrite_replaces_all_rows_or_some_in_one_snapshot(
    catalog: forklake.Catalog, table: forklake.Table, stored: Callable[[], list[str]]
) -> None:
    table.append(many())
    table.append(numbered(1000))
    before = catalog.snapshot
    assert table.overwrite(numbered(5, 6, v="new"), where="id < 10 OR id = 1000") == 2
    assert catalog.snapshot == before + 1
    assert ids(table) == [5, 6, *range(10, MANY)]
    assert table.scan("id < 10").to_pylist() == [{"id": 5, "v": "new"}, {"id": 6, "v": "new"}]
    assert table.overwrite(many(500)) == MANY
    assert ids(table) == list(range(500, 500 + MANY))
    assert table.overwrite([]) == 0
    assert (table.count(), ids(table, at=before)) == (0, [*range(MANY), 1000])
    assert len(stored()) == 2
    with pytest.raises(InvalidPredicate):
        table.overwrite(numbered(1), where="w = 1")
    assert table.count() == 0


def test_rows_that_come_back_are_other_rows(table: forklake.Table) -> None:
    table.append(numbered(1))
    table.overwrite(numbered(1))
    assert content(table) == [(1, 1, "x")]
