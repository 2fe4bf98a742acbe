"""The metadata database as a client of the simulation sees it: every statement is a place where others may
go first, or where something goes wrong; and the time is that of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from forklake.errors import StoreError
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import (
    Allocation,
    Answer,
    Database,
    Home,
    Interrupted,
    LockedHead,
    Record,
    Row,
    SchemaSession,
    Session,
)
from forklake.store.row_sets import CHANGES, LINEAGES, MERGES, SNAPSHOTS, RowSet
from forklake.store.statements import Dialect

if TYPE_CHECKING:
    from tests.property.simulation.client import Client

T = TypeVar("T")


@dataclass(slots=True)
class Written:
    """What a transaction has written, as far as the model has to know it."""

    statements: set[str] = field(default_factory=set[str])
    snapshots: list[tuple[int, int, datetime]] = field(default_factory=list[tuple[int, int, datetime]])
    """Catalogs, their new snapshots, and the times of these."""
    lineages: list[Row] = field(default_factory=list[Row])
    merges: list[Row] = field(default_factory=list[Row])


class SimulatedDatabase:
    """A database, seen by one client."""

    def __init__(self, inner: Database, client: Client) -> None:
        self.inner = inner
        self.client = client

    @property
    def dialect(self) -> Dialect:
        return self.inner.dialect

    @property
    def url(self) -> str:
        return self.inner.url

    def home(self) -> Home | None:
        return self.inner.home()

    def check_writable(self) -> None:
        self.inner.check_writable()

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        return perform(self.client, lambda: self.inner.rows(statement, **params))

    def transaction(self) -> Session:
        begun: list[SimulatedSession] = []

        def begin() -> SimulatedSession:
            self.client.hold_database()
            begun.append(SimulatedSession(self.inner.transaction(), self.client))
            self.client.sessions.append(begun[0])
            return begun[0]

        try:
            return perform(self.client, begin)
        except BaseException:
            for session in begun:
                session.rollback()
            raise

    def now(self) -> datetime:
        return self.client.world.now

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        self.client.wait_for_commits()
        self.inner.wait_for_commits(at)

    def exists(self) -> bool:
        return self.inner.exists()

    def create_schema(self, settings: Mapping[str, str]) -> None:
        self.inner.create_schema(settings)

    def begin_upgrade(self) -> SchemaSession:
        return self.inner.begin_upgrade()

    def close(self) -> None:
        self.inner.close()


class SimulatedSession:
    """A transaction of one client."""

    def __init__(self, inner: Session, client: Client) -> None:
        self.inner = inner
        self.client = client
        self.written = Written()
        self._waits = False
        """Whether there are statements that the server has not been sent."""

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        self.written.statements.add(statement)

        def read() -> list[Row]:
            found = self.inner.rows(statement, **params)
            self._waits = False
            self.client.has_read(statement)
            return found

        return perform(self.client, read)

    def ask(self, statement: str, /, **params: object) -> Answer:
        return self._sent(lambda: self.inner.ask(statement, **params))

    def execute(self, statement: str, /, **params: object) -> None:
        self.written.statements.add(statement)
        self._sent(lambda: self.inner.execute(statement, **params))

    def insert(self, into: RowSet, rows: Sequence[Row]) -> None:
        self._note(into, rows)
        self._sent(lambda: self.inner.insert(into, rows))

    def _note(self, into: RowSet, rows: Sequence[Row]) -> None:
        if into is LINEAGES:
            self.written.lineages += rows
        elif into is MERGES:
            self.written.merges += rows
        elif into is SNAPSHOTS:
            self._time = rows[0][1]
        elif into is CHANGES:
            self.written.snapshots += [(row[1], row[0], self._time) for row in rows]

    def update(self, of: RowSet, rows: Sequence[Row]) -> None:
        self._sent(lambda: self.inner.update(of, rows))

    def end_rows(self, of: RowSet, rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId) -> None:
        self._sent(lambda: self.inner.end_rows(of, rows, catalog=catalog, end=end))

    def allocate(self, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        drawn = perform(self.client, lambda: self.inner.allocate(catalog_ids=catalog_ids, file_ids=file_ids))
        return replace(drawn, snapshot_time=self.client.world.now)

    def lock_head(self, catalog: CatalogId, **options: Any) -> tuple[LockedHead, Allocation] | None:
        found = perform(self.client, lambda: self.inner.lock_head(catalog, **options))
        return found and (found[0], replace(found[1], snapshot_time=self.client.world.now))

    def record(self, record: Record) -> None:
        self.written.snapshots.append((record.catalog, record.snapshot, record.time))
        self._sent(lambda: self.inner.record(record))

    def _sent(self, call: Callable[[], T]) -> T:
        """Do something that a server answers later."""
        self._waits = not self.client.world.is_embedded
        return perform(self.client, call)

    def send(self) -> None:
        """Let the server do what it was told: others go next, or this transaction commits."""
        if self._waits:
            self._waits = False
            with self.client.world.scheduler.locking():
                self.inner.rows("clock")

    def commit(self) -> None:
        def commit() -> None:
            self.send()
            self.inner.commit()
            self._end()
            # The model hears of it in the same moment, whatever the client hears.
            self.client.committed(self.written)
            self.client.world.scheduler.freed()

        perform(self.client, commit)

    def rollback(self) -> None:
        # A database does this for clients that are gone, too.
        try:
            self.inner.rollback()
        finally:
            self._end()
            self.client.world.scheduler.freed()

    def _end(self) -> None:
        if self in self.client.sessions:
            self.client.sessions.remove(self)
        self.client.free_database()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rollback()


def perform(client: Client, call: Callable[[], T]) -> T:
    """Do something in the database, if nothing goes wrong before."""
    fault = client.point("statement")
    if fault == "before":
        raise _error(client)
    if fault == "crash before":
        client.die()
    with client.world.scheduler.locking():
        result = call()
    if fault == "after":
        raise _error(client)
    if fault == "crash after":
        client.die()
    return result


def _error(client: Client) -> StoreError:
    """Half of all errors are such that it may be tried again."""
    return Interrupted("injected") if client.random.random() < 0.5 else StoreError("injected")
