"""Rows as Spark shows them and as the local engine does, brought to one form."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame

import forklake
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct
from forklake.spark import SparkCatalog
from tests.property.table_values import identity

Rows = dict[int, tuple[Any, ...]]

_CUT = {"timestamp_s": 10**6, "timestamp_ms": 10**3, "timestamp": 1, "timestamptz": 1}


def same_rows(spark: SparkCatalog, table: forklake.Table, where: str | None = None, **options: Any) -> int:
    """Check that both engines show the same rows, with their ids; returns how many."""
    name = table.schema_name, table.name
    scan = table.scan(where, row_ids=True, **options)
    types = [*(column.data_type for column in scan.selection.columns), Scalar("int64")]
    expected = _rows(scan.to_arrow(), types, _local)
    found = _rows(frame_of(spark.read(name, where, row_ids=True, **options)), types, _shown)
    assert found == expected, where
    return len(found)


def same_feed(spark: SparkCatalog, table: forklake.Table, start: int, end: int | None = None) -> int:
    """Check that both engines tell the same of what happened; returns how much that is."""
    name = table.schema_name, table.name
    types = [column.data_type for column in table.columns]
    expected = _changes(table.changes(start, end).to_arrow(), types, _local)
    found = _changes(frame_of(spark.changes(name, start, end)), types, _shown)
    assert found == expected
    return len(found)


def _changes(result: pa.Table, types: list[DataType], read: Any) -> list[tuple[Any, ...]]:
    about = [column.to_pylist() for column in result.columns[:3]]
    columns = [
        [identity(read(value, type)) for value in column]
        for column, type in zip(result.columns[3:], types, strict=True)
    ]
    return sorted(zip(*about, *columns, strict=True), key=repr)


def frame_of(df: DataFrame) -> pa.Table:
    return df.toArrow()


def _rows(result: pa.Table, types: list[DataType], read: Any) -> Rows:
    columns = [
        [read(value, type) for value in column] for column, type in zip(result.columns, types, strict=True)
    ]
    rows = {
        row[-1][1]: tuple(row[:-1]) for row in zip(*([identity(v) for v in c] for c in columns), strict=True)
    }
    assert len(rows) == result.num_rows, "a row id is there twice"
    return rows


def _local(value: Any, type: DataType) -> Any:
    """What Spark should show for a value of the local engine."""
    if not value.is_valid:
        return None
    match type:
        case Scalar("uuid"):
            return str(
                UUID(bytes=value.value.as_py()) if isinstance(value.value, pa.Scalar) else value.as_py()
            )
        case Scalar("interval"):
            months, days, nanos = value.as_py()
            return f"{months} months {days} days {nanos // 1000} microseconds"
        case Scalar("time_ns"):
            return value.cast(pa.string()).as_py()
        case Scalar("timestamp_ns"):
            return value.value // 1000
        case Scalar(name) if name in _CUT:
            return value.value * _CUT[name]
        case Scalar("time" | "timetz"):
            return value.value * 1000
        case Scalar("json"):
            return value.as_py()
        case _:
            return _nested(value, type, _local)


def _shown(value: Any, type: DataType) -> Any:
    if not value.is_valid:
        return None
    match type:
        case Scalar("timestamp_ns"):
            return value.value
        case Scalar(name) if name in _CUT:
            return value.value
        case Scalar("time" | "timetz"):
            return value.value * (1 if value.type == pa.time64("ns") else 1000)
        case Scalar("uint64"):
            return int(value.as_py())
        case _:
            return _nested(value, type, _shown)


def _nested(value: Any, type: DataType, read: Any) -> Any:
    match type:
        case List(element):
            return [read(item, element) for item in value.values]
        case Map(key, item):
            return sorted(
                (
                    (read(pair[0], key), read(pair[1], item))
                    for pair in zip(value.values.field(0), value.values.field(1), strict=True)
                ),
                key=repr,
            )
        case Struct(fields):
            return [read(value[at], field) for at, (_, field) in enumerate(fields)]
        case Scalar("date"):
            return value.value
        case Decimal() | Scalar():
            return value.as_py()
