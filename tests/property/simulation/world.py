"""The world of one program: a lake, the model of it, its clients, and the time."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import forklake
from forklake.commit import reservations, retry
from forklake.data.storage.storage import open_storage
from forklake.errors import IndexNotBuilt
from forklake.index import coverage
from forklake.maintenance import collect
from forklake.store.backend import Database
from forklake.store.open import open_database
from forklake.store.url import parse_url
from tests.property.simulation.checks import Checker
from tests.property.simulation.client import Client, NothingToDo, shared_engine
from tests.property.simulation.distributed_verbs import Shared, faulty_workers
from tests.property.simulation.model import CatalogModel
from tests.property.simulation.picture import Row
from tests.property.simulation.reading_verbs import LongReader, Stream
from tests.property.simulation.scheduler import Scheduler

BEGINNING = datetime(2100, 1, 1, tzinfo=UTC)
"""Far ahead of the real time, so that nobody who looks at another clock finds a time over."""
CLIENTS = 3
Query = Callable[[str], list[tuple[Any, ...]]]
Prepare = Callable[[Database], None]


class World:
    """Everything that a program has to do with."""

    def __init__(self, url: str, folder: Path, query: Query, prepare: Prepare = lambda _: None) -> None:
        self.url = url
        self.folder = folder
        self.data_path = f"{folder}/files/"
        self.query = query
        self.prepare = prepare
        self.is_embedded = not url.startswith("postgresql")
        self.now = BEGINNING
        self.numbers = count(1)
        self.faults = 0
        self.scheduler = Scheduler() if self.is_embedded else Scheduler(self._waiting)
        self.writer: Client | None = None
        self.catalogs: dict[int, CatalogModel] = {}
        self.file_times: dict[str, datetime] = {}
        self.imports: set[str] = set()
        self.readers: list[LongReader] = []
        self.streams: list[Stream] = []
        self.shared: list[Shared] = []
        self.has_options = False
        """Whether the lake says what its checkpoints do."""
        self.undropped: dict[int, list[int]] = {}
        """At which snapshots catalogs were brought back."""
        self.reader = forklake.Lake(open_database(parse_url(url), create=False), open_storage(self.data_path))
        self.reader._context.engine = shared_engine(self.reader._storage)
        self.clients = [Client(self) for _ in range(CLIENTS)]
        self.checker = Checker(self)

    def close(self) -> None:
        """Give everything back."""
        self.reader._database.close()
        for client in self.clients:
            client.close()

    def _waiting(self) -> int:
        """How many clients of a server wait for locks that others hold."""
        ((count,),) = self.query(
            "SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
            "WHERE NOT l.granted AND a.datname = current_database()"
        )
        return count

    # ---- Catalogs ---

    def live(self) -> list[CatalogModel]:
        return [catalog for catalog in self.catalogs.values() if catalog.dropped is None]

    def some_catalog(self, random: Random) -> CatalogModel:
        """One that has tables, as others may be in the making."""
        found = [catalog for catalog in self.live() if catalog.state.live()]
        if not found:
            raise NothingToDo
        return random.choice(found)

    def add(self, catalog: CatalogModel) -> None:
        self.catalogs[catalog.id] = catalog

    # ---- Files ---

    def address(self, row: Row) -> str:
        return self.data_path + row["path"] if row["path_is_relative"] else row["path"]

    def files(self) -> Iterator[str]:
        """Every file on the disk that belongs to the lake."""
        for root in ("files", "own", "theirs"):
            yield from (str(path) for path in (self.folder / root).rglob("*") if path.is_file())

    def readers_until(self, time: datetime) -> None:
        """What was planned up to a time can no longer be read for certain."""
        self.readers = [reader for reader in self.readers if reader.planned > time]


@contextmanager
def determined(seed: int) -> Iterator[None]:
    """Let ids follow from a seed, and nobody sleep."""
    random = Random(seed)
    with ExitStack() as patched:
        patched.enter_context(patch.object(uuid, "os", SimpleNamespace(urandom=random.randbytes)))
        for module in (retry, reservations):
            patched.enter_context(patch.object(module, "PAUSES", (0.0,) * 8))
        patched.enter_context(patch.object(collect, "_LONGEST_REST", 0.0))
        patched.enter_context(faulty_workers())
        # Where something goes wrong with an index, rows are committed without it.
        patched.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", IndexNotBuilt)
        # So that segments are merged in programs that are as short as these.
        patched.enter_context(patch.object(coverage, "FAN_IN", 3))
        yield
