"""Verbs on a standalone cluster whose executors are killed while they work: a program of its own.

Every verb is done by Spark on a catalog and by the local engine on a fork; both then have the same rows.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import forklake
from forklake.spark import SparkCatalog, session

_ROWS, _TASKS, _TIMES = 50_000, 8, 3
_INTERRUPTED = 3
"""How many different verbs have to have been at work when an executor died; others may be over too soon."""
_EXECUTOR = b"CoarseGrainedExecutorBackend"


def executors(workers: Sequence[int]) -> Iterator[int]:
    """The processes of executors that these workers of the cluster have started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent in workers and _EXECUTOR in (stat.parent / "cmdline").read_bytes():
                yield int(stat.parent.name)


class Killer:
    """Kills an executor as soon as Spark has work to do."""

    def __init__(self, spark: SparkSession, workers: Sequence[int]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._workers = workers
        self.killed = 0

    def during(self, work: Callable[[], object]) -> bool:
        """Do some work; says whether an executor died in the midst of it."""
        before = self.killed
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,))
        thread.start()
        try:
            work()
        finally:
            over.set()
            thread.join()
        return self.killed > before

    def _watch(self, over: threading.Event) -> None:
        while not over.is_set():
            if self._has_tasks():
                found = sorted(executors(self._workers))
                if found:
                    os.kill(found[self.killed % len(found)], signal.SIGKILL)
                    self.killed += 1
                    return
            time.sleep(0.01)

    def _has_tasks(self) -> bool:
        stages = (self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds())
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)


def story(url: str, data_path: str, master: str, workers: Sequence[int]) -> None:
    """Tell it; an assertion fails if rows are lost, or there twice."""
    spark = session(
        master,
        conf={
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    with forklake.connect(url, data_path=data_path, create=True) as lake:
        catalog = lake.create_catalog("c")
        table = catalog.create_table("t", "id BIGINT, n BIGINT, s VARCHAR")
        on, killer = SparkCatalog(spark, catalog), Killer(spark, workers)

        def rows(first: int, count: int, n: int) -> pa.Table:
            ids = range(first, first + count)
            return pa.table({"id": ids, "n": [n] * count, "s": [f"s{at % 7}" for at in ids]})

        def made(first: int, count: int, n: int) -> DataFrame:
            ids = spark.range(first, first + count, 1, _TASKS)
            return ids.selectExpr("id", f"CAST({n} AS BIGINT) AS n", "'s' || id % 7 AS s")

        def verbs(
            time: int,
        ) -> Iterator[tuple[str, Callable[[], object], Callable[[forklake.Table], object]]]:
            first, where = time * _ROWS, f"id % 7 = {time}"
            new, changed = (first, _ROWS, 0), (first + _ROWS // 2, _ROWS, 9)
            part = f"id < {first + 1000}"
            assigned = {"n": "n + id"}
            yield "append", lambda: on.append(made(*new), "t"), lambda t: t.append(rows(*new))
            yield "update", lambda: on.update("t", assigned, where), lambda t: t.update(assigned, where)
            yield "delete", lambda: on.delete("t", where), lambda t: t.delete(where)
            yield (
                "merge",
                lambda: on.merge(made(*changed), "t", "id"),
                lambda t: t.merge(rows(*changed), "id"),
            )
            kept = (first, 500, 1)
            yield (
                "overwrite",
                lambda: on.overwrite(made(*kept), "t", part),
                lambda t: t.overwrite(rows(*kept), part),
            )
            yield "compact", lambda: on.compact("t"), lambda t: None

        interrupted: set[str] = set()
        for time_told in range(_TIMES):
            for name, verb, local in verbs(time_told):
                fork = lake.fork("c", f"before_{name}_{time_told}")
                if killer.during(verb):
                    interrupted.add(name)
                local(fork.table("t"))
                order = [(column, "ascending") for column in ("id", "n", "s")]
                found = [each.scan().to_arrow().sort_by(order) for each in (table, fork.table("t"))]
                assert found[0].equals(found[1]), name
                print(f"{name}: {found[0].num_rows} rows", flush=True)
        assert on.read("t").count() == table.count()
        assert len(interrupted) >= _INTERRUPTED, f"only {interrupted} were interrupted"
    spark.stop()


if __name__ == "__main__":
    story(sys.argv[1], sys.argv[2], sys.argv[3], [int(number) for number in sys.argv[4:]])
