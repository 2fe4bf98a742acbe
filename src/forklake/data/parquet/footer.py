"""What the footer of a Parquet file says of the table's columns. Any writer's footer will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from forklake.data.parquet.footer_values import Bound, reader_of
from forklake.data.parquet.schema import FIELD_ID, ROW_ID_NAME
from forklake.lazy.arrow import pa, pq
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.types.data_types import DataType, Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, bounds, has_nan
from forklake.model.types.text import as_value, kept_text

# Writers that keep the bounds of texts whole or leave them out. Others may cut them, and Arrow does not tell.
_WHOLE_BOUNDS = ("parquet-cpp-arrow", "parquet-mr", "DuckDB")
_NO_TEXT = (Scalar("json"), Scalar("geometry"))
ROW_ID = Column(ROW_ID_COLUMN, ROW_ID_NAME, "int64")
"""The ids that rows carry have bounds like any column: so a row is found by its id."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a writer saw of its rows that footers do not tell."""

    nan: Mapping[ColumnId, bool] = field(default_factory=dict[ColumnId, bool])
    """For every column and field of floats."""
    nulls: Mapping[ColumnId, int] = field(default_factory=dict[ColumnId, int])
    """For every whole column."""


def footer_stats(
    metadata: pq.FileMetaData,
    columns: tuple[Column, ...],
    *,
    leaves: Mapping[ColumnId, int] | None = None,
    seen: Seen | None = None,
) -> tuple[ColumnStats, ...]:
    """Statistics of the columns and nested fields that a file has, parents first.

    `leaves` says at which place of the file each column without parts is; without it the field ids do.
    """
    footer = _Footer(metadata, leaf_places(metadata) if leaves is None else leaves, seen or Seen())
    return tuple(stats for column in columns for stats in footer.stats(column))


def leaf_places(metadata: pq.FileMetaData) -> dict[ColumnId, int]:
    """Where each column without parts is among those of the file, by field id."""
    leaves = [leaf for field in metadata.schema.to_arrow_schema() for leaf in _leaves(field)]
    ids = [(leaf.metadata or {}).get(FIELD_ID) for leaf in leaves]
    return {ColumnId(int(number)): at for at, number in enumerate(ids) if number is not None}


def _leaves(field: pa.Field) -> Iterator[pa.Field]:
    nested = field.type
    if isinstance(nested, pa.BaseExtensionType) or not nested.num_fields:
        yield field
    elif pa.types.is_map(nested):
        yield from _leaves(nested.key_field)
        yield from _leaves(nested.item_field)
    else:
        for at in range(nested.num_fields):
            yield from _leaves(nested.field(at))


class _Footer:
    """A footer with what else is known of its file."""

    def __init__(self, metadata: pq.FileMetaData, places: Mapping[ColumnId, int], seen: Seen) -> None:
        self._metadata = metadata
        self._groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        self._places = places
        self._seen = seen
        self._is_whole = (metadata.created_by or "").startswith(_WHOLE_BOUNDS)

    def stats(self, column: Column) -> list[ColumnStats]:
        """The column and everything nested in it."""
        if not column.children:
            return [self._leaf(column, self._places[column.id])] if column.id in self._places else []
        inside = [stats for child in column.children for stats in self.stats(child)]
        return [self._nested(column, inside), *inside] if inside else []

    def _nested(self, column: Column, inside: list[ColumnStats]) -> ColumnStats:
        """A list, map or struct: only the writer knows how many are NULL."""
        nulls = self._seen.nulls.get(column.id)
        count = inside[0].value_count if nulls is None else self._metadata.num_rows
        children = {child.id for child in column.children}
        size = sum(stats.size_bytes or 0 for stats in inside if stats.column_id in children)
        is_empty = nulls == count
        return ColumnStats(
            column.id,
            count,
            nulls,
            min_key=None if is_empty else LOWEST,
            max_key=None if is_empty else HIGHEST,
            size_bytes=size,
        )

    def _leaf(self, column: Column, at: int) -> ColumnStats:
        chunks = [group.column(at) for group in self._groups]
        values = sum(chunk.num_values for chunk in chunks)
        nulls = _null_count(chunks)
        if nulls is None:
            # Arrow says nothing of some types.
            nulls = self._seen.nulls.get(column.id)
        size = sum(chunk.total_compressed_size for chunk in chunks)
        type = column.data_type
        if nulls == values:
            contains_nan = False if has_nan(type) else None
            return ColumnStats(column.id, values, nulls, contains_nan=contains_nan, size_bytes=size)
        contains_nan = self._seen.nan.get(column.id)
        low, high = self._bounds(chunks, column, at)
        min_key, max_key = bounds(
            as_value(low and low[0], type), as_value(high and high[1], type), type, contains_nan=contains_nan
        )
        return ColumnStats(
            column.id,
            values,
            nulls,
            self._text(low, type),
            self._text(high, type),
            min_key,
            max_key,
            contains_nan,
            _distinct_count(chunks),
            size,
        )

    def _bounds(self, chunks: list[Any], column: Column, at: int) -> tuple[Bound | None, Bound | None]:
        """The outermost of all row groups; none if one that has values does not tell."""
        read = reader_of(self._metadata.schema.column(at), column)
        lows: list[Bound] = []
        highs: list[Bound] = []
        for chunk in chunks:
            statistics = chunk.statistics
            if (
                statistics is not None
                and statistics.has_null_count
                and statistics.null_count == chunk.num_values
            ):
                continue
            if statistics is None or not statistics.has_min_max:
                return None, None
            low, high = read(statistics.min_raw), read(statistics.max_raw)
            if low is None or high is None:
                return None, None
            lows.append(low)
            highs.append(high)
        return min(lows, default=None), max(highs, default=None)

    def _text(self, bound: Bound | None, type: DataType) -> str | None:
        if bound is None or bound[0] != bound[1] or type in _NO_TEXT:
            return None
        if isinstance(bound[0], str | bytes) and not self._is_whole:
            return None
        return kept_text(bound[0], type)


def _null_count(chunks: list[Any]) -> int | None:
    total = 0
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        total += statistics.null_count
    return total


def _distinct_count(chunks: list[Any]) -> int | None:
    """Row groups may share values, so only one alone can tell."""
    statistics = chunks[0].statistics if len(chunks) == 1 else None
    return statistics.distinct_count if statistics is not None and statistics.has_distinct_count else None
