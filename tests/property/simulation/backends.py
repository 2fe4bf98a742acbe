"""Empty lakes for programs, on each backend."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import forklake
from forklake.localpg import LocalPostgres
from tests.contract.conftest import _runner
from tests.property.simulation.runs import Lakes
from tests.property.simulation.world import Prepare, World
from tests.templates import EmptyDatabase, LakeTemplates

BACKENDS = ("sqlite", "duckdb", "postgresql")
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder that is in memory, if there is such a place."""
    folder = tempfile.mkdtemp(prefix="forklake-simulation-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def world(url: str, folder: Path, prepare: Prepare = lambda _: None) -> Iterator[World]:
    """The world of a program, on an empty lake."""
    with ExitStack() as opened:
        forklake.connect(url, data_path=folder / "files", create=True).close()
        made = World(url, folder, _runner(url, opened), prepare)
        opened.callback(made.close)
        yield made


class Embedded:
    """Lakes in files, copied from an empty one."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.backend = backend
        self._folder = folder
        self._templates = LakeTemplates(folder)
        self._made = 0

    @contextmanager
    def world(self, prepare: Prepare = lambda _: None) -> Iterator[World]:
        """A world of its own; it is removed afterwards."""
        self._made += 1
        folder = self._folder / f"{self._made}"
        folder.mkdir()
        self._templates.copy(self.backend, folder / "lake.db")
        try:
            with world(f"{self.backend}:///{folder}/lake.db", folder, prepare) as made:
                yield made
        finally:
            shutil.rmtree(folder)


class Postgres:
    """Lakes in one database, emptied after each program."""

    backend = "postgresql"

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._database = EmptyDatabase(server, folder)
        self._made = 0

    def close(self) -> None:
        """Leave the database to its server."""
        self._database.close()

    @contextmanager
    def world(self, prepare: Prepare = lambda _: None) -> Iterator[World]:
        """A world of its own; it is removed afterwards."""
        self._made += 1
        folder = self._folder / f"{self._made}"
        folder.mkdir()
        try:
            with self._database.lend() as url, world(url, folder, prepare) as made:
                yield made
        finally:
            shutil.rmtree(folder)


@contextmanager
def lakes(backend: str, server: str | None = None) -> Iterator[Lakes]:
    """Lakes on a backend, each for one program; a PostgreSQL is started if none is given."""
    with memory_folder() as folder, ExitStack() as started:
        if backend != "postgresql":
            yield Embedded(folder, backend)
        else:
            url = server or started.enter_context(LocalPostgres(fsync=False)).url
            yield started.enter_context(closing(Postgres(folder, url)))
