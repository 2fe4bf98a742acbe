"""Parameters of a statement, as `spark.sql` binds them and as literals of conditions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from forklake.data.input.literal import literal_of
from forklake.engine.query.run import Parameters
from forklake.errors import InvalidSql
from forklake.model.entities import Column
from forklake.model.ids import ColumnId

_LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Bound:
    """A value as Spark gets it."""

    value: Any
    type: str | None = None
    """What Spark has to make of it, where the type of the value does not say so."""


def by_name(params: Parameters) -> dict[str, Any]:
    """Values by the names or numbers of parameters."""
    if isinstance(params, Mapping):
        return dict(params)
    return {str(at): value for at, value in enumerate(params or (), 1)}


def bound(name: str, value: object) -> Bound:
    """A value for Spark."""
    match value:
        case None | bool() | float() | str() | bytes():
            return Bound(value)
        case int():
            return Bound(value) if value in _LONG else Bound(str(value), "DECIMAL(38, 0)")
        case Decimal() if value.is_finite():
            return Bound(value)
        case datetime():
            type = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP_LTZ"
            return Bound(value.isoformat(" "), type)
        case date():
            return Bound(value)
        case UUID():
            return Bound(str(value))
        case list() | tuple():
            return Bound([bound(name, one).value for one in value])
        case _:
            raise InvalidSql(
                f"Spark takes no {type_of(value)} for parameter ${name}: give a number, a string, a date, a "
                "timestamp, bytes, or a list of these"
            )


def type_of(value: object) -> str:
    """The type of a value, for messages."""
    return type(value).__name__


def literal(name: str, value: object) -> str:
    """A value as a literal of DuckDB's SQL."""
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "boolean"), (int, "int64"), (float, "float64"), (str, "varchar"), (bytes, "blob"),
        (date, "date"), (time, "time"), (UUID, "uuid"),
    )  # fmt: skip
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        kind = "timestamp" if value.tzinfo is None else "timestamptz"
    elif isinstance(value, int) and not isinstance(value, bool) and value not in _LONG:
        kind = "int128"
    elif isinstance(value, Decimal) and value.is_finite():
        return f"({value:f})"
    else:
        found = next((kind for type, kind in kinds if isinstance(value, type)), None)
        if found is None:
            raise InvalidSql(f"a condition on Spark takes no {type_of(value)} for parameter ${name}")
        kind = found
    return literal_of(value, Column(ColumnId(0), name, kind))
