"""The columns that rows have, where a table is made from what people hand over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from forklake.data.input import pandas as dataframes
from forklake.data.input.arrow_streams import ArrowArray, ArrowStream, Rows, arrow_rows
from forklake.data.input.batches import ROWS_AT_ONCE
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.sql.ddl import ColumnSource, ColumnSpec
from forklake.model.types.data_types import Decimal, List, Map, Scalar, Struct


def derived(source: Any, *, rows: bool) -> tuple[ColumnSource, Rows | None]:
    """Column definitions, and the rows that they come from, if `rows` are wanted and there are any.

    A stream is opened once: what it is then is what has to be read.
    """
    match source:
        case str() | pa.Schema():
            return source, None
        case pa.Table() | pa.RecordBatch():
            # These can be read again.
            return source.schema, source
        case ArrowStream() if rows or not hasattr(source, "__arrow_c_schema__"):
            return _from_arrow(source)
        case ArrowArray() if rows:
            batch = pa.record_batch(source)
            return batch.schema, batch
        case Mapping() if source and all(map(_is_column, source.values())):
            return _with_rows(pa.table({str(name): _column(name, v) for name, v in source.items()}))
        case Mapping():
            return source, None
        case Iterable() if not isinstance(source, bytes):
            return _from_items(source)
        case _:
            return source, None


def table_of(source: Any) -> pa.Table:
    """Rows that people hand over as an Arrow table of its own."""
    _, rows = derived(source, rows=True)
    match rows:
        case pa.Table():
            return rows
        case pa.RecordBatch():
            return pa.Table.from_batches([rows])
        case pa.RecordBatchReader():
            return rows.read_all()
        case _:
            raise InvalidData(
                "rows are a DataFrame, Arrow data, a list of dicts or a dict of columns, "
                f"not {type(source).__name__}"
            )


def _is_column(values: object) -> bool:
    """Whether something is the values of a column, and not its type."""
    if isinstance(
        values, str | bytes | Mapping | type | pa.DataType | Scalar | Decimal | List | Map | Struct
    ):
        return False
    return isinstance(values, Iterable | ArrowStream | ArrowArray)


def _with_rows(table: pa.Table) -> tuple[pa.Schema, pa.Table]:
    return table.schema, table


def _from_arrow(source: Any) -> tuple[pa.Schema, Rows]:
    if dataframes.is_dataframe(source):
        table = dataframes.table_of(source, ())
        unnamed = dataframes.unnamed_levels(table.schema)
        # What pandas notes of its index would make it no column.
        return _with_rows(table.drop_columns(list(unnamed)).replace_schema_metadata(None))
    reader = arrow_rows(source)
    if reader is None:
        raise InvalidData(f"no rows can be read from a {type(source).__name__}")
    return reader.schema, reader


def _from_items(source: Iterable[Any]) -> tuple[ColumnSource, Rows | None]:
    """Definitions of columns, rows as dicts, or batches. Of a generator, the first rows tell the columns."""
    lasts = isinstance(source, list | tuple)
    items: Iterator[Any] = iter(source)
    first = next(items, None)
    if isinstance(first, Mapping):
        known = list(source) if lasts else [first, *islice(items, ROWS_AT_ONCE - 1)]
        table = _of_dicts(known)
        return _with_rows(table) if lasts else (table.schema, chain(known, items))
    if first is None and not lasts:
        raise InvalidData("there are no rows, so nobody knows their columns: give a schema")
    if isinstance(first, ArrowStream | ArrowArray) and not isinstance(first, ColumnSpec | tuple):
        schema, known = derived(first, rows=True)
        return schema, chain([known], items)
    return (source if lasts else [] if first is None else [first, *items]), None


def _of_dicts(rows: list[Any]) -> pa.Table:
    """Rows as a table with the columns of all of them, in the types that Arrow finds."""
    names = dict.fromkeys(name for row in rows for name in (row if isinstance(row, Mapping) else ()))
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidData(f"row {at} is {type(row).__name__}, where others are dicts")
    return pa.table({str(name): _column(name, [row.get(name) for row in rows]) for name in names})


def _column(name: object, values: Any) -> pa.Array:
    try:
        return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise InvalidData(f'the values of "{name}" are of no single type: {problem}') from problem
