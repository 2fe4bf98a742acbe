"""What is known of rows that are at hand: the statistics that a footer would have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from forklake.data.conform import id_of
from forklake.data.defaults import initial_of
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.types.data_types import DataType, Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, has_key, has_nan, key_of, max_key, min_key
from forklake.model.types.text import as_value, kept_text, stored


def summarise(rows: pa.Table, columns: tuple[Column, ...]) -> tuple[ColumnStats, ...]:
    """Statistics of every column; of nested ones only how many are NULL."""
    return tuple(_summaries(rows, columns))


def _summaries(rows: pa.Table, columns: tuple[Column, ...]) -> Iterator[ColumnStats]:
    types = {column.id: column.data_type for column in columns} | {ROW_ID_COLUMN: Scalar("int64")}
    for field, values in zip(rows.schema, rows.columns, strict=True):
        column = ColumnId(id_of(field) or 0)
        if column in types:
            yield summary(column, types[column], values)


def summary(column: ColumnId, type: DataType, values: pa.ChunkedArray | pa.Array) -> ColumnStats:
    """What is known of a few values."""
    count, nulls = len(values), values.null_count
    if count == nulls:
        return ColumnStats(column, count, nulls)
    if not has_key(type) or type == Scalar("time_ns"):
        return ColumnStats(column, count, nulls, min_key=LOWEST, max_key=HIGHEST)
    found = [stored(value, type) for value in _plain(values).to_pylist() if value is not None]
    nan = any(value != value for value in found) if has_nan(type) else None
    values_of = [as_value(value, type) or value for value in found]
    lowest = highest = 0
    if len(values_of) > 1:
        # By whole keys: bounds keep only the beginning of a long one.
        keyed = [(key_of(one, type) or "", at) for at, one in enumerate(values_of)]
        lowest, highest = min(keyed)[1], max(keyed)[1]
    return ColumnStats(
        column,
        count,
        nulls,
        kept_text(found[lowest], type),
        kept_text(found[highest], type),
        min_key(values_of[lowest], type),
        max_key(values_of[highest], type),
        nan,
    )


def summary_of_default(column: Column, rows: int) -> ColumnStats:
    """What is known of a column that a file lacks: every row has its initial default."""
    one = summary(column.id, column.data_type, initial_of(column, 1))
    return replace(one, value_count=rows, null_count=rows * (one.null_count or 0))


def _plain(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """As files store them: timestamps are whole numbers."""
    if isinstance(values.type, pa.BaseExtensionType):
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        values = pa.chunked_array([chunk.storage for chunk in chunks], values.type.storage_type)
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return values.cast(pa.int64())
    return values
