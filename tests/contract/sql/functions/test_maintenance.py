"""Functions that keep a catalog small: flush, compact, expire, clean up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import forklake
from tests.contract.sql.functions.conftest import Call, Refused

MANY = 200
ROWS = [{"id": at} for at in range(MANY)]


def files_of(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*.parquet")}


@pytest.fixture
def folder(lake: forklake.Lake, catalog: forklake.Catalog) -> Path:
    """Where the files of the catalog are."""
    return Path(lake.data_path) / catalog.name


def filled(catalog: forklake.Catalog, name: str, writes: int = 2) -> forklake.Table:
    """A table with some small files."""
    table = catalog.create_table(name, "id BIGINT")
    for _ in range(writes):
        table.append(ROWS)
    return table


# ---- Flush ---


def test_inlined_rows_are_flushed_and_counted(
    catalog: forklake.Catalog, call: Call, refused: Refused
) -> None:
    catalog.create_schema("sales")
    for name in ("one", "sales.one", "sales.two", "sales.empty"):
        catalog.create_table(name, "id BIGINT")
    for name, count in {"one": 1, "sales.one": 2, "sales.two": 3}.items():
        catalog.table(name).append(ROWS[:count])
    before = catalog.snapshot
    flushed = [("sales", "one", 2)]
    assert [
        tuple(row.values()) for row in call("flush_inlined_data", schema_name="sales", table_name="one")
    ] == (flushed)
    assert [tuple(row.values()) for row in call("flush_inlined_data", schema_name="sales")] == [
        ("sales", "two", 3)
    ]
    assert [tuple(row.values()) for row in call("flush_inlined_data")] == [("main", "one", 1)]
    assert (call("flush_inlined_data"), catalog.snapshot) == ([], before + 3)
    assert 'no schema "nope"' in refused("flush_inlined_data", schema_name="nope")
    assert 'no table "main.nope"' in refused("flush_inlined_data", table_name="nope")


def test_a_flush_is_part_of_a_transaction(catalog: forklake.Catalog, call: Call) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append(ROWS[:3])
    with catalog.transaction() as tx:
        assert call("flush_inlined_data", work=tx)[0]["rows_flushed"] == 3
        tx.rollback()
    assert [file.path for file in table.files()] == [None]


# ---- Compaction ---


def test_small_files_are_merged_with_a_row_for_each_merge(catalog: forklake.Catalog, call: Call) -> None:
    catalog.create_schema("sales")
    filled(catalog, "one")
    filled(catalog, "sales.one")
    inlined = filled(catalog, "two", 3)
    inlined.append(ROWS[:1])
    expected = {"schema_name": "sales", "table_name": "one", "files_processed": 2, "files_created": 1}
    assert call("merge_adjacent_files", "one", schema="sales") == [expected]
    found = [tuple(row.values()) for row in call("merge_adjacent_files")]
    assert found == [("main", "one", 2, 1), ("main", "two", 3, 1)]
    assert call("merge_adjacent_files") == []
    # Inlined rows are the business of flush_inlined_data.
    assert [file.path is None for file in inlined.files()] == [False, True]


def test_merges_are_chosen_by_size_and_counted(
    catalog: forklake.Catalog, call: Call, refused: Refused
) -> None:
    table = filled(catalog, "t")
    for _ in range(2):
        table.append([{"id": at * 7919 % 10**9} for at in range(50 * MANY)])
    small, large = sorted({file.file_size_bytes for file in table.files()})
    assert call("merge_adjacent_files", "t", min_file_size=small + 1, max_file_size=large) == []
    assert call("merge_adjacent_files", "t", min_file_size=large)[0]["files_processed"] == 2
    assert len(table.files()) == 3
    assert call("merge_adjacent_files", "t", max_file_size=small + 1)[0]["files_processed"] == 2
    assert "must be less than max_file_size" in refused(
        "merge_adjacent_files", "t", min_file_size=7, max_file_size=7
    )
    assert "max_file_size is a whole number of at least 1, not 0" in refused(
        "merge_adjacent_files", "t", max_file_size=0
    )
    for wrong in (0, -1, None, "x", 1.5):
        assert "max_compacted_files is a whole number of at least 1" in refused(
            "merge_adjacent_files", "t", max_compacted_files=wrong
        )


def test_no_more_merges_are_made_than_asked_for(catalog: forklake.Catalog, call: Call) -> None:
    table = catalog.create_table("t", "id BIGINT, p INT", partition_by=["p"])
    for _ in range(2):
        table.append([{"id": at, "p": at % 3} for at in range(MANY)])
    assert len(call("merge_adjacent_files", "t", max_compacted_files=2)) == 2
    assert len(call("merge_adjacent_files", max_compacted_files=5)) == 1
    assert table.count() == 2 * MANY


def test_files_with_many_deletes_are_rewritten(
    catalog: forklake.Catalog, call: Call, refused: Refused
) -> None:
    table = filled(catalog, "t", 1)
    table.delete("id >= 150")
    assert call("rewrite_data_files") == []
    assert call("rewrite_data_files", "t", delete_threshold=0.5) == []
    expected = {"schema_name": "main", "table_name": "t", "files_processed": 1, "files_created": 1}
    assert call("rewrite_data_files", "t", delete_threshold=0.25) == [expected]
    assert [file.deleted_count for file in table.files()] == [0]
    for wrong in (-0.1, 1.1, "x", None, True):
        assert "delete_threshold is a number from 0 to 1" in refused(
            "rewrite_data_files", delete_threshold=wrong
        )


def test_rewriting_asks_the_options_of_the_table(catalog: forklake.Catalog, call: Call) -> None:
    for name in ("eager", "lazy", "never"):
        filled(catalog, name, 1).delete("id >= 150")
    catalog.table("eager").set_option("rewrite_delete_threshold", 0.2)
    catalog.table("never").set_option("rewrite_delete_threshold", 0.2)
    catalog.table("never").set_option("auto_compact", False)
    assert [row["table_name"] for row in call("rewrite_data_files")] == ["eager"]
    assert call("rewrite_data_files", "never") == []
    assert call("merge_adjacent_files", "never") == []
    catalog.table("never").append(ROWS[:1])
    assert call("flush_inlined_data") == []


# ---- Expiry ---


def test_snapshots_are_expired_by_their_ids(catalog: forklake.Catalog, call: Call) -> None:
    filled(catalog, "t")
    first, second, third, latest = (snapshot.id for snapshot in catalog.snapshots())
    known = call("snapshots")
    # The latest always stays, and what is not there needs no expiry.
    assert call("expire_snapshots", versions=[second, latest, 10**6], dry_run=True) == known[1:2]
    assert call("snapshots") == known
    assert call("expire_snapshots", versions=[second, latest, 10**6]) == known[1:2]
    assert call("expire_snapshots", versions=second) == []
    assert call("expire_snapshots", versions=None) == call("expire_snapshots", versions=[None]) == []
    assert [row["snapshot_id"] for row in call("snapshots")] == [first, third, latest]


def test_snapshots_are_expired_by_age(catalog: forklake.Catalog, call: Call, refused: Refused) -> None:
    filled(catalog, "t")
    times = [snapshot.time for snapshot in catalog.snapshots()]
    assert call("expire_snapshots") == []
    assert call("expire_snapshots", older_than=times[0]) == []
    assert len(call("expire_snapshots", older_than=str(times[1]), dry_run=True)) == 1
    assert len(call("expire_snapshots", older_than=timedelta(0))) == 3
    assert "not both" in refused("expire_snapshots", versions=[1], older_than=times[0])
    assert "versions is a list of whole numbers, not ['x']" in refused("expire_snapshots", versions=["x"])
    assert "older_than is a timestamp or an interval, not 7" in refused("expire_snapshots", older_than=7)


def test_snapshots_are_expired_as_the_options_say(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call
) -> None:
    filled(catalog, "t")
    lake.set_option("expire_older_than", timedelta(0))
    assert len(call("expire_snapshots", dry_run=True)) == 3
    lake.set_option("expire_older_than", None)
    assert call("expire_snapshots") == []


def test_a_fork_keeps_what_its_parent_expires(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call
) -> None:
    filled(catalog, "t")
    fork = lake.fork(catalog, "agent")
    assert len(call("expire_snapshots", older_than=timedelta(0))) == 3
    assert len(call("snapshots", on=fork)) == 5


# ---- Cleaning ---


def test_files_that_are_not_needed_are_listed_and_removed(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call, folder: Path
) -> None:
    table = filled(catalog, "t")
    old = files_of(folder)
    catalog.compact()
    assert call("cleanup_old_files", cleanup_all=True) == []
    call("expire_snapshots", older_than=timedelta(0))
    assert call("cleanup_old_files") == []
    going = {row["path"] for row in call("cleanup_old_files", cleanup_all=True, dry_run=True)}
    assert going == old < files_of(folder)
    assert {row["path"] for row in call("cleanup_old_files", older_than=lake.now())} == old
    assert call("cleanup_old_files", cleanup_all=True, dry_run=True) == []
    assert old.isdisjoint(files_of(folder))
    assert table.count() == 2 * MANY


def test_cleaning_of_one_catalog_leaves_the_files_of_others(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call, folder: Path
) -> None:
    other = lake.create_catalog("other")
    for each in (catalog, other):
        filled(each, "t").drop()
        each.create_table("u", "id BIGINT")
        each.expire(older_than=timedelta(0))
    mine = files_of(folder)
    assert {row["path"] for row in call("cleanup_old_files", cleanup_all=True, dry_run=True)} == mine
    assert {row["path"] for row in call("cleanup_old_files", cleanup_all=True)} == mine
    theirs = files_of(Path(lake.data_path))
    assert len(theirs) == 2
    assert {row["path"] for row in call("cleanup_old_files", on=other, cleanup_all=True)} == theirs


def test_a_file_that_a_fork_reads_is_not_removed(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call, folder: Path
) -> None:
    filled(catalog, "t")
    fork = lake.fork(catalog, "agent")
    catalog.drop_table("t")
    call("expire_snapshots", older_than=timedelta(0))
    assert call("cleanup_old_files", cleanup_all=True, dry_run=True) == []
    assert call("cleanup_old_files", cleanup_all=True) == []
    assert fork.table("t").count() == 2 * MANY


def test_orphans_of_one_catalog_are_removed(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call, folder: Path
) -> None:
    table = filled(catalog, "t", 1)
    known = files_of(folder)
    orphan = folder / "main" / "t" / "strange.parquet"
    orphan.write_bytes(next(folder.rglob("*.parquet")).read_bytes())
    (folder / "notes.txt").write_text("kept")
    elsewhere = Path(lake.data_path) / "elsewhere.parquet"
    elsewhere.write_bytes(b"")
    assert call("delete_orphaned_files") == []
    assert call("delete_orphaned_files", older_than=timedelta(hours=1)) == []
    assert call("delete_orphaned_files", cleanup_all=True, dry_run=True) == [{"path": str(orphan)}]
    call("add_data_files", "t", str(orphan))
    assert call("delete_orphaned_files", cleanup_all=True, dry_run=True) == []
    table.drop()
    catalog.create_table("u", "id BIGINT")
    call("expire_snapshots", older_than=timedelta(0))
    call("cleanup_old_files", cleanup_all=True)
    assert call("delete_orphaned_files", cleanup_all=True) == [{"path": str(orphan)}]
    assert (files_of(Path(lake.data_path)), known & files_of(folder)) == ({str(elsewhere)}, set())
    assert (folder / "notes.txt").exists()


def test_cleaning_is_asked_for_in_one_way(refused: Refused) -> None:
    for name in ("cleanup_old_files", "delete_orphaned_files"):
        assert f"{name} takes cleanup_all or older_than, not both" in refused(
            name, cleanup_all=True, older_than=timedelta(0)
        )
        assert "has no parameter versions: it is called as" in refused(name, versions=[1])
        assert "cleanup_all is true or false, not 'maybe'" in refused(name, cleanup_all="maybe")


def test_what_cannot_be_undone_is_no_part_of_a_transaction(
    catalog: forklake.Catalog, call: Call, refused: Refused
) -> None:
    with catalog.transaction() as tx:
        for name in ("expire_snapshots", "cleanup_old_files", "delete_orphaned_files", "checkpoint", "check"):
            assert f"{name} cannot be part of a transaction" in refused(name, work=tx)


# ---- All at once ---


def test_a_checkpoint_says_what_it_did_step_by_step(
    lake: forklake.Lake, catalog: forklake.Catalog, call: Call, folder: Path
) -> None:
    table = filled(catalog, "t")
    old = files_of(folder)
    table.append(ROWS[:3])
    lake.set_option("expire_older_than", timedelta(0))
    lake.set_option("delete_older_than", timedelta(0))
    planned = call("checkpoint", dry_run=True)
    assert [row["step"] for row in planned] == ["flush", "expire", "compact"]
    assert old == files_of(folder)
    found = {row["step"]: row for row in call("checkpoint")}
    assert list(found) == ["flush", "expire", "compact"]
    assert {row["catalog"] for row in found.values()} == {catalog.name}
    assert (found["flush"]["table"], found["flush"]["rows"]) == ("main.t", 3)
    assert (found["compact"]["files_processed"], found["compact"]["files_created"]) == (3, 1)
    assert found["expire"]["snapshots"] == 5
    # What was merged is needed until the snapshots before are expired.
    assert [row["step"] for row in call("checkpoint")] == ["expire", "collect"]
    assert old.isdisjoint(files_of(folder))
    assert table.count() == 2 * MANY + 3
    assert call("checkpoint") == []


def test_the_lake_is_cleaned_and_checked(lake: forklake.Lake, catalog: forklake.Catalog, call: Call) -> None:
    table = filled(catalog, "t")
    catalog.compact()
    catalog.expire(older_than=timedelta(0))
    assert call("collect_garbage", older_than="0 days", dry_run=True) == [
        {"files": 0, "bytes": 0, "kept": []}
    ]
    assert call("collect_garbage", older_than=timedelta(0))[0]["files"] == 2
    assert call("remove_orphans") == [{"files": 0, "bytes": 0, "kept": []}]
    assert call("check", data=True) == []
    (path,) = [file["data_file"] for file in call("list_files", "t")]
    Path(path).unlink()
    (wrong,) = call("check")
    assert (wrong["kind"], wrong["catalog"], wrong["table"]) == ("file", catalog.name, "main.t")
    assert Path(path).name in wrong["path"]
    assert table.files()


def test_checkpoint_as_a_statement_says_what_it_did_too(
    catalog: forklake.Catalog, lake: forklake.Lake
) -> None:
    catalog.sql("CREATE TABLE t (id BIGINT)")
    catalog.sql("INSERT INTO t VALUES (1), (2)")
    found = catalog.sql("CHECKPOINT")
    assert [(row["step"], row["table"], row["rows"]) for row in found.to_pylist()] == [("flush", "main.t", 2)]
    catalog.sql("BEGIN")
    with pytest.raises(forklake.InvalidArgument, match="cannot be part of a transaction"):
        catalog.sql("CHECKPOINT")
    catalog.sql("ROLLBACK")
    assert catalog.sql("CHECKPOINT").to_rows() == []
