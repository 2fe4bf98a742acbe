"""Collecting garbage: what somebody can reach stays, and what nobody can goes, rows and files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.engine.select import read_table
from forklake.maintenance import collect
from forklake.store.backend import Database
from forklake.store.tables import TABLES
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, files, ids, named, on_disk, rows


@pytest.fixture
def table(lake: forklake.Lake) -> forklake.Table:
    """A table whose rows are in files."""
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    return table


def test_replaced_files_go_when_their_snapshots_are_expired(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    table.append(rows(0, 10))
    table.append(rows(10, 20))
    before = files(tmp_path)
    lake.catalog("shop").compact()
    after = files(tmp_path) - before
    assert lake.collect_garbage(older_than=NOW).removed == 0
    assert files(tmp_path) == before | after
    lake.catalog("shop").expire(older_than=NOW)
    found = lake.collect_garbage(older_than=timedelta(days=1))
    assert (found.scheduled, found.removed) == (2, 0)
    assert files(tmp_path) == before | after
    assert lake.collect_garbage(older_than=NOW, dry_run=True).removed == 2
    assert lake.collect_garbage(older_than=NOW).removed == 2
    assert files(tmp_path) == after
    assert ids(lake.catalog("shop")) == list(range(20))
    assert lake.collect_garbage(older_than=NOW).removed == 0


def test_a_file_stays_as_long_as_a_fork_reads_it(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    table.append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    before = files(tmp_path)
    table.overwrite(rows(50, 60))
    clean(lake)
    assert before <= files(tmp_path)
    assert ids(fork) == list(range(10))
    lake.drop_catalog(fork)
    assert ids(lake.undrop_catalog("fork")) == list(range(10))
    lake.drop_catalog("fork")
    clean(lake)
    assert not before & files(tmp_path)
    assert ids(lake.catalog("shop")) == list(range(50, 60))
    with pytest.raises(forklake.CatalogNotFound):
        lake.undrop_catalog("fork")


def test_files_that_a_merge_took_over_stay_when_the_fork_is_gone(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    table.append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    fork.table("t").append(rows(10, 20))
    fork.table("t").delete("id < 5")
    lake.merge("fork", "shop")
    lake.drop_catalog("fork")
    clean(lake)
    assert ids(lake.catalog("shop")) == list(range(5, 20))
    table.append(rows(20, 21))
    assert ids(lake.catalog("shop")) == list(range(5, 21))


def test_a_fork_outlives_its_parent(lake: forklake.Lake, table: forklake.Table, tmp_path: Path) -> None:
    table.append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    child = lake.fork("fork", "child")
    table.append(rows(10, 20))
    lake.drop_catalogs(["shop", "fork"])
    clean(lake)
    assert ids(child) == list(range(10))
    # What it replaces goes, as nobody else has it.
    child.table("t").overwrite(rows(30, 31))
    clean(lake)
    assert len(files(tmp_path)) == 1
    assert ids(child) == [30]
    del fork


def test_a_parent_that_only_lives_on_in_its_fork_has_no_differences(
    lake: forklake.Lake, table: forklake.Table
) -> None:
    table.append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    table.append(rows(10, 20))
    table.delete("id = 3")
    lake.drop_catalog("shop")
    clean(lake)
    assert lake.check(data=True).differences == ()
    assert ids(fork) == list(range(10))


def test_imported_files_are_never_removed(lake: forklake.Lake, table: forklake.Table, tmp_path: Path) -> None:
    given = tmp_path / "given.parquet"
    inside = tmp_path / "files" / "mine.parquet"
    inside.parent.mkdir(exist_ok=True)
    for path in (given, inside):
        pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": ["x"]}), path)
    table.add_files([given, inside], mapping="by_name")
    table.overwrite(rows(0, 3))
    lake.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    assert given.exists() and inside.exists()
    assert not lake.collect_garbage(older_than=NOW).kept


@pytest.mark.parametrize("through", ["real", "link"])
def test_a_file_of_the_lake_that_another_table_imported_stays_whatever_its_path_was(
    lake_url: str, tmp_path: Path, through: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    paths = {name: tmp_path / name / "files" for name in ("real", "link")}
    with forklake.connect(lake_url, data_path=paths[through], create=True) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        first, second = (lake.create_catalog(name).create_table("t", "id INT, v VARCHAR") for name in "ab")
        first.append(rows(0, 5))
        (file,) = first.files()
        other = "real" if through == "link" else "link"
        second.add_files(paths[other] / file.path, mapping="by_name")
        with pytest.raises(forklake.InvalidData, match="part of the table already"):
            first.add_files(paths[other] / file.path, mapping="by_name")
        lake.drop_catalog("a")
        lake.expire(older_than=NOW)
        lake.collect_garbage(older_than=NOW)
        assert ids(lake.catalog("b")) == [0, 1, 2, 3, 4]
        lake.drop_catalog("b")
        lake.expire(older_than=NOW)
        lake.collect_garbage(older_than=NOW)


def test_a_file_that_a_merge_brought_has_the_names_of_columns_that_were_inherited(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    given = tmp_path / "given.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": ["x"]}), given)
    table.add_files(given, mapping="by_name")
    past = lake.catalog("shop").snapshot
    fork = lake.fork("shop", "fork")
    table.overwrite(rows(5, 6))
    table.restore(past)
    lake.merge("shop", fork)
    for _ in range(2):
        assert fork.table("t").to_pylist() == [{"id": 1, "v": "x"}]
        assert lake.check(data=True).differences == ()
        fork.expire(older_than=NOW)
        clean(lake)
    lake.drop_catalog("shop")
    clean(lake)
    assert fork.table("t").to_pylist() == [{"id": 1, "v": "x"}]
    assert lake.check(data=True).differences == ()


def test_a_forgotten_parent_has_the_names_of_columns_of_what_was_merged_into_it(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path
) -> None:
    given = tmp_path / "given.parquet"
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": ["x"]}), given)
    fork = lake.fork("shop", "fork")
    before = fork.snapshot
    fork.table("t").add_files(given, mapping="by_name")
    lake.fork("fork", "behind", at=before)
    lake.merge(fork, "shop")
    lake.drop_catalog("shop")
    clean(lake)
    assert lake.check(data=True).differences == ()
    lake.merge(fork, "behind")
    assert lake.catalog("behind").table("t").to_pylist() == [{"id": 1, "v": "x"}]
    clean(lake)
    assert lake.check(data=True).differences == ()


def test_a_dropped_column_is_never_read_again(lake: forklake.Lake, table: forklake.Table) -> None:
    table.append(rows(0, 3))
    table.drop_column("v")
    clean(lake)
    table.add_column("v", "VARCHAR")
    assert table.to_pylist() == [{"id": n, "v": None} for n in range(3)]


def test_a_renamed_macro_keeps_what_it_says(lake: forklake.Lake, table: forklake.Table) -> None:
    shop = lake.catalog("shop")
    shop.create_macro("plus", ["a", "b"], "a + b")
    (before,) = shop.macros()
    shop.rename_macro("plus", "added")
    clean(lake)
    (after,) = lake.catalog("shop").macros()
    assert (after.name, after.implementations) == ("added", before.implementations)
    shop.drop_macro("added")
    clean(lake)
    assert shop.macros() == []


def test_a_lake_in_which_forks_come_and_go_does_not_grow(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path, raw
) -> None:
    table.append(rows(0, 10))

    def day(number: int) -> dict[str, int]:
        for agent in range(3):
            fork = lake.fork("shop", f"agent {number}.{agent}")
            fork.table("t").append(rows(1000 * number + 10 * agent, 1000 * number + 10 * agent + 5))
            fork.table("t").delete(f"id < {1000 * number}")
            if agent == 0:
                lake.merge(fork, "shop")
            lake.drop_catalog(fork)
        lake.catalog("shop").compact()
        clean(lake)
        return counts()

    def counts() -> dict[str, int]:
        return {name: raw(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES}

    first = [day(number) for number in range(1, 4)][-1]
    later = [day(number) for number in range(4, 7)][-1]
    assert later == first
    assert len(files(tmp_path)) <= 2


def test_a_snapshot_that_is_forked_and_then_expired_during_a_collection_stays_in_the_fork(
    lake: forklake.Lake, table: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = lake.catalog("shop")
    table.append(rows(0, 3))
    past = shop.snapshot
    table.overwrite(rows(3, 6))
    schedule = collect._scheduled

    def after_others(database: Database, kind: Any) -> Iterator[tuple[int, int]]:
        if kind == "data_file":
            lake.fork("shop", "late", at=past)
            shop.expire(versions=[past])
        return schedule(database, kind)

    monkeypatch.setattr(collect, "_scheduled", after_others)
    lake.collect_garbage(older_than=NOW)
    monkeypatch.undo()
    assert ids(lake.catalog("late")) == [0, 1, 2]
    lake.collect_garbage(older_than=NOW)
    assert ids(lake.catalog("late")) == [0, 1, 2]
    assert ids(shop) == [3, 4, 5]


def test_what_a_copy_had_deleted_inline_goes_with_its_row_of_the_file(lake: forklake.Lake, raw: Any) -> None:
    """Another catalog still has a row of that file: the copy is merged without it."""
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT, v VARCHAR")
    agent = lake.fork("shop", "agent")
    agent.table("t").append(rows(0, 3))
    agent.table("t").delete("id < 2")
    agent.table("t").update({"v": "'new'"}, "id = 2")
    lake.fork("agent", "between")
    copy = lake.fork("between", "copy", mode="copy")
    lake.drop_catalog("between")
    copy.expire(older_than=NOW)
    agent.expire(older_than=NOW)
    lake.collect_garbage(older_than=NOW)
    assert raw("SELECT DISTINCT catalog_id FROM ducklake_inlined_delete") == [(agent.id,)]
    copy.merge_into("shop")
    assert shop.table("t").to_pylist() == [{"id": 2, "v": "new"}]


def test_work_that_was_done_once_is_not_done_again_after_cleaning(lake: forklake.Lake) -> None:
    """Neither in the catalog, nor in a fork that inherited it, nor when the catalog is gone."""

    def load(catalog: forklake.Catalog) -> list[int]:
        with catalog.transaction(once="monday") as tx:
            tx.table("t").append(rows(0, 3))
        return ids(catalog)

    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT, v VARCHAR")
    assert load(shop) == [0, 1, 2]
    fork = lake.fork("shop", "fork")
    shop.table("t").overwrite(rows(20, 22))
    fork.table("t").append(rows(30, 31))
    clean(lake)
    assert load(shop) == [20, 21]
    assert load(fork) == [0, 1, 2, 30]
    lake.drop_catalog("shop")
    clean(lake)
    clean(lake)
    assert load(fork) == [0, 1, 2, 30]


def test_a_scan_whose_files_are_gone_names_the_file_and_the_snapshot(
    lake: forklake.Lake, table: forklake.Table, tmp_path: Path, reopen: Any
) -> None:
    table.append(rows(0, 5))
    planned = lake.catalog("shop").snapshot
    (old,) = files(tmp_path)
    late = reopen()
    # One has read the file before and the other has not: both planned a long time ago.
    plans = [one.catalog("shop").table("t").scan() for one in (lake, late)]
    assert plans[0].count() == len(plans[0].to_pylist()) == 5
    plans = [(scan, scan.plan(), scan.selection) for scan in plans]
    table.overwrite(rows(5, 10))
    clean(lake)
    for one, (_, plan, selection) in zip((lake, late), plans, strict=True):
        with pytest.raises(forklake.FileMissing) as caught:
            read_table(one._context.engine, plan, selection)
        assert old in str(caught.value)
        assert f'snapshot {planned} of table "t" names it' in str(caught.value)
        assert "plan it again" in str(caught.value)


def test_a_delete_file_goes_with_the_data_file_that_it_is_about(
    lake: forklake.Lake, raw: RunSql, tmp_path: Path
) -> None:
    """Merges remember what they have seen of a dropped fork; its parent, where the file was, forgets that."""
    lake.set_option("data_inlining_row_limit", 0)
    shop = lake.create_catalog("shop")
    table = shop.create_table("t", "id INT, v VARCHAR")
    empty = shop.snapshot
    table.append(rows(0, 2))
    fork = lake.fork("shop", "fork")
    fork.table("t").delete("id = 1")
    table.delete("id = 0")
    # It descends from the fork, and has nothing of what that did.
    lake.fork("fork", "late", at=empty)
    lake.merge("fork", "shop")
    table.append(rows(20, 25))
    lake.drop_catalog("fork")
    clean(lake)
    assert lake.check().differences == ()
    assert raw("SELECT count(*) FROM ducklake_delete_file") == [(0,)]
    assert on_disk(tmp_path / "files") == named(raw)
    lake.merge("late", "shop")
    lake.merge("shop", "late")
    assert ids(shop) == ids(lake.catalog("late")) == list(range(20, 25))
