"""Values of every type that has bounds, and the SQL that spells them."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from uuid import UUID

from hypothesis import strategies as st

from forklake.model.types.data_types import DataType, Scalar, parse, to_sql
from forklake.model.types.sort_keys import Value

LONG = "p" * 31
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "é",
    "ü%",
    "a_c",
    "日本",
    "\U0001f986",
    "A",
    "~",
    "a\0b",
    LONG,
    LONG + "p",
]
TEXTS += [LONG + "pa", LONG + "pb", LONG + "pb" * 9, LONG + "é", "it's", 'q"r', "a\\b", "-- x", "%", "7"]
DAYS = [
    date(1, 1, 2),
    date(1582, 10, 4),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2024, 2, 29),
    date(9999, 12, 30),
]


def _float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def integers(name: str) -> st.SearchStrategy[int]:
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    near = (low, low + 1, -10, -7, -1, 0, 1, 5, 7, 70, 99, 100, 2**53, 2**53 + 1, high - 1, high)
    return st.sampled_from([n for n in near if low <= n <= high]) | st.integers(low, high)


TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)) | st.sampled_from(
    [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 10),
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ]
)
FLOATS = st.sampled_from(
    [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 0.5, -0.5, 1.0, 7.0, 7.5, 5e-324, 1e308, 2.0**53]
)
CLOCKS = st.times() | st.sampled_from([time(0), time(10), time(23, 59, 59, 999999)])
BYTES = st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"\xff" * 33, b"\xff" * 32, b"a" * 40, b"\xab"])


def values_of(type: DataType) -> st.SearchStrategy[Value]:
    match type:
        case Scalar("boolean"):
            return st.booleans()
        case Scalar("float64"):
            return FLOATS | st.floats()
        case Scalar("float32"):
            return FLOATS.filter(lambda x: not math.isfinite(x) or abs(x) < 1e38).map(_float32) | st.floats(
                width=32
            )
        case Scalar("date"):
            return st.sampled_from(DAYS) | st.dates(date(1, 1, 2), date(9999, 12, 30))
        case Scalar("time"):
            return CLOCKS
        case Scalar("timestamp"):
            return TIMES
        case Scalar("timestamp_s"):
            return TIMES.map(lambda timestamp: timestamp.replace(microsecond=0))
        case Scalar("timestamp_ms"):
            return TIMES.map(
                lambda timestamp: timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
            )
        case Scalar("timestamptz"):
            return TIMES.map(lambda timestamp: timestamp.replace(tzinfo=UTC))
        case Scalar("varchar"):
            return st.sampled_from(TEXTS) | st.text(max_size=4)
        case Scalar("blob"):
            return BYTES
        case Scalar("uuid"):
            return st.uuids() | st.sampled_from([UUID(int=0), UUID(int=2**127), UUID(int=2**128 - 1)])
        case Scalar(name):
            return integers(name)
        case _:
            precision, scale = type.precision, type.scale
            unscaled = st.sampled_from([0, 1, -1, 10, 15, 750, 10**precision - 1]) | st.integers(
                -(10**precision) + 1, 10**precision - 1
            )
            # Not scaleb: it rounds to the precision of the context.
            return unscaled.map(lambda n: Number((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


SPELLED = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE
    DECIMAL(4,1) DECIMAL(10,2) DECIMAL(18,3) DECIMAL(38,0) DECIMAL(38,10) DATE TIME TIMESTAMP TIMESTAMP_S
    TIMESTAMP_MS TIMESTAMPTZ VARCHAR BLOB UUID
"""
TYPES = [parse(sql) for sql in SPELLED.split()]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_value(value: Value | None, type: DataType) -> str:
    """A value with its type, for filling tables: nothing here is left to guess."""
    if value is None:
        return f"NULL::{to_sql(type)}"
    if isinstance(value, str):
        return "||".join(["''", *(f"chr({ord(sign)})" for sign in value)])
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if isinstance(value, Number):
        return f"'{value:f}'::{to_sql(type)}"
    return f"'{value}'::{to_sql(type)}"


def spellings(value: Value, type: DataType) -> list[str]:
    """The ways in which somebody writes a value into a predicate."""
    match value:
        case bool():
            return [str(value), quoted(str(value)), f"{value}::BOOLEAN"]
        case int():
            ways = [str(value), quoted(str(value)), f"{value}.5", f"{value}.0", f"{value}::{to_sql(type)}"]
            return [
                *ways,
                f"'{value}'::BIGINT",
                f"{value}e0",
                f"{value}::DOUBLE",
                f"({value})",
                f"{value}::FLOAT",
            ]
        case float() if math.isfinite(value):
            plain = f"{Number(repr(value)):f}"
            ways = [repr(value), quoted(repr(value)), f"'{value!r}'::{to_sql(type)}", f"{value!r}::DOUBLE"]
            return [*ways, plain, f"{int(value)}" if abs(value) < 1e30 else "1e30", "0.1::DECIMAL(38,37)"]
        case float():
            return [quoted(str(value)), f"'{value}'::{to_sql(type)}", f"'{value}'::DOUBLE"]
        case Number():
            ways = [
                f"{value:f}",
                f"'{value:f}'",
                f"{value:f}5",
                f"'{value:f}5'",
                f"{value:f}::{to_sql(type)}",
            ]
            return [*ways, f"{value:f}e0", f"{int(value)}", f"{value:f}::DOUBLE"]
        case datetime():
            text = str(value)
            ways = [
                quoted(text),
                f"'{text}'::{to_sql(type)}",
                quoted(text[:19]),
                quoted(text.replace(" ", "T")),
            ]
            ways += [
                f"TIMESTAMP '{text[:26]}'",
                f"DATE '{text[:10]}'",
                quoted(text[:10]),
                f"TIMESTAMP_S '{text[:19]}'",
            ]
            return [
                *ways,
                quoted(text[:19] + ".123456"),
                quoted(text[:19] + "+02"),
                f"TIMESTAMPTZ '{text[:19]}-03:30'",
            ]
        case date():
            ways = [
                f"'{value}'",
                f"DATE '{value}'",
                f"TIMESTAMP '{value} 10:00:00'",
                f"TIMESTAMP_MS '{value}'",
            ]
            return [*ways, f"'{value} 10:00:00'", f"'{value}'::TIMESTAMPTZ"]
        case time():
            return [f"'{value}'", f"TIME '{value}'", f"'{value.replace(microsecond=0)}.5'"]
        case str():
            return [quoted(value), f"{quoted(value)}::VARCHAR", f"({quoted(value)})"]
        case bytes():
            text = "".join(f"\\x{byte:02X}" for byte in value)
            return [f"'{text}'::BLOB", f"'{text}'", f"'a{text}z'::BLOB", f"unhex('{value.hex()}')"]
        case UUID():
            return [f"'{value}'", f"UUID '{value}'", f"'{value}'::UUID", f"'{value.hex}'"]
