"""Checkpoints: everything that keeps a lake small, in order, for the catalogs that need it and no others."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.model.options import Options
from forklake.store.backend import Database
from tests.contract.conftest import Reopen, RunSql
from tests.invariants import check_files

NOW = timedelta(0)


def rows(start: int, end: int) -> list[dict[str, object]]:
    return [{"id": number, "v": f"v{number}"} for number in range(start, end)]


def ids(catalog: forklake.Catalog, table: str = "t") -> list[int]:
    return sorted(row["id"] for row in catalog.table(table).to_pylist())


def files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "files").rglob("*.parquet")}


def in_files(catalog: forklake.Catalog, name: str) -> forklake.Table:
    table = catalog.create_table(name, "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    return table


def at_once(lake: forklake.Lake) -> None:
    """Keep nothing that is not needed now."""
    for name in ("expire_older_than", "delete_older_than", "orphans_older_than"):
        lake.set_option(name, NOW)


def test_a_checkpoint_does_all_of_it_and_leaves_nothing(lake: forklake.Lake, tmp_path: Path) -> None:
    at_once(lake)
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    for start in range(0, 40, 10):
        table.append(rows(start, start + 10))
    small = shop.create_table("small", "id INT, v VARCHAR")
    small.append(rows(0, 3))
    lake.drop_catalog(lake.fork("shop", "gone"))
    orphan = tmp_path / "files" / f"{'0' * 32}-0.parquet"
    orphan.write_bytes(b"x" * 7)
    done = lake.checkpoint()
    assert done.succeeded and not done.failures
    assert [(one.catalog, one.table, one.rows) for one in done.flush] == [("shop", "main.small", 3)]
    assert isinstance(done.expire, forklake.LakeExpireResult)
    assert (done.expire.catalogs, done.expire.forgotten) == (1, 1)
    assert [(one.catalog, one.rewritten.table, one.rewritten.files_in) for one in done.compact] == [
        ("shop", "main.t", 4)
    ]
    assert done.rewrite == ()
    assert done.orphans is not None and done.orphans.files == 1
    # What was compacted now is expired and removed by the next one.
    assert done.collect is not None and done.collect.removed == 0
    assert (done.files, done.bytes) == (1, 7)
    again = lake.checkpoint()
    assert again.collect is not None
    assert (again.flush, again.compact, again.rewrite) == ((), (), ())
    assert again.files == again.collect.removed == 4
    assert again.bytes == done.compact[0].rewritten.bytes_in
    assert len(files(tmp_path)) == 2
    assert (ids(shop), ids(shop, "small")) == (list(range(40)), [0, 1, 2])
    last = lake.checkpoint()
    assert (last.files, last.bytes, last.flush, last.compact) == (0, 0, (), ())
    check_files(lake)


def test_a_dry_run_says_what_would_be_freed_and_changes_nothing(
    lake: forklake.Lake, raw: RunSql, tmp_path: Path
) -> None:
    at_once(lake)
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    table.append(rows(0, 10))
    first = files(tmp_path)
    size = sum(path.stat().st_size for path in (tmp_path / "files").rglob("*.parquet"))
    table.overwrite(rows(10, 20))
    table.append(rows(20, 30))
    shop.create_table("small", "id INT").append([{"id": 1}])
    table.delete("id < 15")
    before = (shop.snapshot, files(tmp_path), raw("SELECT * FROM ducklake_catalog_head"))
    found = lake.checkpoint(dry_run=True)
    assert (shop.snapshot, files(tmp_path), raw("SELECT * FROM ducklake_catalog_head")) == before
    assert found.dry_run and found.succeeded
    assert [(one.table, one.rows) for one in found.flush] == [("main.small", 1)]
    assert [one.rewritten.files_in for one in found.compact] == [2]
    assert found.collect is not None and found.collect.dry_run
    assert (found.files, found.bytes) == (1, size)
    done = lake.checkpoint()
    assert (done.files, done.bytes) == (1, size)
    assert not first & files(tmp_path)


def test_files_wait_as_long_as_the_options_say(lake: forklake.Lake, tmp_path: Path) -> None:
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    table.append(rows(0, 10))
    table.overwrite(rows(10, 20))
    orphan = tmp_path / "files" / f"{'0' * 32}-0.parquet"
    orphan.write_bytes(b"")
    first = shop.snapshots()[0].id
    done = lake.checkpoint()
    assert (done.files, done.collect and done.collect.scheduled) == (0, 0)
    assert shop.at(first).tables() == [] and len(files(tmp_path)) == 3
    lake.set_option("expire_older_than", "0 seconds")
    lake.set_option("keep_last_snapshots", 3)
    lake.checkpoint()
    assert len(shop.snapshots()) == 3
    lake.set_option("keep_last_snapshots", 1)
    done = lake.checkpoint()
    assert done.collect is not None
    assert (done.files, done.collect.scheduled, len(files(tmp_path))) == (0, 1, 3)
    found = lake.checkpoint(dry_run=True)
    assert found.files == 0
    lake.set_option("delete_older_than", "0s")
    assert lake.checkpoint().files == 1
    assert orphan.exists()
    lake.set_option("orphans_older_than", NOW)
    assert lake.checkpoint().files == 1
    assert not orphan.exists()


def test_nothing_is_expired_if_the_lake_says_never(lake: forklake.Lake) -> None:
    lake.set_option("expire_older_than", "never")
    shop = lake.create_catalog("shop")
    in_files(shop, "t").append(rows(0, 10))
    lake.drop_catalog(lake.fork("shop", "gone"))
    before = shop.snapshots()
    done = lake.checkpoint()
    assert isinstance(done.expire, forklake.LakeExpireResult)
    assert done.expire.forgotten == 0
    assert [shop.at(one.id).snapshot for one in before] == [one.id for one in shop.snapshots()]
    lake.undrop_catalog("gone")
    assert lake.catalog("gone").checkpoint().failures == ()


def test_catalogs_whose_time_is_over_are_dropped(lake: forklake.Lake) -> None:
    lake.create_catalog("shop")
    lake.fork("shop", "brief", ttl=timedelta(microseconds=1))
    done = lake.checkpoint(author="ada")
    assert isinstance(done.expire, forklake.LakeExpireResult)
    assert done.expire.dropped == ("brief",)
    assert lake.snapshots()[-1].author == "ada"


def test_a_fork_works_on_its_own_files_and_not_on_those_it_inherited(
    lake: forklake.Lake, tmp_path: Path
) -> None:
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    for start in (0, 10, 20):
        table.append(rows(start, start + 10))
    shop.create_table("small", "id INT").append([{"id": 1}])
    idle = lake.fork("shop", "idle")
    busy = lake.fork("shop", "busy")
    for start in (30, 40):
        busy.table("t").append(rows(start, start + 10))
    busy.table("small").append([{"id": 2}])
    before = files(tmp_path)
    stood = idle.snapshot
    done = lake.checkpoint(message="hourly")
    assert {(one.catalog, one.rewritten.table, one.rewritten.files_in) for one in done.compact} == {
        ("shop", "main.t", 3),
        ("busy", "main.t", 2),
    }
    assert [(one.catalog, one.rows) for one in done.flush] == [("shop", 1), ("busy", 1)]
    assert len(files(tmp_path) - before) == 4
    assert idle.snapshot == stood
    assert (ids(idle), ids(busy), ids(shop)) == (list(range(30)), list(range(50)), list(range(30)))
    assert (ids(idle, "small"), ids(busy, "small")) == ([1], [1, 2])
    assert busy.snapshots()[-1].message == "hourly"
    lake.merge("busy", "shop")
    assert (ids(shop), ids(shop, "small")) == (list(range(50)), [1, 2])
    check_files(lake)


def test_idle_forks_are_not_visited(
    lake: forklake.Lake, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    table.append(rows(0, 10))
    table.append(rows(10, 20))
    lake.fork_many("shop", [f"f{number}" for number in range(3)])
    few = _statements(lake, database, monkeypatch)
    lake.fork_many("shop", [f"g{number}" for number in range(100)])
    table.append(rows(20, 30))
    assert _statements(lake, database, monkeypatch) <= few


def _statements(lake: forklake.Lake, database: Database, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    original = database.rows

    def counted(statement: str, /, **params: Any) -> Any:
        nonlocal count
        count += 1
        return original(statement, **params)

    with monkeypatch.context() as patch:
        patch.setattr(database, "rows", counted)
        lake.checkpoint()
    return count


def test_files_with_many_deletes_are_rewritten(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    table, other = in_files(shop, "t"), in_files(shop, "o")
    for one in (table, other):
        one.append(rows(0, 200))
    fork = lake.fork("shop", "fork")
    table.delete("id < 150")
    other.delete("id < 150")
    fork.table("t").delete("id >= 10")
    assert lake.checkpoint().rewrite[0].catalog == "fork"
    lake.set_option("rewrite_delete_threshold", 0.5)
    other.set_option("rewrite_delete_threshold", "0.9")
    done = lake.checkpoint()
    assert [(one.catalog, one.rewritten.table, one.rewritten.rows_dropped) for one in done.rewrite] == [
        ("shop", "main.t", 150)
    ]
    other.set_option("rewrite_delete_threshold", 0)
    done = shop.checkpoint()
    assert [(one.rewritten.table, one.rewritten.rows_dropped) for one in done.rewrite] == [("main.o", 150)]
    assert (ids(shop), ids(shop, "o")) == (list(range(150, 200)), list(range(150, 200)))
    assert ids(fork) == list(range(10))
    assert lake.checkpoint().rewrite == ()
    check_files(lake)


def test_deletes_inherited_and_inlined_count_together(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    table.append(rows(0, 100))
    table.delete("id < 60")
    table.set_option("data_inlining_row_limit", 100)
    fork = lake.fork("shop", "fork")
    fork.table("t").delete("id < 96")
    assert [one.catalog for one in lake.checkpoint().rewrite] == ["fork"]
    assert ids(fork) == [96, 97, 98, 99]
    assert ids(shop) == list(range(60, 100))


def test_tables_that_say_so_are_left_alone(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    tables = {name: in_files(shop, name) for name in ("a", "b")}
    for table in tables.values():
        for start in (0, 10):
            table.append(rows(start, start + 10))
        table.set_option("data_inlining_row_limit", 10)
        table.append(rows(20, 21))
        table.set_option("data_inlining_row_limit", 0)
    tables["a"].set_option("auto_compact", False)
    done = lake.checkpoint(dry_run=True)
    assert [one.table for one in done.flush] == [one.rewritten.table for one in done.compact] == ["main.b"]
    lake.set_option("auto_compact", False)
    tables["a"].set_option("auto_compact", True)
    done = lake.checkpoint()
    assert [one.table for one in done.flush] == [one.rewritten.table for one in done.compact] == ["main.a"]


def test_a_table_that_fails_stops_no_other(lake: forklake.Lake, tmp_path: Path) -> None:
    shop = lake.create_catalog("shop")
    other = lake.create_catalog("other")
    for catalog, name in ((shop, "a"), (shop, "b"), (other, "c")):
        table = in_files(catalog, name)
        for start in (0, 10):
            table.append(rows(start, start + 10))
    (broken, _) = shop.table("a").files()
    (tmp_path / "files" / broken.path).unlink()
    done = lake.checkpoint()
    assert not done.succeeded
    ((failure),) = done.failures
    assert (failure.step, failure.catalog, failure.table) == ("compact", "shop", "main.a")
    assert "is missing" in failure.error
    assert {one.rewritten.table for one in done.compact} == {"main.b", "main.c"}
    assert done.collect is not None and done.orphans is not None


def test_a_catalog_cleans_its_own_tables_and_history(lake: forklake.Lake) -> None:
    at_once(lake)
    shop, other = lake.create_catalog("shop"), lake.create_catalog("other")
    for catalog in (shop, other):
        table = in_files(catalog, "t")
        for start in (0, 10):
            table.append(rows(start, start + 10))
        catalog.create_table("small", "id INT").append([{"id": 1}])
    before = other.snapshots()
    tried = shop.checkpoint(dry_run=True)
    assert isinstance(tried.expire, forklake.ExpireResult) and tried.expire.snapshots
    done = shop.checkpoint(author="ada")
    assert isinstance(done.expire, forklake.ExpireResult)
    assert (done.expire.catalog, done.collect, done.orphans) == ("shop", None, None)
    assert [one.table for one in done.flush] == ["main.small"]
    assert [one.rewritten.files_in for one in done.compact] == [2]
    assert shop.snapshots()[-1].author == "ada"
    assert other.snapshots() == before
    with pytest.raises(forklake.InvalidArgument, match="past cannot change"):
        shop.at(shop.snapshot).checkpoint()


def test_options_of_another_process_count(lake: forklake.Lake, reopen: Reopen, lake_url: str) -> None:
    shop = lake.create_catalog("shop")
    assert lake.options() == Options()
    with_option = lake if lake_url.startswith("duckdb") else reopen()
    with_option.set_option("expire_older_than", timedelta(0))
    shop.create_table("t", "id INT")
    lake.checkpoint()
    assert len(shop.snapshots()) == 1


def test_progress_is_told(lake: forklake.Lake) -> None:
    shop = lake.create_catalog("shop")
    table = in_files(shop, "t")
    table.append(rows(0, 10))
    table.append(rows(10, 20))
    shop.create_table("small", "id INT").append([{"id": 1}])
    told: list[forklake.Progress] = []
    lake.checkpoint(progress=told.append)
    assert {"flush inlined rows", "compact main.t", "collect garbage", "look for orphans"} <= {
        step.what for step in told
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expire_older_than", "-1 days"),
        ("expire_older_than", 7),
        ("expire_older_than", timedelta(-1)),
        ("delete_older_than", "never"),
        ("delete_older_than", None),
        ("orphans_older_than", "3 fortnights"),
        ("orphans_older_than", "999999999999 days"),
        ("keep_last_snapshots", 0),
        ("auto_compact", "maybe"),
        ("rewrite_delete_threshold", 1.5),
        ("rewrite_delete_threshold", True),
        ("rewrite_delete_threshold", "nan"),
    ],
)
def test_options_that_make_no_sense_are_refused(lake: forklake.Lake, name: str, value: object) -> None:
    with pytest.raises(forklake.InvalidArgument, match=name):
        lake.set_option(name, value)
    assert lake.options() == Options()


def test_a_table_has_no_retention_of_its_own(catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id INT")
    for name in ("expire_older_than", "delete_older_than", "orphans_older_than", "keep_last_snapshots"):
        with pytest.raises(forklake.InvalidArgument, match="option of the lake"):
            table.set_option(name, 3 if name.startswith("keep") else "3 days")


def test_what_is_no_function_cannot_be_told(lake: forklake.Lake) -> None:
    with pytest.raises(forklake.InvalidArgument, match="progress"):
        lake.checkpoint(progress="loud")  # type: ignore[arg-type]
    with pytest.raises(forklake.InvalidArgument, match="extra"):
        lake.checkpoint(extra=3)  # type: ignore[arg-type]
