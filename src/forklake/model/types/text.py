"""Values as DuckDB writes them: the text of statistics and of partition values. Pure.

A value here is what a file stores: timestamps are integers in the unit of their type, a UUID is 16 bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from decimal import localcontext
from uuid import UUID

from forklake.model.types.data_types import MAX_PRECISION, DataType, Decimal, Scalar

Stored = bool | int | float | Number | str | bytes

MAX_TEXT = 1024
"""The longest text that is kept of a value."""

PER_SECOND = {
    "time": 10**6,
    "time_ns": 10**9,
    "timetz": 10**6,
    "timestamp_s": 1,
    "timestamp_ms": 10**3,
    "timestamp": 10**6,
    "timestamptz": 10**6,
    "timestamp_ns": 10**9,
}
"""How finely each type of timestamp counts."""

_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()


def is_storable(text: str) -> bool:
    """Whether every metadata database takes the text: PostgreSQL keeps neither NUL nor lone surrogates."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)


def stored(value: object, type: DataType) -> Stored:
    """A Python value as a file of this type stores it; what already is one stays."""
    name = type.name if isinstance(type, Scalar) else ""
    match value:
        case datetime() if name == "date":
            return value.toordinal() - _EPOCH
        case datetime():
            return _ticks(value, name)
        case date():
            days = value.toordinal() - _EPOCH
            return days * _DAY * PER_SECOND.get(name, 0) if name in PER_SECOND else days
        case time():
            return _clock_ticks(value, name)
        case UUID():
            return value.bytes
        case str() if name == "uuid":
            return UUID(value).bytes
        case bool() | float() | Number() | str() | bytes():
            return value
        case int():
            return Number(value) if isinstance(type, Decimal) else value
        case _:
            raise TypeError(f"no column holds a {value.__class__.__name__}")


def _ticks(value: datetime, name: str) -> int:
    gone = value.replace(tzinfo=value.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (gone.days * _DAY + gone.seconds) * 10**6 + gone.microseconds
    return micros * PER_SECOND.get(name, 10**6) // 10**6


def _clock_ticks(value: time, name: str) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    offset = value.utcoffset()
    micros = seconds * 10**6 + value.microsecond
    if offset is not None:
        micros = (micros - (offset.days * _DAY + offset.seconds) * 10**6) % (_DAY * 10**6)
    return micros * PER_SECOND.get(name, 10**6) // 10**6


def text_of(value: Stored, type: DataType) -> str | None:
    """The value in DuckDB's words; None if it has none that every reader would take back exactly."""
    match type:
        case Decimal(precision, scale):
            return _decimal(value, precision, scale)
        case Scalar(name) if name in _TEXTS:
            return _TEXTS[name](value, name)
        case _:
            return None


def kept_text(value: Stored, type: DataType) -> str | None:
    """The value in DuckDB's words if it is short and every metadata database takes it."""
    text = text_of(value, type)
    return text if text is not None and len(text) <= MAX_TEXT and is_storable(text) else None


def as_value(value: Stored | None, type: DataType) -> Stored | UUID | None:
    """The value as keys are made of it: a UUID is more than its bytes."""
    return UUID(bytes=value) if isinstance(value, bytes) and type == Scalar("uuid") else value


def _decimal(value: Stored, precision: int, scale: int) -> str:
    with localcontext(prec=2 * MAX_PRECISION):
        text = f"{Number(value).quantize(Number(1).scaleb(-scale)):f}"  # type: ignore[arg-type]
    # DuckDB leaves out the zero that a DECIMAL(2,2) has no room for.
    return text.replace("0.", ".", 1) if precision == scale else text


def _float32(value: float) -> float:
    """The double with the fewest digits that rounds to this float."""
    return next(
        short
        for digits in range(1, 18)
        if (short := float(f"{value:.{digits}g}")) == value or _narrow(short) == value
    )


def _narrow(value: float) -> float | None:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None


def _float(value: Stored, name: str) -> str:
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    return repr(_float32(number) if name == "float32" else number)


def _date(value: Stored, name: str) -> str | None:
    day = int(value) + _EPOCH
    return date.fromordinal(day).isoformat() if 1 <= day <= date.max.toordinal() else None


def _clock(value: Stored, name: str) -> str:
    seconds, fraction = divmod(int(value), PER_SECOND[name])
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        digits = len(str(PER_SECOND[name])) - 1
        text += f".{fraction:0{digits}}".rstrip("0")
    return text + ("+00" if name == "timetz" else "")


def _timestamp(value: Stored, name: str) -> str | None:
    days, rest = divmod(int(value), _DAY * PER_SECOND[name])
    day = _date(days, name)
    return day and f"{day} {_clock(rest, name)}" + ("+00" if name == "timestamptz" else "")


def _text(value: Stored, name: str) -> str:
    return str(value)


def _blob(value: Stored, name: str) -> str:
    shown = b" !#$%&()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"
    return "".join(chr(byte) if byte in shown else f"\\x{byte:02X}" for byte in bytes(value))  # type: ignore[arg-type]


_TEXTS: dict[str, Callable[[Stored, str], str | None]] = {
    "boolean": lambda value, _: "true" if value else "false",
    **{
        f"{sign}int{bits}": lambda value, _: str(int(value))
        for sign in ("", "u")
        for bits in (8, 16, 32, 64, 128)
    },
    "float32": _float,
    "float64": _float,
    "date": _date,
    "time": _clock,
    "time_ns": _clock,
    "timetz": _clock,
    "timestamp": _timestamp,
    "timestamp_s": _timestamp,
    "timestamp_ms": _timestamp,
    "timestamp_ns": _timestamp,
    "timestamptz": _timestamp,
    "varchar": _text,
    "json": _text,
    "blob": _blob,
    "uuid": lambda value, _: str(UUID(bytes=bytes(value))),  # type: ignore[arg-type]
}
