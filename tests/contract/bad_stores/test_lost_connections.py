"""Connections that are lost: reads go on, and a commit lands exactly once or says that it did not."""

from __future__ import annotations

import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

import forklake
from forklake.store.backend import Database, Interrupted
from forklake.store.row_sets import SETTINGS
from tests.contract.bad_stores.refusals import InThreads, refused


@pytest.fixture
def far_lake(postgres_database: str, tmp_path: Path) -> Iterator[forklake.Lake]:
    """A lake in a database of its own, so that all its connections can be found."""
    with forklake.connect(postgres_database, data_path=tmp_path / "files", create=True) as lake:
        lake.create_catalog("a")
        yield lake


@pytest.fixture
def cut_off(postgres_database: str) -> Iterator[Callable[[], int]]:
    """Ends every connection that the lake has open, and says how many there were."""
    find = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    with psycopg.connect(postgres_database, autocommit=True) as connection:

        def cut() -> int:
            query = sql.SQL("SELECT count(pg_terminate_backend(pid, 5000)) FROM ({}) AS found")
            (ended,) = connection.execute(query.format(sql.SQL(find))).fetchone() or (0,)
            return ended

        yield cut


def open_connections(database: Database, in_threads: InThreads, count: int) -> None:
    """Leave the pool with many idle connections, as the threads of a server would."""
    meet = threading.Barrier(count)

    def hold() -> None:
        with database.transaction() as session:
            session.rows("latest_snapshot")
            meet.wait()

    in_threads(*[hold] * count)


def names(lake: forklake.Lake) -> list[str]:
    return [schema.name for schema in lake.catalog("a").schemas()]


@pytest.mark.parametrize("connections", [1, 12])
def test_reads_go_on_after_every_connection_was_lost(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads, connections: int
) -> None:
    open_connections(far_lake._database, in_threads, connections)
    assert cut_off() >= connections
    assert names(far_lake) == ["main"]
    assert in_threads(*[lambda: names(far_lake)] * connections) == [["main"]] * connections


@pytest.mark.parametrize("connections", [1, 12])
def test_a_commit_lands_once_after_every_connection_was_lost(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads, connections: int
) -> None:
    catalog = far_lake.catalog("a")
    open_connections(far_lake._database, in_threads, connections)
    transaction = catalog.transaction()
    transaction.create_schema("s")
    assert cut_off() >= connections
    transaction.commit()
    assert names(far_lake) == ["main", "s"]
    assert len(far_lake.snapshots("a")) == 2


def test_a_transaction_that_loses_its_connection_leaves_nothing_and_says_so(
    far_lake: forklake.Lake, cut_off: Callable[[], int]
) -> None:
    database = far_lake._database
    with refused(Interrupted), database.transaction() as session:
        session.lock_head(far_lake.catalog("a").id)
        session.insert(SETTINGS, [("lost", "x")])
        assert session.rows("setting", key="lost") == [("x",)]
        cut_off()
        session.commit()
    assert database.rows("setting", key="lost") == []
    far_lake.catalog("a").create_schema("s")
    assert names(far_lake) == ["main", "s"]


def test_commits_land_exactly_once_while_connections_are_lost_again_and_again(
    far_lake: forklake.Lake, cut_off: Callable[[], int], in_threads: InThreads
) -> None:
    ended = 0
    enough = threading.Event()

    def disturb() -> None:
        nonlocal ended
        while ended < 12 and not enough.wait(0.02):
            ended += cut_off()
        enough.set()

    def commit_all_the_while(worker: int) -> list[str]:
        created: list[str] = []
        try:
            while not enough.is_set():
                name = f"s_{worker}_{len(created)}"
                far_lake.catalog("a").create_schema(name)
                created.append(name)
        finally:
            enough.set()
        return created

    workers = [lambda worker=worker: commit_all_the_while(worker) for worker in range(2)]
    _, *created = in_threads(disturb, *workers)
    assert ended >= 12
    expected = sorted(["main", *created[0], *created[1]])
    assert sorted(names(far_lake)) == expected
    assert len(far_lake.snapshots("a")) == len(expected)


class Wire:
    """A wire to a server that can be cut once, when a COMMIT passes it, or when its answer does."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._cut: str | None = None
        self.cuts = 0
        who = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{who}@127.0.0.1:{self._listening.getsockname()[1]}").geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at_commit(self, when: str) -> None:
        self._cut = when

    def close(self) -> None:
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._target)
                self._ends += [client, server]
                threading.Thread(target=self._upwards, args=(client, server), daemon=True).start()
                threading.Thread(target=self._downwards, args=(client, server), daemon=True).start()

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and self._cut == "before it arrives":
                    self._cut = None
                    self.cuts += 1
                    break
                server.sendall(data)
        self._hang_up(client, server)

    def _downwards(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                # The server says that it has committed, and nobody hears it.
                if b"COMMIT\0" in data and self._cut == "before its answer":
                    self._cut = None
                    self.cuts += 1
                    break
                client.sendall(data)
        self._hang_up(client, server)

    def _hang_up(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


COMMITS: dict[str, Callable[[forklake.Lake], object]] = {
    "create_schema": lambda lake: lake.catalog("a").create_schema("s"),
    "create_table": lambda lake: lake.catalog("a").create_table("t", "id BIGINT"),
    "drop_schema": lambda lake: lake.catalog("a").drop_schema("old"),
    "create_catalog": lambda lake: lake.create_catalog("b"),
    "rename_catalog": lambda lake: lake.rename_catalog("a", "b"),
    "drop_catalog": lambda lake: lake.drop_catalog("a"),
}


def everything(lake: forklake.Lake) -> list[Any]:
    return [
        (catalog.name, [s.name for s in view.schemas()], [t.name for t in view.tables()])
        for catalog in lake.catalogs()
        for view in [lake.catalog(catalog.name)]
    ] + [snapshot.changes for snapshot in lake.snapshots()]


@pytest.mark.parametrize("when", ["before it arrives", "before its answer"])
@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS.keys())
def test_a_commit_whose_connection_breaks_lands_exactly_once(
    postgres_server: str, tmp_path: Path, commit: Callable[[forklake.Lake], object], when: str
) -> None:
    """The same commit on a whole wire and on a broken one leads to the same lake."""
    outcomes: list[Any] = []
    with ExitStack() as stack:
        wire = Wire(postgres_server)
        stack.callback(wire.close)
        connection = stack.enter_context(psycopg.connect(postgres_server, autocommit=True))
        for state in ("whole", "broken"):
            schema = f"{state}_{uuid.uuid4().hex}"
            stack.callback(connection.execute, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            url = f"{wire.url}?metadata_schema={schema}&sslmode=disable"
            with forklake.connect(url, data_path=tmp_path, create=True) as lake:
                lake.create_catalog("a").create_schema("old")
                if state == "broken":
                    wire.cut_at_commit(when)
                commit(lake)
                outcomes.append(everything(lake))
        assert wire.cuts == 1
    assert outcomes[0] == outcomes[1]


def test_a_server_that_crashes_and_comes_back_is_used_again(
    own_server: str, tmp_path: Path, in_threads: InThreads
) -> None:
    url = f"{own_server}?metadata_schema=crashing"
    with forklake.connect(url, data_path=tmp_path, create=True) as lake:
        catalog = lake.create_catalog("a")
        open_connections(lake._database, in_threads, 4)
        transaction = catalog.transaction()
        transaction.create_schema("s")
        crash(own_server)
        assert names(lake) == ["main"]
        transaction.commit()
        assert names(lake) == ["main", "s"]
        crash(own_server)
        catalog.create_schema("t")
        assert names(lake) == ["main", "s", "t"]
        assert len(lake.snapshots("a")) == 3


def crash(url: str) -> None:
    """Kill one backend: the server then ends all of them, recovers, and takes connections again."""
    with psycopg.connect(url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(5)")
