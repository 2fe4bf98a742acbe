"""Upserts of DataFrames into tables with Spark: small and large sources, many files, keys of all kinds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.spark import SparkCatalog
from forklake.spark import upsert as merge
from tests.spark.compare import same_feed, same_rows


def test_moments_of_nanoseconds_are_merged_and_told(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    table = catalog.create_table("t", "ts TIMESTAMP_NS, n INTEGER")
    start = catalog.snapshot
    for first in (0, 10):
        timestamps = pa.array([first + 1, first + 2, first + 3, (first + 1) * 1000], pa.timestamp("ns"))
        table.append(pa.table({"ts": timestamps, "n": pa.array(range(4), pa.int32())}))
    table.delete("n = 1")
    newer = spark.sql("SELECT TIMESTAMP_NTZ'1970-01-01 00:00:00.000011' AS ts, 9 AS n")
    assert on_spark.merge(newer, "t", "ts").updated == 1
    assert table.scan("n = 9").count() == 1
    assert same_feed(on_spark, table, start) == 8 + 2 + 2
    assert same_rows(on_spark, table, "ts >= '1970-01-01 00:00:00.000000012'") == 3


def test_rows_are_merged_into_many_small_files(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    table = catalog.create_table("t", "id BIGINT, n INTEGER")
    for at in range(8):
        table.append([{"id": 10 * at + more, "n": 0} for more in range(4)])
    table.append([{"id": 1000, "n": 0}])
    newer = spark.range(0, 90, 1).selectExpr("id", "CAST(id AS INT) AS n").coalesce(1)
    done = on_spark.merge(newer.unionAll(spark.sql("SELECT 1000L AS id, 1000 AS n")), "t", "id")
    assert (done.updated, done.inserted) == (33, 58)
    assert sorted((row["id"], row["n"]) for row in table.scan().to_pylist()) == [
        (number, number) for number in (*range(90), 1000)
    ]


@pytest.mark.parametrize("most", [merge._MOST_BROADCAST, -1], ids=["broadcast", "sorted"])
@pytest.mark.parametrize(
    ("matched", "not_matched"),
    [("update", "insert"), ("update", "ignore"), ("delete", "insert"), ("ignore", "insert")],
)
def test_a_merge_is_what_it_is_locally(
    spark: SparkSession,
    catalog: forklake.Catalog,
    on_spark: SparkCatalog,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    matched: Any,
    not_matched: Any,
) -> None:
    """Whether the source is small or not; with keys that are NULL, outside of all files, and twice new."""
    monkeypatch.setattr(merge, "_MOST_BROADCAST", most)
    here, there = (catalog.create_table(name, "id VARCHAR, n INTEGER") for name in ("here", "there"))
    for table in (here, there):
        for start in (0, 10, 20):
            table.append([{"id": f"k{start + at:03}", "n": 0} for at in range(6)])
        table.append([{"id": None, "n": 0}])
    newer = pa.table(
        {"id": ["k003", "k012", "k012x", None, "z", "z", "k010"], "n": pa.array([1] * 7, pa.int32())}
    )
    expected = here.merge(newer, on="id", when_matched=matched, when_not_matched=not_matched)
    df = spark.createDataFrame(newer)
    found = on_spark.merge(df, "there", "id", when_matched=matched, when_not_matched=not_matched)
    assert found == expected

    def rows(table: forklake.Table) -> list[tuple[Any, ...]]:
        return sorted(((row["id"], row["n"]) for row in table.scan().to_pylist()), key=repr)

    assert rows(there) == rows(here)


def test_a_source_may_have_any_names(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    table = catalog.create_table("t", 'id BIGINT, "Place_0" BIGINT, "c.`d" BIGINT')
    table.append([{"id": at, "Place_0": 0, "c.`d": 0} for at in range(3)])
    newer = spark.sql(
        "SELECT 1L AS id, 5L AS place_0, 6L AS `c.``d`, 7L AS place_1, 8L AS forklake_in, 9 AS s0"
    )
    values = {"Place_0": "source.place_0 + source.place_1", "c.`d": 'source."c.`d" + source.s0'}
    done = on_spark.merge(newer, "t", "id", when_matched=values, when_not_matched="ignore")
    assert done.updated == 1
    assert table.scan("id = 1").to_pylist() == [{"id": 1, "Place_0": 12, "c.`d": 15}]
