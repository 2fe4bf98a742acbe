"""Flushing: inlined rows move into files, and nobody sees a difference, then or in the past."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import forklake
from forklake.errors import StorageError
from tests.contract.rows.shown import MANY, content, feed, ids, many, numbered

INLINED = "SELECT count(*) FROM ducklake_data_file WHERE file_format = 'inlined' AND end_snapshot IS NULL"


def everything(catalog: forklake.Catalog, table: forklake.Table, until: int) -> object:
    snapshots = [snapshot.id for snapshot in table.history() if snapshot.id <= until]
    return (
        [(at, content(table, at=at), table.scan(at=at).count()) for at in snapshots],
        [feed(table, start, end) for start, end in pairwise(snapshots)],
        feed(table, snapshots[2], snapshots[-2]),
    )


@pytest.fixture
def worn(catalog: forklake.Catalog, table: forklake.Table) -> forklake.Table:
    """Inlined rows of several snapshots, some deleted, some updated, beside a file."""
    table.append(numbered(1, 2, 3))
    table.append(many(100))
    table.append(numbered(4, 5))
    table.delete("id IN (2, 101)")
    table.update({"v": "'u'"}, "id IN (3, 102)")
    table.append(numbered(6))
    return table


def test_a_flush_changes_nothing_that_can_be_seen(
    catalog: forklake.Catalog, worn: forklake.Table, raw, reopen
) -> None:
    before = catalog.snapshot
    seen, rows, changes = everything(catalog, worn, before), content(worn), feed(worn, 2)
    assert catalog.flush_inlined() == 6
    assert catalog.snapshot == before + 1
    assert raw(INLINED) == [(0,)]
    assert [file.path for file in worn.files() if file.path is None] == []
    other = reopen().catalog("main_catalog").table("t")
    for handle in (worn, other):
        assert everything(catalog, handle, before) == seen
        assert content(handle) == rows
        assert feed(handle, 2) == changes
        assert feed(handle, before) == []
    assert worn.count() == len(rows) == MANY + 4
    assert worn.scan().min("id") == 1


def test_rows_live_on_after_a_flush(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    rows = {row[0]: row[1:] for row in content(worn)}
    catalog.flush_inlined("t")
    flushed = catalog.snapshot
    worn.delete("id = 4")
    worn.update({"v": "'again'"}, "id IN (3, 5)")
    worn.append(numbered(7))
    gone = next(key for key, row in rows.items() if row[0] == 4)
    expected = {
        key: (row[0], "again") if row[0] in (3, 5) else row for key, row in rows.items() if key != gone
    }
    new = max(row[0] for row in content(worn))
    assert new not in rows
    assert {row[0]: row[1:] for row in content(worn)} == expected | {new: (7, "x")}
    kinds = [(change[0], change[2]) for change in feed(worn, flushed)]
    updated = sorted(key for key, row in rows.items() if row[0] in (3, 5))
    assert kinds == [
        ("delete", gone),
        *((kind, key) for key in updated for kind in ("update_preimage", "update_postimage")),
        ("insert", new),
    ]


def test_a_flush_of_nothing_is_no_change(catalog: forklake.Catalog, table: forklake.Table) -> None:
    table.append(many())
    before = catalog.snapshot
    assert catalog.flush_inlined() == catalog.flush_inlined("t") == 0
    assert catalog.snapshot == before
    table.append(numbered(1))
    assert catalog.flush_inlined() == 1
    assert catalog.flush_inlined() == 0


def test_a_flush_of_one_table_leaves_others_alone(catalog: forklake.Catalog, table: forklake.Table) -> None:
    other = catalog.create_table("other", "id BIGINT")
    gone = catalog.create_table("gone", "id BIGINT")
    for each in (table, other, gone):
        each.append([{"id": 1}])
    gone.drop()
    assert catalog.flush_inlined("other") == 1
    assert [len(each.files()) for each in (table, other)] == [1, 1]
    assert (table.files()[0].path, other.files()[0].path is None) == (None, False)
    assert catalog.flush_inlined() == 1
    assert table.files()[0].path is not None


def test_a_flush_writes_files_as_the_table_is_laid_out_now(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, r VARCHAR")
    table.append([{"id": at, "r": "ab"[at % 2]} for at in (3, 2, 1)])
    table.rename_column("r", "region")
    table.add_column("n", "INT", default="7")
    table.set_partitioning(["region"])
    table.set_sort_order(["id"])
    rows = content(table)
    assert rows == [(0, 3, "b", 7), (1, 2, "a", 7), (2, 1, "b", 7)]
    assert catalog.flush_inlined() == 3
    assert content(table) == rows
    assert sorted((file.partition_values, file.record_count) for file in table.files()) == [
        (("a",), 1),
        (("b",), 2),
    ]
    assert [file.path.split("/")[-2] for file in table.files()] == ["region=a", "region=b"]
    assert [table.locate(row_id).position for row_id in (2, 0)] == [0, 1]


@pytest.mark.parametrize("first", ["flush", "delete"])
@pytest.mark.parametrize("where", ["id = 4", "id < 100", None])
def test_a_transaction_may_flush_and_delete(
    catalog: forklake.Catalog, worn: forklake.Table, raw, first: str, where: str | None
) -> None:
    before = catalog.snapshot
    rows = content(worn)
    with catalog.transaction() as tx:
        if first == "flush":
            tx.flush_inlined()
        deleted = tx.table("t").delete(where)
        if first == "delete":
            tx.flush_inlined()
        inside = content(tx.table("t"))
    meant = {"id = 4": lambda key: key == 4, "id < 100": lambda key: key < 100, None: lambda key: True}[where]
    gone = [row for row in rows if meant(row[1])]
    assert deleted == len(gone) > 0
    assert inside == content(worn) == [row for row in rows if row not in gone]
    assert worn.count() == len(rows) - deleted
    assert feed(worn, before) == [("delete", before + 1, *row) for row in gone]
    statistics = raw(f"SELECT record_count FROM ducklake_table_stats WHERE table_id = {worn.id}")
    assert statistics == [(worn.count(),)]
    assert content(worn, at=before) == rows


def test_a_flush_that_fails_loses_nothing(
    catalog: forklake.Catalog, table: forklake.Table, lake: forklake.Lake, stored: Callable[[], list[str]]
) -> None:
    table.append(many())
    folder = Path(lake.data_path, stored()[0]).parent
    other = catalog.create_table("other", "id BIGINT")
    table.append(numbered(1000))
    other.append([{"id": 1}])
    # A file stands where the folder of the other table has to be.
    folder.with_name("other").write_bytes(b"")
    files = stored()
    with pytest.raises(StorageError):
        catalog.flush_inlined()
    with catalog.transaction() as tx:
        with pytest.raises(StorageError):
            tx.flush_inlined()
        assert (tx.table("t").count(), tx.table("other").count()) == (MANY + 1, 1)
        tx.table("t").append(numbered(1001))
    assert ids(table, "id >= 1000") == [1000, 1001]
    assert ids(other) == [1]
    assert stored() == files
