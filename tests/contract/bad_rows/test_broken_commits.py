"""Commits of rows that break off: a process dies, or the database does not say whether it committed."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa
import pytest

import forklake
from forklake.errors import StoreUnavailable
from forklake.store.backend import Interrupted

SESSIONS = {
    "sqlite": ("forklake.store.sqlite", "SqliteSession"),
    "duckdb": ("forklake.store.duckdb", "DuckDBSession"),
    "postgresql": ("forklake.store.postgres", "PostgresSession"),
}

# Every file is written, and every row of metadata; only COMMIT is missing.
DIES_BEFORE_COMMIT = """
    import importlib
    import pyarrow as pa
    lake = forklake.connect({url!r})
    catalog = lake.catalog("main_catalog")
    session = getattr(importlib.import_module({module!r}), {name!r})
    session.commit = lambda self: os._exit(9)
    many = pa.table({{"id": pa.array(range(100, 5100), pa.int32())}})
    def alone():
        catalog.table("t").{verb}
    def together():
        with catalog.transaction() as tx:
            table = tx.table("t")
            table.append(many)
            table.delete("id % 2 = 0")
            table.update({{"name": "'lost'"}}, "id < 15")
            tx.create_table("lost", "id INT").append(many)
    {how}()
    say("survived")
"""
VERBS = ["delete('id > 8')", "overwrite(many)"]


@pytest.mark.parametrize("how", ["alone", "together"])
def test_a_process_that_dies_before_its_commit_leaves_orphans_and_nothing_else(
    lake, catalog, lake_url, table, state, files, program, how
) -> None:
    module, name = SESSIONS[lake_url.partition(":")[0]]
    before = state()
    lake.close()
    for verb in VERBS if how == "alone" else VERBS[:1]:
        text = DIES_BEFORE_COMMIT.format(url=lake_url, module=module, name=name, verb=verb, how=how)
        assert program(text).wait() == 9
    assert files() > before[2], "nothing was written before the process died"
    orphans = files() - before[2]
    with forklake.connect(lake_url) as again:
        found = again.catalog("main_catalog")
        table = found.table("t")
        rows = table.scan(row_ids=True).to_arrow().to_pylist()
        assert (found.snapshot, sorted(rows, key=lambda row: row["row_id"])) == before[:2]
        assert [info.name for info in found.tables()] == ["t"]
        # Nothing leads to what was left behind, and work goes on.
        assert not orphans & {file.path for file in table.files() if file.path}
        table.append(pa.table({"id": pa.array(range(1000), pa.int32())}))
        assert table.count() == table.scan().to_arrow().num_rows == 1016
        assert not orphans & {file.path for file in table.files() if file.path}


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch, lake_url: str) -> Any:
    """Commits go through, and the next few times nobody hears of it."""
    module, name = SESSIONS[lake_url.partition(":")[0]]
    session = getattr(importlib.import_module(module), name)
    original = session.commit
    errors: list[Exception] = []

    def commit(self: Any) -> None:
        original(self)
        if errors:
            raise errors.pop()

    monkeypatch.setattr(session, "commit", commit)
    return errors.append


MANY = pa.table({"id": pa.array(range(100, 1100), pa.int32())})


def test_a_commit_that_nobody_heard_of_counts_once_and_keeps_its_files(catalog, table, unheard) -> None:
    before = catalog.snapshot
    unheard(Interrupted("the connection broke"))
    assert table.append(MANY) == 1000
    assert (catalog.snapshot, table.count()) == (before + 1, 1016)
    unheard(Interrupted("the connection broke"))
    assert table.delete("id >= 600") == 500
    unheard(Interrupted("the connection broke"))
    with catalog.transaction() as tx:
        tx.table("t").update({"name": "'new'"})
    assert tx.snapshot == catalog.snapshot
    assert table.scan("name = 'new'").to_arrow().num_rows == table.count() == 516


def test_a_commit_that_is_in_doubt_for_good_keeps_the_files_it_may_need(
    catalog, database, table, unheard, files, monkeypatch
) -> None:
    original = database.rows
    silent: list[bool] = []

    def rows(statement: str, **parameters: Any) -> Any:
        if statement == "snapshot_exists" and silent:
            silent.pop()
            raise StoreUnavailable("nobody answers")
        return original(statement, **parameters)

    monkeypatch.setattr(database, "rows", rows)

    def together(t: forklake.Table) -> None:
        with catalog.transaction() as tx:
            tx.table("t").append(MANY)

    for do, count in (
        (lambda t: t.append(MANY), 1016),
        (lambda t: t.delete("id >= 600"), 516),
        (lambda t: t.update({"name": "'new'"}), 516),
        (together, 1516),
    ):
        known = files()
        unheard(StoreUnavailable("nobody answers"))
        silent.append(True)
        with pytest.raises(StoreUnavailable):
            do(table)
        assert not silent and files() > known
        # It went through, and all of it can be read.
        assert table.scan().to_arrow().num_rows == table.count() == count
