"""Idle connections to an embedded database, kept for reuse."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from forklake.errors import StoreBusy, StoreError

WAIT_SECONDS = 60.0


class Closable(Protocol):
    """A connection, as far as the pool cares."""

    def close(self) -> None:
        """End it."""
        ...


def is_read_only(path: Path) -> bool:
    """Whether a file that is there cannot be written; its log is written in the same folder."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


C = TypeVar("C", bound=Closable)


class ConnectionPool(Generic[C]):
    """Hands each borrower a connection of its own and keeps it afterwards for the next."""

    def __init__(
        self, connect: Callable[[], C], *, most: int | None = None, usable: Callable[[C], bool] | None = None
    ) -> None:
        """Open nothing yet. `most` may be lent at once; what is not `usable` any more is dropped."""
        self._connect = connect
        self._most = most
        self._usable = usable
        self.closed = False
        self._start()

    def _start(self) -> None:
        self._idle: list[C] = []
        self._lent: dict[int, C] = {}
        self._places = None if self._most is None else threading.Semaphore(self._most)
        self._pid = os.getpid()

    def take(self) -> C:
        """An idle connection, or a new one."""
        if self.closed:
            raise StoreError("the lake was closed: connect again")
        if self._pid != os.getpid():
            # A forked child must not touch its parent's connections, not even to close them.
            self._start()
        if self._places is not None and not self._places.acquire(timeout=WAIT_SECONDS):
            raise StoreBusy(
                f"all {self._most} connections to the database were in use for {WAIT_SECONDS:.0f} seconds: "
                "raise pool_size in the URL, or try again"
            )
        try:
            connection = self._idle_one() or self._connect()
            # A borrower that is forgotten must find its connection whole when it gives it back.
            self._lent[id(connection)] = connection
            return connection
        except BaseException:
            self._free_place()
            raise

    def give_back(self, connection: C, *, broken: bool = False) -> None:
        """Keep a connection that is outside any transaction, unless it is broken."""
        if broken or self.closed or (self._usable is not None and not self._usable(connection)):
            connection.close()
        else:
            self._idle.append(connection)
        self._free_place(connection)

    @contextmanager
    def connection(self) -> Generator[C, None, None]:
        """Borrow a connection; one that failed is not kept."""
        connection = self.take()
        try:
            yield connection
        except BaseException:
            self.give_back(connection, broken=True)
            raise
        self.give_back(connection)

    def close(self) -> None:
        """Close what is idle now; what is in use closes when it comes back."""
        self.closed = True
        # A forked child must leave its parent's connections alone.
        while self._idle and self._pid == os.getpid():
            self._idle.pop().close()

    def _idle_one(self) -> C | None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                # Another thread was quicker.
                break
            if self._usable is None or self._usable(connection):
                return connection
            connection.close()
        return None

    def _free_place(self, connection: C | None = None) -> None:
        self._lent.pop(id(connection), None)
        if self._places is not None:
            self._places.release()


class WriterLock:
    """Lets the threads of this process write to one file in turn, fairly enough and without polling."""

    _known: ClassVar[WeakValueDictionary[str, WriterLock]] = WeakValueDictionary()
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        """Use `of`, so that every handle on one file shares one lock."""
        self._lock = threading.Lock()

    @classmethod
    def of(cls, path: Path) -> WriterLock:
        """The lock of a file."""
        with cls._guard:
            key = str(path)
            lock = cls._known.get(key)
            if lock is None:
                lock = cls._known[key] = cls()
            return lock

    def acquire(self) -> None:
        """Wait for the turn."""
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise StoreBusy(f"another thread has been writing for {WAIT_SECONDS:.0f} seconds: try again")

    def release(self) -> None:
        """Let the next one write; any thread may call it."""
        self._lock.release()
