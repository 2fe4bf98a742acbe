"""The format "forklake": tables read and written by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import forklake
from forklake.spark.source.batch_read import BatchReader, Rows
from forklake.spark.source.batch_write import BatchWriter
from forklake.spark.source.options import SourceOptions
from forklake.spark.source.schema import shape_of

Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, catalog: forklake.Catalog, url: str) -> Read:
    def load(table: str = "t", catalog: str = catalog.name, **options: Any) -> DataFrame:
        given = {"lake": url, "catalog": catalog, "table": table, **options}
        return spark.read.format("forklake").options(**given).load()

    return load


def same(df: DataFrame, scan: forklake.Scan) -> int:
    expected = scan.to_arrow()
    found = df.toArrow()
    assert found.column_names == expected.column_names
    key = [("id", "ascending")]
    # As texts, for NaN is never the same.
    assert repr(found.sort_by(key).to_pylist()) == repr(expected.sort_by(key).to_pylist())
    return found.num_rows


def story(catalog: forklake.Catalog) -> forklake.Table:
    """Files, inlined rows, deletes of both kinds, and columns that changed."""
    table = catalog.create_table("t", "id BIGINT, n INTEGER, s STRUCT(x INTEGER, y VARCHAR), f DOUBLE")
    for at in range(3):
        rows = range(at * 100, at * 100 + 100)
        table.append(
            pa.table(
                {
                    "id": rows,
                    "n": [one % 7 for one in rows],
                    "s": [{"x": one, "y": f"y{one}"} for one in rows],
                }
            )
        )
    table.append([{"id": 1000, "f": float("nan")}])
    table.delete("id = 5 OR id BETWEEN 120 AND 150")
    table.update({"n": "100"}, where="id = 7")
    table.alter_type("n", "BIGINT")
    table.rename_column("s.x", "z")
    table.add_column("late", "VARCHAR", default="'was not there'")
    table.append([{"id": 1001, "late": "now"}])
    return table


def test_rows_are_those_of_a_scan(read: Read, catalog: forklake.Catalog, url: str) -> None:
    table = story(catalog)
    middle = catalog.snapshots()[-4].id
    assert same(read(), table.scan()) == 270
    assert same(read(at=middle), table.scan(at=middle)) == 269
    assert same(read(where="n = 3", columns="late, id"), table.scan("n = 3", ["late", "id"])) > 0
    assert same(read(row_ids=True), table.scan(row_ids=True)) == 270
    with forklake.connect(url) as lake:
        fork = lake.fork(catalog.name, "other")
        fork.table("t").delete("id < 100")
        table.append([{"id": 2000}])
        assert same(read(catalog="other"), fork.table("t").scan()) == 171


def test_a_frame_stays_what_it_was_when_it_was_loaded(read: Read, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, n INTEGER")
    table.append([{"id": at, "n": 1} for at in range(5)])
    df = read()
    table.append([{"id": 9}])
    table.drop_column("n")
    assert df.count() == 5
    assert df.columns == ["id", "n"]
    assert read().columns == ["id"]


@pytest.fixture
def many(catalog: forklake.Catalog) -> forklake.Table:
    """Three files, one for each day."""
    table = catalog.create_table(
        "t", "id BIGINT, s STRUCT(x INTEGER), word VARCHAR, day DATE, at TIMESTAMPTZ"
    )
    for at in range(3):
        timestamp = datetime(2024, 1, at + 1, 12, tzinfo=UTC)
        table.append(
            [
                {"id": one, "s": {"x": one}, "word": f"w{one}", "day": timestamp.date(), "at": timestamp}
                for one in range(at * 100, at * 100 + 100)
            ]
        )
    return table


def test_files_that_cannot_match_are_not_planned(many: forklake.Table, url: str) -> None:
    """Spark filters the rows of a DataFrame itself; the option `where` is known when files are chosen."""

    def planned(where: str | None) -> int:
        given = {"lake": url, "catalog": "main_catalog", "table": "t"}
        options = SourceOptions.parse(given if where is None else {**given, "where": where})
        parts = BatchReader(options, shape_of(options)).partitions()
        return sum(len(part.piece.plan.files) for part in parts if isinstance(part, Rows))

    assert planned(None) == 3
    assert planned("id > 150") == 2
    assert planned("s.x > 250 AND word = 'w7'") == 0
    assert planned("id IN (1, 250)") == 2
    assert planned("NOT day < DATE '2024-01-03'") == 1
    assert planned("at < '2024-01-02 00:00:00+00'") == 1
    assert "pushFilters" not in vars(BatchReader)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"table": ""}, 'needs the option "table"'),
        ({"tabel": "t"}, "has no option 'tabel'"),
        ({"table": "nope"}, "nope"),
        ({"catalog": "nope"}, "nope"),
        ({"lake": "sqlite:////nowhere/at/all.db"}, "nowhere"),
        ({"lake": "postgresql://me:secret-word@127.0.0.1:1/x"}, "127.0.0.1"),
        ({"columns": "id, nope"}, "nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"at": "yesterday"}, "yesterday"),
        ({"at": "99999"}, "99999"),
    ],
)
def test_bad_options_are_refused_in_plain_words(
    read: Read, catalog: forklake.Catalog, options: dict[str, str], problem: str
) -> None:
    catalog.create_table("t", "id BIGINT")
    with pytest.raises(PySparkException) as caught:
        read(**{"table": "t", **options})
    assert problem in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_a_schema_of_ones_own_chooses_columns_and_never_others(
    spark: SparkSession, many: forklake.Table, url: str
) -> None:
    reader = spark.read.format("forklake").options(lake=url, catalog="main_catalog")
    assert reader.schema("word STRING, id BIGINT").load("t").where("id = 1").collect() == [("w1", 1)]
    with pytest.raises(PySparkException, match="in the table it is bigint"):
        reader.schema("id STRING").load("t").collect()


# ---- Writing ---


Write = Callable[..., None]


@pytest.fixture
def write(catalog: forklake.Catalog, url: str) -> Write:
    def save(df: DataFrame, mode: str = "append", table: str = "t", **options: Any) -> None:
        given = {"lake": url, "catalog": catalog.name, "table": table, **options}
        df.write.format("forklake").options(**given).mode(mode).save()

    return save


def test_a_frame_becomes_one_snapshot(write: Write, catalog: forklake.Catalog, spark: SparkSession) -> None:
    table = catalog.create_table("t", "id BIGINT NOT NULL, k INTEGER DEFAULT 5, u UUID, at TIMESTAMPTZ")
    table.append([{"id": 1}])
    before = catalog.snapshot
    df = spark.range(10, 30, 1, 3).selectExpr(
        "CAST(id AS INT) AS ID", "uuid() AS u", "TIMESTAMP'2024-01-01 00:00:00+00:00' AS at"
    )
    write(df)
    assert len([one for one in catalog.snapshots() if one.id > before]) == 1
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [1, *range(10, 30)]
    assert table.scan("k = 5 AND at = '2024-01-01 00:00:00+00'").count() == 20
    write(spark.range(3), mode="overwrite")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert table.scan(at=before).count() == 1
    write(spark.range(0), mode="overwrite")
    assert table.count() == 0


def test_what_fails_leaves_nothing(
    write: Write, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path, url: str
) -> None:
    catalog.create_table("t", "id UTINYINT NOT NULL")
    before = catalog.snapshot
    # The first tasks have written their files when the last one fails.
    with pytest.raises(PySparkException, match="300"):
        write(spark.range(0, 301, 1, 4).where("id < 100 OR id = 300"))
    for df, problem in (
        (spark.range(3).selectExpr("id AS nope"), "nope"),
        (spark.range(3).selectExpr("IF(id = 2, NULL, id) AS id"), "NOT NULL"),
    ):
        with pytest.raises(PySparkException, match=problem):
            write(df)
    with pytest.raises(PySparkException, match="for reading"):
        write(spark.range(3), where="id = 1")
    assert catalog.snapshot == before
    assert {one.state for one in catalog.reservations()} == {"cancelled"}
    # A task that was still at work when others had failed may leave a file; it goes with the reservation.
    with sqlite3.connect(tmp_path / "lake.db") as connection:
        connection.execute(
            "UPDATE ducklake_snapshot_reservation SET expires_at = '2020-01-01 00:00:00.000000+00:00'"
        )
    connection.close()
    with forklake.connect(url) as lake:
        lake.expire_reservations()
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


def test_a_task_that_is_done_twice_adds_nothing_twice(catalog: forklake.Catalog, url: str) -> None:
    table = catalog.create_table("t", "id BIGINT")
    options = SourceOptions.parse({"lake": url, "catalog": catalog.name, "table": "t"})
    writer = BatchWriter(options, StructType([StructField("id", LongType())]), overwrite=False)
    batch = pa.record_batch({"id": list(range(50))})
    writer.commit([writer.write(iter([batch])), writer.write(iter([batch]))])
    assert table.count() == 50


def test_passwords_do_not_show_in_plans(read: Read, catalog: forklake.Catalog, tmp_path: Path) -> None:
    catalog.create_table("t", "id BIGINT").append([{"id": 1}])
    df = read(data_path=tmp_path / "files").where("id = 1")
    shown = df._jdf.queryExecution().toString()
    assert "id" in shown and "lake.db" not in shown and str(tmp_path) not in shown
