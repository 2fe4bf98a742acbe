"""Defaults as arrays: what inserts put into columns they do not name, and what older files read as."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import time
from decimal import Decimal as Number
from functools import lru_cache
from typing import TypeAlias

from forklake.data.input.lossless import fit
from forklake.data.input.python_values import array_of
from forklake.data.parquet.schema import file_type
from forklake.errors import InvalidArgument, InvalidData, NullNotAllowed
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.sql.constants import computable
from forklake.model.types.arrow import one_array, to_arrow
from forklake.model.types.data_types import DataType
from forklake.model.types.intervals import read_interval

Evaluate: TypeAlias = "Callable[[str, DataType, int], pa.Array]"
"""Compute an SQL expression for a number of rows."""

_ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})")


def default_of(column: Column, rows: int, evaluate: Evaluate | None = None) -> pa.Array:
    """The default of a column, for a number of rows; NULL if it has none."""
    default = column.default
    if default is None:
        check_optional(column)
        return pa.nulls(rows, file_type(column))
    if default.kind == "literal":
        return _repeated(_constant(default.value, column), rows)
    if evaluate is None:
        raise InvalidArgument(
            f'the default of "{column.name}" has to be computed ({default.value[:80]}), and nothing does: '
            "give it a value"
        )
    # Others may have written it, and they check other things.
    array = one_array(evaluate(computable(default.value), column.data_type, rows))
    if len(array) != rows:
        raise InvalidData(f'the default of "{column.name}" gave {len(array)} values for {rows} rows')
    return fit(array, column)


def check_optional(column: Column) -> None:
    """Refuse to leave out a column that has to have a value."""
    if column.default is None and not column.nullable:
        raise NullNotAllowed(f'column "{column.name}" is NOT NULL and has no default: give it a value')


def initial_of(column: Column, rows: int) -> pa.Array:
    """What a column reads as where a file lacks it, for a number of rows."""
    if column.initial_default is None:
        return pa.nulls(rows, file_type(column))
    return _repeated(_constant(column.initial_default, column), rows)


def initial_text(column: Column) -> str | None:
    """The same as text that reads alike wherever it is cast: a TIMETZ is its time in UTC, as in files."""
    if column.initial_default is None or column.type != "timetz":
        return column.initial_default
    return f"{_constant(column.initial_default, column)[0]}+00"


def _repeated(one: pa.Array, rows: int) -> pa.Array:
    return one.take(pa.repeat(pa.scalar(0, pa.int32()), rows))


@lru_cache(256)
def _constant(text: str, column: Column) -> pa.Array:
    """One value, from the text that DuckLake keeps of a literal."""
    if column.type == "date" or column.type.startswith("timestamp"):
        return fit(pa.array([text]).cast(to_arrow(column.data_type)), column)
    read = _READ.get("decimal" if column.type.startswith("decimal(") else column.type, str)
    return array_of([read(text)], column)


def _blob(text: str) -> bytes:
    return _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text).encode("latin-1")


def _interval(text: str) -> pa.MonthDayNano:
    months, days, micros = read_interval(text)
    return pa.MonthDayNano([months, days, micros * 1000])


_READ: dict[str, Callable[[str], object]] = {
    "boolean": lambda text: text == "true",
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64, 128)},
    "decimal": Number,
    "float32": float,
    "float64": float,
    "time": time.fromisoformat,
    "timetz": time.fromisoformat,
    "blob": _blob,
    "interval": _interval,
}
