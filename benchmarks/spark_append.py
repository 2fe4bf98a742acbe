"""Appending rows with Spark, against Spark's own `df.write.parquet` with the same compression."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.append import sync
from benchmarks.report import Section, Target, table
from benchmarks.spark_shared import Bench, cpu_seconds, digest, megabytes, sizes
from benchmarks.timing import Timings, cost, in_turns, same, seconds
from forklake.api.lake import Lake
from forklake.model.options import Options

MOST = 1.10
_OURS, _PLAIN, _SYNCED = "SparkCatalog.append", "df.write.parquet", "df.write.parquet, fsync"
_GATHERED, _WHOLE = "df.hint.write.parquet", "df.hint.write.parquet, all columns in the files"
"""With rows shuffled first, so that each partition gets few files, as forklake does."""
_FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are laid down."""

    title: str
    partition_by: str | None = None
    sorted_by: tuple[str, ...] = ()
    made: str = "quantity"
    """What becomes of a column on the way: if nothing, a plain write takes rows as the cache has them."""


LAYOUTS = (
    Layout("unpartitioned", made="quantity + 1"),
    Layout("unpartitioned, rows as they are in the cache"),
    Layout("sorted", sorted_by=("customer",)),
    Layout("partitioned", partition_by="region"),
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """Spark's writer with the settings that forklake writes with."""

    folder: Path
    layout: Layout

    def write(
        self, rows: DataFrame, *, synced: bool = False, gathered: bool = False, whole: bool = False
    ) -> None:
        """Write a folder of files, and wait for the disk if asked to.

        Spark leaves the column that it partitions by out of files, unless it gets it twice.
        """
        options, by = Options(), self.layout.partition_by
        if gathered and by:
            rows = rows.hint("rebalance", by)
        if whole and by:
            rows, by = rows.selectExpr("*", f"{by} AS {_FOLDER}"), _FOLDER
        if self.layout.sorted_by:
            rows = rows.sortWithinPartitions(*self.layout.sorted_by)
        writer = rows.write.option("compression", options.parquet_compression)
        writer = writer.option("parquet.compression.codec.zstd.level", options.parquet_compression_level)
        writer.partitionBy(*([by] if by else [])).parquet(str(self.folder))
        if synced:
            for path in (*self.folder.rglob("*.parquet"), self.folder):
                sync(path)


def append(bench: Bench, *, rows: int, tasks: int, rounds: int) -> Iterator[Section]:
    """Write rows that Spark has in memory, table by table."""
    cached = bench.rows(rows, tasks).cache()
    try:
        with bench.lake() as lake:
            for layout in LAYOUTS:
                bench.progress(f"append: {layout.title}")
                yield _measured(bench, lake, cached, layout, rounds)
    finally:
        cached.unpersist()


def _measured(bench: Bench, lake: Lake, cached: DataFrame, layout: Layout, rounds: int) -> Section:
    """Write in turns; what each wrote is read back once before anything is compared."""
    on = bench.catalog(lake)
    columns = (f"{layout.made} AS quantity" if name == "quantity" else name for name in cached.columns)
    made = cached.selectExpr(*columns)
    expected = digest(made)
    baseline = Baseline(bench.folder / "plain", layout)
    # Creating a table is no part of it. The first two are for warming up.
    names = [f"t_{LAYOUTS.index(layout)}_{number}" for number in range(rounds + 2)]
    by = [layout.partition_by] if layout.partition_by else []
    for name in names:
        on.create_table(name, made.schema, partition_by=by, sorted_by=layout.sorted_by)

    def ours() -> str:
        on.append(made, names[-1])
        return names.pop()

    def tidy() -> None:
        shutil.rmtree(bench.data, ignore_errors=True)
        shutil.rmtree(baseline.folder, ignore_errors=True)
        # What one leaves in the cache is not written back at the cost of the next.
        os.sync()

    written = ours()
    baseline.write(made, synced=True)
    plain = bench.spark.read.parquet(str(baseline.folder))
    same({"the rows in memory": expected, _OURS: digest(on.read(written)), _PLAIN: digest(plain)})
    sized = {_OURS: _size(bench.data), _PLAIN: _size(baseline.folder), _SYNCED: _size(baseline.folder)}
    tidy()
    contenders: dict[str, Callable[[], object]] = {
        _OURS: ours,
        _PLAIN: lambda: baseline.write(made),
        _SYNCED: lambda: baseline.write(made, synced=True),
    }
    if layout.partition_by:
        contenders[_GATHERED] = lambda: baseline.write(made, gathered=True)
        contenders[_WHOLE] = lambda: baseline.write(made, gathered=True, whole=True)
    for title in contenders.keys() - sized.keys():
        contenders[title]()
        sized[title] = _size(baseline.folder)
        tidy()
    ours()
    timings = in_turns(contenders, rounds, before=tidy, warm=False, cpu=cpu_seconds)
    tidy()
    title = f"append: {expected[0]:,} rows, {layout.title}"
    return Section(title, _table(timings, sized), [_target(layout, timings)])


def _size(folder: Path) -> tuple[int, int]:
    return sizes([folder]), len(list(folder.rglob("*.parquet")))


def _table(timings: Timings, sized: Mapping[str, tuple[int, int]]) -> str:
    lines: list[Sequence[str]] = []
    for title, timing in timings.items():
        size, files = sized[title]
        taken = f"{cost(timings[_OURS], timing):.2f}x"
        lines.append(
            (title, seconds(timing.median), seconds(timing.cpu), taken, megabytes(size), f"{files:,}")
        )
    return table(("", "median", "CPU", "forklake takes", "size", "files"), lines)


def _target(layout: Layout, timings: Timings) -> Target:
    against = _WHOLE if layout.partition_by else _PLAIN
    found = cost(timings[_OURS], timings[against])
    what = f"append to a table, {layout.title}, takes at most {MOST:.2f}x of {against}"
    return Target(found <= MOST, what, f"{found:.2f}x")
