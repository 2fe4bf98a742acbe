"""Whether rows that people hand over are Arrow data, and if so, the stream of batches that they are.

This is the one place that tells Arrow tables, batches and streams, DataFrames of pandas, and whatever has
Arrow's C interface apart from rows that are made of Python values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol, TypeAlias, runtime_checkable

from forklake.data.input import pandas as dataframes
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.entities import Column


@runtime_checkable
class ArrowStream(Protocol):
    """Batches through Arrow's C interface, as pandas, polars and DuckDB give them."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with the stream."""
        ...


@runtime_checkable
class ArrowArray(Protocol):
    """One batch through Arrow's C interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules with the schema and the array."""
        ...


Rows: TypeAlias = (
    "ArrowStream | ArrowArray | Mapping[str, object] | Iterable[Mapping[str, object] | pa.RecordBatch]"
)
"""Anything that rows can be read from."""


def arrow_rows(data: Any, columns: Iterable[Column] = ()) -> pa.RecordBatchReader | None:
    """Arrow data as a stream of batches, with the schema that they have; None for anything else.

    A DataFrame of pandas is read for `columns`, if these are known. A stream is read once.
    """
    match data:
        case pa.RecordBatchReader():
            return data
        case pa.RecordBatch():
            return pa.RecordBatchReader.from_batches(data.schema, iter([data]))
        case ArrowStream():
            source: Any = dataframes.table_of(data, columns) if dataframes.is_dataframe(data) else data
            kind = type(source)
            if hasattr(kind, "to_batches") and hasattr(kind, "schema"):
                # Through the C interface, errors would be nothing but text.
                return pa.RecordBatchReader.from_batches(source.schema, iter(source.to_batches()))
            return _opened(pa.RecordBatchReader.from_stream, source)
        case ArrowArray():
            return arrow_rows(_opened(pa.record_batch, data))
        case _:
            return None


def stream_of(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader | None:
    """Batches of one schema, which the first of them tells, as a stream; None if there are none."""
    first = next(batches, None)
    if first is None:
        return None
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _opened(read: Callable[[object], Any], data: object) -> Any:
    try:
        return read(data)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise InvalidData(f"no rows can be read from a {type(data).__name__}: {problem}") from problem
