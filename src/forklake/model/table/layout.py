"""How a table lays out its files: partitioning and sort order, as versioned values. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from forklake.model.entities import Origin
from forklake.model.ids import ColumnId
from forklake.model.names import quoted

Direction = Literal["ASC", "DESC"]
Nulls = Literal["NULLS_FIRST", "NULLS_LAST"]


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One part of a partition key: a column and what is done to its values."""

    column_id: ColumnId
    transform: str
    """As DuckLake stores it: `identity`, `year`, `month`, `day`, `hour` or `bucket(16)`."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition key of a table from some snapshot on."""

    id: int
    table_id: int
    fields: tuple[PartitionField, ...]
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One part of a sort order."""

    name: str
    """The column, or SQL. A sort order is written anew when its columns get other names."""
    direction: Direction = "ASC"
    nulls: Nulls = "NULLS_LAST"
    is_expression: bool = False
    """Whether it is SQL over columns rather than the name of one."""

    @property
    def sql(self) -> str:
        """What stands in ORDER BY for its values."""
        return self.name if self.is_expression else quoted(self.name)

    @property
    def term(self) -> str:
        """The key as ORDER BY has it."""
        return f"{self.sql} {self.direction} {self.nulls.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order in which rows are written from some snapshot on."""

    id: int
    table_id: int
    keys: tuple[SortKey, ...]
    origin: Origin | None = field(default=None, compare=False)
