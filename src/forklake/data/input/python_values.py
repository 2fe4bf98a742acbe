"""Python values into Arrow arrays of a column: rows as dicts, columns as lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from numbers import Integral, Real
from operator import index
from typing import SupportsFloat, SupportsIndex
from uuid import UUID

from forklake.data.input.lossless import cast_rows, excess_digits, fit, match_names, misfit
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import LARGEST, MAX_PRECISION, Decimal, Scalar
from forklake.model.types.text import stored

_Convert = Callable[[object], object]

_MOST_DIGITS = 400
"""More than any type has: those of a double are the most."""
_MOST_BITS = 4 * _MOST_DIGITS

_SPELLED = (str, int, float, Number, date, time, UUID, type(None))
"""What is written as text when values of several kinds are cast."""


def array_of(values: Iterable[object], column: Column, first_row: int = 0, *, cast: bool = False) -> pa.Array:
    """An array as files hold the column; errors name the row. `cast` takes what becomes of it by a cast."""
    if not cast:
        return _exactly(values, column, first_row)
    given = [None if _is_missing(value) else value for value in values]
    try:
        return _exactly(given, column, first_row)
    except InvalidData:
        return cast_rows(_inferred(given, column, first_row), column, first_row)


def _inferred(values: list[object], column: Column, first_row: int) -> pa.Array:
    """Values in the type that Arrow finds for all of them, or as texts if they are of several kinds."""
    try:
        return pa.array(values)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
        for row, value in enumerate(values):
            if not isinstance(value, _SPELLED):
                raise _in_row(first_row + row, column, f"{_short(value)} does not become that") from None
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _exactly(values: Iterable[object], column: Column, first_row: int) -> pa.Array:
    convert = _converter(column)
    plain: list[object] = []
    for value in values:
        try:
            plain.append(None if _is_missing(value) else convert(value))
        except (TypeError, ValueError, ArithmeticError, RecursionError, InvalidData) as problem:
            raise _in_row(first_row + len(plain), column, str(problem)) from problem
    try:
        array = pa.array(plain, _plain_type(column))
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as problem:
        row, reason = _culprit(plain, column) or (0, str(problem))
        raise _in_row(first_row + row, column, reason) from problem
    return fit(array, column)


def _in_row(row: int, column: Column, reason: str) -> InvalidData:
    return InvalidData(f"row {row}: {misfit(column.name, column, reason)}")


def _culprit(values: list[object], column: Column) -> tuple[int, str] | None:
    for row, value in enumerate(values):
        try:
            pa.array([value], _plain_type(column))
        except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as problem:
            return row, str(problem)
    return None


def _plain_type(column: Column) -> pa.DataType:
    """The Arrow type that takes the converted values; `fit` does the rest."""
    match column.type:
        case "list":
            return pa.list_(_plain_type(column.children[0]))
        case "map":
            return pa.map_(_plain_type(column.children[0]), _plain_type(column.children[1]))
        case "struct":
            return pa.struct([(child.name, _plain_type(child)) for child in column.children])
        case "timestamp" | "timestamp_s" | "timestamp_ms" | "timestamp_ns":
            return pa.timestamp("us")
        case "time" | "timetz" | "time_ns":
            return pa.time64("us")
        case "uuid":
            return pa.binary(16)
        case "json":
            return pa.string()
        case _:
            return to_arrow(column.data_type)


def _converter(column: Column) -> _Convert:
    match column.type:
        case "list":
            return _sequence(column)
        case "map":
            return _pairs(column)
        case "struct":
            return _fields(column)
        case name if name in _LIMITS:
            return _between(*_LIMITS[name])
        case _ if isinstance(column.data_type, Decimal):
            return _exact(column.data_type)
        case name:
            return _SCALARS[name]


def _is_missing(value: object) -> bool:
    """Whether a value is none: Python's, or one of those that pandas has."""
    return value is None or value.__class__.__name__ in ("NaTType", "NAType")


def _nullable(convert: _Convert) -> _Convert:
    return lambda value: None if _is_missing(value) else convert(value)


def _sequence(column: Column) -> _Convert:
    convert = _nullable(_converter(column.children[0]))

    def converted(value: object) -> object:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _wrong(value, "a list")
        return [convert(item) for item in value]

    return converted


def _pairs(column: Column) -> _Convert:
    key, item = (_nullable(_converter(child)) for child in column.children)

    def converted(value: object) -> object:
        pairs = value.items() if isinstance(value, Mapping) else value
        if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
            raise _wrong(value, "a dict or a list of pairs")
        return [(key(name), item(inner)) for name, inner in pairs]

    return converted


def _fields(column: Column) -> _Convert:
    convert = {child.name: _nullable(_converter(child)) for child in column.children}

    def converted(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _wrong(value, "a dict")
        names = list(value)
        places = match_names([str(name) for name in names], column.children)
        return {child: convert[child](value[names[at]]) for child, at in places.items()}

    return converted


def _wrong(value: object, wanted: str) -> TypeError:
    return TypeError(f"{_short(value)} is not {wanted}")


def _short(value: object) -> str:
    # Python refuses to write very long numbers out, or takes its time for it.
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:80] + "…"


def _boolean(value: object) -> bool:
    # The booleans of numpy are no bool.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise _wrong(value, "True or False")


def _number(value: object) -> int | float | Number | None:
    """A number of Python, or of numpy, which says that it is one."""
    match value:
        case bool():
            return None
        case int() | float() | Number():
            return value
        case SupportsIndex() if isinstance(value, Integral):
            return index(value)
        case SupportsFloat() if isinstance(value, Real):
            return float(value)
        case _:
            return None


def _is_long(number: float | Number) -> bool:
    """Whether a number is far out of every range: to convert it may take for ever."""
    match number:
        case int():
            return number.bit_length() > _MOST_BITS
        case Number():
            return number.is_finite() and number.adjusted() > _MOST_DIGITS
        case _:
            return False


def _between(low: int, high: int, wanted: str = "") -> _Convert:
    wanted = wanted or f"between {low} and {high}"

    def converted(value: object) -> int:
        number = _number(value)
        if number is not None and _is_long(number):
            raise _wrong(value, wanted)
        if number is None or number != int(number):
            raise _wrong(value, "a whole number")
        if not low <= number <= high:
            raise _wrong(value, wanted)
        return int(number)

    return converted


def _exact(type: Decimal) -> _Convert:
    def converted(value: object) -> Number:
        number = value if isinstance(value, Number) else _number(value)
        if not isinstance(number, Number | int):
            raise _wrong(value, "a Decimal or a whole number")
        if _is_long(number):
            raise _wrong(value, f"a number of at most {type.precision} digits")
        exact = Number(number)
        excess = excess_digits(exact, type)
        if excess is not None:
            raise ValueError(f"{_short(value)} {excess}")
        return exact

    return converted


def _large(low: int) -> _Convert:
    """Numbers of 128 bits, which files hold as decimals."""
    sign = "" if low else " without a sign"
    whole = _between(low, LARGEST, f"a number of at most {MAX_PRECISION} digits{sign}")
    return lambda value: Number(whole(value))  # type: ignore[arg-type]


def _real(value: object) -> float:
    """A double; for a FLOAT it is rounded, as a number in SQL text would be."""
    number = _number(value)
    if number is None or isinstance(number, Number):
        raise _wrong(value, "a number")
    if float(number) != number and number == number:
        raise _wrong(value, "a number that a double holds exactly")
    return float(number)


def _single(value: object) -> float:
    number = _real(value)
    if abs(number) != float("inf") and abs(number) >= 2.0**128:
        raise _wrong(value, "a number within the range of FLOAT")
    return number


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(value, "text")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _wrong(value, "bytes")


def _json(value: object) -> str:
    """Text is taken for JSON text; a dict or list is written as it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    raise _wrong(value, "JSON text, a dict or a list")


def _uuid(value: object) -> bytes:
    match value:
        case UUID():
            return value.bytes
        case str():
            return UUID(value).bytes
        case bytes() if len(value) == 16:
            return value
        case _:
            raise _wrong(value, "a UUID")


def _date(value: object) -> date:
    if isinstance(value, datetime):
        if value.tzinfo is not None or value.time() != time():
            raise _wrong(value, "a day without a time")
        return value.date()
    if isinstance(value, date):
        return value
    raise _wrong(value, "a date")


def _in_micros(value: datetime) -> datetime:
    # A Timestamp of pandas is a datetime that has more to it.
    if getattr(value, "nanosecond", 0):
        raise _wrong(value, "in microseconds: hand nanoseconds over as Arrow or in a DataFrame")
    return value


def _local(value: object) -> int:
    if isinstance(value, datetime):
        if _in_micros(value).tzinfo is not None:
            raise _wrong(value, "without a zone, as the column is")
    elif not isinstance(value, date):
        raise _wrong(value, "a datetime")
    return int(stored(value, Scalar("timestamp")))


def _zoned(value: object) -> int:
    if not isinstance(value, datetime):
        raise _wrong(value, "a datetime")
    if _in_micros(value).tzinfo is None:
        raise _wrong(value, "a timestamp that everyone reads alike: give it a zone")
    return int(stored(value, Scalar("timestamptz")))


def _clock(value: object) -> int:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise _wrong(value, "a time without a zone")
    return int(stored(value, Scalar("time")))


def _clock_utc(value: object) -> int:
    if not isinstance(value, time):
        raise _wrong(value, "a time")
    return int(stored(value if value.tzinfo else value.replace(tzinfo=UTC), Scalar("timetz")))


def _interval(value: object) -> pa.MonthDayNano:
    match value:
        case pa.MonthDayNano():
            return value
        case timedelta():
            seconds = value.seconds * 10**9 + value.microseconds * 1000
            return pa.MonthDayNano([0, value.days, seconds])
        case _:
            raise _wrong(value, "a timedelta or a MonthDayNano")


_LIMITS: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_SCALARS: dict[str, _Convert] = {
    "boolean": _boolean,
    "int128": _large(-LARGEST),
    "uint128": _large(0),
    "float32": _single,
    "float64": _real,
    "date": _date,
    "time": _clock,
    "time_ns": _clock,
    "timetz": _clock_utc,
    "timestamp": _local,
    "timestamp_s": _local,
    "timestamp_ms": _local,
    "timestamp_ns": _local,
    "timestamptz": _zoned,
    "varchar": _text,
    "blob": _bytes,
    "json": _json,
    "uuid": _uuid,
    "geometry": _bytes,
    "interval": _interval,
}
