"""Collections at once, with each other and with a client that forks, writes and merges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.maintenance import collect
from forklake.store import garbage
from forklake.store.backend import Database
from tests.contract.maintenance.cleaned import NOW, RunSql, clean, ids, left_behind, named, on_disk, rows

COLLECT = """
    from datetime import timedelta
    lake = forklake.connect(sys.argv[1])
    say("ready")
    stop = threading.Event()
    threading.Thread(target=lambda: (input(), stop.set()), daemon=True).start()
    kept, times = [], 0
    while not stop.is_set():
        times += 1
        lake.expire(older_than=timedelta(0))
        kept += [[file.path, file.why] for file in lake.collect_garbage(older_than=timedelta(0)).kept]
    say([times, kept])
"""
WORK = """
    lake = forklake.connect(sys.argv[1])
    # With a retention of zero, whoever is in the middle of something is told to begin again.
    AGAIN = (forklake.CommitConflict, forklake.SnapshotNotFound, forklake.FileMissing)
    again = []
    def tried(work):
        for _ in range(1000):
            try:
                return work()
            except AGAIN as error:
                again.append(f"{type(error).__name__}: {error}")
        raise AssertionError("it never went through")
    shop = lake.catalog("shop")
    expected = set()
    say("ready")
    input()
    for number in range(30):
        name = f"fork {number}"
        fork = lake.fork("shop", name)
        table = fork.table("t")
        tried(lambda: table.append([{"id": 10 * number + n, "v": "x"} for n in range(4)]))
        tried(lambda: table.delete(f"id = {10 * number}"))
        child = lake.fork(name, "child of " + name)
        tried(lambda: child.table("t").append([{"id": 10 * number + 5, "v": "y"}]))
        found = sorted(row["id"] for row in tried(lambda: child.table("t").to_pylist()))
        wanted = sorted({*expected, *(10 * number + n for n in (1, 2, 3, 5))})
        assert found == wanted, (number, found, wanted)
        if number % 3 == 0:
            tried(lambda: lake.merge(child, "shop"))
            expected |= set(wanted)
        elif number % 3 == 1:
            tried(lambda: lake.merge(name, "shop"))
            expected |= {10 * number + n for n in (1, 2, 3)}
        lake.drop_catalogs([name, "child of " + name])
        if number % 5 == 4:
            tried(lambda: shop.compact())
        found = sorted(row["id"] for row in tried(lambda: shop.table("t").to_pylist()))
        assert found == sorted(expected), (number, found, sorted(expected))
    say([sorted(expected), again])
"""


@pytest.mark.timeout(600)
def test_two_collectors_and_a_client_that_forks_and_merges(
    lake: forklake.Lake, lake_url: str, tmp_path: Path, program: Callable[..., Any], raw: RunSql
) -> None:
    if lake_url.startswith("duckdb"):
        pytest.skip("DuckDB lets one process at a time open a file")
    lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    lake.set_option("data_inlining_row_limit", 1)
    client, *collectors = (program(text, lake_url) for text in (WORK, COLLECT, COLLECT))
    for process in (client, *collectors):
        assert process.hear() == "ready"
    client.go_on()
    expected, again = client.hear()
    for collector in collectors:
        collector.go_on()
    for collector in collectors:
        times, kept = collector.hear()
        assert times > 0 and kept == []
        assert collector.wait() == 0
    assert client.wait() == 0
    clean(lake)
    assert ids(lake.catalog("shop")) == expected
    assert on_disk(tmp_path / "files") == named(raw), again
    lake.drop_catalog("shop")
    clean(lake)
    assert on_disk(tmp_path / "files") == set()
    assert left_behind(raw) == {}


def test_collectors_in_threads(
    lake: forklake.Lake, tmp_path: Path, raw: RunSql, in_threads: Callable[..., list[Any]]
) -> None:
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    for start in range(0, 200, 10):
        table.append(rows(start, start + 10))
    table.overwrite(rows(500, 510))
    lake.expire(older_than=NOW)
    found = in_threads(*[lambda: lake.collect_garbage(older_than=NOW)] * 4)
    # Each file is scheduled once; two that remove one at the same time both find it gone.
    assert sum(result.scheduled for result in found) == 20
    assert not any(result.kept for result in found)
    assert on_disk(tmp_path / "files") == named(raw)
    assert raw("SELECT count(*) FROM ducklake_reach") == [(0,)]
    assert ids(lake.catalog("shop")) == list(range(500, 510))


def test_a_file_whose_last_row_another_collection_removes_is_not_forgotten(
    lake: forklake.Lake, tmp_path: Path, raw: RunSql, reopen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    fork = lake.fork("shop", "fork")
    fork.table("t").append(rows(0, 5))
    lake.merge(fork, "shop")
    lake.drop_catalog(fork)
    lake.expire(older_than=NOW)
    # The fork's row is gone and its file is scheduled, but the parent has it too.
    assert lake.collect_garbage(older_than=timedelta(days=1)).scheduled == 1
    looked_up, other = collect._looked_up, reopen()

    def meanwhile(*given: Any) -> Any:
        found = looked_up(*given)
        monkeypatch.undo()
        other.catalog("shop").table("t").overwrite(rows(10, 15))
        other.expire(older_than=NOW)
        other.collect_garbage(older_than=timedelta(days=1))
        return found

    monkeypatch.setattr(collect, "_looked_up", meanwhile)
    lake.collect_garbage(older_than=NOW)
    queue = {path for (path,) in raw("SELECT path FROM ducklake_files_scheduled_for_deletion")}
    assert on_disk(tmp_path / "files") == named(raw) | queue
    clean(lake)
    assert on_disk(tmp_path / "files") == named(raw)
    assert ids(lake.catalog("shop")) == list(range(10, 15))


def test_a_catalog_is_known_until_another_collection_has_removed_all_of_it(
    lake: forklake.Lake, tmp_path: Path, raw: RunSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_catalog("shop").create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    table.append(rows(0, 5))
    lake.drop_catalog("shop")
    lake.expire(older_than=NOW)
    scheduled = collect._scheduled

    def interrupted(database: Database, kind: garbage.DeadKind) -> Any:
        # An earlier collection ends, and begins again, by what this one has noted.
        monkeypatch.undo()
        with garbage.begin_cleaning(database) as session:
            garbage.drop_history(session)
            garbage.drop_forgotten(session, [])
            session.commit()
        with garbage.begin_cleaning(database) as session:
            garbage.note_reach(session, -7)
            session.commit()
        return scheduled(database, kind)

    monkeypatch.setattr(collect, "_scheduled", interrupted)
    lake.collect_garbage(older_than=NOW)
    clean(lake)
    assert on_disk(tmp_path / "files") == set()
    assert left_behind(raw) == {}


@pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)
def test_what_is_expired_meanwhile_is_not_forgotten(
    lake: forklake.Lake, tmp_path: Path, raw: RunSql, reopen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others commit at the same time: on embedded databases, whoever writes is alone."""
    from forklake.store.postgres import PostgresSession

    shop = lake.create_catalog("shop")
    table = shop.create_table("t", "id INT, v VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    table.append(rows(0, 5))
    for start in (5, 10, 15):
        table.overwrite(rows(start, start + 5))
    *_, first, middle, _ = (snapshot.id for snapshot in shop.snapshots())
    shop.expire(versions=[first])
    other = reopen().catalog("shop")
    execute = PostgresSession.execute

    def expiring(session: PostgresSession, statement: str, /, **given: object) -> None:
        if statement == "drop_ducklake_file_column_stats" and middle in {s.id for s in other.snapshots()}:
            session.rows("latest_snapshot")  # What was sent before has happened.
            other.expire(versions=[middle])
        execute(session, statement, **given)

    monkeypatch.setattr(PostgresSession, "execute", expiring)
    assert lake.collect_garbage(older_than=NOW).removed >= 1
    assert on_disk(tmp_path / "files") == named(raw) | {
        path for (path,) in raw("SELECT path FROM ducklake_files_scheduled_for_deletion")
    }
    clean(lake)
    assert on_disk(tmp_path / "files") == named(raw)
    assert raw(
        "SELECT count(*) FROM ducklake_file_column_stats WHERE data_file_id NOT IN "
        "(SELECT data_file_id FROM ducklake_data_file)"
    ) == [(0,)]


def test_a_fork_that_is_materialized_during_a_collection_is_merged_as_before(
    lake: forklake.Lake, tmp_path: Path, raw: RunSql, reopen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges compare with copies of what was there at the fork point, though the fork has expired that."""
    lake.set_option("data_inlining_row_limit", 0)
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT, v VARCHAR").append(rows(0, 10))
    fork = lake.fork("shop", "fork")
    for start in (20, 30):
        fork.table("t").overwrite(rows(start, start + 5))
    fork.expire(older_than=NOW)
    scheduled, other = collect._scheduled, reopen()

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        other.catalog("fork").materialize()
        return scheduled(*given)

    monkeypatch.setattr(collect, "_scheduled", meanwhile)
    lake.collect_garbage(older_than=NOW)
    shop.table("t").append(rows(50, 51))
    lake.merge("fork", "shop")
    assert ids(shop) == [30, 31, 32, 33, 34, 50]
    clean(lake)
    assert on_disk(tmp_path / "files") == named(raw)


@pytest.mark.parametrize("lake_url", ["postgresql"], indirect=True)
def test_who_expires_single_snapshots_and_who_collects_do_not_wait_for_each_other(
    lake: forklake.Lake, raw: RunSql, reopen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an interrupted collection has noted is removed by both, while they hold the lineages."""
    shop = lake.create_catalog("shop")
    shop.create_table("t", "id INT, v VARCHAR").append(rows(0, 5))
    for start in (5, 10, 15):
        shop.table("t").overwrite(rows(start, start + 5))
    *_, middle, _ = (snapshot.id for snapshot in shop.snapshots())
    with garbage.begin_cleaning(lake._database) as session:
        garbage.note_reach(session, -7)
        session.commit()
    other, hold = reopen().catalog("shop"), garbage.hold_lineages
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND NOT fastpath"
    expiring = threading.Thread(target=lambda: other.expire(versions=[middle]))

    def once_the_other_waits(session: Any) -> None:
        monkeypatch.undo()
        # What was sent before has happened.
        session.rows("latest_snapshot")
        expiring.start()
        expiring.join(1.0)
        hold(session)

    monkeypatch.setattr(garbage, "hold_lineages", once_the_other_waits)
    lake.collect_garbage(older_than=NOW)
    expiring.join()
    assert middle not in {snapshot.id for snapshot in shop.snapshots()}
    assert raw(waiting) == [(0,)]
