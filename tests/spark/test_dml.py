"""Changing rows with Spark: what is one snapshot, what counts once if done twice, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import forklake
from forklake.api.scoped import scope_of
from forklake.distributed.coordinator import Coordinator
from forklake.errors import (
    ColumnNotFound,
    CommitConflict,
    EngineError,
    ForklakeError,
    InvalidArgument,
    InvalidData,
    InvalidPredicate,
    TableNotFound,
)
from forklake.index import coverage
from forklake.spark import SparkCatalog, checkpoint, dml
from forklake.spark import commit as publish
from tests.index_checks import check_entries, uncovered_files
from tests.spark.compare import same_feed, same_rows


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.parquet") if path.is_file()}


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    """A hundred rows in two files, and two that are inlined."""
    table = catalog.create_table("t", "id BIGINT, n INTEGER, s VARCHAR")
    for start in (0, 50):
        table.append([{"id": i, "n": i % 7, "s": f"s{i}"} for i in range(start, start + 50)])
    table.append([{"id": 100, "n": 0, "s": "in"}, {"id": 101, "n": 1, "s": "in"}])
    return table


def df(spark: SparkSession, *numbers: int) -> DataFrame:
    rows = pa.table({"id": pa.array(numbers, pa.int64()), "n": pa.array([-1] * len(numbers), pa.int32())})
    return spark.createDataFrame(rows).selectExpr("id", "n", "'new' AS s")


# ---- One snapshot ---


VERBS: dict[str, Callable[[SparkCatalog, SparkSession], Any]] = {
    "append": lambda seen, spark: seen.append(df(spark, 1, 2), "t"),
    "overwrite": lambda seen, spark: seen.overwrite(df(spark, 1, 2), "t"),
    "overwrite some": lambda seen, spark: seen.overwrite(df(spark, 1, 2), "t", "id < 60 OR id > 99"),
    "delete": lambda seen, spark: seen.delete("t", "n = 1"),
    "delete all": lambda seen, spark: seen.delete("t"),
    "update": lambda seen, spark: seen.update("t", {"n": "n + len(s)", "s": "s || '!'"}, "id % 3 = 0"),
    "merge": lambda seen, spark: seen.merge(df(spark, 3, 100, 200, 201), "t", "id"),
    "merge away": lambda seen, spark: seen.merge(
        df(spark, 3, 3, 100, 200), "t", ["id"], when_matched="delete", when_not_matched="ignore"
    ),
    "merge values": lambda seen, spark: seen.merge(
        df(spark, 3, 101, 200).withColumnRenamed("n", "more"),
        "t",
        "id",
        when_matched={"n": "target.n * 10 + source.more"},
        when_not_matched={"id": "source.id", "s": "'was ' || source.s"},
    ),
    "merge what is new": lambda seen, spark: seen.merge(df(spark, 3, 200), "t", "id", when_matched="ignore"),
}


class Local:
    """The verbs of a Spark catalog, done by the local engine."""

    def __init__(self, catalog: forklake.Catalog) -> None:
        self.catalog = catalog

    def __getattr__(self, verb: str) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            first, *rest = arguments
            if isinstance(first, DataFrame):
                return getattr(self.catalog.table(rest[0]), verb)(first.toArrow(), *rest[1:], **options)
            return getattr(self.catalog.table(first), verb)(*rest, **options)

        return run


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_one_snapshot_and_does_what_it_does_locally(
    verb: str, spark: SparkSession, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    start = catalog.snapshot
    seen = SparkCatalog(spark, catalog)
    twin = forklake.connect(_url(catalog)).fork(catalog.name, "twin")
    answer = VERBS[verb](Local(twin), spark)  # type: ignore[arg-type]
    assert VERBS[verb](seen, spark) == answer
    assert len([snapshot for snapshot in catalog.snapshots() if snapshot.id > start]) == 1
    assert _rows(table) == _rows(twin.table("t"))
    known = {row["row_id"]: row for row in twin.table("t").scan(row_ids=True).to_pylist()}
    for row in table.scan("id < 200", row_ids=True).to_pylist():
        if row["s"] != "new" or verb.startswith("merge"):
            assert known[row["row_id"]] == row
    assert same_rows(seen, table) == table.count()
    assert same_feed(seen, table, start) == twin.table("t").changes(start).count()


def _url(catalog: forklake.Catalog) -> str:
    return f"sqlite:///{Path(scope_of(catalog).context.storage.data_path).parent}/lake.db"


def _rows(table: forklake.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_pylist())


def test_a_change_that_finds_no_row_makes_no_snapshot(
    on_spark: SparkCatalog, catalog: forklake.Catalog, table: forklake.Table, spark: SparkSession
) -> None:
    before = catalog.snapshot
    assert on_spark.delete("t", "id > 1000") == 0
    assert on_spark.update("t", {"n": "1"}, "id > 1000") == 0
    assert on_spark.append(df(spark), "t") == 0
    ignored = on_spark.merge(df(spark, 1, 500), "t", "id", when_matched="ignore", when_not_matched="ignore")
    assert ignored == forklake.RowsMerged()
    assert catalog.snapshot == before


def test_several_tables_change_in_one_snapshot(
    spark: SparkSession, catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path
) -> None:
    before, known = catalog.snapshot, files_in(tmp_path)
    with catalog.transaction() as tx:
        inside = SparkCatalog(spark, tx)
        inside.create_table("u", df(spark).schema)
        inside.append(df(spark, *range(10)), "u")
        inside.delete("u", "id < 2")
        inside.update("u", {"id": "id + 100"}, "id < 4")
        tx.table("u").append([{"id": 50, "n": 1, "s": "buffered"}])
        assert inside.merge(df(spark, 5, 50, 60), "u", "id") == forklake.RowsMerged(2, 0, 1)
        inside.delete("t", "id < 20 OR id = 100")
        inside.update("t", {"n": "n + 1000"}, "id < 25 OR id = 101")
        inside.overwrite(df(spark, 7), "t", "id = 30")
        assert inside.read("t", "n >= 1000").count() == 6
        assert {row.id for row in inside.read("u").collect()} == {*range(4, 10), 102, 103, 50, 60}
        inside.compact("t")
        assert catalog.snapshot == before
    assert tx.snapshot == catalog.snapshot != before
    assert catalog.table("u").count() == 10 and table.count() == 81
    assert same_rows(SparkCatalog(spark, catalog), table) == 81
    known |= files_in(tmp_path)
    with pytest.raises(ZeroDivisionError), catalog.transaction() as tx:
        SparkCatalog(spark, tx).overwrite(df(spark, *range(30)), "t")
        SparkCatalog(spark, tx).compact("u")
        _ = 1 / 0
    assert files_in(tmp_path) == known
    assert table.count() == 81


def test_one_transaction_overwrites_what_it_wrote(spark: SparkSession, catalog: forklake.Catalog) -> None:
    catalog.create_table("t", "id BIGINT, n INTEGER, s VARCHAR")
    with catalog.transaction() as tx:
        inside = SparkCatalog(spark, tx)
        inside.append(df(spark, 1, 2, 3), "t")
        assert inside.overwrite(df(spark, 4), "t") == 1
        assert [row.id for row in inside.read("t").collect()] == [4]
    assert catalog.table("t").scan(columns=["id"]).to_pylist() == [{"id": 4}]


# ---- Indexes and compaction ---


def test_indexes_are_built_and_merged_on_spark(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    table: forklake.Table,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table.create_index("i", kind="hash", columns=["id"], include=["s"])
    assert uncovered_files(table, "i") == 0
    on_spark.append(df(on_spark.spark, 7, 200, 201), "t")
    # What workers wrote, nobody else has read.
    files = uncovered_files(table, "i")
    assert on_spark.build_indexes(dry_run=True).files == files > 0
    monkeypatch.setattr(coverage, "FAN_IN", 2)
    (built,) = on_spark.build_indexes("t", ["i"]).indexes
    assert (built.files, built.segments, built.merged) == (files, 2, 2)
    assert uncovered_files(table, "i") == 0
    check_entries(table, "i", "id", "s")
    assert on_spark.build_indexes().indexes == ()


def test_compaction_on_spark_changes_no_row(
    on_spark: SparkCatalog, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    start = catalog.snapshot
    before = table.scan(row_ids=True).to_arrow().sort_by("row_id")
    assert on_spark.compact("t", dry_run=True).files_in == 3
    done = on_spark.compact()
    assert (done.files_in, done.files_out, done.rows) == (3, 1, 102)
    assert table.scan(row_ids=True).to_arrow().sort_by("row_id") == before
    assert table.changes(start).count() == same_feed(on_spark, table, start) == 0
    assert on_spark.delete("t", "id < 60") == 60
    assert on_spark.rewrite_deletes(0.9).files_in == 0
    assert on_spark.rewrite_deletes(0.5, "t").rows == 42
    assert on_spark.compact("t").tables == ()
    with pytest.raises(InvalidArgument, match="min_files"):
        on_spark.compact("t", min_files=0)


def test_a_checkpoint_rewrites_files_on_spark(
    spark: SparkSession, on_spark: SparkCatalog, url: str, table: forklake.Table
) -> None:
    lake = forklake.connect(url)
    before = table.scan(row_ids=True).to_arrow().sort_by("row_id")
    assert on_spark.checkpoint(dry_run=True).compact[0].rewritten.files_in == 3
    done = checkpoint(spark, lake)
    assert done.succeeded and done.collect is not None
    assert [one.rewritten.files_out for one in done.compact] == [1]
    assert table.scan(row_ids=True).to_arrow().sort_by("row_id") == before
    table.delete("id < 60")
    lake.set_option("rewrite_delete_threshold", 0.5)
    assert [one.rewritten.rows for one in on_spark.checkpoint().rewrite] == [42]
    with pytest.raises(InvalidArgument, match="a lake is needed"):
        checkpoint(spark, "lake")  # type: ignore[arg-type]
    with on_spark.catalog.transaction() as tx, pytest.raises(InvalidArgument, match="transaction"):
        SparkCatalog(spark, tx).checkpoint()


def test_a_compaction_that_fails_leaves_no_file_behind(
    on_spark: SparkCatalog, catalog: forklake.Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("t", "p BIGINT, n BIGINT", partition_by=["p"])
    for _ in range(2):
        table.append([{"p": at % 2, "n": at} for at in range(40)])
    before = files_in(tmp_path)
    broken = next(path for path in before if "p=1" in str(path))
    broken.write_bytes(b"PAR1" + bytes(broken.stat().st_size - 8) + b"PAR1")
    with pytest.raises(ForklakeError):
        on_spark.compact("t")
    assert files_in(tmp_path) == before


def test_rows_that_a_transaction_has_moved_are_changed_in_it(
    spark: SparkSession, catalog: forklake.Catalog
) -> None:
    table = catalog.create_table("moved", "id BIGINT, n INTEGER")
    for start in (0, 200):
        table.append([{"id": start + at, "n": 0} for at in range(150)])
    with catalog.transaction() as changes:
        seen = SparkCatalog(spark, changes)
        changes.table("moved").append([{"id": 1000, "n": 0}])
        seen.compact("moved")
        assert seen.update("moved", {"n": "1"}, "id % 2 = 0") == 151
        assert seen.delete("moved", "id < 10") == 10
    assert table.count() == 291
    assert table.scan("n = 1").count() == 146
    assert same_rows(SparkCatalog(spark, catalog), table) == 291


# ---- Work that is done twice ---


@pytest.mark.timeout(300)
def test_executors_that_are_killed_and_tasks_that_fail_add_no_row_twice(
    catalog: forklake.Catalog, table: forklake.Table, tmp_path: Path
) -> None:
    """On a cluster of two: one executor is killed in the midst of a write, then each task fails once."""
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(_CLUSTER))
    done = subprocess.run(
        [sys.executable, str(script), _url(catalog), str(tmp_path / "killed")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["200", "10", "8", "4", "1"]
    assert (tmp_path / "killed").exists(), "no executor was killed"
    assert table.count() == 102 + 200 - 10 + 1
    assert table.scan("n = -5").count() == 8
    added = [row["id"] for row in table.scan("id >= 1000").to_pylist()]
    assert sorted(added) == list(range(1000, 1200))
    # What lost attempts wrote is in nobody's way, and can be told from the rest.
    assert len(files_in(tmp_path / "files")) > len([file for file in table.files() if file.path])
    assert {info.state for info in catalog.reservations()} == {"committed"}


_CLUSTER = """
import os, signal, sys
from pathlib import Path
import forklake
from forklake.spark import upsert as merge
from forklake.spark import SparkCatalog, jobs, session, write

url, marker = sys.argv[1], sys.argv[2]


def killing(batches):
    from pyspark import TaskContext
    yield from batches
    if TaskContext.get().partitionId() == 1:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        # The parent of a worker is a daemon, and its parent the executor.
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        os.kill(int(status.split("PPid:")[1].split()[0]), signal.SIGKILL)


def through(DataFrame, work, *more):
    def failing(batches):
        from pyspark import TaskContext
        found = list(work(batches))
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost, though it was done")
        yield from found
    return real(DataFrame, failing, *more)


spark = session("local-cluster[2,1,1024]", conf={
    "spark.ui.enabled": "false", "spark.driver.memory": "512m", "spark.executor.memory": "512m",
    "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
})
catalog = forklake.connect(url).catalog("main_catalog")
catalog.table("t").set_partitioning(["n"])
seen = SparkCatalog(spark, catalog)
rows = spark.range(1000, 1200, 1, 4).selectExpr("id", "CAST(id % 2 AS INT) AS n", "'k' AS s")
print(seen.append(rows.mapInArrow(killing, rows.schema), "t"))
real = jobs.through
jobs.through = write.through = merge.through = through
print(seen.delete("t", "id < 10"))
print(seen.update("t", {"n": "-5"}, "id BETWEEN 10 AND 17"))
keys = spark.range(96, 101, 1, 2).selectExpr("IF(id = 100, 104, id) AS id", "9 AS n", "'m' AS s")
merged = seen.merge(keys, "t", "id")
print(merged.updated, merged.inserted)
spark.stop()
"""


def test_pieces_that_are_done_twice_count_once(
    on_spark: SparkCatalog, table: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with speculation, where both attempts come to an end and both report."""
    real = dml.each

    def twice(spark: SparkSession, pieces: list[Any], work: Any) -> list[Any]:
        doubled = [piece for piece in pieces for _ in range(2)]
        found = real(spark, doubled, work)
        parts = {forklake.distributed.Manifest.from_json(one.manifest).part for one in found}
        assert len(found) == 2 * len(pieces) and len(parts) == len(pieces)
        return found

    monkeypatch.setattr(dml, "each", twice)
    on_spark.update("t", {"n": "n + 100"}, "id < 60")
    monkeypatch.undo()
    assert table.count() == 102
    assert table.scan("n >= 100").count() == 60
    assert same_rows(on_spark, table) == 102


# ---- Others at work ---


def test_a_change_is_made_again_if_somebody_was_faster(
    on_spark: SparkCatalog, table: forklake.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = dml.each, list[int]()

    def interrupted(*arguments: Any) -> list[Any]:
        found = real(*arguments)
        if not times:
            table.delete("id = 3")
        times.append(1)
        return found

    monkeypatch.setattr(dml, "each", interrupted)
    assert on_spark.delete("t", "id < 10") == 9
    assert len(times) == 2 and table.count() == 92

    def always(*arguments: Any) -> list[Any]:
        found = real(*arguments)
        table.update({"n": "n + 1"}, "id = 20")
        times.append(1)
        return found

    monkeypatch.setattr(dml, "each", always)
    times.clear()
    with pytest.raises(CommitConflict):
        on_spark.delete("t", "id < 30")
    assert len(times) == publish.ATTEMPTS and table.count() == 92


def test_two_merges_of_one_new_key_insert_it_once(
    on_spark: SparkCatalog, table: forklake.Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []
    commit = Coordinator.commit

    def late(self: Coordinator, *arguments: Any, **options: Any) -> Any:
        if not times:
            times.append(1)
            table.merge([{"id": 777, "n": 1, "s": "theirs"}], "id")
        return commit(self, *arguments, **options)

    monkeypatch.setattr(Coordinator, "commit", late)
    assert on_spark.merge(df(spark, 777), "t", "id") == forklake.RowsMerged(1, 0, 0)
    assert table.scan("id = 777").to_pylist() == [{"id": 777, "n": -1, "s": "new"}]


# ---- What is refused ---


def refused(spark: SparkSession) -> Iterator[tuple[type[ForklakeError], str, Callable[[SparkCatalog], Any]]]:
    rows = df(spark, 1, 2)
    yield TableNotFound, "nope", lambda seen: seen.append(rows, "nope")
    yield TableNotFound, "nope", lambda seen: seen.delete("nope", "id = 1")
    yield InvalidData, "other", lambda seen: seen.overwrite(rows.withColumnRenamed("n", "other"), "t")
    yield InvalidData, '"n"', lambda seen: seen.append(rows.withColumn("n", F.lit("x")), "t")
    yield InvalidPredicate, "nope", lambda seen: seen.delete("t", "nope = 1")
    yield InvalidPredicate, "no condition", lambda seen: seen.update("t", {"n": "1"}, "id + 1")
    yield InvalidPredicate, '"n"', lambda seen: seen.update("t", {"n": "nope(1)"})
    yield InvalidPredicate, '"n"', lambda seen: seen.update("t", {"n": "CAST(s AS INTEGER)"}, "id > 50")
    yield InvalidArgument, "names columns", lambda seen: seen.update("t", {})
    yield InvalidData, "make its keys unique", lambda seen: seen.merge(df(spark, 1, 2, 1), "t", "id")
    yield ColumnNotFound, '"s"', lambda seen: seen.merge(rows.drop("s"), "t", "s")
    yield InvalidData, "extra", lambda seen: seen.merge(rows.withColumn("extra", F.lit(1)), "t", "id")
    yield InvalidArgument, "when_matched", lambda seen: seen.merge(rows, "t", "id", when_matched="upsert")
    yield (
        InvalidData,
        '"id"',
        lambda seen: seen.merge(rows.withColumn("id", F.expr("double(id) + 0.5")), "t", "id"),
    )
    yield InvalidArgument, "Spark DataFrame", lambda seen: seen.append("t", rows)  # type: ignore[arg-type]
    yield (
        InvalidData,
        "CAST_INVALID_INPUT",
        lambda seen: seen.append(rows.withColumn("n", F.expr("CAST(s AS INT)")), "t"),
    )


def test_bad_input_is_refused_and_leaves_nothing_behind(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    table: forklake.Table,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    before, files = catalog.snapshot, files_in(tmp_path)
    for kind, words, change in refused(spark):
        with pytest.raises(kind, match=words):
            change(on_spark)
        if kind in (InvalidPredicate, InvalidArgument):
            with catalog.transaction() as tx, pytest.raises(kind, match=words):
                change(SparkCatalog(spark, tx))
    assert catalog.snapshot == before
    assert files_in(tmp_path) == files
    assert {info.state for info in catalog.reservations()} <= {"cancelled"}
    with pytest.raises(InvalidArgument, match="past"):
        SparkCatalog(spark, catalog.at(before)).append(df(spark, 1), "t")


def test_a_worker_that_dies_changes_nothing(
    on_spark: SparkCatalog,
    catalog: forklake.Catalog,
    table: forklake.Table,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    before, files = catalog.snapshot, files_in(tmp_path)

    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is not None and context.partitionId():
            os._exit(1)
        yield from batches

    dying = spark.range(0, 10, 1, 2).mapInArrow(die, "id BIGINT")
    for write in (
        lambda: on_spark.append(dying, "t"),
        lambda: on_spark.merge(dying, "t", "id", when_matched={"n": "1"}, when_not_matched="insert"),
    ):
        with pytest.raises(EngineError, match="nothing has changed"):
            write()
    assert catalog.snapshot == before and files_in(tmp_path) == files
