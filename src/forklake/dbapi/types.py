"""The types of the DB-API: constructors of values, and objects that columns are compared with."""

from __future__ import annotations

import time
from datetime import date as Date
from datetime import datetime as Timestamp
from datetime import time as Time

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeObject",
]

Binary = bytes


class TypeObject:
    """Equals the names of DuckDB's types of its kind, as the description of a cursor has them."""

    def __init__(self, kind: str, *names: str) -> None:
        """What it is called, and the names of the types."""
        self._kind = kind
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        """Whether a type is of this kind: `DECIMAL(10,2)` is a NUMBER."""
        if isinstance(other, str):
            return other.partition("(")[0].strip().upper() in self._names and not other.endswith("]")
        return self is other

    def __hash__(self) -> int:
        """Only the object itself is looked up by it: it equals many names."""
        return hash(self._kind)

    def __repr__(self) -> str:
        """Its name in the standard."""
        return f"<DB-API type {self._kind}>"


STRING = TypeObject("STRING", "VARCHAR", "CHAR", "TEXT", "STRING", "UUID", "JSON", "ENUM", "BIT")
BINARY = TypeObject("BINARY", "BLOB", "BYTEA", "VARBINARY", "BINARY", "GEOMETRY")
NUMBER = TypeObject(
    "NUMBER",
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM"),
)
DATETIME = TypeObject(
    "DATETIME",
    *("DATE", "TIME", "TIME_NS", "TIME WITH TIME ZONE", "INTERVAL", "TIMESTAMP WITH TIME ZONE"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
)
ROWID = TypeObject("ROWID")
"""No column has this type: the ids of rows are numbers."""


def DateFromTicks(ticks: float) -> Date:
    """The local date of a time in seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> Time:
    """The local time of day of a time in seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> Timestamp:
    """The local date and time of a time in seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])
