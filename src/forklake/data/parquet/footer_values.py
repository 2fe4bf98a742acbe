"""Bounds as a Parquet footer stores them, read as values of the table's column."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from decimal import Decimal as Number
from decimal import localcontext
from typing import Any

from forklake.lazy.arrow import pq
from forklake.model.entities import Column
from forklake.model.types.data_types import MAX_PRECISION, DataType, Decimal, Scalar
from forklake.model.types.text import PER_SECOND, Stored

Bound = tuple[Stored, Stored]
"""A value: the largest that is not above it, and the smallest that is not below. They differ where the column
counts less finely than the file."""

Read = Callable[[Any], Bound | None]

_PER_SECOND = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_DAY = 86_400


def reader_of(leaf: pq.ColumnSchema, column: Column) -> Read:
    """How to read bounds of this leaf as values of this column; what makes no sense there reads as None."""
    logical = json.loads(leaf.logical_type.to_json())
    read = _reader(leaf.physical_type, logical, column.data_type)

    def guarded(raw: Any) -> Bound | None:
        try:
            value = None if raw is None else read(raw)
        except (ValueError, TypeError, ArithmeticError, struct.error):
            return None
        return value if value is None or isinstance(value, tuple) else (value, value)

    return guarded


def _reader(physical: str, logical: dict[str, Any], type: DataType) -> Callable[[Any], Bound | Stored | None]:
    name = type.name if isinstance(type, Scalar) else "decimal"
    match logical.get("Type"):
        case "Decimal":
            return lambda raw: _decimal(raw, logical["scale"], type)
        case "Int" if not logical["isSigned"]:
            # Arrow shows the bits of an unsigned integer as a signed one.
            return lambda raw: raw & (1 << (32 if physical == "INT32" else 64)) - 1
        case "Date":
            return lambda raw: raw * _DAY * PER_SECOND[name] if name in PER_SECOND else raw
        case "Time" | "Timestamp" if name in PER_SECOND:
            return lambda raw: _rescaled(raw, _PER_SECOND[logical["timeUnit"]], PER_SECOND[name])
        case "Float16":
            return lambda raw: struct.unpack("<e", raw)[0]
        case _:
            return _plain(physical, name)


def _plain(physical: str, name: str) -> Callable[[Any], Bound | Stored | None]:
    match physical, name:
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY", "time_ns":
            return _clock
        case "BYTE_ARRAY", "varchar" | "json":
            return lambda raw: raw if isinstance(raw, str) else raw.decode()
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY", "blob":
            return lambda raw: raw if isinstance(raw, bytes) else raw.encode()
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY", "uuid":
            # A bound may be cut.
            return lambda raw: raw if isinstance(raw, bytes) and len(raw) == 16 else None
        case "BOOLEAN", "boolean":
            return bool
        case "INT32" | "INT64", _ if name == "decimal" or "int" in name or name.startswith("float"):
            return lambda raw: Number(raw) if name == "decimal" else raw
        case "FLOAT" | "DOUBLE", "float32" | "float64":
            # A NaN among the bounds bounds nothing.
            return lambda raw: None if raw != raw else float(raw)
        case _:
            return lambda raw: None


def _decimal(raw: int | bytes, scale: int, type: DataType) -> Stored | None:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    with localcontext(prec=2 * MAX_PRECISION):
        value = Number(unscaled).scaleb(-scale)
    if isinstance(type, Decimal):
        return value
    return int(value) if value == int(value) else None


def _rescaled(raw: int, given: int, wanted: int) -> Bound:
    return raw * wanted // given, -(-raw * wanted // given)


def _clock(raw: str | bytes) -> int:
    """Nanoseconds, of text that looks like 23:59:59.123456789."""
    text = raw if isinstance(raw, str) else raw.decode("ascii")
    whole, _, fraction = text.partition(".")
    hours, minutes, seconds = (int(part) for part in whole.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int(fraction.ljust(9, "0") or 0)
