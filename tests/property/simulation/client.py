"""A client: a lake that it has open, through which every statement and file operation passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import TYPE_CHECKING

import duckdb

import forklake
from forklake.context.lake_context import LakeContext
from forklake.data.storage.storage import Storage, open_storage
from forklake.engine.local import Engine
from forklake.errors import (
    CommitConflict,
    ForklakeError,
    NamingError,
    ReservationError,
)
from forklake.store.open import open_database
from forklake.store.url import parse_url
from tests.property.simulation.database import SimulatedDatabase, SimulatedSession, Written
from tests.property.simulation.faults import ONLY, Crash, Fault, Kind, Operation, Violation
from tests.property.simulation.storage import SimulatedStorage

if TYPE_CHECKING:
    from tests.property.simulation.world import World

Effect = Callable[[Written], None]
MEANWHILE = (CommitConflict, NamingError, ReservationError)
"""What a client may hear because of what others did meanwhile."""


class NothingToDo(Exception):
    """There is nothing that a step could be about."""


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    engine = Engine(open_storage("/"), threads=1)
    return engine._open()


def shared_engine(storage: Storage) -> Engine:
    """An engine whose DuckDB all share: to open one takes longer than many a step."""
    engine = Engine(storage)
    engine._database = _duckdb()
    return engine


class Client:
    """A program that uses the lake."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.storage = SimulatedStorage(world.data_path, self)
        self.engine = shared_engine(self.storage)
        self.dead = False
        self.random = Random()
        self.effect: Effect | None = None
        self.on_read: dict[str, Callable[[], None]] = {}
        """What the model notes when a transaction reads: others may commit before it does."""
        self.sessions: list[SimulatedSession] = []
        """Transactions that are open."""
        self._fault: Fault | None = None
        self._points = 0
        self.fired = False
        """Whether something went wrong in this step."""
        self._open()

    def _open(self) -> None:
        self.database = SimulatedDatabase(open_database(parse_url(self.world.url), create=False), self)
        self.world.prepare(self.database.inner)
        self.lake = forklake.Lake(self.database, self.storage)
        self.lake._made = LakeContext(self.database, self.storage)
        self.lake._made.engine = self.engine

    def run(self, work: Callable[[Client, Random], None], random: Random, fault: Fault | None) -> None:
        """Do one step, and be started again if that ended in a crash."""
        self.random, self._fault, self._points, self.fired = random, fault, 0, False
        try:
            work(self, random)
        except Crash:
            if not self.dead:
                raise
            self.revive()
        except NothingToDo:
            pass
        except ForklakeError as error:
            meanwhile = self.world.scheduler.is_shared and isinstance(error, MEANWHILE)
            if not self.fired and not meanwhile:
                raise Violation(f"refused without a reason: {type(error).__name__}: {error}") from error
        finally:
            self.effect = self._fault = None
            self.on_read = {}

    def revive(self) -> None:
        """Begin anew, as a program that is started again."""
        self.database.close()
        self.dead = False
        self._open()

    def close(self) -> None:
        """Give everything back."""
        self.database.close()

    # ---- Operations ---

    def point(self, operation: Operation) -> Kind | None:
        """Before every operation: others may go first; gives what goes wrong at it."""
        if self.dead:
            raise Crash
        self.world.scheduler.pause(self._send)
        self._points += 1
        fault = self._fault
        if fault is None or self._points < fault.at or operation != ONLY.get(fault.kind, operation):
            return None
        self._fault = None
        self.fired = True
        self.world.faults += 1
        return fault.kind

    def _send(self) -> None:
        for session in self.sessions:
            session.send()

    def die(self) -> None:
        """From now on, nothing that this client does happens."""
        self.dead = True
        raise Crash

    def has_read(self, statement: str) -> None:
        """A transaction has an answer."""
        note = self.on_read.get(statement)
        if note is not None:
            note()

    def committed(self, written: Written) -> None:
        """A transaction stands: so it does in the model."""
        if self.effect is not None:
            self.effect(written)
        elif written.snapshots:
            raise Violation(f"a commit that nobody asked for: {written.snapshots}")

    # ---- Turns ---

    def wait_for_database(self) -> None:
        """Embedded databases have one writer at a time."""
        world = self.world
        if world.is_embedded:
            world.scheduler.wait(lambda: world.writer is None)

    def hold_database(self) -> None:
        """Be the writer."""
        self.wait_for_database()
        self.world.writer = self

    def wait_for_commits(self) -> None:
        """Let all end that others have begun."""
        self.wait_for_database()
        others = [client for client in self.world.clients if client is not self]
        self.world.scheduler.wait(lambda: not any(other.sessions for other in others))

    def free_database(self) -> None:
        """Let others write."""
        if self.world.writer is self:
            self.world.writer = None
