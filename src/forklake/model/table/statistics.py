"""What is counted of a table, and the bounds of its columns over all rows that it ever had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict

from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.types.extremes import greatest, least


class OuterBounds(TypedDict):
    """The least and the greatest value of a column, and their keys."""

    min_value: str | None
    max_value: str | None
    min_key: str | None
    max_key: str | None


def outer_bounds(one: Bounds | ColumnStats, other: ColumnStats) -> OuterBounds:
    """The bounds of a column over two sets of rows."""
    min_key, min_value = least((one.min_key, one.min_value), (other.min_key, other.min_value))
    max_key, max_value = greatest((one.max_key, one.max_value), (other.max_key, other.max_value))
    return {"min_value": min_value, "max_value": max_value, "min_key": min_key, "max_key": max_key}


def either(one: bool | None, other: bool | None) -> bool | None:
    """Whether one of two holds; None where neither does and one does not say."""
    both = (one, other)
    return True if True in both else None if None in both else False


def stats_of_both(known: ColumnStats, more: ColumnStats) -> ColumnStats:
    """What is known of a column over two sets of rows; how much room it takes is that of the first."""
    nulls = (known.null_count, more.null_count)
    return replace(
        known,
        value_count=known.value_count + more.value_count,
        null_count=None if nulls[0] is None else nulls[0] + (nulls[1] or 0),
        contains_nan=either(known.contains_nan, more.contains_nan),
        **outer_bounds(known, more),
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a column over all rows that a table ever had."""

    contains_null: bool = False
    contains_nan: bool | None = None
    min_value: str | None = None
    max_value: str | None = None
    min_key: str | None = None
    max_key: str | None = None

    def with_stats(self, stats: ColumnStats) -> Bounds:
        """Wider, where a file goes beyond."""
        wider = Bounds(
            self.contains_null or stats.null_count != 0,
            self.contains_nan if stats.min_key is None else self._may_be_nan(stats),
            **outer_bounds(self, stats),
        )
        return self if wider == self else wider

    def _may_be_nan(self, stats: ColumnStats) -> bool | None:
        """Certain only if every file is; None where one does not say, and for types without NaN."""
        if self.min_key is None:
            return stats.contains_nan
        return either(self.contains_nan, stats.contains_nan)


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The statistics of one table."""

    record_count: int | None = 0
    """None in a fork that inherited the table: counting what is there would cost what the table holds."""
    next_row_id: int = 0
    file_size_bytes: int | None = 0
    bounds: dict[ColumnId, Bounds] = field(default_factory=dict[ColumnId, Bounds])
    is_stored: bool = False
    """Whether the catalog has a row of them."""

    @property
    def is_counted(self) -> bool:
        """Whether all rows that are there were counted."""
        return self.record_count is not None

    def emptied(self) -> TableStatistics:
        """Of a table that was dropped: none of its rows are there, and its row ids stay given out."""
        return self if self.record_count is None else replace(self, record_count=0, file_size_bytes=0)

    def plus(self, *, rows: int = 0, ids: int = 0, size: int = 0) -> TableStatistics:
        """After more rows, row ids given out, and bytes."""
        return replace(
            self,
            record_count=None if self.record_count is None else self.record_count + rows,
            next_row_id=self.next_row_id + ids,
            file_size_bytes=None if self.file_size_bytes is None else self.file_size_bytes + size,
        )


def widened(bounds: Mapping[ColumnId, Bounds], stats: Iterable[ColumnStats]) -> dict[ColumnId, Bounds]:
    """The bounds that become wider."""
    wider: dict[ColumnId, Bounds] = {}
    for entry in stats:
        old = wider.get(entry.column_id) or bounds.get(entry.column_id)
        new = (old or Bounds()).with_stats(entry)
        if new is not old:
            wider[entry.column_id] = new
    return wider
