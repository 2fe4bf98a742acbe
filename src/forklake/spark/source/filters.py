"""Filters that Spark pushes down, as conditions on the rows of a table. Pure.

Only those are taken that mean the same in both engines; Spark sees to the others itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

from pyspark.sql import datasource as pushed

from forklake.model.columns import Columns
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.types import Decimal, Scalar

_SIGNS: dict[type[pushed.Filter], str] = {
    pushed.EqualTo: "=",
    pushed.EqualNullSafe: "IS NOT DISTINCT FROM",
    pushed.GreaterThan: ">",
    pushed.GreaterThanOrEqual: ">=",
    pushed.LessThan: "<",
    pushed.LessThanOrEqual: "<=",
}
_TEXTS: dict[type[pushed.Filter], str] = {
    pushed.StringStartsWith: "starts_with",
    pushed.StringEndsWith: "ends_with",
    pushed.StringContains: "contains",
}
_WHOLE = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64, 128))
_MOMENTS = {"timestamp": 1, "timestamp_ms": 1_000, "timestamp_s": 1_000_000}
"""Microseconds between two values that such a column can hold."""


def condition_of(filter: pushed.Filter, columns: Columns) -> str | None:
    """A filter after WHERE, or None if it is left to Spark."""
    if isinstance(filter, pushed.Not):
        inner = condition_of(filter.child, columns)
        return None if inner is None else f"(NOT {inner})"
    path: Sequence[str] = getattr(filter, "attribute", ())
    column = _column(path, columns)
    if column is None:
        return None
    place = _place(path)
    match filter:
        case pushed.IsNull():
            return f"({place} IS NULL)"
        case pushed.IsNotNull():
            return f"({place} IS NOT NULL)"
        case pushed.EqualNullSafe(value=None):
            return f"({place} IS NULL)"
        case pushed.In():
            found = _literals(column, filter.value)
            return None if found is None else f"({place} IN ({', '.join(found)}))"
        case _:
            return _compared(filter, column, place)


def _compared(filter: pushed.Filter, column: Column, place: str) -> str | None:
    value = getattr(filter, "value", None)
    said = _literal(column, value)
    if said is None:
        return None
    if type(filter) in _SIGNS:
        return f"({place} {_SIGNS[type(filter)]} {said})"
    if type(filter) in _TEXTS and column.data_type == Scalar("varchar"):
        return f"{_TEXTS[type(filter)]}({place}, {said})"
    return None


def _column(path: Sequence[str], columns: Columns) -> Column | None:
    """The column or field of structs at a path."""
    found: Column | None = None
    for depth, name in enumerate(path):
        if depth and (found is None or found.type != "struct"):
            return None
        inside = columns if found is None else found.children
        found = next((column for column in inside if column.name == name), None)
        if found is None:
            return None
    return found


def _place(path: Sequence[str]) -> str:
    return (
        ".".join(map(quoted, path))
        if len(path) == 1
        else f"({quoted(path[0])}).{'.'.join(map(quoted, path[1:]))}"
    )


def _literals(column: Column, values: Iterable[Any]) -> list[str] | None:
    """All values of a list; None among them would make what is not in it unknown."""
    found = [_literal(column, value) for value in values]
    return [said for said in found if said is not None] if found and None not in found else None


def _literal(column: Column, value: object) -> str | None:
    """A value that a column is compared with; Spark has brought it to the type that the column shows."""
    match column.data_type, value:
        case Scalar("boolean"), bool():
            return str(value).lower()
        case _, bool():
            return None
        case Scalar(kind), int() | Number() if kind in _WHOLE:
            return f"{value:f}" if isinstance(value, Number) else str(value)
        case Decimal(), int() | Number():
            return f"{value:f}" if isinstance(value, Number) else str(value)
        case Scalar("float32" | "float64"), float():
            return _text(repr(value))
        case Scalar("varchar"), str():
            return _text(value)
        case Scalar("timestamptz"), datetime() if value.tzinfo is not None:
            return _text(f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}+00")
        case Scalar(kind), datetime() if kind in _MOMENTS and value.tzinfo is None:
            # A text becomes the nearest value of the column, and a comparison with that says something else.
            return None if value.microsecond % _MOMENTS[kind] else _text(value.isoformat(" "))
        case Scalar("date"), date() if not isinstance(value, datetime):
            return _text(value.isoformat())
        case _:
            return None


def _text(value: str) -> str | None:
    if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in value):
        return None
    return "'" + value.replace("'", "''") + "'"
