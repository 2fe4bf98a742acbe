"""What embedded databases do alike: all is locked for writing, and numbers come from a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from forklake.errors import ReadOnlyStore, StoreError, TransactionClosed
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import (
    Allocation,
    Answer,
    Home,
    LockedHead,
    OpenTransaction,
    Record,
    Session,
    locked_head,
)
from forklake.store.home import home_of_file
from forklake.store.pool import Closable, ConnectionPool, WriterLock


def utc_now() -> datetime:
    """The clock of an embedded database is that of the process which it is in."""
    return datetime.now(UTC)


class EmbeddedDatabase:
    """What all databases in a file have in common: a place, a clock, and one writer after the other."""

    path: Path
    read_only: bool
    _complete = datetime.min.replace(tzinfo=UTC)

    def transaction(self) -> Session:
        """Begin a transaction that may write, when it is its turn."""
        raise NotImplementedError

    def home(self) -> Home:
        """The file."""
        return home_of_file(self.path)

    def check_writable(self) -> None:
        """Refuse a file that cannot be written."""
        if self.read_only:
            raise ReadOnlyStore(f"{self.path} is read-only: ask for write permission on the file")

    def now(self) -> datetime:
        """The time."""
        return utc_now()

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        """Let the writer finish whose commit has a time already and is not there yet.

        Numbers come in turn: below a snapshot that is there, none is missing.
        """
        if not isinstance(at, datetime) or at <= self._complete or self.read_only:
            return
        now = self.now()
        with self.transaction():
            self._complete = max(self._complete, now)


class EmbeddedWrites:
    """The part of a session that draws numbers and records snapshots."""

    def ask(self: Session, statement: str, /, **params: object) -> Answer:
        """There is nobody to wait for: the query runs at once."""
        found = self.rows(statement, **params)
        return lambda: found

    def allocate(self: Session, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        """Draw the number of a snapshot, and numbers for what it creates."""
        after: dict[str, int] = dict(self.rows("allocate", catalog_ids=catalog_ids, file_ids=file_ids))
        return Allocation(
            SnapshotId(after["snapshot_id"] - 1),
            utc_now(),
            tuple(range(after["catalog_id"] - catalog_ids, after["catalog_id"])),
            tuple(range(after["file_id"] - file_ids, after["file_id"])),
            after["catalog_id"],
            after["file_id"],
        )

    def lock_head(
        self: Session,
        catalog: CatalogId,
        *,
        only_at: SnapshotId | None = None,
        catalog_ids: int = 0,
        file_ids: int = 0,
    ) -> tuple[LockedHead, Allocation] | None:
        """The whole database is locked for writing already."""
        found = self.rows("lock_head", catalog=catalog)
        if not found or only_at not in (None, found[0][0]):
            return None
        return locked_head(found[0]), self.allocate(catalog_ids=catalog_ids, file_ids=file_ids)

    def record(self: Session, record: Record) -> None:
        """Add a snapshot with what it did, and move the catalog's head to it."""
        self.execute(
            "add_snapshot",
            snapshot=record.snapshot,
            time=record.time,
            schema_version=record.schema_version,
            next_catalog_id=record.next_catalog_id,
            next_file_id=record.next_file_id,
        )
        self.execute(
            "add_changes",
            snapshot=record.snapshot,
            catalog=record.catalog,
            changes=record.changes,
            author=record.author,
            message=record.message,
            extra=record.extra,
            footprint=record.footprint,
        )
        self.execute(
            "move_head",
            catalog=record.catalog,
            snapshot=record.snapshot,
            time=record.time,
            schema_version=record.schema_version,
        )


class EmbeddedConnection(Closable, Protocol):
    """A connection that transactions can be run on."""

    def execute(self, text: str, /) -> object:
        """Run a statement."""
        ...


C = TypeVar("C", bound=EmbeddedConnection)


class Translated:
    """Blocks in which a driver's errors become ours: each statement is one, so they are cheap to enter."""

    __slots__ = ("_translate",)

    def __init__(self, translate: Callable[[BaseException], BaseException | None]) -> None:
        """`translate` returns None for what is no error of the driver."""
        self._translate = translate

    def __enter__(self) -> None:
        """Begin a block."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        """Raise our error from the driver's."""
        if error is not None and (ours := self._translate(error)) is not None:
            raise ours from error


class EmbeddedSession(EmbeddedWrites, OpenTransaction, Generic[C]):
    """A write transaction: it waits for its turn, and whatever happens gives everything back once."""

    _connection: C | None = None
    _locked: bool = False

    def __init__(
        self,
        lock: WriterLock,
        pool: ConnectionPool[C],
        translated: Translated,
        begin: Callable[[C], None],
    ) -> None:
        """Wait for the turn among this process's threads, then begin."""
        self._lock = lock
        self._pool = pool
        self._translated = translated
        lock.acquire()
        self._locked = True
        try:
            connection = self._connection = pool.take()
            with translated:
                begin(connection)
        except BaseException:
            self._finish(broken=True)
            raise
        self._open = True

    def commit(self) -> None:
        """Make everything durable."""
        with self._translated:
            self._running().execute("COMMIT")
        self._finish()

    def rollback(self) -> None:
        """Undo everything; nothing happens if the transaction has ended."""
        broken = True
        try:
            if self._open:
                with self._translated:
                    self._running().execute("ROLLBACK")
            broken = False
        except StoreError:
            # A transaction that failed has ended already; such a connection is not worth keeping.
            pass
        finally:
            self._finish(broken=broken)

    def _finish(self, *, broken: bool = False) -> None:
        """Give everything back, once: also when an interrupt came in the middle of an earlier end."""
        self._open = False
        try:
            connection, self._connection = self._connection, None
            if connection is not None:
                self._pool.give_back(connection, broken=broken)
        finally:
            if self._locked:
                self._locked = False
                self._lock.release()

    def _running(self) -> C:
        if not self._open or self._connection is None:
            raise TransactionClosed("this database transaction has ended")
        return self._connection
