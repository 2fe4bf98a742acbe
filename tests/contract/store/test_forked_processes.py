"""A forked child uses what it inherits, and its parent goes on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import forklake
from tests.contract.store.rows import InThreads, RunSql, many_processes, only_postgresql, write, written


def use_many_connections(lake: forklake.Lake, in_threads: InThreads) -> None:
    """Fill the pool with idle connections, as the threads of a server would."""
    meet = threading.Barrier(5)

    def read() -> None:
        with lake._database.transaction() as session:
            session.rows("latest_snapshot")
            if lake._database.dialect == "postgresql":
                meet.wait()

    in_threads(*[read] * 5)


@many_processes
def test_a_forked_child_uses_the_lake_it_inherits_and_so_does_its_parent(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    forked: Callable[..., Any],
    in_threads: InThreads,
    raw: RunSql,
) -> None:
    use_many_connections(lake, in_threads)

    def child(turn: int) -> list[str]:
        catalog.create_schema(f"of_child_{turn}")
        return sorted(schema.name for schema in lake.catalog("main_catalog").schemas())

    expected = ["main"]
    for turn in range(3):
        expected = sorted([*expected, f"of_child_{turn}"])
        assert forked(lambda turn=turn: child(turn)) == expected
        catalog.create_schema(f"of_parent_{turn}")
        expected = sorted([*expected, f"of_parent_{turn}"])
        assert sorted(schema.name for schema in catalog.schemas()) == expected
    assert [snapshot.id for snapshot in catalog.snapshots()] == list(range(1, 8))
    if lake.url.startswith("sqlite"):
        assert raw("PRAGMA integrity_check") == [("ok",)]


@many_processes
def test_a_child_forked_during_a_transaction_reads_and_the_transaction_goes_on(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    with lake._database.transaction() as session:
        session.lock_head(catalog.id)
        write(session, "kept")
        assert forked(lambda: (catalog.snapshot, lake._database.rows("setting", key="kept"))) == (1, [])
        assert session.rows("setting", key="kept") == [("test",)]
        session.commit()
    assert written(raw) == ["kept"]


@many_processes
def test_a_child_that_forgets_an_inherited_transaction_does_not_end_it_for_its_parent(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    held = [lake._database.transaction()]
    held[0].lock_head(catalog.id)
    write(held[0], "kept")
    assert held[0].rows("setting", key="kept") == [("test",)]

    def child() -> int:
        held.clear()
        return gc.collect()

    forked(child)
    assert held[0].rows("setting", key="kept") == [("test",)]
    held[0].commit()
    assert written(raw) == ["kept"]


@many_processes
def test_a_child_that_closes_the_lake_does_not_close_it_for_its_parent(
    lake: forklake.Lake,
    catalog: forklake.Catalog,
    forked: Callable[..., Any],
    in_threads: InThreads,
    raw: RunSql,
) -> None:
    use_many_connections(lake, in_threads)
    with lake._database.transaction() as session:
        session.lock_head(catalog.id)
        write(session, "kept")
        forked(lake.close)
        session.commit()
    assert written(raw) == ["kept"]
    assert [schema.name for schema in catalog.schemas()] == ["main"]
    catalog.create_schema("s")
    assert in_threads(*[lambda: len(catalog.schemas())] * 5) == [2] * 5


@only_postgresql  # SQLite itself forbids a second connection in a child while an inherited one holds a lock.
def test_a_forked_child_waits_for_its_parents_transaction_like_anybody_else(
    lake: forklake.Lake, catalog: forklake.Catalog, forked: Callable[..., Any], raw: RunSql
) -> None:
    session: Any = lake._database.transaction()
    session.lock_head(catalog.id)
    write(session, "kept")
    assert session.rows("setting", key="kept") == [("test",)]
    holder = session._wire._server.backend_pid
    ended = threading.Event()
    waited: list[bool] = []

    def commit_when_it_waits() -> None:
        blocked = f"SELECT 1 FROM pg_stat_activity WHERE {holder} = ANY(pg_blocking_pids(pid))"
        while not raw(blocked) and not ended.wait(0.01):
            pass
        waited.append(not ended.is_set())
        session.commit()

    commits = threading.Thread(target=commit_when_it_waits)
    commits.start()
    try:
        forked(lambda: catalog.create_schema("of_child"))
    finally:
        ended.set()
        commits.join()
    assert waited == [True]
    assert written(raw) == ["kept"]
    assert [schema.name for schema in catalog.schemas()] == ["main", "of_child"]
