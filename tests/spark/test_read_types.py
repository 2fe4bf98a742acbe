"""Reading columns with Spark: timestamps, and parts of structs, lists and maps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.spark import SparkCatalog
from tests.spark.compare import same_rows


def test_timestamps_stay_what_they_are_where_a_session_means_another_type_by_timestamp(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    table = catalog.create_table("t", "id BIGINT, at TIMESTAMPTZ, s STRUCT(at TIMESTAMPTZ, n INTEGER)")
    # The same hour of a clock twice, as it is set back.
    timestamps = [datetime(2024, 11, 3, hour, 30, tzinfo=UTC) for hour in (4, 5, 6, 7)]
    table.append([{"id": n, "at": at, "s": {"at": at, "n": n}} for n, at in enumerate(timestamps)])
    table.rename_column(("s", "n"), "m")
    name = "spark.sql.timestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_NTZ")
    try:
        same_rows(on_spark, table)
        given = spark.sql("SELECT 70L AS id, TIMESTAMP_LTZ'2024-11-03 06:30:00+00:00' AS at")
        assert on_spark.merge(given, "t", "at").updated == 1
        assert table.scan("id = 70").to_arrow()["at"].to_pylist() == [timestamps[2]]
    finally:
        spark.conf.set(name, str(before))


@pytest.mark.parametrize("row_ids", [False, True])
@pytest.mark.parametrize(
    ("type", "value", "chosen"),
    [
        ("STRUCT(x UUID, y DOUBLE)", {"x": UUID(int=0), "y": 1.5}, ("v", "v.x", "v.y")),
        ("STRUCT(x INTEGER, y VARCHAR)", {"x": 1, "y": "a"}, ("v", "v.x", "v.y")),
        ("STRUCT(x UUID, y DOUBLE)[]", [{"x": UUID(int=0), "y": 1.5}], ("v", "v.x", "v[0].y")),
        ("STRUCT(l STRUCT(x INTEGER, y FLOAT)[])", {"l": [{"x": 1, "y": 1.5}]}, ("v", "v.l.x")),
        ("MAP(INTEGER, STRUCT(x UUID, y DOUBLE))", {1: {"x": UUID(int=0), "y": 1.5}}, ("v", "v[1].x")),
    ],
)
def test_parts_of_a_column_are_there_when_only_they_are_asked_for(
    catalog: forklake.Catalog,
    on_spark: SparkCatalog,
    type: str,
    value: Any,
    chosen: tuple[str, ...],
    row_ids: bool,
) -> None:
    """Spark forgets ids of columns of which it reads a part."""
    table = catalog.create_table("t", f"id INTEGER, d DOUBLE, v {type}")
    table.append([{"id": number, "d": 2.5, "v": value} for number in range(150)])
    for _ in range(2):
        whole = on_spark.read("t", row_ids=row_ids).select("v").toArrow().column("v").to_pylist()
        for part in chosen:
            found = on_spark.read("t", row_ids=row_ids).selectExpr("id", "d", f"{part} AS part").toArrow()
            assert found.num_rows == len(whole) == table.count()
            assert found.column("part").null_count == found.column("d").null_count == 0
            at = part.replace("[0]", ".0").replace("[1]", ".1").split(".")[1:]
            assert found.column("part").to_pylist() == [_part(one, at) for one in whole]
        table.delete("id = 7")


def _part(value: Any, at: list[str]) -> Any:
    if not at:
        return value
    if isinstance(value, dict):
        return _part(value[at[0]], at[1:])
    if at[0].isdecimal():
        listed = dict(value) if isinstance(value[0], tuple) else value
        return _part(listed[int(at[0])], at[1:])
    return [_part(one, at) for one in value]
