"""Hashes of keys in indexes are those that Spark gives, so that Spark can join with segments."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from forklake.index.key_hash import form_of, hashes, spark_key
from forklake.model.types.data_types import parse, to_spark
from tests.unit.index.segments import VALUES, array

# Spark reads neither nanoseconds nor times of Parquet files as these types.
TYPES = [type for type in VALUES if type not in ("TIMESTAMP_NS", "TIME", "UBIGINT", "HUGEINT")]


KEYS = [*((at,) for at in range(len(TYPES))), *((at, (at + 3) % len(TYPES)) for at in range(len(TYPES)))]


def as_spark_reads(column: pa.Array) -> pa.Array:
    if column.type == pa.uuid():
        return pa.array([None if value is None else str(value) for value in column.to_pylist()])
    is_short = column.type in (pa.timestamp("s"), pa.timestamp("ms"))
    return column.cast(pa.timestamp("us")) if is_short else column


def hash_sql(key: tuple[int, ...]) -> str:
    types = [parse(TYPES[at]) for at in key]
    columns = (f"CAST(c{at} AS {to_spark(type)})" for at, type in zip(key, types, strict=True))
    return (
        f"xxhash64({', '.join(spark_key(sql, type) or '' for sql, type in zip(columns, types, strict=True))})"
    )


def test_spark_gives_the_same_hashes(spark: SparkSession, tmp_path: Path) -> None:
    long = {"VARCHAR": ["x" * size for size in range(100)], "BLOB": ["y" * size for size in range(100)]}
    values = [[*VALUES[type], *long.get(type, ())] for type in TYPES]
    most = max(map(len, values))
    columns = [
        array([*each, *([None] * (most - len(each)))], type) for each, type in zip(values, TYPES, strict=True)
    ]
    file = tmp_path / "keys.parquet"
    pq.write_table(pa.table([*map(as_spark_reads, columns)], [f"c{at}" for at in range(len(TYPES))]), file)

    asked = [f"{hash_sql(key)} AS h{number}" for number, key in enumerate(KEYS)]
    given = spark.read.parquet(str(file)).coalesce(1).selectExpr(*asked).toArrow()
    for number, key in enumerate(KEYS):
        types = [parse(TYPES[at]) for at in key]
        ours, has = hashes([columns[at] for at in key], types, [form_of(type) or "" for type in types])
        theirs = given.column(f"h{number}").to_numpy()
        assert has.any()
        assert ours[has].tolist() == theirs[has].tolist(), [TYPES[at] for at in key]
