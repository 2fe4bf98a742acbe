"""Merger a few changed rows into very many with Spark, against writing all of them anew."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.report import Section, Target, table
from benchmarks.spark_append import Baseline, Layout
from benchmarks.spark_shared import CATALOG, TABLE, Bench, cpu_seconds, digest, megabytes, sizes
from benchmarks.timing import cost, in_turns, same, seconds
from forklake.api.lake import Lake
from forklake.spark import SparkCatalog

LEAST = 3.0
_OURS, _REWRITE = "SparkCatalog.merge", "everything written anew"


def merge(bench: Bench, *, rows: int, files: int, rounds: int) -> Section:
    """Bring 1 % of changed rows and 0.1 % of new ones into a table."""
    with bench.lake() as lake:
        on = bench.catalog(lake)
        bench.progress(f"merge: {rows:,} rows are written")
        made = bench.rows(rows, files)
        on.create_table(TABLE, made.schema)
        on.append(made, TABLE)
        changed = _changes(bench, rows)
        new = rows // 1000
        expected = (changed.count() - new, 0, new)
        bench.progress("merge: changes are merged")
        return _measured(bench, lake, changed, expected, rounds)


def _changes(bench: Bench, rows: int) -> DataFrame:
    """Rows with other values, with keys from everywhere and beyond; in a file of their own, as they come."""
    path = str(bench.folder / "changes")
    known = bench.rows(rows, 2).where("pmod(xxhash64(id, 6), 100) = 0")
    changes = known.union(bench.rows(rows // 1000, 1, start=rows))
    changes.selectExpr("*", "CAST(price + 1 AS DECIMAL(12, 2)) AS higher").selectExpr(
        "id", "quantity", "score", "higher AS price", "sold_at", "region", "customer", "NOT paid AS paid"
    ).write.parquet(path)
    return bench.spark.read.parquet(path)


def _measured(
    bench: Bench, lake: Lake, changed: DataFrame, expected: tuple[int, int, int], rounds: int
) -> Section:
    numbers = count()
    before = bench.files(bench.catalog(lake))
    base = sizes([bench.data])
    baseline = Baseline(bench.folder / "plain", Layout("unpartitioned"))
    counted: set[tuple[int, int, int]] = set()

    def ours() -> SparkCatalog:
        # Every round finds the table as it was: a fork takes a millisecond.
        fork = SparkCatalog(bench.spark, lake.fork(CATALOG, f"round_{next(numbers)}"))
        merged = fork.merge(changed, TABLE, "id")
        counted.add((merged.updated, merged.deleted, merged.inserted))
        return fork

    def rewrite() -> None:
        kept = bench.spark.read.parquet(*before).join(changed, "id", "left_anti")
        baseline.write(kept.union(changed), synced=False)

    def tidy() -> None:
        for path in _new(bench.data, before):
            path.unlink()
        shutil.rmtree(baseline.folder, ignore_errors=True)
        # What one leaves in the cache is not written back at the cost of the next.
        os.sync()

    fork = ours()
    rewrite()
    anew = bench.spark.read.parquet(str(baseline.folder))
    answers = {_OURS: digest(fork.read(TABLE)), _REWRITE: digest(anew)}
    same(answers)
    sized = {_OURS: sizes([bench.data]) - base, _REWRITE: sizes([baseline.folder])}
    timings = in_turns({_OURS: ours, _REWRITE: rewrite}, rounds, before=tidy, warm=False, cpu=cpu_seconds)
    same({"every merge": counted, "what is to be merged": {expected}})
    lines = [
        (
            title,
            seconds(timing.median),
            seconds(timing.cpu),
            f"{cost(timing, timings[_OURS]):.2f}x",
            megabytes(sized[title]),
            f"{sized[title] / sized[_OURS]:.1f}x",
        )
        for title, timing in timings.items()
    ]
    found = cost(timings[_REWRITE], timings[_OURS])
    target = Target(
        found >= LEAST, f"a merge takes at least {LEAST:g}x less time than a full rewrite", f"{found:.2f}x"
    )
    title = f"merge: {expected[0]:,} changed and {expected[2]:,} new rows, {answers[_OURS][0]:,} afterwards"
    text = table(("", "median", "CPU", "of a merge", "written", "of a merge"), lines)
    return Section(title, text, [target])


def _new(folder: Path, before: list[str]) -> list[Path]:
    known = set(before)
    return [path for path in folder.rglob("*.parquet") if str(path) not in known]
