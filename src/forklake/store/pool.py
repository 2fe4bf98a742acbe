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


C = TypeVar("C", bound=Closable)


class ConnectionPool(Generic[C]):
    """Hands each borrower a connection of its own and keeps it afterwards for the next."""

    def __init__(self, connect: Callable[[], C]) -> None:
        """Open nothing yet."""
        self._connect = connect
        self._idle: list[C] = []
        self._pid = os.getpid()
        self._closed = False

    def take(self) -> C:
        """An idle connection, or a new one."""
        if self._closed:
            raise StoreError("the lake was closed: connect again")
        if self._pid != os.getpid():
            # A forked child must not touch its parent's connections, not even to close them.
            self._idle, self._pid = [], os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def give_back(self, connection: C) -> None:
        """Keep a connection that is outside any transaction."""
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def connection(self) -> Generator[C, None, None]:
        """Borrow a connection; one that failed is not kept."""
        connection = self.take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)

    def close(self) -> None:
        """Close what is idle now; what is in use closes when it comes back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


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
