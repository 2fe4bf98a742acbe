"""Streams: what was added is read once, and every batch is written once, whatever breaks in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import forklake
from forklake.spark import SparkCatalog
from forklake.spark.features import HAS_ADMISSION
from forklake.spark.source.admission import ReadAllAvailable, ReadMaxFiles, ReadMaxRows
from forklake.spark.source.offsets import Arrival, Offset, admitted, admitted_of_table

Stream = Callable[..., DataFrame]


@pytest.fixture
def stream(spark: SparkSession, catalog: forklake.Catalog, url: str) -> Stream:
    def load(table: str = "source", **options: Any) -> DataFrame:
        given = {"lake": url, "catalog": catalog.name, "table": table, **options}
        return spark.readStream.format("forklake").options(**given).load()

    return load


@pytest.fixture
def run(url: str, catalog: forklake.Catalog, tmp_path: Path) -> Callable[..., list[int]]:
    """Take what is there into another table; gives how many rows each batch had."""

    def run(df: DataFrame, table: str = "sink", checkpoint: str = "checkpoint") -> list[int]:
        query = (
            df.writeStream.format("forklake")
            .options(lake=url, catalog=catalog.name, table=table)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    return run


def ids(table: forklake.Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def rows(start: int, count: int) -> pa.Table:
    return pa.table({"id": range(start, start + count)})


@pytest.mark.skipif(not HAS_ADMISSION, reason="this Spark cannot be told how much a batch takes")
def test_a_stream_goes_on_where_it_was_stopped(
    stream: Stream, run: Callable[..., list[int]], catalog: forklake.Catalog
) -> None:
    source, sink = catalog.create_table("source", "id BIGINT"), catalog.create_table("sink", "id BIGINT")
    for at in range(3):
        source.append(rows(at * 10, 10))
    source.append([{"id": 100}])
    source.delete("id = 5")
    # What is there comes first, without what was deleted before; files one by one.
    assert run(stream(maxFilesPerTrigger=1)) == [9, 10, 10, 1]
    assert ids(sink) == ids(source)
    assert run(stream(maxFilesPerTrigger=1)) == []
    for at in range(4, 7):
        source.append(rows(at * 10, 10))
        catalog.table("sink").set_option("target_file_size", 10_000_000 + at)
    source.compact()
    assert run(stream(maxRowsPerTrigger=20)) == [20, 10]
    assert ids(sink) == ids(source)
    said = [
        one.extra["stream"]["batch"] for one in catalog.snapshots() if one.extra and "stream" in one.extra
    ]
    assert said == [0, 1, 2, 3, 4, 5]


def test_rows_that_change_are_refused_passed_over_or_told(
    stream: Stream, run: Callable[..., list[int]], catalog: forklake.Catalog, spark: SparkSession
) -> None:
    source, sink = (
        catalog.create_table("source", "id BIGINT, n INTEGER"),
        catalog.create_table("sink", "id BIGINT"),
    )
    source.append(rows(0, 10))
    start = catalog.snapshot
    source.append(rows(10, 10))
    with catalog.transaction() as tx:
        tx.table("source").update({"n": "1"}, where="id IN (3, 12)")
        tx.table("source").append(rows(50, 5))
    source.delete("id = 4")
    source.rename_column("n", "m")
    with pytest.raises(StreamingQueryException, match="updated or deleted rows"):
        run(stream(startingSnapshot=start).select("id"), checkpoint="fail")
    assert run(stream(startingSnapshot=start, changes="skip", columns="id")) == [15]
    assert ids(sink) == [*range(10, 20), *range(50, 55)]
    feed = stream(startingSnapshot=start, changes="feed")
    query = feed.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    found = sorted(tuple(row) for row in spark.table("told").collect())
    expected = source.changes(start).to_arrow().to_pylist()
    assert found == sorted(tuple(row.values()) for row in expected)
    assert {row[0] for row in found} == {"insert", "delete", "update_preimage", "update_postimage"}


def test_a_batch_that_is_tried_again_is_written_once(
    stream: Stream, run: Callable[..., list[int]], catalog: forklake.Catalog, tmp_path: Path
) -> None:
    source, sink = catalog.create_table("source", "id BIGINT"), catalog.create_table("sink", "id BIGINT")
    source.append(rows(0, 10))
    run(stream())
    source.append(rows(10, 10))
    run(stream())
    # As if Spark had died after our commit, before it noted in the checkpoint that the batch is done.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    source.append(rows(20, 10))
    before = catalog.snapshot
    files = sorted((tmp_path / "files").rglob("*.parquet"))
    run(stream())
    if not HAS_ADMISSION:
        # Then a query that takes what is there ends with the batch that it tried again.
        run(stream())
    assert ids(sink) == list(range(30))
    assert len([one for one in catalog.snapshots() if one.id > before]) == 1
    assert len(sorted((tmp_path / "files").rglob("*.parquet"))) == len(files) + 1
    # A fork knows what was done before it was made, and another query is another piece of work.
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copied")
    for name in ("2", ".2.crc"):
        (tmp_path / "copied" / "commits" / name).unlink(missing_ok=True)
    with forklake.connect(f"sqlite:///{tmp_path}/lake.db") as lake:
        fork = lake.fork(catalog.name, "fork")
        df = stream()
        query = (
            df.writeStream.format("forklake")
            .options(lake=lake.url, catalog="fork", table="sink", checkpointLocation=str(tmp_path / "copied"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert ids(fork.table("sink")) == list(range(30))
    run(stream(), checkpoint="second")
    assert sink.count() == 60


def test_frames_of_batches_are_appended_once(
    stream: Stream, catalog: forklake.Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    source, sink = catalog.create_table("source", "id BIGINT"), catalog.create_table("sink", "id BIGINT")
    source.append(rows(0, 10))
    tries: list[int] = []

    def each(df: DataFrame, batch: int) -> None:
        with catalog.transaction(once=f"my stream/{batch}") as tx:
            SparkCatalog(spark, tx).append(df, "sink")
        tries.append(batch)
        if len(tries) == 1:
            raise RuntimeError("after the commit")

    def run() -> None:
        query = (
            stream()
            .writeStream.foreachBatch(each)
            .option("checkpointLocation", str(tmp_path / "each"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)

    with pytest.raises(StreamingQueryException, match="after the commit"):
        run()
    run()
    assert tries == [0, 0]
    assert ids(sink) == list(range(10))


def test_a_checkpoint_is_not_used_for_another_table(
    stream: Stream, run: Callable[..., list[int]], catalog: forklake.Catalog
) -> None:
    source, sink = catalog.create_table("source", "id BIGINT"), catalog.create_table("sink", "id BIGINT")
    other = catalog.create_table("other", "id BIGINT")
    other.append(rows(100, 10))
    source.append(rows(0, 10))
    run(stream())
    other.append(rows(200, 10))
    with pytest.raises(StreamingQueryException, match="checkpoint is of another table"):
        run(stream("other"))
    source.rename("renamed")
    source.append(rows(10, 10))
    assert run(stream("renamed")) == [10]
    assert ids(sink) == list(range(20))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"startingSnapshot": "soon"}, "soon"),
        ({"startingSnapshot": "99999"}, "99999"),
        ({"maxRowsPerTrigger": "0"}, "maxRowsPerTrigger"),
        ({"maxRowsPerTrigger": "5", "maxFilesPerTrigger": "5"}, "one limit"),
        ({"changes": "all"}, "fail or skip or feed"),
    ],
)
def test_bad_options_of_streams_are_refused(
    stream: Stream,
    run: Callable[..., list[int]],
    catalog: forklake.Catalog,
    options: dict[str, str],
    problem: str,
) -> None:
    for name in ("source", "sink"):
        catalog.create_table(name, "id BIGINT")
    with pytest.raises(PySparkException, match=problem):
        run(stream(**options))


@pytest.mark.skipif(HAS_ADMISSION, reason="this Spark can be told how much a batch takes")
def test_limits_of_batches_are_refused_where_spark_has_none(
    stream: Stream, run: Callable[..., list[int]], catalog: forklake.Catalog
) -> None:
    for name in ("source", "sink"):
        catalog.create_table(name, "id BIGINT")
    catalog.table("source").append(rows(0, 9))
    with pytest.raises(PySparkException, match=r"needs Spark 4\.\d or newer"):
        run(stream(maxFilesPerTrigger=1), checkpoint="limited")
    assert run(stream()) == [9]
    catalog.table("source").append(rows(9, 5))
    assert run(stream()) == [5]
    assert ids(catalog.table("sink")) == list(range(14))


ARRIVALS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 30)), max_size=12)


@given(
    ARRIVALS, st.frozensets(st.integers(1, 6)), st.sampled_from(["files", "rows", "all"]), st.integers(1, 40)
)
def test_batches_take_everything_once_and_stay_within_their_limit(
    given: list[tuple[int, int]], whole: frozenset[int], kind: str, most: int
) -> None:
    arrivals = [Arrival(snapshot, count, 0) for snapshot, count in given]
    limit = {"files": ReadMaxFiles(most), "rows": ReadMaxRows(most), "all": ReadAllAvailable()}[kind]
    head, offset, taken = 7, Offset(0), 0
    ordered = sorted(arrivals, key=lambda arrival: arrival.snapshot)

    def position(place: Offset) -> int:
        before = [one for one in ordered if one.snapshot < place.snapshot]
        own = [one for one in ordered if one.snapshot == place.snapshot]
        return len(before) + (len(own) if place.files is None else place.files)

    for _ in range(30):
        left = [one for one in arrivals if one.snapshot > offset.after]
        reached = Offset.read(json.loads(json.dumps(admitted(left, whole, offset, head, limit).to_dict())))
        batch = ordered[position(offset) : position(reached)]
        taken += len(batch)
        assert position(reached) == taken
        cost = {"files": len(batch), "rows": sum(one.rows for one in batch), "all": 0}[kind]
        alone = len({one.snapshot for one in batch} & whole) == 1 or len(batch) == 1
        assert cost <= most or alone
        offset = reached
        if offset == Offset(head):
            break
        assert batch
    assert taken == len(arrivals)
    done: int | None = 0
    for _ in range(30):
        done = admitted_of_table(arrivals, done or 0, limit)
        if done is None:
            return
    raise AssertionError("a table is read to its end")
