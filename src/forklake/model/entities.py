"""What a catalog holds: schemas, tables with their columns, views, macros and tags, as frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from forklake.display import Shown
from forklake.model.ids import CatalogId, ColumnId, MacroId, SchemaId, SnapshotId, TableId, ViewId
from forklake.model.types import data_types as types

MacroKind = Literal["scalar", "table"]
"""A macro is an expression, or a query."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a stored version of an entity lives: the catalog that wrote it and the snapshot that began it."""

    source: CatalogId
    begin: SnapshotId


@dataclass(frozen=True, slots=True)
class CatalogInfo(Shown):
    """A catalog in a listing, with its parent."""

    name: str
    id: CatalogId
    uuid: str
    parent: str | None
    fork_snapshot: SnapshotId | None
    depth: int
    created_at: datetime
    expires_at: datetime | None
    parent_dropped: bool | None
    """None for one that has no parent. Another catalog may have the name of a dropped one."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A namespace for tables, views and macros."""

    id: SchemaId
    uuid: str
    name: str
    path: str
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Default:
    """What an insert puts into a column that it does not name."""

    value: str
    kind: Literal["literal", "expression"]
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a field inside one. `id` never changes and is the Parquet field id."""

    id: ColumnId
    name: str
    type: str
    """DuckLake's name of the type: `int64`, `decimal(10,2)`, or `list`, `struct`, `map` with `children`."""
    nullable: bool = True
    initial_default: str | None = None
    default: Default | None = None
    children: tuple[Column, ...] = ()
    order: int = 0
    origin: Origin | None = field(default=None, compare=False)

    @property
    def data_type(self) -> types.DataType:
        """The type with everything nested in it."""
        match self.type:
            case "list":
                return types.List(self.children[0].data_type)
            case "map":
                return types.Map(self.children[0].data_type, self.children[1].data_type)
            case "struct":
                return types.Struct(tuple((child.name, child.data_type) for child in self.children))
            case leaf:
                return types.from_ducklake_name(leaf)

    def walk(self) -> Iterator[Column]:
        """The column and every field nested in it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Table:
    """The definition of a table as of one snapshot."""

    id: TableId
    uuid: str
    schema_id: SchemaId
    name: str
    path: str
    columns: tuple[Column, ...]
    origin: Origin | None = field(default=None, compare=False)

    def walk(self) -> Iterator[Column]:
        """Every column and nested field, parents first."""
        for column in self.columns:
            yield from column.walk()


@dataclass(frozen=True, slots=True)
class View:
    """A stored query."""

    id: ViewId
    uuid: str
    schema_id: SchemaId
    name: str
    sql: str
    dialect: str = "duckdb"
    column_aliases: tuple[str, ...] = ()
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """A parameter of a macro, with an optional default given as SQL text."""

    name: str
    type: str = "unknown"
    default: str | None = None


@dataclass(frozen=True, slots=True)
class MacroImpl:
    """One overload of a macro."""

    sql: str
    parameters: tuple[MacroParameter, ...] = ()
    kind: MacroKind = "scalar"
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class Macro:
    """A stored expression or query with parameters."""

    id: MacroId
    schema_id: SchemaId
    name: str
    implementations: tuple[MacroImpl, ...] = ()
    origin: Origin | None = field(default=None, compare=False)

    @property
    def kind(self) -> MacroKind:
        """Whether it is an expression or a query. As in DuckDB, one of each may have the same name."""
        return self.implementations[0].kind if self.implementations else "scalar"


@dataclass(frozen=True, slots=True)
class Tag:
    """A key and value on a schema, table, view or macro, or on one column of a table."""

    object_id: int
    key: str
    value: str
    column_id: ColumnId | None = None
    kind: Literal["schema", "table", "view", "macro"] = field(default="table", compare=False)
    label: str = field(default="", compare=False)
    """The kind and name of the object, for messages; not stored with the tag."""
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table in a listing."""

    schema: str
    name: str
    id: TableId
    uuid: str


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """A view in a listing."""

    schema: str
    name: str
    id: ViewId
    sql: str
    column_aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MacroInfo:
    """A macro in a listing."""

    schema: str
    name: str
    id: MacroId
    implementations: tuple[MacroImpl, ...]
