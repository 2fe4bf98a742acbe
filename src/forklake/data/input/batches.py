"""What people hand over, as a stream of batches that has exactly the schema of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from forklake.data.defaults import Evaluate, default_of
from forklake.data.input import pandas as dataframes
from forklake.data.input.arrow_streams import ArrowArray, ArrowStream, Rows, arrow_rows
from forklake.data.input.lossless import cast_rows, fit, match_names
from forklake.data.input.python_values import array_of
from forklake.data.parquet.schema import arrow_schema
from forklake.errors import ForklakeError, InvalidData, NullNotAllowed
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.types.arrow import one_array

Columns = tuple[Column, ...]

ROWS_AT_ONCE = 65_536
"""How many Python rows become one batch."""
BYTES_AT_ONCE = 256 << 20
"""Larger batches are taken in parts: a text column of a batch holds at most 2 GiB, and copies cost memory."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What rows become: batches of a table's schema."""

    columns: Columns
    schema: pa.Schema
    evaluate: Evaluate | None
    cast: bool

    def fit(self, array: pa.Array, column: Column, first_row: int = 0) -> pa.Array:
        return cast_rows(array, column, first_row) if self.cast else fit(array, column)

    def array_of(self, values: Iterable[object], column: Column, first_row: int = 0) -> pa.Array:
        return array_of(values, column, first_row, cast=self.cast)

    def default_of(self, column: Column, rows: int) -> pa.Array:
        return default_of(column, rows, self.evaluate)

    def checked(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        for array, column in zip(arrays, self.columns, strict=True):
            if not column.nullable and array.null_count:
                found = f"{array.null_count} of {len(array)} values"
                raise NullNotAllowed(f'column "{column.name}" is NOT NULL, but NULL was given ({found})')
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def rows_of(
    data: Rows, columns: Columns, *, evaluate: Evaluate | None = None, cast: bool = False
) -> pa.RecordBatchReader:
    """Read rows as batches of a table's schema; a stream is read as the batches are, and never held.

    Columns are found by name, in any order. One that is not there gets its default, which `evaluate`
    computes if it is an expression. Values are cast only if each stays what it is; `cast` also takes
    texts for numbers and timestamps, doubles for decimals and the like. All else is `InvalidData`.
    """
    schema = arrow_schema(columns)
    return pa.RecordBatchReader.from_batches(schema, _batches(data, _Target(columns, schema, evaluate, cast)))


def _batches(data: object, target: _Target) -> Iterator[pa.RecordBatch]:
    reader = arrow_rows(data, target.columns)
    if reader is not None:
        return _from_arrow(reader.schema, reader, target)
    match data:
        case Mapping():
            return _from_lists(data, target)
        case Iterable() if not isinstance(data, str | bytes):
            return _from_items(iter(data), target)
        case _:
            raise _no_rows(data)


def _no_rows(data: object) -> InvalidData:
    return InvalidData(
        "rows are given as an Arrow table, batch or stream, as what has one (pandas, polars, DuckDB), "
        f"as dicts, or as a dict of lists, not as {type(data).__name__}"
    )


def _from_arrow(
    given: pa.Schema, batches: Iterable[pa.RecordBatch], target: _Target
) -> Iterator[pa.RecordBatch]:
    columns = target.columns
    index = dataframes.unnamed_index(given, columns)
    names = [(at, name) for at, name in enumerate(given.names) if name not in index]
    found = match_names([name for _, name in names], columns)
    places = {column: names[at][0] for column, at in found.items()}
    _check_required(places, columns)
    return _fitted(batches, places, target)


def _check_required(given: Iterable[str], columns: Columns) -> None:
    """Refuse before the first batch what no batch could make good."""
    names = set(given)
    for column in columns:
        if column.name not in names and not column.nullable:
            default_of(column, 0, lambda expression, type, rows: pa.nulls(rows))


def _fitted(
    batches: Iterable[pa.RecordBatch], places: dict[str, int], target: _Target
) -> Iterator[pa.RecordBatch]:
    first_row = 0
    for batch in batches:
        for part in _parts(batch):
            arrays = [
                target.fit(part.column(places[column.name]), column, first_row)
                if column.name in places
                else target.default_of(column, part.num_rows)
                for column in target.columns
            ]
            yield target.checked(arrays)
            first_row += part.num_rows


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in parts that are not too large; most are one."""
    if batch.num_rows < 2 or batch.nbytes <= BYTES_AT_ONCE:
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _from_lists(data: Mapping[str, object], target: _Target) -> Iterator[pa.RecordBatch]:
    columns = target.columns
    places = match_names([str(name) for name in data], columns)
    _check_required(places, columns)
    given = list(data.values())
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        if column.name in places:
            arrays[column.name] = _column_of(given[places[column.name]], column, target)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f'"{name}" has {length}' for name, length in lengths.items())
        raise InvalidData(f"the columns are not equally long: {shown}")
    rows = next(iter(lengths.values()), 0)
    if not rows:
        return iter([])
    full = [
        arrays[column.name] if column.name in arrays else target.default_of(column, rows)
        for column in columns
    ]
    return iter([target.checked(full)])


def _column_of(values: object, column: Column, target: _Target) -> pa.Array:
    match values:
        case pa.ChunkedArray():
            return target.fit(one_array(values), column)
        case pa.Array():
            return target.fit(values, column)
        case ArrowStream():
            return target.fit(one_array(pa.chunked_array(values)), column)
        case ArrowArray():
            return target.fit(pa.array(values), column)
        case Iterable() if not isinstance(values, str | bytes | Mapping):
            return target.array_of(values, column)
        case _:
            raise InvalidData(
                f'the values of "{column.name}" are a list or an array, not {type(values).__name__}: '
                "a dict holds whole columns, so put a single row into a list: [{…}]"
            )


def _from_items(items: Iterator[object], target: _Target) -> Iterator[pa.RecordBatch]:
    first = next(items, None)
    if first is None:
        return iter([])
    items = chain([first], items)
    if isinstance(first, Mapping):
        return _from_dicts(items, target)
    return _from_mixed(items, target)


def _from_mixed(items: Iterator[object], target: _Target) -> Iterator[pa.RecordBatch]:
    """Batches and tables, each with a schema of its own."""
    for item in items:
        if not isinstance(item, ArrowStream | ArrowArray):
            raise _no_rows([item]) if isinstance(item, str | bytes) else _no_row(item)
        yield from _batches(item, target)


def _no_row(item: object) -> InvalidData:
    return InvalidData(f"rows are dicts or Arrow batches, not {type(item).__name__}")


def _from_dicts(items: Iterator[object], target: _Target) -> Iterator[pa.RecordBatch]:
    """Each row is an insert of its own: a column that it does not name gets its default."""
    first_row = 0
    known: dict[object, str] = {}
    while rows := list(islice(items, ROWS_AT_ONCE)):
        named = [_named(row, first_row + at, target.columns, known) for at, row in enumerate(rows)]
        arrays = [_gathered(named, column, first_row, target) for column in target.columns]
        yield target.checked(arrays)
        first_row += len(rows)


def _named(row: object, number: int, columns: Columns, known: dict[object, str]) -> dict[str, object]:
    """The row under the names that the table has; `known` remembers how names are written."""
    if not isinstance(row, Mapping):
        raise InvalidData(f"row {number} is {type(row).__name__}, where others are dicts")
    try:
        named = {known[name]: value for name, value in row.items()}
    except KeyError:
        names = list(row)
        try:
            found = match_names([str(name) for name in names], columns)
        except ForklakeError as problem:
            raise InvalidData(f"row {number}: {problem}") from problem
        known.update({names[at]: column for column, at in found.items()})
        named = {column: row[names[at]] for column, at in found.items()}
    if len(named) < len(row):
        match_names([str(name) for name in row], columns, f"row {number}: ")
    return named


_ABSENT = object()


def _gathered(rows: list[dict[str, object]], column: Column, first_row: int, target: _Target) -> pa.Array:
    values = [row.get(column.name, _ABSENT) for row in rows]
    absent = [value is _ABSENT for value in values]
    if not any(absent):
        return target.array_of(values, column, first_row)
    if all(absent):
        return target.default_of(column, len(rows))
    given = target.array_of([None if value is _ABSENT else value for value in values], column, first_row)
    both = pa.concat_arrays([given, target.default_of(column, len(rows))])
    return both.take(pa.array([at + len(rows) * missing for at, missing in enumerate(absent)]))
