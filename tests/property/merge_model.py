"""Catalogs as the sets of commits that they know: a fork knows what its parent knew, and a merge unites.

The model knows no files, snapshots or bases. Every commit is about one table, and what it wrote into a row is
a version of that row; of two versions, the later one was written by somebody who knew the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Prefer = Literal["source", "target"]
Refusal = tuple[Literal["definition", "row"], str]
"""Why a merge may be refused, and for which table."""


@dataclass(frozen=True, slots=True)
class Event:
    """A commit: the rows of a table that it changed, or only moved to other files."""

    number: int
    table: str
    kind: Literal["rows", "move", "definition"]
    keys: frozenset[int] = frozenset()


class Version(NamedTuple):
    """What an event made of a row; None if it deleted it."""

    event: int
    value: int | None


class Columns(NamedTuple):
    """What an event made of the columns of a table."""

    event: int
    names: tuple[str, ...]


class DefinitionChanges(NamedTuple):
    """What became of a row; None is no row."""

    key: int
    old: int | None
    new: int | None


@dataclass(slots=True)
class Known:
    """What a catalog knows."""

    events: dict[int, Event] = field(default_factory=dict[int, Event])
    rows: dict[str, dict[int, Version]] = field(default_factory=dict[str, dict[int, Version]])
    columns: dict[str, Columns] = field(default_factory=dict[str, Columns])

    def copy(self) -> Known:
        rows = {table: dict(versions) for table, versions in self.rows.items()}
        return Known(dict(self.events), rows, dict(self.columns))

    def live(self, table: str) -> dict[int, int]:
        """The values of the rows that are there."""
        found = self.rows[table].items()
        return {key: version.value for key, version in found if version.value is not None}

    def write(self, event: Event, values: dict[int, int | None]) -> None:
        """Change rows, or delete them."""
        self.events[event.number] = event
        self.rows[event.table] |= {key: Version(event.number, value) for key, value in values.items()}

    def define(self, event: Event, names: tuple[str, ...]) -> None:
        """Give a table other columns."""
        self.events[event.number] = event
        self.columns[event.table] = Columns(event.number, names)

    def unknown_to(self, other: Known, tables: Collection[str] | None = None) -> list[Event]:
        """What another catalog does not know, of all tables or some."""
        return [
            event
            for number, event in self.events.items()
            if number not in other.events and (tables is None or event.table in tables)
        ]

    def net(self, other: Known, table: str) -> list[DefinitionChanges]:
        """What became of rows by what the other does not know."""
        found = [
            DefinitionChanges(
                key, there.value if (there := other.rows[table].get(key)) else None, version.value
            )
            for key, version in self.rows[table].items()
            if version.event not in other.events
        ]
        return [entry for entry in found if entry.old != entry.new]

    def contested(self, other: Known, tables: Collection[str] | None = None) -> set[tuple[str, int]]:
        """Rows that both changed, neither knowing of the other."""
        return {
            (table, key)
            for table, versions in self.rows.items()
            if tables is None or table in tables
            for key, version in versions.items()
            if version.event not in other.events
            and key in other.rows[table]
            and other.rows[table][key].event not in self.events
        }

    def differing(self, other: Known, tables: Collection[str] | None = None) -> set[tuple[str, int]]:
        """Those of them that they made different things of: nobody may pass over these."""
        return {
            (table, key)
            for table, key in self.contested(other, tables)
            if self.rows[table][key].value != other.rows[table][key].value
        }

    def take(
        self,
        source: Known,
        tables: Collection[str] | None = None,
        prefer: Prefer = "source",
        decided: dict[str, Event] | None = None,
    ) -> None:
        """Merge: of every row the later version stays, and of those that were contested the preferred one.

        What was decided is an event of its own.
        """
        contested = source.contested(self, tables)
        for table, versions in source.rows.items():
            if tables is not None and table not in tables:
                continue
            for key, version in versions.items():
                if version.event not in self.events and ((table, key) not in contested or prefer == "source"):
                    self.rows[table][key] = version
            if source.columns[table].event not in self.events:
                self.columns[table] = source.columns[table]
        self.events |= {event.number: event for event in source.unknown_to(self, tables)}
        for table, event in (decided or {}).items():
            self.write(event, {key: self.rows[table][key].value for key in event.keys})

    def refusals(self, source: Known, tables: Collection[str] | None = None) -> set[Refusal]:
        """Rows that both changed, and newer definitions of the target."""
        found: set[Refusal] = {("row", table) for table, _ in source.contested(self, tables)}
        theirs = self.unknown_to(source, tables)
        for ours in source.unknown_to(self, tables):
            found |= {reason for event in theirs for reason in _between(event, ours)}
        return found


def _between(theirs: Event, ours: Event) -> Iterator[Refusal]:
    if theirs.table == ours.table and theirs.kind == "definition":
        yield "definition", ours.table
