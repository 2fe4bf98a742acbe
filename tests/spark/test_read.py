"""Reading tables with Spark: what is shown, what is opened, and what Parquet is told."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import forklake
from forklake.errors import ColumnNotFound, FileMissing, InvalidArgument, InvalidPredicate, TableNotFound
from forklake.spark import SparkCatalog
from forklake.spark import deleted_rows as deletions
from forklake.spark.features import HAS_TIME
from tests.old_files import make_deletes_old
from tests.spark.compare import same_rows


def plan_of(df: DataFrame) -> str:
    return df._jdf.queryExecution().explainString(
        df.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )


def scanned(df: DataFrame) -> int:
    """How many rows the files handed over; those that Parquet passed over are not among them."""
    df._jdf.collect()
    rows = 0
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        if leaf.nodeName().startswith("Scan parquet"):
            rows += leaf.metrics().apply("numOutputRows").value()
    return rows


def numbers(count: int, first: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + count), "other": [f"n{at % 7}" for at in range(count)]})


@pytest.fixture
def numbered(catalog: forklake.Catalog) -> forklake.Table:
    """A file of ten row groups whose ids rise."""
    table = catalog.create_table("t", "id BIGINT, other VARCHAR, f DOUBLE")
    table.set_option("parquet_row_group_size", 1000)
    table.append(numbers(10_000))
    return table


@pytest.fixture
def steady_plans(spark: SparkSession) -> Iterator[None]:
    """Plans that change while they run do not tell what they did."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


def test_only_the_files_that_may_match_are_opened(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    for at in range(5):
        table.append(numbers(10, at * 10))
    df = on_spark.read("t", "id BETWEEN 12 AND 13")
    assert len(df.inputFiles()) == 1
    assert sorted(row.id for row in df.collect()) == [12, 13]
    assert len(on_spark.read("t").inputFiles()) == 5


def test_parquet_passes_over_row_groups_and_columns(on_spark: SparkCatalog, numbered: forklake.Table) -> None:
    df = on_spark.read("t").where("id < 500").select("other")
    plan = plan_of(df)
    assert "ReadSchema: struct<id:bigint,other:string>" in plan
    assert "LessThan(id,500)" in plan
    assert scanned(df) == 1000
    only = on_spark.read("t", columns=["other"])
    assert "ReadSchema: struct<other:string>" in plan_of(only)


def test_parquet_passes_over_row_groups_for_a_condition_of_ours(
    on_spark: SparkCatalog, numbered: forklake.Table
) -> None:
    df = on_spark.read("t", "id = 4321 AND other LIKE '%n%'", columns=["other"])
    assert scanned(df) == 1000
    assert df.count() == 1


def test_row_groups_are_passed_over_where_rows_are_gone(
    on_spark: SparkCatalog, numbered: forklake.Table, steady_plans: None
) -> None:
    numbered.delete("id % 3 = 0")
    df = on_spark.read("t").where("id < 500").select("id")
    assert sorted(row.id for row in df.collect()) == [at for at in range(500) if at % 3]
    assert scanned(df) == 1000


def test_files_that_are_whole_are_not_joined(on_spark: SparkCatalog, numbered: forklake.Table) -> None:
    assert "Join" not in plan_of(on_spark.read("t", "id < 5"))


def test_names_that_changed_hands_do_not_mislead_parquet(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    """Spark gives filters to Parquet by name, and would look at the wrong column."""
    table = catalog.create_table("t", "a BIGINT, b BIGINT, s STRUCT(x INTEGER, y INTEGER)")
    table.append(
        pa.table({"a": range(100), "b": range(1000, 1100), "s": [{"x": at, "y": -at} for at in range(100)]})
    )
    table.rename_column("a", "old")
    table.rename_column("b", "a")
    table.rename_column("s.x", "z")
    table.rename_column("s.y", "x")
    assert on_spark.read("t").where("a >= 1050").count() == 50
    assert on_spark.read("t").where("s.x <= -50").count() == 50
    assert same_rows(on_spark, table, "a >= 1050 AND s.x < -60") == 39
    table.drop_column("old")
    table.add_column("old", "BIGINT", default=7)
    assert on_spark.read("t").where("old = 7").count() == 100


def test_names_that_only_a_file_knows_do_not_mislead_parquet(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    with catalog.transaction() as changes:
        mine = changes.create_table("t", "a BIGINT")
        mine.append(pa.table({"a": range(100)}))
        mine.rename_column("a", "b")
    catalog.table("t").add_column("a", "BIGINT", default=1000)
    assert on_spark.read("t").where("a = 1000 AND b >= 50").count() == 50


def test_nan_is_found_though_bounds_do_not_tell_of_it(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("t", "f DOUBLE, s STRUCT(f FLOAT)")
    values = [float(at) for at in range(50)] + [float("nan")]
    table.append(pa.table({"f": values, "s": [{"f": value} for value in values]}))
    assert on_spark.read("t").where("f > 1000").count() == 1
    assert on_spark.read("t").where("s.f > 1000").count() == 1
    assert same_rows(on_spark, table, "f > 48") == 2
    assert same_rows(on_spark, table, "f = 'nan'") == 1


def test_columns_that_files_lack_have_their_first_default(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("t", "id BIGINT")
    table.append([{"id": at} for at in range(5)])
    defaults = {
        "b": ("BOOLEAN", "true"),
        "i": ("TINYINT", "-3"),
        "u": ("UBIGINT", "18446744073709551615"),
        "h": ("HUGEINT", "12"),
        "d": ("DECIMAL(10, 2)", "1.50"),
        "f": ("FLOAT", "'nan'"),
        "g": ("DOUBLE", "0.1"),
        "t": ("VARCHAR", "'it''s \\ ä'"),
        "bl": ("BLOB", "'\\x00a'"),
        "uu": ("UUID", f"'{'a' * 8}-bbbb-cccc-dddd-{'e' * 12}'"),
        "da": ("DATE", "DATE '2024-02-29'"),
        "ti": ("TIME", "TIME '01:02:03.4'"),
        "ts": ("TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.5'"),
        "tz": ("TIMESTAMPTZ", "'2024-01-01 00:00:00+02'"),
        "ns": ("TIMESTAMP_NS", "'1969-12-31 23:59:59.999999999'"),
        "iv": ("INTERVAL", "'1 year 2 days'"),
        "tt": ("TIMETZ", "'01:02:03+02'"),
        "j": ("JSON", "'{\"a\": 1}'"),
    }
    if not HAS_TIME:
        del defaults["ti"], defaults["tt"]
    for name, (type, default) in defaults.items():
        table.add_column(name, type, default=default)
    table.append([{"id": at} for at in range(10, 13)])
    table.append([{"id": at, **dict.fromkeys(defaults)} for at in range(20, 23)])
    assert same_rows(on_spark, table) == 11
    assert same_rows(on_spark, table, "i = -3 AND uu IS NOT NULL AND ns < TIMESTAMP_NS '1970-01-01'") == 8


def test_a_transaction_reads_what_it_has_written(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    catalog.create_table("t", "a BIGINT, b BIGINT").append([{"a": at, "b": -at} for at in range(10)])
    with catalog.transaction() as tx:
        table = tx.table("t")
        table.append([{"a": at, "b": -at} for at in range(10, 20)])
        table.delete("a % 2 = 0")
        table.rename_column("a", "c")
        inside = SparkCatalog(on_spark.spark, tx)
        assert same_rows(inside, table, "c > 3") == 8
        assert inside.read("t").where("c > 3").count() == 8
        tx.rollback()
    assert on_spark.read("t").count() == 10


def test_columns_that_were_promoted_are_read_whatever_type_files_have(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    columns = {"f": ("TINYINT", "FLOAT"), "s": ("UTINYINT", "SMALLINT"), "u": ("UINTEGER", "UBIGINT"),
               "t": ("TIMESTAMP", "TIMESTAMPTZ"), "d": ("DATE", "TIMESTAMPTZ")}  # fmt: skip
    old = ["-7, 200, 4000000000, TIMESTAMP '2025-01-15 12:30:45', DATE '2025-01-15'"] * 3
    listed = ", ".join(f"{name} {before}" for name, (before, _) in columns.items())
    catalog.sql(f"CREATE TABLE t ({listed})")
    catalog.sql(f"INSERT INTO t VALUES ({'), ('.join(old)})")
    catalog.sql(f"INSERT INTO t VALUES ({old[0]})")
    for name, (_, after) in columns.items():
        catalog.sql(f"ALTER TABLE t ALTER {name} SET DATA TYPE {after}")
    new = "0.5, -1, 18446744073709551615, '2025-01-15 12:30:45+02', '2025-01-15 00:00:00+00'"
    catalog.sql(f"INSERT INTO t VALUES ({'), ('.join([new] * 3)})")
    table = catalog.table("t")
    assert same_rows(on_spark, table) == 7
    assert same_rows(on_spark, table, "f = -7 AND u = 4000000000") == 4
    on_spark.update("t", {"s": "s + 1"}, "t = '2025-01-15 12:30:45+00'")
    assert catalog.sql("SELECT s, count(*) FROM t GROUP BY s ORDER BY s").to_rows() == [(-1, 3), (201, 4)]
    assert same_rows(on_spark, table) == 7
    with catalog.transaction() as tx:
        made = tx.create_table("n", "v TIMESTAMP")
        made.append([{"v": datetime(2025, 1, 15, 12, 30, 45)}] * 5)
        tx.table("n").alter_type("v", "TIMESTAMPTZ")
        assert same_rows(SparkCatalog(on_spark.spark, tx), tx.table("n")) == 5


def test_a_fork_reads_what_it_inherited_and_what_it_did(on_spark: SparkCatalog, tmp_path: Path) -> None:
    catalog = on_spark.catalog
    assert isinstance(catalog, forklake.Catalog)
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(100))
    table.delete("id < 10")
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db") as lake:
        fork = lake.fork("main_catalog", "fork")
        fork.table("t").delete("id = 50")
        fork.table("t").append(numbers(10, 1000))
        table.delete("id > 90")
        assert same_rows(SparkCatalog(on_spark.spark, fork), fork.table("t")) == 99
    assert same_rows(on_spark, table) == 81


def test_the_past_is_read_by_snapshot_and_by_time(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(10))
    then = catalog.snapshot
    table.rename_column("other", "name")
    table.delete("id < 5")
    assert on_spark.read("t", at=then).columns == ["id", "other"]
    assert on_spark.read("t", at=then).count() == 10
    assert on_spark.read("t", at=datetime.now().astimezone()).count() == 5
    assert SparkCatalog(on_spark.spark, catalog.at(then)).read("t").count() == 10


def test_ids_of_rows_survive_an_update_and_a_flush(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(10))
    table.append(numbers(2, 10))
    table.append(numbers(1, 12))
    table.update({"other": "'new'"}, "id IN (3, 4, 5, 11)")
    assert same_rows(on_spark, table) == 13
    catalog.flush_inlined()
    assert same_rows(on_spark, table) == 13
    with pytest.raises(InvalidArgument, match="row_id"):
        table.rename_column("other", "row_id")
        on_spark.read("t", row_ids=True)


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("joined", [False, True], ids=["bits", "joined"])
def test_positions_are_told_apart_by_their_files(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    monkeypatch: pytest.MonkeyPatch,
    crowded: bool,
    joined: bool,
) -> None:
    if joined:
        monkeypatch.setattr("forklake.spark.deleted_rows._MOST_FILES", 0)
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    for at in range(4):
        table.append(numbers(100, at * 100))
    table.delete("id % 100 < 60" if crowded else "id IN (5, 107, 209, 210)")
    table.delete("id = 399")
    assert ("Join" in plan_of(on_spark.read("t"))) == joined
    assert same_rows(on_spark, table) == (159 if crowded else 395)
    assert same_rows(on_spark, table, "id > 150") > 0


@settings(max_examples=200)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60, unique=True))
def test_files_are_found_at_one_of_two_places(keys: list[int]) -> None:
    for bits in range(len(keys).bit_length() + 1, 64):
        found = deletions._two_places_each(keys, bits)
        if found is not None:
            break
    assert found is not None and sorted(found.values()) == list(range(len(keys)))
    for place, number in found.items():
        assert place in {(keys[number] >> shift) & ((1 << bits) - 1) for shift in (0, bits)}


def test_a_file_that_is_another_one_is_refused_where_rows_are_gone(
    on_spark: SparkCatalog, catalog: forklake.Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(100))
    table.append(numbers(50))
    table.delete("id IN (3, 4)")
    path = next((tmp_path / "files").rglob("*.parquet"))
    pq.write_table(numbers(90), path)
    with pytest.raises(PySparkException, match="is not the one that was written"):
        on_spark.read("t").count()


def test_deleted_positions_are_sent_once(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    for _ in range(3):
        table.append(numbers(100))
    table.delete("id IN (3, 4)")
    df = on_spark.read("t", "id > 50")
    assert df.count() == 3 * 49
    plan = plan_of(df)
    assert len(set(re.findall(r"Subquery subquery#\d+", plan))) == 1
    assert "GreaterThan(id,50)" in plan


def test_a_session_that_passes_over_bad_files_loses_no_row_of_ours(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(100))
    table.append(numbers(50))
    setting = "spark.sql.files.ignoreCorruptFiles"
    spark.conf.set(setting, "true")
    df = on_spark.read("t")
    path = next((tmp_path / "files").rglob("*.parquet"))
    path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")
    try:
        with pytest.raises((PySparkException, Py4JError), match="FAILED_READ_FILE"):
            df.collect()
    finally:
        spark.conf.unset(setting)


def test_a_small_table_is_broadcast_as_its_files_would_be(
    on_spark: SparkCatalog, catalog: forklake.Catalog, spark: SparkSession
) -> None:
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.append(numbers(1000))
    plain = spark.read.parquet(table._scope.context.storage.address(table.files()[0].path))
    table.append(numbers(100, 1000))
    table.append(numbers(1, 1100))
    table.delete("id % 100 = 7")
    large = spark.range(10**8)
    for small in (plain, on_spark.read("t"), on_spark.read("t", "id < 50")):
        for joined in (large.join(small, "id"), small.join(large, "id")):
            assert "BroadcastHashJoin" in plan_of(joined) and "SortMergeJoin" not in plan_of(joined)


def test_many_delete_files_are_read_by_spark(
    on_spark: SparkCatalog, catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forklake.spark.deleted_rows._FEW_DELETE_FILES", 1)
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.set_option("data_inlining_row_limit", 0)
    for at in range(3):
        table.append(numbers(100, at * 100))
    table.delete("id % 10 = 3")
    table.set_option("data_inlining_row_limit", 100)
    table.delete("id = 50")
    assert same_rows(on_spark, table) == 269


@pytest.mark.parametrize("few", [1, 1024], ids=["by spark", "here"])
def test_delete_files_of_earlier_versions_are_read(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
) -> None:
    monkeypatch.setattr("forklake.spark.deleted_rows._FEW_DELETE_FILES", few)
    table = catalog.create_table("t", "id BIGINT, other VARCHAR")
    table.set_option("data_inlining_row_limit", 4)
    for at in range(3):
        table.append(numbers(100, at * 100))
        table.delete(f"id IN ({at * 100 + 1}, {at * 100 + 2})")
    table.delete("id % 10 = 3")
    table.delete("id = 50")
    with closing(sqlite3.connect(tmp_path / "lake.db")) as connection:
        make_deletes_old(lambda sql: list(connection.execute(sql)), tmp_path / "files")
        connection.commit()
    assert same_rows(on_spark, table) == 300 - 6 - 30 - 1


def test_partitioned_and_odd_paths_are_found(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    table = catalog.create_table(("main", "t"), "p VARCHAR, n BIGINT")
    table.set_partitioning(["p"])
    odd = ["a b", "ä/ö", "50%", "[x]*?", "{a,b}", "c:d", "e\\f", "g'h\"", "i=j&k+l#m;n@o!", "~", None, "__x"]
    table.append(pa.table({"p": [value for value in odd for _ in range(4)], "n": range(4 * len(odd))}))
    table.delete("n % 4 = 1")
    assert same_rows(on_spark, table) == 3 * len(odd)
    for value in odd[:-2]:
        text = value.replace("'", "''")
        assert same_rows(on_spark, table, f"p = '{text}'") == 3


def test_a_column_may_be_called_as_spark_calls_its_own(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table(
        "t",
        '_metadata BIGINT, "a.b" BIGINT, "c`d" STRUCT("e.f" UUID), forklake_path INTEGER, '
        "_tmp_metadata_row_index BIGINT",
    )
    table.append([{"_metadata": at, "a.b": at, "c`d": {"e.f": None}, "forklake_path": at} for at in range(5)])
    table.delete("_metadata = 3")
    assert same_rows(on_spark, table, '"a.b" > 0 AND _metadata < 10') == 3
    assert same_rows(on_spark, table, "_tmp_metadata_row_index IS NULL") == 4


def test_mistakes_are_named_before_spark_begins(on_spark: SparkCatalog, numbered: forklake.Table) -> None:
    with pytest.raises(TableNotFound):
        on_spark.read("nothing")
    with pytest.raises(ColumnNotFound):
        on_spark.read("t", columns=["nothing"])
    with pytest.raises(InvalidPredicate, match="cannot be given to Spark because of"):
        on_spark.read("t", "regexp_matches(other, 'a+')")
    (path,) = [file.path for file in numbered.files()]
    Path(numbered._scope.context.storage.address(path)).unlink()
    with pytest.raises(FileMissing):
        SparkCatalog(on_spark.spark, on_spark.catalog).read("t").count()


def test_files_in_a_bucket_are_read_without_hadoop_aws(
    spark: SparkSession, s3_url: str, tmp_path: Path
) -> None:
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db", data_path=s3_url, create=True) as lake:
        lake.set_option("data_inlining_row_limit", 2)
        table = lake.create_catalog("c").create_table(
            "t", "id BIGINT, other VARCHAR, uu UUID, ns TIMESTAMP_NS"
        )
        table.append(numbers(20))
        table.append(numbers(2, 20))
        table.delete("id % 4 = 0")
        table.add_column("late", "INTEGER", default=5)
        assert same_rows(SparkCatalog(spark, lake.catalog("c")), table, "id > 3 AND late = 5") == 13
