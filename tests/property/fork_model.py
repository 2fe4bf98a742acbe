"""Catalogs in plain Python: a fork is a copy, so whatever one does cannot reach another.

Things are known by keys of the model's own. What the lake numbers is `None` until it was read back once, and
must never change from then on.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from forklake.model.names import quoted

Value = int | str | None
Key = int
KEYS = count(1)
"""Keys are never given twice, so that what stands under one in two catalogs has one origin."""
WIDER = {"smallint": "integer", "integer": "bigint"}
STORED_AS = {"smallint": "int16", "integer": "int32", "bigint": "int64", "varchar": "varchar"}


@dataclass
class Column:
    """A column; rows hold their values by its key."""

    key: Key
    name: str
    type: str
    default: Value = None
    tags: dict[str, str] = field(default_factory=dict)
    id: int | None = None

    @property
    def is_number(self) -> bool:
        return self.type != "varchar"


@dataclass
class Row:
    """A row; those that have no id yet are new."""

    values: dict[Key, Value]
    id: int | None = None


@dataclass
class Object:
    """A schema, or a view or macro with its SQL."""

    kind: str
    name: str
    schema: Key = 0
    sql: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    id: int | None = None


@dataclass
class Table(Object):
    """A table with its rows."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    limit: int | None = None
    """How many rows stay in the metadata database, if the table has its own opinion."""
    partitioning: tuple[tuple[str, Key], ...] = ()
    sort_order: tuple[tuple[str, Key], ...] = ()
    """Texts with a place for the name of the column."""

    def column(self, key: Key) -> Column:
        return next(column for column in self.columns if column.key == key)

    def shown(self, layout: tuple[tuple[str, Key], ...]) -> tuple[str, ...]:
        return tuple(text.format(_written(self.column(key).name)) for text, key in layout)

    def is_laid_out_by(self, column: Column) -> bool:
        return any(key == column.key for _, key in (*self.partitioning, *self.sort_order))

    def read(self, row: Row) -> tuple[Value, ...]:
        return tuple(row.values[column.key] for column in self.columns)


@dataclass
class State:
    """What a catalog holds."""

    schemas: dict[Key, Object] = field(default_factory=dict)
    tables: dict[Key, Table] = field(default_factory=dict)
    views: dict[Key, Object] = field(default_factory=dict)
    macros: dict[Key, Object] = field(default_factory=dict)

    def frozen(self) -> bytes:
        return pickle.dumps(self)

    def copied(self) -> State:
        return thawed(self.frozen())

    def name(self, item: Object) -> Any:
        return item.name if item.kind == "schema" else (self.schemas[item.schema].name, item.name)

    def things(self) -> Iterator[tuple[Key, Object]]:
        for kind in (self.schemas, self.tables, self.views, self.macros):
            yield from kind.items()


def _written(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


def thawed(frozen: bytes) -> State:
    """A state that nobody else has."""
    return pickle.loads(frozen)  # noqa: S301 - our own


@dataclass(frozen=True)
class AsOf:
    """A snapshot of a catalog or of whom it was forked from."""

    snapshot: int
    state: bytes
    name: str
    """What the catalog was called, if it was itself that made the snapshot."""
    is_own: bool = True

    def inherited(self) -> AsOf:
        return AsOf(self.snapshot, self.state, self.name, False)


@dataclass
class Catalog:
    """A catalog, its past, and where it comes from."""

    id: int
    name: str
    state: State
    history: list[AsOf] = field(default_factory=list)
    parent: Catalog | None = field(default=None, repr=False)
    fork_snapshot: int | None = None
    has_ttl: bool = False
    is_live: bool = True

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def snapshot(self) -> int:
        return self.history[-1].snapshot

    def record(self, snapshot: int) -> None:
        """The catalog made a snapshot, and this is what it holds now."""
        assert not self.history or snapshot > self.snapshot, f"{snapshot} is not after {self.snapshot}"
        self.history.append(AsOf(snapshot, self.state.frozen(), self.name))

    def at(self, snapshot: int) -> AsOf | None:
        """The last timestamp up to a snapshot of the lake."""
        known = [timestamp for timestamp in self.history if timestamp.snapshot <= snapshot]
        return known[-1] if known else None

    def forked(self, id: int, name: str, point: AsOf, snapshot: int) -> Catalog:
        """A copy as of some timestamp, with the past up to there."""
        past = [timestamp.inherited() for timestamp in self.history if timestamp.snapshot <= point.snapshot]
        fork = Catalog(id, name, thawed(point.state), past, self, point.snapshot)
        fork.record(snapshot)
        return fork
