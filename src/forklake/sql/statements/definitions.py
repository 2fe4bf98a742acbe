"""Statements that define schemas, tables, views, macros and indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forklake.sql.statements.parts import ColumnPath, Fragment, ObjectName, Options


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA."""

    name: ObjectName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropObject:
    """DROP SCHEMA, TABLE, VIEW, MACRO, MACRO TABLE and INDEX."""

    kind: Literal["schema", "table", "view", "macro", "macro table", "index"]
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False
    table: ObjectName | None = None
    """That of an index, if it is said."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with columns, LIKE another table, or AS a query."""

    name: ObjectName
    columns: Fragment | None = None
    """Definitions of columns, without the brackets: `id BIGINT NOT NULL, note VARCHAR DEFAULT 'x'`."""
    names: tuple[str, ...] = ()
    """Names that the columns of a query get: CREATE TABLE t (a, b) AS …"""
    query: Fragment | None = None
    with_data: bool = True
    like: ObjectName | None = None
    partitioned_by: tuple[str, ...] = ()
    """As written: `region`, `year(ts)`, `bucket(16, id)`."""
    sorted_by: tuple[str, ...] = ()
    """As written: `ts DESC NULLS LAST`."""
    options: Options = ()
    """WITH (name = value)."""
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW."""

    name: ObjectName
    query: Fragment
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class MacroOverload:
    """One of the bodies of a macro. Either all are expressions, or all are queries."""

    parameters: tuple[tuple[str, str | None, str | None], ...]
    """Name, type and default of each."""
    body: Fragment
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO or FUNCTION, with one or more overloads."""

    name: ObjectName
    overloads: tuple[MacroOverload, ...]
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN; of a field of a struct too."""

    path: ColumnPath
    definition: Fragment
    """All after the name: `BIGINT DEFAULT 7`."""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    path: ColumnPath
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    path: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterColumnType:
    """ALTER COLUMN SET DATA TYPE."""

    path: ColumnPath
    type: Fragment
    using: Fragment | None = None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN SET DEFAULT; without an expression, DROP DEFAULT."""

    path: ColumnPath
    expression: Fragment | None


@dataclass(frozen=True, slots=True)
class SetNullable:
    """ALTER COLUMN SET NOT NULL or DROP NOT NULL."""

    path: ColumnPath
    nullable: bool


@dataclass(frozen=True, slots=True)
class RenameObject:
    """RENAME TO."""

    new_name: ObjectName


@dataclass(frozen=True, slots=True)
class SetPartitioning:
    """SET PARTITIONED BY; RESET leaves none."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetSortOrder:
    """SET SORTED BY; RESET leaves none."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetOptions:
    """SET (name = value) and RESET (name): options of a table. Those that are reset are None."""

    options: Options


AlterAction = (
    AddColumn
    | DropColumn
    | RenameColumn
    | AlterColumnType
    | SetDefault
    | SetNullable
    | RenameObject
    | SetPartitioning
    | SetSortOrder
    | SetOptions
)


@dataclass(frozen=True, slots=True)
class Alter:
    """ALTER TABLE, VIEW or SCHEMA."""

    kind: Literal["table", "view", "schema"]
    name: ObjectName
    action: AlterAction
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON TABLE, VIEW, COLUMN, SCHEMA or MACRO."""

    kind: Literal["table", "view", "column", "schema", "macro", "macro table"]
    name: ObjectName
    """Of a column: the table or view."""
    comment: str | None
    column: ColumnPath = ()


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX name ON table USING kind (columns) INCLUDE (columns) WITH (name = value)."""

    name: str
    table: ObjectName
    kind: str | None
    """In lower case."""
    columns: tuple[ColumnPath, ...]
    include: tuple[ColumnPath, ...] = ()
    options: Options = ()
    unique: bool = False
    if_not_exists: bool = False
