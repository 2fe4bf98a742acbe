"""What the parts of the benchmark of forks have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.many_files import Backend, Place, make_files
from forklake.store.tables import TABLES

BACKENDS: tuple[Backend, ...] = ("PostgreSQL", "SQLite")
FEW = 100
"""Files of a small table."""
STEADY = 1.2
"""How many times as long something may take that should not depend on size."""
WORKERS = 8
BEFORE, AFTER = "before ANALYZE", "after it"
_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Bench:
    """Where to measure."""

    server: str
    folder: Path
    progress: Callable[[str], None]

    def place(self, backend: Backend, name: str) -> Place:
        """Where a lake of this name is."""
        return Place(backend, self.server, self.folder, name)

    def lake_of_files(self, backend: Backend, name: str, files: int) -> Place:
        """A lake with a table `t` of so many files in a catalog `bench`."""
        self.progress(f"{backend}: a table of {files:,} files")
        place = self.place(backend, name)
        make_files(place, files=files, columns=_COLUMNS)
        return place


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that so large a part of them does not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def ms(value: float) -> str:
    """Seconds, shown so that small ones can be compared."""
    return f"{value * 1e3:,.2f} ms"


def stop_vacuum(place: Place) -> None:
    """Let the server look at new rows when it is told to, and not in the middle of something."""
    if place.backend == "PostgreSQL":
        with psycopg.connect(place.server, options=f"-c search_path={place.name}") as connection:
            for name in TABLES:
                connection.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = false)".encode())


def analyze(place: Place) -> None:
    """What a server does by itself, a minute or so after many rows came."""
    if place.backend == "PostgreSQL":
        with psycopg.connect(place.server, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
