"""Writing Spark DataFrames into tables: what arrives, how files look, and what is refused."""

from __future__ import annotations

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrameWriter, SparkSession

import forklake
from forklake.data.parquet.schema import arrow_schema
from forklake.errors import InvalidArgument, InvalidData
from forklake.spark import SparkCatalog
from forklake.spark.types import shown_schema
from tests.spark.compare import same_rows

PLAIN = """id BIGINT NOT NULL, v DOUBLE, s STRUCT(x INTEGER, y VARCHAR), ts TIMESTAMP, tz TIMESTAMPTZ,
           d DECIMAL(10, 2), k INTEGER DEFAULT 5, day DATE, bin BLOB, ti TIME"""


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_rows_arrive_by_sparks_own_writer(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = catalog.create_table("t", PLAIN)
    df = spark.range(0, 100, 1, 2).selectExpr(
        "CAST(id AS INT) AS ID",
        "IF(id % 10 = 0, double('NaN'), id) AS v",
        "IF(id % 7 = 0, NULL, named_struct('y', 'a', 'x', CAST(id AS INT))) AS s",
        "TIMESTAMP_NTZ'1066-10-14 09:00:00.000001' AS ts",
        "TIMESTAMP'1969-12-31 23:59:59.999999+00:00' AS tz",
        "CAST(1.5 AS DECIMAL(5, 1)) AS d",
        "DATE'0001-01-01' AS day",
        "X'00FF' AS bin",
        "TIME'01:02:03.000004' AS ti",
    )
    before = len(catalog.snapshots())
    assert on_spark.append(df, "t") == 100
    assert len(catalog.snapshots()) == before + 1
    assert same_rows(on_spark, table) == 100
    assert table.scan("v = 'nan'").count() == 10
    assert [row["id"] for row in table.scan(columns=["id"], row_ids=True).to_pylist()] == list(range(100))
    assert table.scan("id = 7 AND k = 5 AND day = '0001-01-01'").count() == 1
    assert len(table.scan("id = 7").plan().files) == 1 and len(table.files()) == 2
    for path in files_in(tmp_path / "files"):
        metadata = pq.read_metadata(path)
        assert metadata.created_by.startswith("parquet-mr")
        assert metadata.row_group(0).column(0).compression == "ZSTD"
        ids = [int(field.metadata[b"PARQUET:field_id"]) for field in metadata.schema.to_arrow_schema()]
        assert ids == [column.id for column in table.columns]


def test_another_reader_finds_the_columns_by_id(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    catalog.create_table("t", "a BIGINT, s STRUCT(x INTEGER)")
    on_spark.append(spark.range(10).selectExpr("id AS a", "named_struct('x', 3) AS s"), "t")
    schema = "MAP {1: {name: 'b', type: 'BIGINT', default_value: NULL}}"
    with duckdb.connect() as connection:
        found = connection.sql(
            f"SELECT sum(b) FROM read_parquet('{tmp_path}/files/**/*.parquet', schema = {schema})"
        )
        assert found.fetchall() == [(45,)]


def test_rows_that_spark_cannot_write_go_through_its_workers(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = catalog.create_table(
        "t",
        "id UUID, l INTEGER[], m MAP(VARCHAR, INTEGER), p VARCHAR, n UTINYINT, at TIMESTAMPTZ DEFAULT now()",
    )
    table.set_partitioning(["p", "bucket(4, n)"])
    table.set_sort_order(["n DESC"])
    df = spark.range(50).selectExpr(
        "'00000000-0000-0000-0000-0000000000AA' AS id",
        "array(1, NULL) AS l",
        "map('a', 1) AS m",
        "concat('x', id % 3) AS p",
        "CAST(id AS SMALLINT) AS n",
    )
    assert on_spark.append(df, "t") == 50
    assert same_rows(on_spark, table) == 50
    assert table.scan("at IS NULL").count() == 0
    assert 0 < len(table.scan("p = 'x1' AND n = 4").plan().files) < len(table.files())
    schema = pq.read_schema(files_in(tmp_path / "files")[0])
    assert schema.field("l").type.value_field.metadata[b"PARQUET:field_id"] == b"3"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["id + 300 AS n"], "300"),
        (["id AS nope"], 'no "nope"'),
        (["'x' AS n"], '"n"'),
        (["id AS n", "CAST(NULL AS BIGINT) AS need"], "NOT NULL"),
        (["id AS n", "id AS N"], "twice"),
    ],
)
def test_what_does_not_fit_leaves_nothing_behind(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    spark: SparkSession,
    tmp_path: Path,
    values: list[str],
    problem: str,
) -> None:
    catalog.create_table("t", "n UTINYINT, need BIGINT NOT NULL DEFAULT 1")
    before = catalog.snapshot
    with pytest.raises(InvalidData, match=problem):
        on_spark.append(spark.range(3).selectExpr(*values), "t")
    assert catalog.snapshot == before
    assert files_in(tmp_path / "files") == []


def test_nulls_that_spark_wrote_are_found_and_removed(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    catalog.create_table("t", "id BIGINT NOT NULL")
    with pytest.raises(InvalidData, match="NOT NULL"):
        on_spark.append(spark.range(3).selectExpr("IF(id = 1, NULL, id) AS id"), "t")
    catalog.create_table("nested", "s STRUCT(x INTEGER) NOT NULL")
    with pytest.raises(InvalidData, match="NOT NULL"):
        on_spark.append(spark.range(3).selectExpr("IF(id = 1, NULL, named_struct('x', 1)) AS s"), "nested")
    assert files_in(tmp_path / "files") == []
    assert on_spark.append(spark.range(3).selectExpr("named_struct('x', NULL) AS s"), "nested") == 3
    with pytest.raises(InvalidArgument, match="Spark DataFrame"):
        on_spark.append([{"id": 1}], "t")  # type: ignore[arg-type]
    assert on_spark.append(spark.range(0), "t") == 0


def test_a_transaction_takes_frames_of_spark(
    catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    catalog.create_table("a", "id BIGINT")
    with catalog.transaction() as tx:
        inside = SparkCatalog(spark, tx)
        inside.append(spark.range(10), "a")
        tx.table("a").delete("id < 3")
        tx.table("a").rename_column("id", "number")
        assert inside.read("a").where("number > 5").count() == 4
        tx.table("a").append(pa.table({"number": [100]}))
    assert SparkCatalog(spark, catalog).read("a").count() == 8
    before = files_in(tmp_path / "files")
    tx = catalog.transaction()
    SparkCatalog(spark, tx).append(spark.range(10).withColumnRenamed("id", "number"), "a")
    tx.rollback()
    assert files_in(tmp_path / "files") == before


def test_settings_of_a_session_are_as_they_were(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    spark.conf.set(key, "INT96")
    try:
        table = catalog.create_table("t", "at TIMESTAMPTZ")
        on_spark.append(spark.range(3).selectExpr("TIMESTAMP'2024-01-01 00:00:00+00:00' AS at"), "t")
        assert spark.conf.get(key) == "INT96"
        assert same_rows(on_spark, table, "at = '2024-01-01 00:00:00+00'") == 3
    finally:
        spark.conf.set(key, str(before))


def test_settings_hold_until_the_last_writer_has_written(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Two threads with one session: the second comes while the first writes, and writes when it has gone."""
    key = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(key)
    first_set, second_set, first_done = Event(), Event(), Event()
    real = DataFrameWriter.parquet

    def parquet(self: DataFrameWriter, path: str) -> None:
        mine, others = (first_set, second_set) if "/first/" in path else (second_set, first_done)
        mine.set()
        assert others.wait(240)
        real(self, path)

    monkeypatch.setattr(DataFrameWriter, "parquet", parquet)

    def write(name: str) -> int:
        assert name == "first" or first_set.wait(240)
        try:
            df = spark.range(3).selectExpr("TIMESTAMP'3000-01-01 00:00:00+00:00' AS at")
            return SparkCatalog(spark, catalog).append(df, name)
        finally:
            if name == "first":
                first_done.set()

    for name in ("first", "second"):
        catalog.create_table(name, "at TIMESTAMPTZ")
    spark.conf.set(key, "INT96")
    try:
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(write, ("first", "second"))) == [3, 3]
        assert spark.conf.get(key) == "INT96"
    finally:
        spark.conf.set(key, str(before))
    kinds = {pq.read_schema(path).field("at").type for path in (tmp_path / "files").rglob("*.parquet")}
    assert kinds == {pa.timestamp("us", "UTC")}


@pytest.mark.parametrize("odd", ["c.d", "c`d", 'c"d'])
def test_columns_of_any_name_are_written_by_workers(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, odd: str
) -> None:
    table = catalog.create_table("t", [("id", "BIGINT"), (odd, "VARCHAR"), ("l", "INTEGER[]")])
    df = spark.sql("SELECT 1L, 'x', array(1)").toDF("id", odd, "l")
    assert on_spark.append(df, "t") == 1
    assert on_spark.overwrite(df, "t", "id = 1") == 1
    assert table.scan().to_pylist() == [{"id": 1, odd: "x", "l": [1]}]


def test_a_bucket_is_written_without_hadoop_aws(spark: SparkSession, s3_url: str, tmp_path: Path) -> None:
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", data_path=s3_url, create=True) as lake:
        table = lake.create_catalog("c").create_table("t", "id BIGINT")
        seen = SparkCatalog(spark, lake.catalog("c"))
        assert seen.append(spark.range(20), "t") == 20
        assert same_rows(seen, table, "id > 3") == 16


def test_partitions_and_sort_orders_are_kept_by_sparks_own_writer(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    """Twice the same rows, once by the local engine: files have the same partitions, and the same rows."""
    layout: dict[str, Any] = {
        "partition_by": ["p", "year(ts)", "hour(tz)", "d", "b", "month(day)", "f", "ti"],
        "sorted_by": ["n DESC"],
    }
    text = """n BIGINT, p VARCHAR, ts TIMESTAMP, tz TIMESTAMPTZ, d DECIMAL(9, 2), b BLOB, day DATE, f DOUBLE,
              ti TIME, ok BOOLEAN"""
    here = catalog.create_table("here", text, **layout)
    there = on_spark.create_table("there", text, **layout)
    odd = ["eu", "EU", "", None, "ä/ö", "x" * 300, "x" * 299 + "y", "__HIVE_DEFAULT_PARTITION__", "a=b", "."]
    timestamp = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    rows = [
        {
            "n": number,
            "p": odd[number % len(odd)],
            "ts": None if number % 4 == 0 else datetime(1 + number % 3, 1, 1),
            "tz": None if number % 6 == 0 else timestamp + timedelta(hours=number % 2),
            "d": Decimal(number % 2) / 4,
            "b": bytes([number % 2]) * 90,
            "day": date(1999, 1 + number % 2, 1),
            "f": [0.0, -0.0, float("nan"), None, 1.5][number % 5],
            "ti": time(1, 2, 3, number % 2),
            "ok": True,
        }
        for number in range(240)
    ]
    columns = here.columns
    arrow = pa.Table.from_pylist(rows, schema=arrow_schema(columns))
    here.append(arrow)
    assert on_spark.append(spark.createDataFrame(arrow, shown_schema(columns)).repartition(3), "there") == 240
    for number in range(240):
        assert repr(there.scan(f"n = {number}").to_pylist()) == repr(here.scan(f"n = {number}").to_pylist())

    def parts(table: forklake.Table) -> Counter[tuple[str | None, ...]]:
        """How many rows are in each partition."""
        with closing(sqlite3.connect(tmp_path / "lake.db")) as database:
            listed = database.execute(
                """SELECT f.data_file_id, f.record_count, p.partition_value
                     FROM ducklake_data_file f JOIN ducklake_file_partition_value p USING (data_file_id)
                    WHERE f.table_id = ? ORDER BY f.data_file_id, p.partition_key_index""",
                (table.id,),
            ).fetchall()
        found: Counter[tuple[str | None, ...]] = Counter()
        for (_, count), rows in groupby(listed, lambda row: row[:2]):
            found[tuple(value for _, _, value in rows)] += count
        return found

    assert on_spark.append(on_spark.read("there").limit(0), "there") == 0
    assert parts(there) == parts(here)
    assert sum(parts(there).values()) == 240
    for path in (tmp_path / "files").rglob("*.parquet"):
        if "spark-" in str(path):
            found = pq.read_table(path).column("n").to_pylist()
            assert found == sorted(found, reverse=True)
    assert same_rows(on_spark, there) == 240
    assert same_rows(on_spark, there, "p = 'eu' AND n > 100") > 0


def test_rows_of_a_partition_come_together_whatever_they_were_before(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    """Of narrower types, under odd names, or not there and of a default, in many tasks: a file for each."""
    layout = ['"odd.`n"', "year(at)", "month(day)", "d", "region"]
    text = (
        """v BIGINT, "odd.`n" BIGINT, at TIMESTAMP, day DATE, d DECIMAL(9, 2), region VARCHAR DEFAULT 'EU'"""
    )
    table = catalog.create_table("t", text, partition_by=layout)
    df = spark.range(0, 400, 1, 8).selectExpr(
        "id AS v",
        "CAST(id % 2 AS INT) AS `odd.``n`",
        "TIMESTAMP_NTZ'2024-12-31 23:00:00' + make_dt_interval(0, int(id % 2)) AS at",
        "DATE'2024-01-31' AS day",
        "CAST(id % 2 AS DECIMAL(2, 1)) AS d",
    )
    assert on_spark.append(df, "t") == 400
    assert {file.partition_values for file in table.files()} == {
        ("0", "2024", "1", "0.00", "EU"),
        ("1", "2025", "1", "1.00", "EU"),
    }
    assert len(table.files()) == 2
    assert same_rows(on_spark, table, """"odd.`n" = 1 AND d > 0.5 AND region = 'EU'""") == 200


def test_moments_that_a_clock_shows_twice_are_in_two_partitions(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    table = catalog.create_table("t", "at TIMESTAMPTZ", partition_by=["at"])
    hours = "SELECT TIMESTAMP'2024-11-03 04:30:00+00:00' + make_dt_interval(0, int(id)) AS at FROM range(4)"
    assert on_spark.append(spark.sql(hours).coalesce(1), "t") == 4
    # The session of these tests lives in New York.
    values = {value for file in table.files() for value in file.partition_values or ()}
    assert values == {f"2024-11-03 0{hour}:30:00+00" for hour in (4, 5, 6, 7)}


@pytest.mark.parametrize(
    "text", ["CAST(X'FF61' AS STRING) AS v", "named_struct('v', CAST(X'ED' AS STRING)) AS s"]
)
def test_bytes_that_are_no_text_are_refused(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path, text: str
) -> None:
    """Spark takes them for one, and nobody else could read the file."""
    catalog.create_table("t", "id BIGINT, v VARCHAR, s STRUCT(v VARCHAR)")
    with pytest.raises(InvalidData, match="UTF8"):
        on_spark.append(spark.range(2).selectExpr("id", text), "t")
    assert files_in(tmp_path / "files") == []


def test_long_values_are_known_to_be_none_of_them_null(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    """Spark's writer says nothing in a footer of values of more than some thousand bytes."""
    table = catalog.create_table("t", "id BIGINT, s VARCHAR NOT NULL, b BLOB NOT NULL")
    long = "repeat('x', 10000)"
    assert on_spark.append(
        spark.range(3).selectExpr("id", f"{long} AS s", f"CAST({long} AS BINARY) AS b"), "t"
    )
    with pytest.raises(InvalidData, match="NOT NULL"):
        on_spark.append(spark.range(3).selectExpr("id", f"if(id = 1, NULL, {long}) AS s", "X'00' AS b"), "t")
    assert table.count() == 3


def test_rows_are_sorted_by_expressions_macros_and_lists(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark knows neither macros nor how DuckDB orders lists: workers sort as the local engine does."""
    catalog.sql("CREATE MACRO far(x) AS abs(x - 6)")
    table = on_spark.create_table("t", "id BIGINT, l INTEGER[]", sorted_by=["far(id) DESC", "l DESC", "id"])
    df = spark.range(0, 12, 1, 1).selectExpr("id", "array(CAST(id % 5 AS INT), 1) AS l")
    assert on_spark.append(df, "t") == 12
    assert on_spark.append(df, "t") == 12
    expected = sorted(range(12), key=lambda id: (-abs(id - 6), -(id % 5), id))
    files = files_in(tmp_path / "files")
    assert [pq.read_table(file).column("id").to_pylist() for file in files] == [expected] * 2
    on_spark.compact("t")
    (merged,) = (tmp_path / "files" / str(file.path) for file in table.files())
    assert pq.read_table(merged).column("id").to_pylist() == [id for id in expected for _ in range(2)]
    catalog.sql("DROP MACRO far")
    with pytest.raises(InvalidArgument, match="far"):
        on_spark.append(df, "t")
    assert same_rows(on_spark, table) == 24


def test_inserts_are_left_in_their_order_and_partitions_without_folders_if_options_say_so(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = on_spark.create_table("t", "id BIGINT, p BIGINT", sorted_by=["id DESC"], partition_by=["p"])
    catalog.set_schema_option("main", "sort_on_insert", False)
    catalog.set_schema_option("main", "hive_file_pattern", False)
    assert on_spark.append(spark.range(0, 10, 1, 1).selectExpr("id", "id % 2 AS p"), "t") == 10
    files = files_in(tmp_path / "files")
    assert len(files) == 2 and not any("=" in str(file.relative_to(tmp_path)) for file in files)
    assert sorted(pq.read_table(file).column("id").to_pylist() for file in files) == [
        [0, 2, 4, 6, 8],
        [1, 3, 5, 7, 9],
    ]
    assert len(on_spark.catalog.table("t").scan("p = 1").plan().files) == 1
    assert same_rows(on_spark, table, "p = 1") == 5
