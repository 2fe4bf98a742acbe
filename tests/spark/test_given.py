"""What users give to Spark: expressions, values, DataFrames to be cast, fields of structs, long lists."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.api.upsert import RowsMerged
from forklake.errors import ForklakeError, InvalidArgument, InvalidData
from forklake.spark import SparkCatalog
from tests.reaching import REACHING, SHADOWING
from tests.spark.compare import same_rows

DDL = "id BIGINT, z VARCHAR, s STRUCT(z INTEGER, w INTEGER), t STRUCT(z INTEGER)"


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    table = catalog.create_table("t", DDL)
    table.append([{"id": at, "z": f"z{at}", "s": {"z": at, "w": -at}} for at in range(500)])
    table.append([{"id": 500}])
    return table


def test_what_says_something_else_than_the_row_is_refused_as_it_is_locally(
    spark: SparkSession, on_spark: SparkCatalog, table: forklake.Table
) -> None:
    source = spark.createDataFrame([(1, "theirs")], "id BIGINT, secret STRING")
    before = table.scan().to_arrow()
    # All of them are refused by what the local engine asks too; each of these costs a reservation.
    for text in (*REACHING[::9], "COLUMNS('z')", SHADOWING[0]):
        for change in (
            lambda text: on_spark.update("t", {"z": text}),
            lambda text: on_spark.delete("t", text),
            lambda text: on_spark.merge(source, "t", on="id", when_matched={"z": text}),
            lambda text: on_spark.read("t", text),
        ):
            with pytest.raises(ForklakeError):
                change(text)
    assert table.scan().to_arrow() == before


def test_values_and_fields_are_given_as_they_are_locally(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog, table: forklake.Table
) -> None:
    assert on_spark.update("t", {"z": None, "s.w": 7, "t": {"z": 1}}, "id = 3") == 1
    assert table.scan("id = 3").to_pylist() == [{"id": 3, "z": None, "s": {"z": 3, "w": 7}, "t": {"z": 1}}]
    df = spark.createDataFrame([(4, 40), (600, 60)], "id BIGINT, n INTEGER")
    merged = on_spark.merge(
        df,
        "t",
        on="id",
        when_matched={"s.w": "source.n + target.s.z"},
        when_not_matched={"id": -1, "s.z": 5},
    )
    assert merged == RowsMerged(1, 0, 1)
    assert table.scan("id = 4", columns=["s"]).to_pylist() == [{"s": {"z": 4, "w": 44}}]
    assert table.scan("id = -1", columns=["s"]).to_pylist() == [{"s": {"z": 5, "w": None}}]


def test_fields_of_structs_are_read_by_their_paths(on_spark: SparkCatalog, table: forklake.Table) -> None:
    found = on_spark.read("t", "id >= 498", columns=["S.W", "id"])
    assert found.columns == ["w", "id"]
    assert sorted(map(tuple, found.collect()), key=lambda row: row[1]) == [
        (-498, 498),
        (-499, 499),
        (None, 500),
    ]
    assert on_spark.read("t", "s.z = 7", columns=["s.w"]).collect()[0]["w"] == -7
    with pytest.raises(InvalidArgument, match='shown as "z"'):
        on_spark.read("t", columns=["s.z", "t.z"])
    assert on_spark.read("t", "id = 9", columns=["z", "s.w"]).collect() == [("z9", -9)]


def test_the_format_takes_whole_columns_only(
    spark: SparkSession, url: str, on_spark: SparkCatalog, table: forklake.Table
) -> None:
    reader = spark.read.format("forklake").option("lake", url).option("catalog", "main_catalog")
    with pytest.raises(Exception, match="whole columns"):
        reader.option("table", "t").option("columns", "s.w").load().collect()


def test_long_lists_mean_the_same(on_spark: SparkCatalog, table: forklake.Table) -> None:
    numbers = ", ".join(str(7 * at) for at in range(3000))
    texts = ", ".join(f"'z{7 * at}'" for at in range(3000))
    for where in (f"id IN ({numbers})", f"NOT id IN ({numbers})", f"z IN ({texts})", f"z NOT IN ({texts})",
                  f"id IN ({numbers}) OR z = 'z1'", f"s.z IN ({numbers}, 99999999999)"):  # fmt: skip
        assert same_rows(on_spark, table, where)


def test_a_frame_makes_a_table_with_its_rows_in_one_commit(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    df = spark.range(100).selectExpr("id", "cast(id AS STRING) AS text")
    before = catalog.snapshot
    table = on_spark.create_table("made", df, append=True, partition_by=["bucket(2, id)"])
    assert (table.count(), len(catalog.table("made").history())) == (100, 1)
    assert catalog.snapshot > before
    on_spark.create_table("made", df, append=True, if_not_exists=True)
    assert table.count() == 100
    with catalog.transaction() as tx:
        assert SparkCatalog(spark, tx).create_table("inside", df, append=True).count() == 100
    with pytest.raises(InvalidArgument, match="only columns"):
        on_spark.create_table("none", df.schema, append=True)


def test_a_frame_is_cast_where_its_values_fit(
    spark: SparkSession, catalog: forklake.Catalog, on_spark: SparkCatalog
) -> None:
    table = catalog.create_table("cast", "id BIGINT, day DATE, price DECIMAL(6, 2)")
    df = spark.createDataFrame(
        [("1", "2024-01-01", 0.1), ("2", None, 2.5)], "id STRING, day STRING, price DOUBLE"
    )
    bad = spark.createDataFrame([("3", "2024-13-01", 0.1)], "id STRING, day STRING, price DOUBLE")
    with pytest.raises(InvalidData):
        on_spark.append(df, "cast")
    for write in (on_spark.append, on_spark.overwrite):
        assert write(df, "cast", cast=True) == 2
        with pytest.raises(InvalidData, match=r"row 0: .*2024-13-01"):
            write(bad, "cast", cast=True)
    merged = on_spark.merge(df.selectExpr("id", "'2024-02-02' AS day"), "cast", on="id", cast=True)
    assert merged == RowsMerged(2, 0, 0)
    assert table.scan().to_pylist() == [
        {"id": 1, "day": date(2024, 2, 2), "price": Decimal("0.10")},
        {"id": 2, "day": date(2024, 2, 2), "price": Decimal("2.50")},
    ]
