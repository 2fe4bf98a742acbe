"""Any statement: queries, those that hold another statement, and what a text is read into."""

from __future__ import annotations

from dataclasses import dataclass, field

from forklake.sql.statements.changes import CopyFrom, CopyTo, Delete, Insert, Merge, Truncate, Update
from forklake.sql.statements.control import (
    Call,
    Checkpoint,
    DropCatalog,
    ForkCatalog,
    MergeCatalog,
    SetVariable,
    TransactionControl,
    Use,
)
from forklake.sql.statements.definitions import (
    Alter,
    Comment,
    CreateIndex,
    CreateMacro,
    CreateSchema,
    CreateTable,
    CreateView,
    DropObject,
)
from forklake.sql.statements.parts import Fragment


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, FROM, VALUES, WITH, DESCRIBE, SUMMARIZE, SHOW, PIVOT: whatever returns rows by itself."""

    text: Fragment


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN and EXPLAIN ANALYZE."""

    statement: Statement
    analyze: bool = False
    format: str | None = None
    """Of EXPLAIN (FORMAT json), in lower case."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name AS statement."""

    name: str
    prepared: Parsed
    """The statement, with its parameters; PREPARE itself has none."""


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name(arguments), DEALLOCATE name."""

    name: str
    arguments: Fragment | None = None
    deallocate: bool = False


Statement = (
    Query
    | Explain
    | CreateSchema
    | DropObject
    | CreateTable
    | CreateView
    | CreateMacro
    | Alter
    | Comment
    | CreateIndex
    | Insert
    | Update
    | Delete
    | Truncate
    | Merge
    | CopyTo
    | CopyFrom
    | TransactionControl
    | Use
    | SetVariable
    | Call
    | Checkpoint
    | ForkCatalog
    | MergeCatalog
    | DropCatalog
    | Prepare
    | Execute
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement of a text, with what is known of it before it runs."""

    statement: Statement
    text: str
    start: int = 0
    """Where it begins in the whole text."""
    parameters: frozenset[str] = field(default_factory=frozenset[str])
    """Names or numbers of its parameters: `1`, `2`, `name`.

    In parts of a statement `?` became `$1` and so on, so that each can run by itself; a `Query` is as it was.
    """
