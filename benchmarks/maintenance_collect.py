"""Collecting garbage among very many files: how long, how much memory, and what commits of others feel.

`python -m benchmarks.maintenance_collect URL` is the process that collects.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import forklake
from benchmarks.fork_shared import Bench, percentile
from benchmarks.many_files import Backend, Place
from benchmarks.memory import peak_memory
from benchmarks.report import Section, Target, table
from benchmarks.timing import seconds
from forklake.store.tables import TABLES

MOST_SECONDS = 60.0
MOST_SLOWER = 1.1
"""How many times as long a commit of somebody else may take meanwhile."""
MOST_MEMORY = 1.1
"""Of what a tenth of the files takes."""
_DEAD_EVERY = 100
_CALM_SECONDS = 6.0
_END_SOME = """
UPDATE ducklake_data_file
   SET end_snapshot = (SELECT max(snapshot_id) FROM ducklake_snapshot)
 WHERE data_file_id % {every} = 1 AND path LIKE '%/0011223344556677889900%'
"""


@dataclass(frozen=True, slots=True)
class Collected:
    """What the process says that collected."""

    took: float
    before: int
    peak: int
    removed: int
    kept: int


def collection(bench: Bench, backend: Backend, *, files: int) -> Section:
    """One percent of the files are dead; the same with a tenth of the files, for the memory."""
    few = _collected(bench, backend, files // 10)
    many = _collected(bench, backend, files)
    lines = [run.line() for run in (few, many)]
    heading = ("file rows", "removed", "took", "peak memory", "at its start", "commits meanwhile", "before")
    ratio = many.collected.peak / few.collected.peak
    left = many.left + few.left
    targets = [
        Target(many.collected.took < MOST_SECONDS, f"under {MOST_SECONDS:g} s", seconds(many.collected.took)),
        Target(ratio <= MOST_MEMORY, f"memory of at most {MOST_MEMORY}x of a tenth", f"{ratio:.2f}x"),
        Target(not left, "every dead file is gone, and no other", f"{left} left"),
    ]
    # SQLite has one writer at a time: a commit waits for the statement that is running.
    if backend == "PostgreSQL":
        targets.append(many.slowed())
    text = "\n".join([table(heading, lines), many.felt()])
    return Section(f"collect: {files:,} file rows, 1 % dead, on {backend}", text, targets)


@dataclass(frozen=True, slots=True)
class _Run:
    files: int
    collected: Collected
    calm: dict[str, list[float]]
    meanwhile: dict[str, list[float]]
    left: int
    """Dead files that are still there, or live ones that are not."""

    def line(self) -> tuple[str, ...]:
        found = self.collected
        return (
            f"{self.files:,}",
            f"{found.removed:,}",
            seconds(found.took),
            f"{found.peak / 1e6:,.0f} MB",
            f"{found.before / 1e6:,.0f} MB",
            _median(self.meanwhile["commit"]),
            _median(self.calm["commit"]),
        )

    def slowed(self) -> Target:
        ratio = statistics.median(self.meanwhile["commit"]) / statistics.median(self.calm["commit"])
        what = f"commits of others take at most {MOST_SLOWER}x meanwhile, in the middle"
        return Target(ratio <= MOST_SLOWER, what, f"{ratio:.2f}x")

    def felt(self) -> str:
        """What others did, before and meanwhile."""
        return table(
            ("others", "before", "p99", "slowest", "meanwhile", "p99", "slowest"),
            [
                (what, *(shown for times in (self.calm, self.meanwhile) for shown in _shown(times[what])))
                for what in self.calm
            ],
        )


def _shown(times: list[float]) -> tuple[str, str, str]:
    if not times:
        return "-", "-", "-"
    return _median(times), seconds(percentile(times, 0.99)), seconds(max(times))


def _median(times: list[float]) -> str:
    return seconds(statistics.median(times)) if times else "-"


def _collected(bench: Bench, backend: Backend, files: int) -> _Run:
    place = bench.lake_of_files(backend, f"collect_{files}", files)
    dead = _kill(place)
    with _somebody_else(place) as other:
        bench.progress(f"{backend}: commits of others alone")
        time.sleep(_CALM_SECONDS)
        began = time.perf_counter()
        bench.progress(f"{backend}: collecting among {files:,}")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.maintenance_collect", place.url],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        ended = time.perf_counter()
        told = Collected(**json.loads(done.stdout))
        steps: list[tuple[str, float, float]] = other.stop()
    # Importing and connecting come first, and are no part of it.
    start = ended - told.took
    calm = {what: [took for name, at, took in steps if name == what and at < began] for what, *_ in steps}
    busy = {what: [took for name, at, took in steps if name == what and at >= start] for what, *_ in steps}
    folder = place.files
    left = sum(1 for path in dead if (folder / path).exists()) + abs(told.removed - len(dead))
    return _Run(files, told, calm, busy, left)


def _kill(place: Place) -> list[str]:
    """Let one file in a hundred be replaced by a later commit, and be there; gives their paths."""
    with forklake.connect(place.url) as lake:
        lake.create_catalog("other").create_table("t", "id BIGINT, day BIGINT, customer BIGINT")
        # The numbers of these files are theirs alone, and everything else is as a commit leaves it.
        lake.catalog("bench").table("t").append([{"id": -1, "day": 0, "customer": 0}])
        place.run([_END_SOME.format(every=_DEAD_EVERY)])
        lake.catalog("bench").expire(older_than=timedelta(0))
        rows = place.query("SELECT path FROM ducklake_data_file WHERE end_snapshot IS NOT NULL")
    folder = place.files
    paths = [str(path) for (path,) in rows]
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"PAR1")
    return paths


class _Other:
    """A process that commits in a catalog of its own, forks and drops, and says how long each took."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe

    def stop(self) -> list[tuple[str, float, float]]:
        """What it did: what, when it began, and how long it took."""
        self._pipe.send("stop")
        return self._pipe.recv()


@contextmanager
def _somebody_else(place: Place) -> Iterator[_Other]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_live, args=(place.url, theirs), daemon=True)
    process.start()
    try:
        ours.recv()
        yield _Other(ours)
    finally:
        process.kill()
        process.join()


def _live(url: str, pipe: Connection[Any, Any]) -> None:
    with forklake.connect(url) as lake:
        other = lake.catalog("other").table("t")
        steps: list[tuple[str, float, float]] = []

        def timed(what: str, work: Any) -> None:
            began = time.perf_counter()
            work()
            steps.append((what, began, time.perf_counter() - began))

        number = 0
        while not pipe.poll():
            number += 1
            timed("commit", lambda n=number: other.append([{"id": n, "day": 0, "customer": 0}]))
            if number % 10 == 0:
                timed("fork", lambda n=number: lake.fork("other", f"f{n}"))
            if number == 20:
                steps.clear()
                pipe.send("ready")
        pipe.recv()
        pipe.send(steps)


def _collect(url: str) -> dict[str, float]:
    with forklake.connect(url) as lake:
        lake.catalogs()
        before, began = peak_memory(), time.perf_counter()
        found = lake.collect_garbage(older_than=timedelta(0))
        took = time.perf_counter() - began
    return {
        "took": took,
        "before": before,
        "peak": peak_memory(),
        "removed": found.removed,
        "kept": len(found.kept),
    }


def rows_of(place: Place) -> dict[str, int]:
    """How many rows each table of the metadata has."""
    return {name: int(place.query(f"SELECT count(*) FROM {name}")[0][0]) for name in TABLES}


if __name__ == "__main__":
    print(json.dumps(_collect(sys.argv[1])))
