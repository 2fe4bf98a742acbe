"""What goes wrong is told file by file, stops nothing else, and the next run goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import forklake
from forklake.data.storage.storage import Storage
from forklake.errors import StoreUnavailable
from forklake.store import garbage
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, ids, named, on_disk, rows
from tests.contract.test_clock import Turn, only_postgresql, turn_clock, wrong_by
from tests.unit.command_line import run

__all__ = ["turn_clock"]


@pytest.fixture
def dead(lake: forklake.Lake, raw: RunSql, tmp_path: Path) -> list[Path]:
    """Three files that nobody reaches."""
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    for start in (0, 5, 10):
        table.append(rows(start, start + 5))
    old = named(raw)
    table.overwrite(rows(20, 25))
    lake.expire(older_than=NOW)
    return [tmp_path / "files" / path for path in sorted(old)]


def queued(raw: RunSql) -> list[str]:
    found = raw("SELECT path FROM ducklake_files_scheduled_for_deletion ORDER BY path")
    return [path for (path,) in found]


def blocked(path: Path) -> Callable[[], None]:
    """Let a file be something that cannot be removed like a file; gives what makes it one again."""
    path.unlink()
    (path / "inside").mkdir(parents=True)

    def free() -> None:
        (path / "inside").rmdir()
        path.rmdir()
        path.write_bytes(b"PAR1")

    return free


def test_a_file_that_cannot_be_removed(
    lake: forklake.Lake, lake_url: str, dead: list[Path], raw: RunSql, tmp_path: Path
) -> None:
    free = blocked(dead[1])
    found = lake.collect_garbage(older_than=NOW)
    stored = str(dead[1].relative_to(tmp_path / "files"))
    assert (found.scheduled, found.removed) == (3, 2)
    assert [(file.path, file.failed) for file in found.kept] == [(stored, True)]
    assert str(dead[1]) in found.kept[0].why
    assert not dead[0].exists() and not dead[2].exists()
    assert queued(raw) == [stored]
    ended = run("--lake", lake_url, "gc", "--older-than", "0s")
    assert ended.exit_code == 1 and stored in ended.stderr
    free()
    assert lake.collect_garbage(older_than=NOW).removed == 1
    assert queued(raw) == [] and on_disk(tmp_path / "files") == named(raw)
    assert run("--lake", lake_url, "gc", "--older-than", "0s").exit_code == 0


def test_an_orphan_that_cannot_be_removed(
    lake: forklake.Lake, lake_url: str, dead: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(lake)
    orphans = [dead[0].with_name(digit * 32 + "-0.parquet") for digit in "abc"]
    for path in orphans:
        path.write_bytes(b"PAR1")
    failure = Storage._failure_to_delete

    def refusing(storage: Storage, path: str, relative: bool) -> Any:
        if path.endswith(orphans[1].name):
            return forklake.StorageError(f"deleting {path} is not allowed")
        return failure(storage, path, relative)

    monkeypatch.setattr(Storage, "_failure_to_delete", refusing)
    ended = run("--lake", lake_url, "orphans", "--older-than", "0s")
    assert ended.exit_code == 1 and orphans[1].name in ended.stderr
    assert [path.exists() for path in orphans] == [False, True, False]
    monkeypatch.undo()
    assert lake.remove_orphans(older_than=NOW).files == 1
    assert ids(lake.catalog("shop")) == list(range(20, 25))


def test_a_file_that_is_gone_already(lake: forklake.Lake, dead: list[Path], raw: RunSql) -> None:
    dead[0].unlink()
    found = lake.collect_garbage(older_than=NOW)
    assert (found.removed, found.kept) == (3, ())
    assert queued(raw) == []


@pytest.mark.parametrize("reaching", ["outside", "above", "strange"])
def test_a_path_that_is_not_the_lakes_is_never_removed(
    lake: forklake.Lake, dead: list[Path], raw: RunSql, tmp_path: Path, reaching: str
) -> None:
    name = "0" * 32 + "-0.parquet"
    other = tmp_path / "other" / name
    other.parent.mkdir()
    other.write_text("somebody's")
    path, relative = {
        "outside": (str(other), False),
        "above": (f"../other/{name}", True),
        "strange": ("shop/main/t/mine.parquet", True),
    }[reaching]
    mine = tmp_path / "files" / "shop" / "main" / "t" / "mine.parquet"
    mine.write_text("mine")
    raw(
        "INSERT INTO ducklake_files_scheduled_for_deletion "
        "(catalog_id, path, path_is_relative, schedule_start) "
        f"SELECT 0, '{path}', {relative}, min(snapshot_time) FROM ducklake_snapshot"
    )
    found = lake.collect_garbage(older_than=NOW)
    assert other.exists() and mine.exists()
    assert found.removed == 3
    assert [file.path for file in found.kept] == [path]
    assert not any(path.exists() for path in dead)


@wrong_by
@only_postgresql
def test_ages_are_those_of_the_clock_of_the_database(
    lake: forklake.Lake, dead: list[Path], turn_clock: Turn, by: timedelta
) -> None:
    turn_clock(by)
    assert lake.collect_garbage(older_than=timedelta(hours=1)).removed == 0
    assert lake.collect_garbage(older_than=timedelta(hours=1)).removed == 0
    assert all(path.exists() for path in dead)
    assert lake.remove_orphans(older_than=timedelta(hours=1)).files == 0
    assert lake.collect_garbage(older_than=NOW).removed == 3


@pytest.mark.parametrize("age", [timedelta.max, timedelta(days=10**6)])
def test_an_age_that_no_calendar_has_is_never_over(
    lake: forklake.Lake, dead: list[Path], age: timedelta
) -> None:
    shop = lake.catalog("shop")
    before = shop.snapshots()
    assert lake.collect_garbage(older_than=age).removed == 0
    assert lake.collect_garbage(older_than=age, dry_run=True).removed == 0
    assert lake.remove_orphans(older_than=age).files == 0
    for name in ("expire_older_than", "delete_older_than", "orphans_older_than"):
        lake.set_option(name, age)
    assert lake.checkpoint().succeeded
    lake.expire(older_than=NOW, keep_last=2**70)
    shop.expire(older_than=NOW, keep_last=2**70)
    assert shop.snapshots() == before
    assert all(path.exists() for path in dead)


def test_what_was_scheduled_in_the_future_stays(lake: forklake.Lake, dead: list[Path], raw: RunSql) -> None:
    assert lake.collect_garbage(older_than=timedelta(days=1)).scheduled == 3
    # The clock of the database went back since.
    later = (lake.now() + timedelta(hours=1)).isoformat()
    raw(f"UPDATE ducklake_files_scheduled_for_deletion SET schedule_start = '{later}'")
    assert lake.collect_garbage(older_than=NOW).removed == 0
    assert all(path.exists() for path in dead)


@pytest.mark.parametrize("point", ["schedule_files", "drop_history", "claim_files", "unschedule_files"])
def test_a_database_that_goes_away(
    lake: forklake.Lake,
    dead: list[Path],
    raw: RunSql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    work = getattr(garbage, point)

    def going(*given: Any) -> Any:
        work(*given)
        raise StoreUnavailable("the database went away")

    monkeypatch.setattr(f"forklake.maintenance.collect.{point}", going)
    with pytest.raises(StoreUnavailable):
        lake.collect_garbage(older_than=NOW)
    assert ids(lake.catalog("shop")) == list(range(20, 25))
    assert on_disk(tmp_path / "files") <= named(raw) | set(queued(raw))
    monkeypatch.undo()
    clean(lake)
    assert queued(raw) == [] and on_disk(tmp_path / "files") == named(raw)
    assert ids(lake.catalog("shop")) == list(range(20, 25))


def test_a_server_that_ends_connections_in_the_middle(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forklake.connect(postgres_database, data_path=tmp_path / "files", create=True) as lake:
        table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
        table.set_option("data_inlining_row_limit", 0)
        table.append(rows(0, 5))
        table.overwrite(rows(5, 10))
        lake.expire(older_than=NOW)
        delete = Storage.delete_each
        with psycopg.connect(postgres_database, autocommit=True) as connection:

            def cutting(*given: Any) -> Any:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                return delete(*given)

            monkeypatch.setattr(Storage, "delete_each", cutting)
            # No transaction was open, so a new connection goes on.
            assert lake.collect_garbage(older_than=NOW).removed == 1
            monkeypatch.undo()
        clean(lake)
        assert lake._database.rows("due_files", before=lake.now(), after="", most=10) == []
        assert ids(lake.catalog("shop")) == list(range(5, 10))
    assert len(on_disk(tmp_path / "files")) == 1
