"""Values and names that Spark would take for variables or for SQL: they are data here."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.errors import InvalidArgument
from forklake.model.names import quoted
from forklake.spark import SparkCatalog
from forklake.spark.sql_text import field_of, name, text

HOSTILE = [
    "${spark.app.name}",
    "a ${env:HOME} ${spark:spark.app.name}",
    "x FROM forklake_rows",
    "it's `q` \\n ${spark.app.name} \\",
]
APP, HOME = "${spark.app.name}", "in ${env:HOME}"


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def test_pieces_of_sql_hold_no_variables(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr(
        *(f"{text(value)} AS v{at}" for at, value in enumerate(HOSTILE)),
        f"1 AS {name(APP)}",
        f"named_struct({text(APP)}, 2, 'x', 3) AS {name(HOME)}",
    )
    df = df.selectExpr("*", f"{name(APP)} + 1 AS two", f"{field_of(name(HOME), APP)} AS inside")
    assert df.columns[len(HOSTILE) :] == [APP, HOME, "two", "inside"]
    row = df.collect()[0]
    assert list(row) == [*HOSTILE, 1, (2, 3), 2, 2]
    for written in (name, lambda one: field_of("s", one)):
        with pytest.raises(InvalidArgument, match="rename it"):
            written("it's ${spark.app.name}")


def test_values_that_read_like_variables_are_found(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, url: str
) -> None:
    table = catalog.create_table("t", "id BIGINT, note VARCHAR")
    table.append(pa.table({"id": range(len(HOSTILE)), "note": HOSTILE}))
    for at, value in enumerate(HOSTILE):
        condition = f"note = {literal(value)}"
        assert [row.id for row in on_spark.read("t", condition).collect()] == [at]
        given = {"lake": url, "catalog": catalog.name, "table": "t", "where": condition}
        found = spark.read.format("forklake").options(**given).load().collect()
        assert [tuple(row) for row in found] == [(at, value)]
    listed = ", ".join(map(literal, HOSTILE))
    start = catalog.snapshot
    assert on_spark.update("t", {"note": literal(APP)}, f"note IN ({listed})") == len(HOSTILE)
    assert table.scan(f"note = {literal(APP)}").count() == len(HOSTILE)
    changed = on_spark.changes("t", start, where=f"note = {literal(APP)}")
    assert sorted(row.change_type for row in changed.collect()) == [
        *["update_postimage"] * len(HOSTILE),
        "update_preimage",
    ]


def test_columns_and_fields_that_are_named_like_variables_are_read_and_written(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    table = catalog.create_table(
        "t",
        f"""id BIGINT, {quoted(APP)} VARCHAR DEFAULT {literal(HOME)},
            {quoted(HOME)} STRUCT({quoted(APP)} INTEGER, {quoted(HOME)} VARCHAR)""",
    )
    table.set_sort_order([f"{quoted(APP)} DESC"])
    table.set_partitioning(["id"])
    rows = spark.range(3).selectExpr(
        "id",
        f"{text(APP)} AS {name(APP)}",
        f"named_struct({text(APP)}, 7, {text(HOME)}, 'x') AS {name(HOME)}",
    )
    assert on_spark.append(rows, "t") == 3
    assert on_spark.append(spark.range(3, 5), "t") == 2
    table.add_column([HOME, "u"], "UUID")
    table.add_column("late", "VARCHAR", default=literal(APP))
    df = on_spark.read("t", f"{quoted(HOME)}.{quoted(APP)} = 7 OR {quoted(APP)} = {literal(HOME)}")
    assert df.columns == ["id", APP, HOME, "late"]
    expected = table.scan().to_arrow().sort_by("id").to_pylist()
    assert df.toArrow().sort_by("id").to_pylist() == expected
    assert [row[APP] for row in expected] == [APP] * 3 + [HOME] * 2
    assert {row["late"] for row in expected} == {APP}
    start = catalog.snapshot
    newer = on_spark.read("t", "id >= 3", row_ids=False)
    assert on_spark.merge(newer, "t", on="id").updated == 2
    assert on_spark.changes("t", start).count() == 4
    assert on_spark.delete("t", f"{quoted(APP)} = {literal(APP)}") == 3
    assert on_spark.read("t").toArrow().sort_by("id").to_pylist() == expected[3:]
