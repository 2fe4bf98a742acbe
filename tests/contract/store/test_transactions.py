"""A transaction of the store is committed as a whole, or leaves nothing and frees its lock."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake.errors import CorruptMetadata, TransactionClosed
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, Session, UniqueViolation
from forklake.store.duckdb import translated as duckdb_translated
from forklake.store.row_sets import RowSet
from tests.contract.store.rows import InThreads, RunSql, commit_one, keyed, write, written


def test_a_committed_transaction_stays(database: Database, raw: RunSql, head: CatalogId) -> None:
    with database.transaction() as session:
        write(session, "a", "b")
        session.execute("move_head", catalog=head, snapshot=5, time=datetime.now(UTC), schema_version=6)
        session.commit()
    assert written(raw) == ["a", "b"]
    assert raw("SELECT snapshot_id, schema_version FROM ducklake_catalog_head") == [(5, 6)]


def leave_without_commit(database: Database, head: CatalogId) -> None:
    with database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")


def leave_by_exception(database: Database, head: CatalogId) -> None:
    with suppress(ZeroDivisionError), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        raise ZeroDivisionError


def leave_by_interrupt(database: Database, head: CatalogId) -> None:
    with suppress(KeyboardInterrupt), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        raise KeyboardInterrupt


def roll_back(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    session.rollback()


def forget(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    del session
    gc.collect()


def forget_in_a_thread(database: Database, head: CatalogId) -> None:
    thread = threading.Thread(target=forget, args=(database, head))
    thread.start()
    thread.join()


def forget_in_a_cycle(database: Database, head: CatalogId) -> None:
    session = database.transaction()
    session.lock_head(head)
    write(session, "lost")
    cycle: list[Any] = [session]
    cycle.append(cycle)
    del session, cycle
    gc.collect()


def fail_on_a_key(database: Database, head: CatalogId) -> None:
    with pytest.raises(UniqueViolation), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        numbers = ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id")
        session.insert(RowSet("ducklake_snapshot", numbers), [(0, datetime.now(UTC), 0, 0, 0)])
        session.commit()


def fail_on_an_end(database: Database, head: CatalogId) -> None:
    with pytest.raises(CorruptMetadata), database.transaction() as session:
        session.lock_head(head)
        write(session, "lost")
        session.end_rows(keyed("ducklake_schema", ("schema_id",)), [(99,)], catalog=head, end=SnapshotId(5))
        session.commit()


@pytest.mark.parametrize(
    "abandon",
    [
        leave_without_commit,
        leave_by_exception,
        leave_by_interrupt,
        roll_back,
        forget,
        forget_in_a_thread,
        forget_in_a_cycle,
        fail_on_a_key,
        fail_on_an_end,
    ],
)
def test_a_transaction_that_is_not_committed_leaves_nothing_and_frees_its_lock(
    database: Database,
    raw: RunSql,
    head: CatalogId,
    in_threads: InThreads,
    abandon: Callable[[Database, CatalogId], None],
) -> None:
    abandon(database, head)
    assert written(raw) == []

    def next_writer() -> None:
        with database.transaction() as session:
            assert session.lock_head(head) is not None
            write(session, "kept")
            session.commit()

    in_threads(next_writer)
    assert written(raw) == ["kept"]


def test_abandoned_transactions_never_use_up_the_connections(
    lake_url: str, lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    lake.create_catalog("a")
    url = f"{lake_url}&pool_size=2" if lake_url.startswith("postgresql") else lake_url
    database = reopen(url)._database
    for abandon in (leave_without_commit, forget, fail_on_a_key, fail_on_an_end) * 5:
        abandon(database, CatalogId(0))
    commit_one(database, "kept")
    assert written(raw) == ["kept"]


def test_writers_are_not_held_up_by_a_lake_that_was_closed_with_a_transaction_open(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    other = reopen()
    session = other._database.transaction()
    write(session, "lost")
    other.close()
    del session
    gc.collect()
    commit_one(lake._database, "kept")
    assert written(raw) == ["kept"]


USES: dict[str, Callable[[Session], object]] = {
    "rows": lambda session: session.rows("latest_snapshot"),
    "execute": lambda session: session.execute("end_catalog", catalog=0, snapshot=2),
    "insert": lambda session: write(session, "late"),
    "end_rows": lambda session: session.end_rows(
        keyed("ducklake_schema", ("schema_id",)), [(1,)], catalog=CatalogId(0), end=SnapshotId(2)
    ),
    "allocate": lambda session: session.allocate(),
    "lock_head": lambda session: session.lock_head(CatalogId(0)),
    "commit": lambda session: session.commit(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_that_has_ended_refuses_to_be_used(
    database: Database, raw: RunSql, end: str, use: Callable[[Session], object]
) -> None:
    session = database.transaction()
    write(session, "early")
    getattr(session, end)()
    with pytest.raises(TransactionClosed):
        use(session)
    session.rollback()
    assert written(raw) == (["early"] if end == "commit" else [])


def test_a_transaction_sees_its_own_rows_and_nobody_else_does_before_the_commit(
    database: Database, in_threads: InThreads
) -> None:
    with database.transaction() as session:
        write(session, "mine")
        assert session.rows("setting", key="mine") == [("test",)]
        assert in_threads(lambda: database.rows("setting", key="mine")) == [[]]
        session.commit()
    assert in_threads(lambda: database.rows("setting", key="mine")) == [[("test",)]]


def test_a_commit_is_seen_by_every_handle_and_every_other_client_at_once(
    lake: forklake.Lake, reopen: Callable[..., forklake.Lake], raw: RunSql
) -> None:
    other = reopen()
    for number in range(10):
        writer, reader = (lake, other) if number % 2 else (other, lake)
        commit_one(writer._database, f"key{number}")
        assert reader._database.rows("setting", key=f"key{number}") == [("test",)]
        assert len(written(raw)) == number + 1


def test_a_statement_that_does_not_exist_leaves_the_transaction_usable(
    database: Database, raw: RunSql
) -> None:
    with database.transaction() as session:
        with pytest.raises(KeyError):
            session.rows("no_such_statement")
        write(session, "kept")
        session.commit()
    assert written(raw) == ["kept"]


def test_an_interrupt_inside_of_duckdb_is_an_interrupt(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), duckdb_translated(tmp_path):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="something else"), duckdb_translated(tmp_path):
        raise RuntimeError("something else")
