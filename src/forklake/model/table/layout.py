"""How a table lays out its files: partitioning and sort order, as versioned values. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from forklake.model.entities import Origin
from forklake.model.ids import ColumnId


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
    """The column. A sort order is written anew when its columns get other names."""
    direction: Literal["ASC", "DESC"] = "ASC"
    nulls: Literal["NULLS_FIRST", "NULLS_LAST"] = "NULLS_LAST"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order in which rows are written from some snapshot on."""

    id: int
    table_id: int
    keys: tuple[SortKey, ...]
    origin: Origin | None = field(default=None, compare=False)
