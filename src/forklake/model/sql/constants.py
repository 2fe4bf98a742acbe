"""Defaults as SQL writes them: which are constants, and what those are in the text that is stored. Pure."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as Number
from decimal import localcontext
from enum import Enum
from functools import lru_cache, partial
from typing import Final

from forklake.errors import ForklakeError, InvalidSchemaChange
from forklake.lazy.arrow import pa
from forklake.lazy.sqlglot import exp
from forklake.model.sql.expressions import Given, read
from forklake.model.types.data_types import LARGEST, MAX_PRECISION, DataType, Decimal, Scalar, parse, to_sql
from forklake.model.types.intervals import read_interval


def check_expression(text: str) -> str:
    """Return the text of a default, or refuse it: it must be one expression that needs no row to compute."""
    _expression(text)
    return text


@lru_cache(256)
def computable(text: str) -> str:
    """A default that has to be computed, as SQL that is safe to run wherever the text came from."""
    return _expression(text)[1]


def _expression(text: str) -> tuple[exp.Expr, str]:
    check_storable(text, "default")
    given = Given(
        text,
        "default",
        "one SQL expression, such as now() or 'a text'",
        "SQL expression",
        "; it must need no row to compute",
        InvalidSchemaChange,
    )

    def spell(node: exp.Column) -> str:
        given.refuse("holds a column; it must need no row to compute, and text stands in single quotes")

    return read(given, spell)


def check_storable(text: str, what: str) -> None:
    """Refuse text that not every backend keeps."""
    # PostgreSQL keeps neither.
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        raise InvalidSchemaChange(f"the {what} {text[:80]!r} holds characters that cannot be stored")


class Null(Enum):
    """The type of `NULL`."""

    NULL = "NULL"


NULL: Final = Null.NULL
"""What `literal` returns for a default that is NULL, as opposed to the text 'NULL' or to an expression."""


def literal(text: str, type: DataType) -> str | Null | None:
    """The value of a constant default, in the text form that DuckLake keeps as `initial_default`.

    `NULL` (compare with `is`) if the constant is NULL, and None if the text is an expression such as `now()`.
    A constant that the type cannot hold exactly is refused; only binary floats may round.
    """
    constant = _constant(_expression(text)[0])
    return _fit(constant, type) if isinstance(constant, _Constant) else constant


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant as written: in quotes, or a bare number or truth value."""

    text: str
    quoted: bool = False


def _constant(node: exp.Expr) -> _Constant | Null | None:
    match node:
        case exp.Paren():
            return _constant(node.this)
        case exp.Null():
            return NULL
        case exp.Boolean():
            return _Constant("true" if node.this else "false")
        case exp.Literal() | exp.RawString():
            return _Constant(node.this, quoted=not node.is_number)
        case exp.Neg():
            return _negated(_constant(node.this))
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return _cast(node.this, node.to)
        case exp.ParseJSON() if node.args.get("is_literal"):
            return _cast(node.this, Scalar("json"))
        case exp.Interval(this=exp.Literal() as amount, unit=None | exp.Var() as unit):
            return _cast(exp.Literal.string(f"{amount.this} {unit or ''}".strip()), Scalar("interval"))
        case _:
            return None


def _negated(constant: _Constant | Null | None) -> _Constant | None:
    if isinstance(constant, _Constant) and not constant.quoted and not constant.text.startswith("-"):
        return _Constant(f"-{constant.text}")
    return None


def _cast(node: exp.Expr, to: DataType | exp.DataType) -> _Constant | Null | None:
    inner = _constant(node)
    if not isinstance(inner, _Constant):
        return inner
    return _Constant(_fit(inner, _target(to) if isinstance(to, exp.DataType) else to), quoted=True)


def _target(type: exp.DataType) -> DataType:
    try:
        return parse(type.sql(dialect="duckdb"))
    except ForklakeError as problem:
        raise InvalidSchemaChange(f"a default casts to a type that no column has: {problem}") from problem


def _fit(constant: _Constant, type: DataType) -> str:
    try:
        match type:
            case Decimal(precision, scale):
                return _decimal(precision, scale, constant.text)
            case Scalar("varchar") if not constant.quoted:
                return _bare_text(constant.text)
            case Scalar(name) if name in _CANONICAL and (constant.quoted or name != "blob"):
                return _CANONICAL[name](constant.text)
            case _:
                raise ValueError("write it as an expression, or leave it out")
    except (ValueError, ArithmeticError, RecursionError) as problem:
        raise InvalidSchemaChange(
            f"the default {constant.text[:80]!r} does not fit {to_sql(type)}: {problem}"
        ) from problem


_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,6})?\s*", re.ASCII | re.IGNORECASE)
_TRUTH = {"true": "true", "t": "true", "1": "true", "false": "false", "f": "false", "0": "false"}
_NOT_FINITE = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_FRACTION = re.compile(r"\.(?=\d)(\d*?)0*(?!\d)", re.ASCII)
_CLOCK_AND_ZONE = re.compile(r"(.*\d)([+-](?:0\d|1[0-5])(?::[0-5]\d)?)", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_BLOB = re.compile(r"(?:[ -\[\]-~]|\\x[0-9A-Fa-f]{2})*", re.ASCII)


def _number(text: str) -> Number:
    if not _NUMBER.fullmatch(text):
        raise ValueError("it is not a number")
    return Number(text.strip())


def _integer(low: int, high: int, text: str) -> str:
    value = _number(text)
    if not low <= value <= high:
        raise ValueError(f"it must lie between {low} and {high}")
    if value != value.to_integral_value():
        raise ValueError("it is not a whole number")
    return str(int(value))


def _decimal(precision: int, scale: int, text: str) -> str:
    value = _number(text)
    if value and value.adjusted() >= precision - scale:
        raise ValueError(f"it has more than {precision - scale} digits before the point")
    with localcontext(prec=2 * MAX_PRECISION):
        rounded = value.quantize(Number(1).scaleb(-scale))
    if rounded != value:
        raise ValueError(f"it has more than {scale} digits after the point")
    return f"{rounded or abs(rounded):f}"


def _float(width: str, text: str) -> str:
    name = text.strip().lower()
    if name in _NOT_FINITE:
        return _NOT_FINITE[name]
    value = float(_number(text))
    struct.pack(width, value)
    if math.isinf(value):
        raise ValueError("it is too large")
    return repr(value)


def _boolean(text: str) -> str:
    if text.lower() not in _TRUTH:
        raise ValueError("it is neither true nor false")
    return _TRUTH[text.lower()]


def _bare_text(text: str) -> str:
    if text in ("true", "false"):
        return text
    if not re.fullmatch(r"-?\d{1,100}", text, re.ASCII):
        raise ValueError("put it into single quotes")
    return str(int(text))


def _timestamp(type: Callable[[], pa.DataType], form: str, text: str) -> str:
    """Arrow reads ISO 8601 strictly; DuckDB writes a fraction without zeros at its end, and UTC as +00."""
    try:
        shown: str = pa.scalar(_trimmed(text.strip())).cast(type()).cast(pa.string()).as_py()
    except pa.ArrowInvalid:
        raise ValueError(f"write it as {form}") from None
    if shown.startswith("0000"):
        raise ValueError("it lies before the year 1")
    return _trimmed(shown).replace("Z", "+00")


def _trimmed(timestamp: str) -> str:
    return _FRACTION.sub(lambda fraction: f".{fraction[1]}" if fraction[1] else "", timestamp)


def _time(text: str) -> str:
    try:
        return _timestamp(lambda: pa.timestamp("us"), "", f"1970-01-01 {text.strip()}").removeprefix(
            "1970-01-01 "
        )
    except ValueError:
        raise ValueError("write it as 23:59:59") from None


def _timetz(text: str) -> str:
    parts = _CLOCK_AND_ZONE.fullmatch(text.strip())
    if parts is None:
        raise ValueError("write it as 23:59:59+00")
    return _time(parts[1]) + parts[2].removesuffix(":00")


def _matching(pattern: re.Pattern[str], form: str, text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"write it as {form}")
    return text


def _interval(text: str) -> str:
    read_interval(text)
    return text


def _uuid(text: str) -> str:
    return _matching(_UUID, "00000000-0000-0000-0000-000000000000", text).lower()


def _json(text: str) -> str:
    json.loads(text, parse_constant=_number)
    return text


_STAMP = "2024-12-31 23:59:59"
_CANONICAL: dict[str, Callable[[str], str]] = {
    **{f"int{n}": partial(_integer, -(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": partial(_integer, 0, 2**n - 1) for n in (8, 16, 32, 64)},
    "int128": partial(_integer, -LARGEST, LARGEST),
    "uint128": partial(_integer, 0, LARGEST),
    "boolean": _boolean,
    "float32": partial(_float, "<f"),
    "float64": partial(_float, "<d"),
    "date": partial(_timestamp, lambda: pa.date32(), "2024-12-31"),
    "time": _time,
    "timetz": _timetz,
    "timestamp": partial(_timestamp, lambda: pa.timestamp("us"), f"{_STAMP}.123456, without a zone"),
    "timestamp_s": partial(_timestamp, lambda: pa.timestamp("s"), f"{_STAMP}, without a zone"),
    "timestamp_ms": partial(_timestamp, lambda: pa.timestamp("ms"), f"{_STAMP}.123, without a zone"),
    "timestamp_ns": partial(
        _timestamp, lambda: pa.timestamp("ns"), f"{_STAMP}.123456789, between 1678 and 2261"
    ),
    # What a timestamp without a zone means would depend on who reads it.
    "timestamptz": partial(_timestamp, lambda: pa.timestamp("us", "UTC"), f"{_STAMP}+00, with its zone"),
    "interval": _interval,
    "varchar": str,
    "blob": partial(_matching, _BLOB, r"printable ASCII, and any other byte as \xAB"),
    "json": _json,
    "uuid": _uuid,
}
