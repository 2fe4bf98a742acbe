"""Text that sorts bytewise as values of a column do in DuckDB, so that every database prunes with `<`. Pure.

Types that widen into each other share one key space, because the bounds of an old file meet a predicate on
the column as it is now:

- Numbers are sign, decimal exponent, and digits without trailing zeros. Integers and decimals are exact. A
  float stands as the shortest decimal that reads back as it: those are in the order of the floats, because
  each lies in the interval that rounds to its float and the intervals do not overlap; and for every integer
  that widens to a float (32 bits at most) it is the integer itself. Decimals never widen to floats.
  Negative numbers have every digit complemented and "~" at their end: of two that start alike, the longer
  is the lower.
- Dates and timestamps are nanoseconds since 1970, shifted above zero, in hexadecimal of a fixed width.
- Text is its UTF-8, a blob its bytes and a UUID its 16 bytes, all in hexadecimal.

NaN lies above infinity and equals itself, and -0.0 equals 0.0. Bounds may be cut, and lie further out then;
keys of values to compare with are never cut. Where NaN may be in a file, it is the upper bound: see `bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from uuid import UUID

from forklake.model.types.data_types import DataType, Decimal, Scalar

LOWEST = ""
"""Not above any key: the lower bound where none is known."""
HIGHEST = "~~"
"""Above every key and every bound: the upper bound where none is known."""
PREFIX_BYTES = 32
"""How much of a text or blob a bound keeps."""

Value = bool | int | float | Number | str | bytes | date | time | datetime | UUID
"""What a key can be made of. Dates, times and timestamps may be integers in the unit of their type, as
Parquet has them: Python has no nanoseconds, no years after 9999, and no infinity there."""

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64, 128))
FLOATS = frozenset({"float32", "float64"})
_NUMBERS = INTEGERS | FLOATS | {"decimal"}
_NANOSECONDS = {
    "date": 86_400 * 10**9,
    "timestamp_s": 10**9,
    "timestamp_ms": 10**6,
    "timestamp": 10**3,
    "timestamptz": 10**3,
    "timestamp_ns": 1,
}
_CLOCKS = {"time": 10**3, "time_ns": 1}
_BYTES = frozenset({"varchar", "blob"})
_KEYED = frozenset().union(INTEGERS, FLOATS, _NANOSECONDS, _CLOCKS, _BYTES, ("boolean", "uuid"))

_kind = type
NAN = "5"
"""The key of NaN, which lies above all numbers."""
_INFINITY, _MINUS_INFINITY, _ZERO = "4", "0", "2"
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_SHIFT = 2**79
_NEVER, _FOREVER = "0" * 20, "f" * 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def has_key(type: DataType) -> bool:
    """Whether values of the type have keys.

    Nested values, intervals, JSON, variants and geometries are not worth it, and TIME WITH TIME ZONE is
    ordered by timestamp and zone together.
    """
    match type:
        case Decimal():
            return True
        case Scalar(name):
            return name in _KEYED
        case _:
            return False


def has_nan(type: DataType) -> bool:
    """Whether a value of the type can be NaN."""
    return isinstance(type, Scalar) and type.name in FLOATS


def key_of(value: Value, type: DataType) -> str | None:
    """The whole key of a value, or None where values of the type have none."""
    if not has_key(type):
        return None
    name = type.name if isinstance(type, Scalar) else "decimal"
    match value:
        case bool():
            key = "01"[value] if name == "boolean" else None
        case int() | float() | Number() if name in _NUMBERS:
            key = _number(value)
        case int() | date() if name in _NANOSECONDS:
            key = _raw_timestamp(value, name) if isinstance(value, int) else _timestamp(value, name)
        case int() | time() if name in _CLOCKS:
            key = _clock(value, name)
        case str() | bytes() | UUID():
            key = _bytes(value, name)
        case _:
            key = None
    if key is None:
        raise TypeError(f"{value!r} is no value of a column of type {name}")
    return key


def keys_for(values: Sequence[Value], type: DataType) -> Sequence[str | None]:
    """The keys of many values of one type; integers and texts, of which there may be very many, fast."""
    name = type.name if isinstance(type, Scalar) else "decimal"
    if name in INTEGERS and set(map(_kind, values)) == {int}:
        return [_number(value) for value in values]  # pyright: ignore[reportArgumentType]
    if name == "varchar" and set(map(_kind, values)) == {str}:
        return [value.encode().hex() for value in values]  # pyright: ignore[reportAttributeAccessIssue]
    return [key_of(value, type) for value in values]


def _number(value: float | Number) -> str:
    """The key of a number; the same for 7, 7.0 and 7.00."""
    if isinstance(value, int) and value > 0:
        # The same as below, without the way through a Decimal: lists of many keys are common.
        whole = str(value)
        return f"3{499 + len(whole):03d}{whole.rstrip('0')}"
    exact = Number(repr(value)) if isinstance(value, float) else Number(value)
    if exact.is_nan():
        return NAN
    if exact.is_infinite():
        return _INFINITY if exact > 0 else _MINUS_INFINITY
    if not exact:
        return _ZERO
    digits = "".join(map(str, exact.as_tuple().digits))
    digits, exponent = digits.rstrip("0"), 500 + exact.adjusted()
    if not 0 <= exponent <= 999:
        raise ValueError(f"{value!r} is too large, or too close to zero, for any column")
    if exact > 0:
        return f"3{exponent:03d}{digits}"
    return "1" + f"{exponent:03d}{digits}".translate(_COMPLEMENT) + "~"


def _clock(value: int | time, name: str) -> str:
    if isinstance(value, int):
        return f"{value * _CLOCKS[name]:015d}"
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return f"{(seconds * 10**6 + value.microsecond) * 1000:015d}"


def _bytes(value: str | bytes | UUID, name: str) -> str | None:
    match value:
        case str() if name == "varchar":
            return value.encode().hex()
        case bytes() if name in _BYTES:
            return value.hex()
        case UUID() if name == "uuid":
            return value.hex
        case _:
            return None


def _timestamp(value: date, name: str) -> str:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC if name == "timestamptz" else None)
    if (value.tzinfo is not None) != (name == "timestamptz"):
        raise TypeError(
            f"{value!r} is no value of a column of type {name}: one has a zone, the other has none"
        )
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    return f"{since // _MICROSECOND * 1000 + _SHIFT:020x}"


def _raw_timestamp(value: int, name: str) -> str:
    """The key of a stored integer. The outermost two are what DuckDB stores for the infinities."""
    end = 2**31 - 1 if name == "date" else 2**63 - 1
    if abs(value) == end:
        return _FOREVER if value > 0 else _NEVER
    return f"{value * _NANOSECONDS[name] + _SHIFT:020x}"


def min_key(value: Value, type: DataType) -> str | None:
    """A key that is not above the value's."""
    key = key_of(value, type)
    # DuckDB hands -infinity to Python as the first day there is.
    if key is not None and _at_end(value, date.min, datetime.min):
        return _NEVER
    return key[: 2 * PREFIX_BYTES] if key and _is_long(value, type) else key


def max_key(value: Value, type: DataType) -> str | None:
    """A key that is not below the value's."""
    key = key_of(value, type)
    if key is not None and _at_end(value, date.max, datetime.max):
        return _FOREVER
    return key[: 2 * PREFIX_BYTES] + "~" if key and _is_long(value, type) else key


def is_cut(key: str | None) -> bool:
    """Whether a bound may be only the beginning of a value's key, which others share."""
    return key is not None and len(key) >= 2 * PREFIX_BYTES


def exact(value: Value, type: DataType) -> bool:
    """Whether bounds made of the value are its own key."""
    return min_key(value, type) == max_key(value, type)


def _at_end(value: Value, day: date, timestamp: datetime) -> bool:
    return value.replace(tzinfo=None) == timestamp if isinstance(value, datetime) else value == day


def _is_long(value: Value, type: DataType) -> bool:
    if not isinstance(type, Scalar) or type.name not in _BYTES or not isinstance(value, str | bytes):
        return False
    return len(value.encode() if isinstance(value, str) else value) > PREFIX_BYTES


def bounds(
    low: Value | None, high: Value | None, type: DataType, *, contains_nan: bool | None = None
) -> tuple[str, str]:
    """The keys to keep for a column of a file that holds values other than NULL.

    None is a bound that is not known. Writers leave NaN out of the bounds of a float column, but it lies
    above them: unless there is none for certain, NaN is the upper bound.
    """
    lower = None if low is None or low != low else min_key(low, type)
    upper = None if high is None else max_key(high, type)
    if has_nan(type) and contains_nan is not False:
        upper = NAN
    return LOWEST if lower is None else lower, HIGHEST if upper is None else upper
