"""A process that dies in the middle of a commit leaves the lake as it was; two processes lose nothing."""

from __future__ import annotations

import json

import pytest

import forklake

# The commit is stopped where it hurts most: every row is written, only COMMIT is missing.
STOP_BEFORE_COMMIT = """
    import forklake.store.{module} as backend
    lake = forklake.connect({url!r})
    catalog = lake.catalog("c")
    def stop(session):
        {flush}
        say("written")
        time.sleep(60)
    backend.{session}.commit = stop
    with catalog.transaction(message="never") as tx:
        tx.create_schema("lost")
        tx.create_table("lost.t", "id INT, name VARCHAR")
        tx.table("kept").add_column("lost", "int")
        tx.drop_table("other")
"""
BACKENDS = {
    "sqlite": ("sqlite", "SqliteSession", "pass"),
    "duckdb": ("duckdb", "DuckDBSession", "pass"),
    # What was not asked for may still wait on this side.
    "postgresql": ("postgres", "PostgresSession", "session._answers()"),
}


def state(lake: forklake.Lake) -> object:
    catalog = lake.catalog("c")
    tables = {info.name: catalog.table(info.name).columns for info in catalog.tables()}
    return [schema.name for schema in catalog.schemas()], tables, lake.snapshots()


def test_a_process_killed_in_mid_commit_leaves_the_lake_readable_and_unchanged(
    lake_url, tmp_path, program
) -> None:
    module, session, flush = BACKENDS[lake_url.partition(":")[0]]
    with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
        catalog = lake.create_catalog("c")
        catalog.create_table("kept", "id INT")
        catalog.create_table("other", "id INT")
        before = state(lake)
    # DuckDB lets only one process in, so the handle is closed while the other one works.
    victim = program(STOP_BEFORE_COMMIT.format(module=module, session=session, flush=flush, url=lake_url))
    assert victim.hear() == "written"
    victim.kill()
    with forklake.connect(lake_url) as lake:
        assert state(lake) == before
        catalog = lake.catalog("c")
        # Nothing needs unlocking by hand, and numbers go on.
        catalog.table("kept").add_column("next", "int")
        assert [column.name for column in catalog.table("kept").columns] == ["id", "next"]
        assert catalog.snapshot > before[2][-1].id


COMMIT_MANY = """
    lake = forklake.connect({url!r})
    catalog = lake.catalog("c")
    say("ready")
    input()
    for step in range(25):
        catalog.create_table(f"{name}_{{step}}", "id INT")
        with catalog.transaction() as tx:
            tx.table(f"{name}_{{step}}").add_column("more", "int")
    say([snapshot.id for snapshot in lake.snapshots()][-1])
"""


@pytest.mark.parametrize("shared", ["one catalog", "a catalog each"])
def test_two_processes_committing_at_once_lose_nothing(lake_url, tmp_path, program, shared) -> None:
    if lake_url.startswith("duckdb"):
        pytest.skip("DuckDB lets one process at a time open a file")
    with forklake.connect(lake_url, data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("c")
        second = "c" if shared == "one catalog" else "d"
        lake.create_catalog(second, if_not_exists=True)
        before = len(lake.snapshots())
        workers = [
            program(COMMIT_MANY.format(url=lake_url, name="left")),
            program(COMMIT_MANY.format(url=lake_url, name="right").replace('"c"', json.dumps(second))),
        ]
        for worker in workers:
            assert worker.hear() == "ready"
        for worker in workers:
            worker.go_on()
        for worker in workers:
            worker.hear()
            assert worker.wait() == 0
        names = {info.name for name in {"c", second} for info in lake.catalog(name).tables()}
        assert names == {f"{side}_{step}" for side in ("left", "right") for step in range(25)}
        ids = [snapshot.id for snapshot in lake.snapshots()]
        assert len(ids) == len(set(ids)) == before + 100
        for name in {"c", second}:
            catalog = lake.catalog(name)
            for info in catalog.tables():
                assert [column.name for column in catalog.table(info.name).columns] == ["id", "more"]
            times = [snapshot.time for snapshot in catalog.snapshots()]
            assert times == sorted(times)
