"""Statements of SQL as frozen values: what the grammar makes of a text, and what the session runs.

Queries and expressions inside of them stay as they were written: DuckDB reads those itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a statement as it was written: a query, an expression, a list of tables."""

    text: str
    start: int = 0
    """Where it begins in the text that was handed over, in characters."""

    def __str__(self) -> str:
        """As it was written."""
        return self.text


@dataclass(frozen=True, slots=True)
class ObjectName:
    """`orders`, `sales.orders` or `shop.sales.orders`: as written, without quotes."""

    parts: tuple[str, ...]
    start: int = 0

    def __str__(self) -> str:
        """With dots."""
        return ".".join(self.parts)


Options = tuple[tuple[str, object], ...]
"""Names with numbers, strings, truth values, None, or the Fragment of a parameter."""

ColumnPath = tuple[str, ...]
"""A column, or a field of a struct: `("address", "zip")`. Elements of lists are named `element`."""


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


# ---- Definitions ---


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


# ---- Rows ---


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


# ---- Everything else ---


@dataclass(frozen=True, slots=True)
class TransactionControl:
    """BEGIN, COMMIT, ROLLBACK."""

    action: Literal["begin", "commit", "rollback"]
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """USE, SET schema and SET search_path; RESET of these is `main`."""

    name: ObjectName


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET VARIABLE, RESET VARIABLE."""

    name: str
    value: Fragment | None


@dataclass(frozen=True, slots=True)
class Call:
    """CALL function(arguments)."""

    name: ObjectName
    arguments: Fragment


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """CHECKPOINT."""

    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ForkCatalog:
    """FORK CATALOG [IF NOT EXISTS] parent AS child [AT (VERSION => n)] [TTL '7 days']."""

    parent: str
    child: str
    at: tuple[Literal["version", "timestamp"], Fragment] | None = None
    ttl: str | Fragment | None = None
    """A parameter is a fragment."""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class MergeCatalog:
    """MERGE CATALOG source INTO target [PREFER SOURCE | TARGET] [TABLES (a, b)] [DRY RUN]."""

    source: str
    target: str | None
    prefer: Literal["source", "target"] | None = None
    tables: tuple[ObjectName, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DropCatalog:
    """DROP CATALOG name."""

    name: str
    if_exists: bool = False


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
