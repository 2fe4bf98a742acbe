"""Literals of a predicate as Python values, wherever it is certain what DuckDB would compare. Pure.

DuckDB converts both sides of a comparison to one type. Nothing here guesses: what would round, depend on the
time zone of the session or turn the column into another type has no value, and bounds decide nothing then.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal as Number
from decimal import localcontext
from typing import Literal as Choice
from uuid import UUID

from forklake.errors import ForklakeError
from forklake.lazy.sqlglot import exp
from forklake.model.sql.long_lists import LongList
from forklake.model.types.data_types import MAX_PRECISION, DataType, Decimal, Scalar, parse, to_sql
from forklake.model.types.sort_keys import FLOATS, INTEGERS, Value

Kind = Choice["null", "truth", "integer", "decimal", "double", "text"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as written; its kind is a type if it was cast to one."""

    kind: Kind | DataType
    value: Value | None


NULL = Literal("null", None)

_LARGEST = 2**127 - 1
# Integers up to these, and powers of ten up to those, are floats without rounding; so their quotient, which
# is what a short decimal becomes, is rounded once and as it should be.
_FLOAT_LIMITS = {"float32": (2**24, 10), "float64": (2**53, 22)}
_FITS_DOUBLE = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32"})
_TIMESTAMPS = frozenset({"date", "timestamp", "timestamp_s", "timestamp_ms"})
_NOT_FINITE = {"nan", "inf", "infinity", "-inf", "-infinity"}

_INTEGER = re.compile(r"-?\d{1,39}", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,38}(\.\d{1,38})?", re.ASCII)
_DOUBLE = re.compile(r"-?\d{1,400}(\.\d{1,400})?(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(?:\.(\d{1,9}))?", re.ASCII)
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::\d\d)?)?", re.ASCII
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_BLOB = re.compile(r"(?:[ -\[\]-~]|\\x[0-9A-Fa-f]{2})*", re.ASCII)
_ESCAPE = re.compile(rb"\\x(..)")


def read(node: exp.Expr) -> Literal | None:
    """The literal that a piece of SQL is, or None."""
    match node:
        case exp.Paren():
            return read(node.this)
        case exp.Null():
            return NULL
        case exp.Boolean():
            return Literal("truth", bool(node.this))
        case exp.Literal() if node.is_string:
            return Literal("text", str(node.this))
        case exp.RawString():
            return Literal("text", str(node.this))
        case exp.Literal():
            return _bare(str(node.this))
        case exp.Neg(this=exp.Literal(is_string=False) as positive):
            return _bare(f"-{positive.this}")
        case exp.Cast() if type(node) is exp.Cast:
            return _read_cast(node)
        case _:
            return None


def _bare(text: str) -> Literal | None:
    """A number without quotes; DuckDB reads those that are too long for 128 bits as DOUBLE."""
    if _INTEGER.fullmatch(text):
        return Literal("integer", int(text)) if abs(int(text)) <= _LARGEST else None
    if _DECIMAL.fullmatch(text):
        return Literal("decimal", Number(text)) if sum(map(str.isdigit, text)) <= MAX_PRECISION else None
    value = float(text) if _DOUBLE.fullmatch(text) else math.inf
    return Literal("double", value) if "e" in text.lower() and math.isfinite(value) else None


def _read_cast(node: exp.Cast) -> Literal | None:
    inner = read(node.this)
    if inner is None or inner.kind == "null" or not isinstance(inner.kind, str):
        return inner if inner is NULL else None
    try:
        target = parse(node.to.sql(dialect="duckdb"))
    except ForklakeError:
        return None
    value = cast(inner, target)
    return None if value is None else Literal(target, value)


def cast(literal: Literal, type: DataType) -> Value | None:
    """What a literal becomes in a type, if nothing is lost; only short decimals are rounded, to floats."""
    name = type.name if isinstance(type, Scalar) else ""
    match literal.kind, literal.value:
        case "truth", value:
            return value if name == "boolean" else None
        case "text", str(value):
            return _from_text(value, type)
        case "integer" | "decimal", (int() | Number()) as value:
            if name in FLOATS:
                return _rounded(Number(value), name)
            return _fitting(Number(value), type)
        case "double", value:
            return value if name == "float64" else None
        case _:
            return None


def comparable(literals: Sequence[Literal], type: DataType) -> list[Value | None] | None:
    """The values to compare a column of a type with, or None if DuckDB might compare something else.

    BETWEEN and IN bring all their parts to one type, so the literals have to be of one kind; NULL fits any.
    """
    kinds: set[Kind | DataType] = {literal.kind for literal in literals if literal.kind != "null"}
    if len(kinds) > 1 and kinds != {"integer", "decimal"}:
        return None
    convert = _conversion(kinds.pop(), type) if kinds else None
    values: list[Value | None] = []
    for literal in literals:
        if literal.kind == "null":
            values.append(None)
            continue
        value = convert(literal) if convert else None
        if value is None:
            return None
        values.append(value)
    return values


def comparable_list(values: LongList, type: DataType) -> list[Value] | None:
    """The same for a long list of numbers or texts."""
    name = type.name if isinstance(type, Scalar) else ""
    if values.kind == "text":
        if name == "varchar":
            return list(values.texts)
        known: Iterable[Literal] = (Literal("text", text) for text in values.texts)
    elif name in INTEGERS and not values.has_fractions:
        return list(map(int, values.texts)) if values.widest < 39 else None
    else:
        known = (literal for text in values.texts if (literal := _bare(text)) is not None)
    literals = list(known)
    found = comparable(literals, type) if len(literals) == len(values.texts) else None
    return None if found is None else [value for value in found if value is not None]


_SPLIT = frozenset(
    {"varchar", "date", "time", "uuid", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz"}
)


def as_query(values: LongList, type: DataType) -> str | None:
    """A query of the values of a long list in the type of a column, if they are exactly comparable there."""
    name = type.name if isinstance(type, Scalar) else ""
    found = comparable_list(values, type)
    if not found:
        return None
    if name in INTEGERS:
        low, high = min(found), max(found)  # pyright: ignore[reportArgumentType]
        held = all(_fitting(Number(bound), type) is not None for bound in (low, high))  # pyright: ignore[reportArgumentType]
        # Numbers that the column cannot hold are compared as larger ones.
        target = to_sql(type) if held else "HUGEINT"
    elif isinstance(type, Decimal):
        if any(_fitting(Number(value), type) is None for value in found):  # pyright: ignore[reportArgumentType]
            return None
        target = to_sql(type)
    elif name in _SPLIT and values.kind == "text":
        target = to_sql(type)
    else:
        return None
    separator = ","
    while (joined := separator.join(values.texts)).split(separator) != values.texts:
        separator += "|,"
    values_list, apart = (part.replace("'", "''") for part in (joined, separator))
    return f"SELECT CAST(unnest(string_split('{values_list}', '{apart}')) AS {target})"


def _conversion(kind: Kind | DataType, type: DataType) -> Callable[[Literal], Value | None] | None:
    """How literals of a kind are compared with a column of a type."""
    name = type.name if isinstance(type, Scalar) else ""
    exact = name in INTEGERS or isinstance(type, Decimal)
    other = kind.name if isinstance(kind, Scalar) else "decimal" if isinstance(kind, Decimal) else ""
    as_it_is = kind == type
    if kind in ("integer", "decimal") or other in INTEGERS or other == "decimal":
        as_it_is = exact
        # A typed decimal may have zeros at its end, which make its way to a float a longer one.
        if name in FLOATS and other != "decimal":
            return lambda literal: cast(Literal("decimal", literal.value), type)
    elif kind == "double" or other == "float64":
        as_it_is = name in FLOATS or name in _FITS_DOUBLE
    elif other == "float32":
        as_it_is = name in FLOATS
    elif other in _TIMESTAMPS:
        as_it_is = name in _TIMESTAMPS
    elif kind in ("truth", "text"):
        return lambda literal: cast(literal, type)
    return (lambda literal: literal.value) if as_it_is else None


def _rounded(value: Number, name: str) -> float | None:
    largest, scale = _FLOAT_LIMITS[name]
    shift = max(0, -int(value.as_tuple().exponent))
    with localcontext(prec=2 * MAX_PRECISION):
        if shift > scale or abs(value.scaleb(shift)) > largest:
            return None
    return float(value) if name == "float64" else struct.unpack("<f", struct.pack("<f", float(value)))[0]


def _fitting(value: Number, type: DataType) -> Value | None:
    with localcontext(prec=2 * MAX_PRECISION):
        match type:
            case Scalar(name) if name in INTEGERS and value == value.to_integral_value():
                bits = int(name.removeprefix("u").removeprefix("int"))
                low, high = (
                    (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
                )
                return int(value) if low <= value <= high else None
            case Decimal(precision, scale):
                shifted = value.scaleb(scale)
                fits = shifted == shifted.to_integral_value() and abs(shifted) < 10**precision
                return value if fits else None
            case _:
                return None


def _from_text(text: str, type: DataType) -> Value | None:
    """The value of a text in the plainest of the forms that DuckDB takes."""
    name = type.name if isinstance(type, Scalar) else ""
    if name in INTEGERS:
        return _fitting(Number(text), type) if _INTEGER.fullmatch(text) else None
    if isinstance(type, Decimal):
        return _fitting(Number(text), type) if _DECIMAL.fullmatch(text) else None
    reader = _READERS.get(name)
    try:
        return reader(text) if reader else None
    except (ValueError, OverflowError):
        return None


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _float32(text: str) -> float | None:
    if text.lower() in _NOT_FINITE:
        return float(text)
    return _rounded(Number(text), "float32") if _DECIMAL.fullmatch(text) else None


def _float64(text: str) -> float | None:
    if text.lower() in _NOT_FINITE:
        return float(text)
    value = float(text) if _DOUBLE.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _date(text: str) -> date | None:
    return date.fromisoformat(text) if _DATE.fullmatch(text) else None


def _timestamp(text: str, *, digits: int, zoned: bool = False) -> datetime | None:
    """A timestamp with at most so many digits of a second; with a zone if, and only if, the type has one."""
    parts = _STAMP.fullmatch(text)
    if parts is None or bool(parts[4]) != zoned or (parts[4] and not parts[2]):
        return None
    fraction = (parts[3] or "").rstrip("0")
    if len(fraction) > digits:
        return None
    zone = (parts[4] or "").replace("Z", "+00:00")
    if zone and (len(zone) == 3):
        zone += ":00"
    return datetime.fromisoformat(f"{parts[1]}T{parts[2] or '00:00:00'}.{fraction:0<6}{zone}")


def _nanoseconds(text: str) -> int | None:
    parts = _STAMP.fullmatch(text)
    if parts is None or parts[4]:
        return None
    since = datetime.fromisoformat(f"{parts[1]}T{parts[2] or '00:00:00'}") - datetime(1970, 1, 1)
    value = (since.days * 86_400 + since.seconds) * 10**9 + int(f"{parts[3] or '':0<9}")
    return value if abs(value) < 2**63 - 1 else None


def _time(text: str) -> time | None:
    parts = _TIME.fullmatch(text)
    fraction = (parts[1] or "").rstrip("0") if parts else ""
    return time.fromisoformat(f"{text[:8]}.{fraction:0<6}") if parts and len(fraction) <= 6 else None


def _time_ns(text: str) -> int | None:
    parts = _TIME.fullmatch(text)
    if parts is None:
        return None
    clock = time.fromisoformat(text[:8])
    seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
    return seconds * 10**9 + int(f"{parts[1] or '':0<9}")


def _uuid(text: str) -> UUID | None:
    return UUID(text) if _UUID.fullmatch(text) else None


def _blob(text: str) -> bytes | None:
    if not _BLOB.fullmatch(text):
        return None
    return _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), text.encode())


_READERS: dict[str, Callable[[str], Value | None]] = {
    "boolean": _truth,
    "float32": _float32,
    "float64": _float64,
    "date": _date,
    "time": _time,
    "time_ns": _time_ns,
    "timestamp": lambda text: _timestamp(text, digits=6),
    "timestamp_s": lambda text: _timestamp(text, digits=0),
    "timestamp_ms": lambda text: _timestamp(text, digits=3),
    "timestamp_ns": _nanoseconds,
    "timestamptz": lambda text: _timestamp(text, digits=6, zoned=True),
    "varchar": str,
    "blob": _blob,
    "uuid": _uuid,
}
