"""Writers that commit through forklake, and the work that every contender does.

Each commit changes one table, by turns: CREATE TABLE with three columns, then ADD COLUMN on that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import forklake
from benchmarks.harness import Change, Writer
from forklake.api.catalog import Catalog
from forklake.api.table import Table

COLUMNS = "id BIGINT NOT NULL, name VARCHAR, seen TIMESTAMPTZ"
ADDED = ("note", "VARCHAR")


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody whose commits are measured."""

    title: str
    make: Callable[[str, str, Path, int], list[Writer]]
    """Prepares a server for some writers: address, a name for its schema, a folder for files, how many."""
    slow: bool = False
    """Whether it retries for so long that it takes more time to measure, which is then done less often."""


class Alternating:
    """CREATE TABLE, ADD COLUMN, CREATE TABLE, …; what failed is tried again."""

    def __init__(self, create: Callable[[str], None], alter: Callable[[str], None]) -> None:
        """Say how each is done."""
        self._create = create
        self._alter = alter
        self._names = (f"measured_{number:06}" for number in count())
        self._next = next(self._names)
        self._created: str | None = None

    def __call__(self) -> None:
        """Make one commit."""
        if self._created is None:
            self._create(self._next)
            self._created, self._next = self._next, next(self._names)
        else:
            self._alter(self._created)
            self._created = None


@dataclass(frozen=True, slots=True)
class Forklake:
    """A writer in a catalog of its own."""

    url: str
    catalog: str

    @contextmanager
    def open(self) -> Iterator[Change]:
        """Through the public interface, like any user."""
        with forklake.connect(self.url) as lake:
            yield _changes(lake.catalog(self.catalog))


def _changes(catalog: Catalog) -> Change:
    tables: dict[str, Table] = {}

    def create(name: str) -> None:
        tables[name] = catalog.create_table(name, COLUMNS)

    def alter(name: str) -> None:
        tables[name].add_column(*ADDED)
        del tables[name]

    return Alternating(create, alter)


def lake_url(server: str, schema: str) -> str:
    """The address of a lake in a schema of its own."""
    return f"{server}?metadata_schema={schema}"


def make_forklake(server: str, schema: str, folder: Path, writers: int) -> list[Writer]:
    """A new lake with a catalog for each writer."""
    url = lake_url(server, schema)
    with forklake.connect(url, data_path=folder / schema, create=True) as lake:
        for place in range(writers):
            lake.create_catalog(f"writer_{place}")
    return [Forklake(url, f"writer_{place}") for place in range(writers)]
