"""Statements that change rows, or copy them to and from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forklake.sql.statements.parts import ColumnPath, Fragment, ObjectName


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO."""

    table: ObjectName
    query: Fragment | None
    """A query or VALUES; None for DEFAULT VALUES.

    With a WITH before INSERT it begins with that, and what stands between became spaces: all is where it was.
    """
    columns: tuple[str, ...] = ()
    by_name: bool = False
    default_places: tuple[tuple[int, int, int], ...] = ()
    """Where VALUES say DEFAULT: start and end within the query, and the place of the column from 0."""
    alias: str | None = None
    returning: Fragment | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = expression`; no expression stands for DEFAULT."""

    path: ColumnPath
    """As written: a column, a field of one, or either with the table or its alias before it."""
    value: Fragment | None


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE … SET … FROM … WHERE."""

    table: ObjectName
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    source: Fragment | None = None
    """What follows FROM."""
    where: Fragment | None = None
    with_: Fragment | None = None
    """WITH … before the statement, the word included."""
    returning: Fragment | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM … USING … WHERE."""

    table: ObjectName
    alias: str | None = None
    source: Fragment | None = None
    """What follows USING."""
    where: Fragment | None = None
    with_: Fragment | None = None
    returning: Fragment | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE."""

    table: ObjectName


@dataclass(frozen=True, slots=True)
class When:
    """A WHEN clause of MERGE INTO."""

    match: Literal["matched", "not matched", "not matched by source"]
    """NOT MATCHED is NOT MATCHED BY TARGET."""
    action: Literal["update", "delete", "insert", "nothing", "error"]
    condition: Fragment | None = None
    assignments: tuple[Assignment, ...] = ()
    """Of UPDATE SET; none for UPDATE, UPDATE SET *, UPDATE BY NAME and BY POSITION."""
    columns: tuple[str, ...] = ()
    """Of INSERT (…)."""
    values: tuple[Fragment | None, ...] = ()
    """Of INSERT … VALUES; None stands for DEFAULT; none for INSERT, INSERT *, BY NAME and BY POSITION."""
    by_name: bool = False
    """UPDATE BY NAME and INSERT BY NAME: otherwise columns go by their position, as in DuckDB."""
    default_values: bool = False
    message: Fragment | None = None
    """Of ERROR."""


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO."""

    table: ObjectName
    source: Fragment
    """What follows USING, with its alias."""
    on: Fragment | None
    clauses: tuple[When, ...]
    alias: str | None = None
    using: tuple[str, ...] = ()
    """USING (columns) instead of ON."""
    with_: Fragment | None = None
    returning: Fragment | None = None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY table or (query) TO file."""

    query: Fragment
    """A table is written as FROM table."""
    path: str | Fragment
    """A parameter, or an expression in brackets, is a fragment."""
    options: Fragment | None = None
    """What stands in the brackets after the file."""


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY table FROM file."""

    table: ObjectName
    path: str | Fragment
    columns: tuple[str, ...] = ()
    options: Fragment | None = None
