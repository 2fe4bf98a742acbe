"""The leaves of Parquet files that somebody else wrote: their types, and the columns they can be. Pure."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from forklake.errors import UnknownType
from forklake.lazy.arrow import pq
from forklake.model.types.data_types import DataType, Decimal, Scalar, can_widen, to_sql


class Fit(Enum):
    """Whether the values of a leaf are values of a column."""

    YES = "all of them, by their type"
    LOOK = "it depends on the values"
    NO = "never"


_TIMESTAMPS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"})
_UNITS = {"milliseconds": "timestamp_ms", "microseconds": "timestamp", "nanoseconds": "timestamp_ns"}
_PLAIN = {
    "BOOLEAN": "boolean",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BYTE_ARRAY": "blob",
    "FIXED_LEN_BYTE_ARRAY": "blob",
}
_NAMED = {
    "String": "varchar",
    "Enum": "varchar",
    "JSON": "json",
    "UUID": "uuid",
    "Date": "date",
    "Float16": "float32",
    "Geometry": "geometry",
    "Interval": "interval",
}
# A column does not become these, because Spark's reader would be wrong; it leaves such a file to DuckDB.
_UNSIGNED = {
    "uint8": ("uint64", "uint128", "int16", "int32", "int64", "int128"),
    "uint16": ("uint64", "uint128", "int32", "int64", "int128"),
    "uint32": ("uint64", "uint128", "int64", "int128"),
    "uint64": ("uint128", "int128"),
}
# Types of files and of columns that are not the same and hold the same.
_ALIKE = {
    **{(old, new): Fit.YES for old, wider in _UNSIGNED.items() for new in wider},
    ("json", "varchar"): Fit.YES,
    ("varchar", "json"): Fit.LOOK,
    ("varchar", "time_ns"): Fit.LOOK,
    ("varchar", "interval"): Fit.LOOK,
    ("time", "timetz"): Fit.YES,
    ("blob", "uuid"): Fit.LOOK,
}
_INT96 = ("timestamp", "timestamptz")
"""What 96 bits are is not written in the file: Spark means timestamps, Impala local times. DuckDB cuts them
to microseconds, which is all that Spark writes."""


def fit_of(leaf: pq.ColumnSchema, wanted: DataType) -> Fit:
    """Whether a leaf can be read as a column of some type without loss."""
    name = wanted.name if isinstance(wanted, Scalar) else "decimal"
    if leaf.physical_type == "INT96":
        return Fit.YES if name in _INT96 else Fit.NO
    found = leaf_type(leaf)
    match found, wanted:
        case None, _:
            return Fit.NO
        case Scalar("timestamptz"), Scalar("timestamptz") if _logical(leaf)["timeUnit"] == "nanoseconds":
            return Fit.LOOK
        case _ if found == wanted or can_widen(found, wanted):
            return Fit.YES
        case Scalar("timestamp_ns"), Scalar("timestamp_s" | "timestamp_ms"):
            # DuckDB has no such cast.
            return Fit.NO
        case Scalar(a), Scalar(b) if a in _TIMESTAMPS and b in _TIMESTAMPS:
            return Fit.LOOK
        case Decimal(_, 0), Scalar("int128"):
            return Fit.YES
        case Decimal(_, 0), Scalar("uint128"):
            return Fit.LOOK
        case Scalar(a), Scalar(b):
            return _ALIKE.get((a, b), Fit.NO)
        case _:
            return Fit.NO


def leaf_type(leaf: pq.ColumnSchema) -> DataType | None:
    """The type of a leaf as DuckDB reads it; None where that would lose something, or means nothing here."""
    logical = _logical(leaf)
    match logical["Type"]:
        case "None":
            plain = _PLAIN.get(leaf.physical_type)
            return None if plain is None else Scalar(plain)
        case "Int":
            return Scalar(f"{'' if logical['isSigned'] else 'u'}int{logical['bitWidth']}")
        case "Decimal":
            try:
                return Decimal(logical["precision"], logical["scale"])
            except UnknownType:
                return None
        case "Time":
            # DuckDB cuts nanoseconds.
            return None if logical["timeUnit"] == "nanoseconds" else Scalar("time")
        case "Timestamp":
            return Scalar("timestamptz" if logical["isAdjustedToUTC"] else _UNITS[logical["timeUnit"]])
        case name:
            return Scalar(_NAMED[name]) if name in _NAMED else None


def shown(leaf: pq.ColumnSchema) -> str:
    """The type of a leaf for people."""
    found = leaf_type(leaf)
    if found is not None:
        return to_sql(found)
    match _logical(leaf):
        case {"Type": "None"}:
            return leaf.physical_type
        case {"Type": "Decimal", "precision": precision, "scale": scale}:
            return f"DECIMAL({precision},{scale})"
        case {"Type": name, "timeUnit": unit}:
            return f"{name} in {unit}"
        case {"Type": "Null"}:
            return "of no type"
        case logical:
            return logical["Type"]


def _logical(leaf: pq.ColumnSchema) -> dict[str, Any]:
    return json.loads(leaf.logical_type.to_json())
