"""Compaction: many small files become few, and nobody sees a difference, then or in the past."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.errors import InvalidArgument, StorageError, TableNotFound
from tests.contract.rows.shown import content, feed, numbered


def everything(table: forklake.Table, until: int) -> object:
    """All that can be seen of a table up to a snapshot."""
    snapshots = [snapshot.id for snapshot in table.history() if snapshot.id <= until]
    return (
        [(at, content(table, at=at), table.scan(at=at).count()) for at in snapshots],
        [feed(table, start, end) for start, end in pairwise(snapshots)],
        feed(table, snapshots[1], snapshots[-1]),
    )


def places(table: forklake.Table) -> list[str | None]:
    return [file.path for file in table.files()]


def wear(table: forklake.Table) -> None:
    table.append(numbered(*range(10)))
    table.append(numbered(*range(10, 20), v="y"))
    table.append(numbered(100, 101))
    table.delete("id IN (3, 101)")
    table.delete("id BETWEEN 12 AND 16")
    table.update({"v": "'u'"}, "id IN (4, 11, 17)")
    table.append(numbered(102))


@pytest.fixture
def worn(table: forklake.Table) -> forklake.Table:
    """Files and inlined rows of several snapshots; rows were deleted inline and by a file, and updated."""
    wear(table)
    return table


def test_a_compaction_changes_nothing_that_can_be_seen(
    catalog: forklake.Catalog, worn: forklake.Table, reopen, raw
) -> None:
    before = catalog.snapshot
    seen, rows = everything(worn, before), content(worn)
    result = catalog.compact()
    (told,) = result.tables
    assert (told.table, told.files_in, told.files_out) == ("main.t", 5, 1)
    assert (told.rows, told.rows_dropped) == (len(rows), 10)
    assert told.bytes_out == worn.files()[0].file_size_bytes == worn.stats().file_size_bytes
    assert catalog.snapshot == before + 1
    assert catalog.snapshots()[-1].changes == f"inline_flush:{worn.id},merge_adjacent:{worn.id}"
    for handle in (worn, reopen().catalog("main_catalog").table("t")):
        assert everything(handle, before) == seen
        assert content(handle) == rows
        assert feed(handle, before) == []
        assert handle.count() == handle.stats().record_count == len(rows)
        assert [(file.record_count, file.deleted_count) for file in handle.files()] == [(len(rows), 0)]
        assert (handle.scan().min("id"), handle.scan().max("id")) == (0, 102)
    assert [worn.locate(row[0]).position for row in rows] == list(range(len(rows)))
    gone = set(range(23)) - {row[0] for row in rows}
    assert [worn.locate(row) for row in gone] == [None] * len(gone)
    statistics = raw(
        f"SELECT record_count, file_size_bytes FROM ducklake_table_stats WHERE table_id = {worn.id}"
    )
    assert statistics == [(len(rows), told.bytes_out)]


def test_rows_live_on_after_a_compaction(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    rows = content(worn)
    catalog.compact("t")
    compacted = catalog.snapshot
    worn.delete("id = 4")
    worn.update({"v": "'again'"}, "id = 17")
    worn.append(numbered(103))
    after = [(key, n, "again" if n == 17 else v) for key, n, v in rows if n != 4]
    new = max(row[0] for row in content(worn))
    assert content(worn) == [*after, (new, 103, "x")]
    assert [(change[0], change[3], change[4]) for change in feed(worn, compacted)] == [
        ("delete", 4, "u"),
        ("update_preimage", 17, "u"),
        ("update_postimage", 17, "again"),
        ("insert", 103, "x"),
    ]
    assert content(worn, at=compacted) == rows
    assert worn.compact().rows == len(after) + 1
    assert content(worn) == [*after, (new, 103, "x")]


def test_compacting_twice_is_compacting_once(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    catalog.compact()
    before, files = catalog.snapshot, places(worn)
    assert catalog.compact() == worn.compact() == catalog.rewrite_deletes(0) == forklake.CompactResult()
    assert (catalog.snapshot, places(worn)) == (before, files)


def test_a_dry_run_says_what_would_happen_and_does_nothing(
    catalog: forklake.Catalog, worn: forklake.Table, stored
) -> None:
    before, files = catalog.snapshot, stored()
    (told,) = catalog.compact(dry_run=True).tables
    assert (told.files_in, told.files_out, told.rows, told.rows_dropped) == (5, 1, 16, 10)
    (told,) = worn.rewrite_deletes(0.3, dry_run=True).tables
    assert (told.files_in, told.rows) == (1, 3)
    assert (catalog.snapshot, stored()) == (before, files)


def test_files_with_many_deletes_are_rewritten_and_others_stay(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    for start in (0, 100, 200):
        table.append(numbered(*range(start, start + 10)))
    table.delete("id IN (0, 1)")
    table.delete("id BETWEEN 100 AND 106")
    rows, before, files = content(table), catalog.snapshot, places(table)
    assert catalog.rewrite_deletes().tables == ()
    (told,) = catalog.rewrite_deletes(0.7).tables
    assert (told.files_in, told.files_out, told.rows, told.rows_dropped) == (1, 1, 3, 7)
    assert [place for place in places(table) if place in files] == [files[0], files[2]]
    assert content(table) == rows
    assert feed(table, before) == []
    (told,) = table.rewrite_deletes(0).tables
    assert (told.files_in, told.rows_dropped) == (1, 2)
    assert [(file.record_count, file.deleted_count) for file in table.files()] == [(10, 0), (3, 0), (8, 0)]
    assert content(table) == rows
    assert catalog.rewrite_deletes(0).tables == ()


def test_files_are_merged_within_partitions_and_in_order(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, r VARCHAR", partition_by=["r"], sorted_by=["id DESC"])
    table.set_option("data_inlining_row_limit", 0)
    for at in range(3):
        table.append([{"id": n, "r": "ab"[n % 2]} for n in range(at, 60, 3)])
    table.append([{"id": 70, "r": None}])
    rows = content(table)
    (told,) = catalog.compact().tables
    assert (told.files_in, told.files_out) == (6, 2)
    assert sorted(
        (file.partition_values, file.record_count) for file in table.files() if file.row_id_start is None
    ) == [
        (("a",), 30),
        (("b",), 30),
    ]
    assert content(table) == rows
    for file in table.files():
        ids = pq.read_table(f"{table._scope.context.storage.data_path}{file.path}", partitioning=None).column(
            "id"
        )
        assert ids.to_pylist() == sorted(ids.to_pylist(), reverse=True)


def test_files_of_an_older_layout_come_into_the_present_one(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, r VARCHAR")
    table.set_option("data_inlining_row_limit", 1)
    table.append([{"id": n, "r": "ab"[n % 2]} for n in (5, 4, 3, 2)])
    table.append([{"id": 1, "r": "b"}])
    table.add_column("n", "INT", default="7")
    table.rename_column("r", "region")
    table.set_partitioning(["region"])
    table.append([{"id": n, "region": "a", "n": 8} for n in (9, 8)])
    rows = content(table)
    assert catalog.compact().tables[0].files_in == 2
    assert content(table) == rows
    assert sorted((file.partition_values, file.record_count) for file in table.files()) == [
        (("a",), 2),
        (("a",), 2),
        (("b",), 3),
    ]
    # Now they have neighbours.
    assert (catalog.compact().files_in, len(table.files())) == (2, 2)
    assert content(table) == rows
    assert table.scan("region = 'b'").plan().pruned[0].path.split("/")[-2] == "region=a"
    table.set_partitioning([])
    assert (catalog.compact().files_in, len(table.files())) == (2, 1)
    assert content(table) == rows


def test_files_near_the_target_size_stay(catalog: forklake.Catalog, table: forklake.Table) -> None:
    for start in range(0, 50, 10):
        table.append(numbered(*range(start, start + 10)))
    size = table.files()[0].file_size_bytes
    table.set_option("target_file_size", size)
    assert catalog.compact().tables == ()
    table.set_option("target_file_size", 2 * size + 10)
    (told,) = catalog.compact().tables
    assert (told.files_in, told.files_out) == (4, 2)
    assert len(table.files()) == 3
    assert catalog.compact(min_files=4).tables == ()
    table.set_option("target_file_size", None)
    assert catalog.compact(min_files=4).tables == ()
    assert catalog.compact(min_files=3).files_in == 3


def test_imported_files_become_files_of_the_table(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    for region in ("x", "y"):
        (folder / f"v={region}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), folder / f"v={region}" / "f.parquet")
    table.append(numbered(9, 8, 7))
    table.add_files(folder, mapping="by_name")
    table.delete("id = 2 AND v = 'y'")
    rows, before = content(table), catalog.snapshot
    (told,) = catalog.compact().tables
    assert (told.files_in, told.files_out, told.rows_dropped) == (3, 1, 1)
    assert content(table) == content(table, at=before) == rows
    assert [row[2] for row in rows] == ["x"] * 6 + ["y"] * 2
    assert all(file.path.startswith("main_catalog/") for file in table.files())
    assert len(list(folder.rglob("*.parquet"))) == 2


def test_structs_that_changed_are_written_as_they_are_now(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT, s STRUCT(a INT, b VARCHAR), l STRUCT(x INT)[], gone INT")
    table.set_option("data_inlining_row_limit", 0)
    table.append([{"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1}, None], "gone": 1}])
    table.rename_column("s.a", "aa")
    table.drop_column("s.b")
    table.add_column("s.c", "INT")
    table.alter_type("id", "BIGINT")
    table.drop_column("gone")
    table.append([{"id": 2, "s": {"aa": 2, "c": 3}, "l": None}])
    past = [content(table, at=snapshot.id) for snapshot in table.history()]
    rows = [repr(row) for row in content(table)]
    catalog.compact()
    assert [repr(row) for row in content(table)] == rows
    assert len(table.files()) == 1
    assert [content(table, at=snapshot.id) for snapshot in table.history()][: len(past)] == past


def test_all_tables_are_compacted_each_in_a_commit_of_its_own(
    catalog: forklake.Catalog, table: forklake.Table
) -> None:
    catalog.create_schema("s")
    other = catalog.create_table("s.other", "id BIGINT")
    catalog.create_table("empty", "id BIGINT")
    dropped = catalog.create_table("dropped", "id BIGINT")
    for each in (table, other, dropped):
        each.append([{"id": 1}])
        each.append([{"id": 2}])
    dropped.drop()
    before = catalog.snapshot
    told = catalog.compact()
    assert [(one.table, one.files_in, one.rows) for one in told.tables] == [
        ("main.t", 2, 2),
        ("s.other", 2, 2),
    ]
    assert (told.files_in, told.files_out, told.rows) == (4, 2, 4)
    assert catalog.snapshot == before + 2
    with pytest.raises(TableNotFound):
        catalog.compact("dropped")


def test_a_transaction_compacts_in_its_own_commit(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    other = catalog.create_table("other", "id BIGINT")
    other.append([{"id": 1}])
    before, rows = catalog.snapshot, content(worn)
    with catalog.transaction() as tx:
        assert tx.compact().files_in == 6
        assert content(tx.table("t")) == rows
        assert tx.compact().tables == ()
    assert catalog.snapshot == before + 1
    assert content(worn) == rows
    assert feed(worn, before) == feed(other, before) == []


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_transaction_may_compact_and_change_rows(catalog: forklake.Catalog, raw, verb: str) -> None:
    meant = {"id = 4": lambda n: n == 4, "id < 9": lambda n: n < 9, None: lambda n: True}
    for at, (first, where) in enumerate(product(("compact", "change"), meant)):
        table = catalog.create_table(f"t{at}", "id BIGINT, v VARCHAR")
        table.set_option("data_inlining_row_limit", 2)
        wear(table)
        before, rows = catalog.snapshot, content(table)
        with catalog.transaction() as tx:
            inner = tx.table(f"t{at}")
            if first == "compact":
                assert inner.compact().files_in == 5
            changed = inner.delete(where) if verb == "delete" else inner.update({"v": "'new'"}, where)
            if first == "change":
                inner.compact()
            inside = content(inner)
        hit = [row for row in rows if meant[where](row[1])]
        kept = [row for row in rows if row not in hit]
        after = sorted(kept if verb == "delete" else [*kept, *((key, n, "new") for key, n, _ in hit)])
        assert changed == len(hit) > 0
        assert inside == content(table) == after
        assert table.count() == table.stats().record_count == len(after)
        told = {
            "delete": [("delete", before + 1, *row) for row in hit],
            "update": [
                (kind, before + 1, key, n, v if kind == "update_preimage" else "new")
                for key, n, v in hit
                for kind in ("update_preimage", "update_postimage")
            ],
        }
        assert feed(table, before) == told[verb]
        assert content(table, at=before) == rows
        statistics = raw(f"SELECT record_count FROM ducklake_table_stats WHERE table_id = {table.id}")
        assert statistics == [(len(after),)]
        table.compact()
        assert content(table) == after
        assert feed(table, before) == told[verb]


def test_a_compaction_that_fails_leaves_no_trace(
    catalog: forklake.Catalog,
    worn: forklake.Table,
    lake: forklake.Lake,
    reopen,
    stored: Callable[[], list[str]],
) -> None:
    catalog.create_table("other", "id BIGINT")
    broken = Path(lake.data_path, places(worn)[0] or "")
    whole = broken.read_bytes()
    rows, before = content(worn), catalog.snapshot
    broken.write_bytes(whole[:-20])
    fresh = reopen().catalog("main_catalog")
    for scope in (fresh, fresh.transaction()):
        with pytest.raises(StorageError, match="restore it"):
            scope.compact()
    broken.write_bytes(whole)
    assert (catalog.snapshot, content(worn)) == (before, rows)
    assert len(stored()) == 4


def test_progress_is_told(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    told: list[forklake.Progress] = []
    catalog.compact(progress=told.append)
    assert told == [forklake.Progress("compact main.t", done, 5, "files") for done in (0, 5)]


def test_the_past_is_not_compacted(catalog: forklake.Catalog, worn: forklake.Table) -> None:
    with pytest.raises(InvalidArgument, match="past"):
        catalog.table("t", at=catalog.snapshot).compact()
