"""Values of every type in plain Python, and what they are in Arrow and in SQL.

A timestamp is an integer in the unit of its type, a 128-bit integer is a Decimal, a UUID is its text, a map
is a list of pairs, and a struct is a dict by the keys of its fields: so two values are equal exactly if they
are the same to a reader, whatever Python thinks of 1, 1.0 and True.
"""

from __future__ import annotations

import math
import struct
from datetime import date
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from forklake.model.types.data_types import (
    SCALARS,
    DataType,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    can_promote,
    to_sql,
)

NO_ROWS = frozenset({"variant"})
"""Types that a table may have and no file of ours holds."""
ORDERED = frozenset({row.name for row in SCALARS} - NO_ROWS - {"json", "geometry", "timetz", "interval"})
NANOSECONDS = frozenset({"timestamp_ns", "time_ns"})
DAY = 86_400
EPOCH = date(1970, 1, 1).toordinal()
UNITS = {
    "timestamp": 10**6,
    "timestamptz": 10**6,
    "timestamp_s": 1,
    "timestamp_ms": 10**3,
    "timestamp_ns": 10**9,
}

# ---- Arrow ---

_PLAIN = {row.name: row.arrow() for row in SCALARS if row.arrow is not None} | {
    "uuid": pa.string(),
    "json": pa.string(),
    "timetz": pa.time64("us"),
}


def arrow_type(type: DataType) -> pa.DataType:
    """The Arrow type that rows are handed over in."""
    match type:
        case Scalar(name):
            return _PLAIN[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case List(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(name, arrow_type(field)) for name, field in fields])


def names_in(type: DataType) -> set[str]:
    """The scalar types that a type is made of."""
    match type:
        case Scalar(name):
            return {name}
        case Decimal():
            return {"decimal"}
        case List(element):
            return names_in(element)
        case Map(key, value):
            return names_in(key) | names_in(value)
        case Struct(fields):
            return set[str]().union(*(names_in(field) for _, field in fields))


def plain(scalar: Any) -> Any:
    """A value without parts, from an Arrow scalar."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.Date32Scalar | pa.Time64Scalar | pa.TimestampScalar):
        return scalar.value
    value = scalar.as_py()
    return str(value) if isinstance(value, UUID) else value


def identity(value: Any) -> Any:
    """What a value is compared by."""
    match value:
        case None | str() | bytes():
            return value
        case float():
            return "float", "nan" if math.isnan(value) else struct.pack(">d", value)
        case dict():
            return "struct", tuple(map(identity, value.values()))
        case list() | tuple():
            return "list", tuple(map(identity, value))
        case _:
            return type(value).__name__, value


def widened(value: Any, old: DataType, new: DataType) -> Any:
    """A value of a column whose type was widened."""
    if value is None or old == new:
        return value
    match old, new:
        case Scalar("date"), Scalar(_):
            return value * DAY * 10**6
        case Scalar(before), Scalar(after) if before in UNITS:
            return value * (UNITS[after] // UNITS[before])
        case _, Scalar("float32" | "float64"):
            return float(value)
        case _, Decimal() | Scalar("int128" | "uint128"):
            return Number(value)
        case _:
            return value


# ---- SQL ---


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def content(value: Any, type: DataType) -> str:
    """What stands between the quotes of a literal."""
    match type:
        case Scalar("blob"):
            return "".join(f"\\x{byte:02X}" for byte in value)
        case Scalar(name) if name.startswith(("time", "date")):
            shown = pa.scalar(value, arrow_type(type)).cast(pa.string()).as_py()
            return shown.replace("Z", "+00") + ("+00" if name == "timetz" else "")
        case Decimal(_, scale):
            return f"{value:.{scale}f}"
        case Scalar("boolean"):
            return str(value).lower()
        case Scalar("interval"):
            return f"{value.months} months {value.days} days {value.nanoseconds // 1000} microseconds"
        case Scalar("int128" | "uint128"):
            return f"{value:f}"
        case _:
            return repr(value) if isinstance(value, float) else str(value)


def literal(value: Any, type: DataType) -> str:
    """A literal with its type."""
    if value is None:
        return f"NULL::{to_sql(type)}"
    return f"{_text(content(value, type))}::{to_sql(type)}"


def sign(value: Any, type: DataType) -> str:
    """A literal as somebody would write it into a condition."""
    match type:
        case Scalar("varchar"):
            return _text(value)
        case Scalar("boolean"):
            return str(value).upper()
        case Scalar("date"):
            return f"DATE '{content(value, type)}'"
        case Scalar(name) if "int" in name:
            return content(value, type)
        case _:
            return literal(value, type)


# ---- Strategies ---

LONG = "p" * 40
TEXTS = (
    "",
    "a",
    "ab",
    "b",
    "é",
    "日本",
    "\U0001f986",
    "it's",
    'q"r',
    "a\\b",
    "NULL",
    " ",
    LONG,
    LONG + "x",
    "\x7f",
)
_POINTS = tuple(struct.pack("<BIdd", 1, 1, x, y) for x, y in ((0.0, 0.0), (1.5, -2.0)))
_JSON = ("null", "1", '{"a": [1, null]}', '"x"', "[]", '{"k":  "é"}')
_FLOATS = (math.nan, math.nan, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, -2.5, 7.0, 5e-324, 1.7e308)
_SINGLES = (math.nan, math.nan, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, -2.5, 7.0, 2.0**-149, 2.0**127)
_UUIDS = ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")
_INTERVALS = tuple(
    pa.MonthDayNano(parts)
    for parts in (
        [0, 0, 0],
        [0, 30, 0],
        [1, 0, 0],
        [-12, 400, -1000],
        [2**31 - 1, -(2**31 - 1), 2**53 * 1000],
    )
)
_CLOCK = (0, 1, DAY * 10**6 // 2, DAY * 10**6 - 1)
_SECONDS = ((date(1, 1, 2).toordinal() - EPOCH) * DAY, (date(9999, 12, 30).toordinal() - EPOCH) * DAY)


def _integers(name: str) -> st.SearchStrategy[Any]:
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if bits == 128:
        low, high = max(low, 1 - 10**38), 10**38 - 1
        return _near(low, high).map(Number)
    return _near(low, high)


def _near(low: int, high: int) -> st.SearchStrategy[int]:
    small = [number for number in (0, 1, 2, -1, 7, 99, low, high) if low <= number <= high]
    return st.sampled_from(small) | st.integers(low, high)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Number]:
    # Not scaleb: it rounds to the precision of the context.
    return _near(1 - 10**precision, 10**precision - 1).map(
        lambda n: Number((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


def values_of(type: DataType) -> st.SearchStrategy[Any]:
    """Values of a type without parts; NULL is not among them."""
    match type:
        case Decimal(precision, scale):
            return _decimals(precision, scale)
        case Scalar("boolean"):
            return st.booleans()
        case Scalar("float64"):
            return st.sampled_from(_FLOATS) | st.floats()
        case Scalar("float32"):
            return st.sampled_from(_SINGLES) | st.floats(width=32)
        case Scalar("date"):
            return st.sampled_from([0, -1, 19_782]) | st.integers(
                *(timestamp // DAY for timestamp in _SECONDS)
            )
        case Scalar("time" | "timetz"):
            return st.sampled_from(_CLOCK)
        case Scalar("time_ns"):
            return st.sampled_from([clock * 1000 for clock in _CLOCK] + [1, DAY * 10**9 - 1])
        case Scalar("timestamp_ns"):
            return st.sampled_from([0, -1, 1, 10**18, 2**63 - 2, -9_223_286_400 * 10**9])
        case Scalar(name) if name in UNITS:
            low, high = (timestamp * UNITS[name] for timestamp in _SECONDS)
            return st.sampled_from([0, -1, low, high]) | st.integers(low, high)
        case Scalar("varchar"):
            return st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=3)
        case Scalar("blob"):
            return st.sampled_from([b"", b"\0", b"\xff" * 40, b"a"]) | st.binary(max_size=3)
        case Scalar("json"):
            return st.sampled_from(_JSON)
        case Scalar("uuid"):
            return st.sampled_from(_UUIDS) | st.uuids().map(str)
        case Scalar("geometry"):
            return st.sampled_from(_POINTS)
        case Scalar("interval"):
            return st.sampled_from(_INTERVALS)
        case Scalar(name):
            return _integers(name)
        case _:
            raise TypeError(type)


LEAVES: tuple[DataType, ...] = (
    *(Scalar(row.name) for row in SCALARS if row.name not in NO_ROWS),
    *(Decimal(*digits) for digits in ((4, 1), (10, 2), (18, 3), (38, 0), (38, 10))),
)
COMMON: tuple[DataType, ...] = (
    Scalar("int32"),
    Scalar("varchar"),
    Scalar("int8"),
    Scalar("float64"),
    Scalar("date"),
    Decimal(10, 2),
    Scalar("boolean"),
)
FLOATS: tuple[DataType, ...] = (Scalar("float64"), Scalar("float32"))
FIELDS = ("x", "y", "Größe", "select", "a b", "z")
"""Names of fields inside structs."""


def types(depth: int = 2) -> st.SearchStrategy[DataType]:
    """Any type; simple ones more often."""
    leaves = st.sampled_from(COMMON) | st.sampled_from(LEAVES)
    if not depth:
        return leaves
    inner = types(depth - 1)
    fields = st.lists(
        st.tuples(st.sampled_from(FIELDS), inner), min_size=1, max_size=2, unique_by=lambda f: f[0]
    )
    keys = st.sampled_from([Scalar("varchar"), Scalar("int32"), Scalar("date")])
    structs = fields.map(lambda chosen: Struct(tuple(chosen)))
    return st.one_of(leaves, leaves, structs, inner.map(List), st.builds(Map, keys, inner))


def wider_types(type: DataType) -> list[DataType]:
    """What a column of a type may become."""
    extra: list[DataType] = [Decimal(20, 0), Decimal(22, 2), Decimal(38, 4), Decimal(38, 10)]
    return [other for other in (*LEAVES, *extra) if other != type and can_promote(type, other)]
