"""The same work on forklake, Iceberg, Delta and plain Parquet, in one session of Spark 4.1.

`python -m benchmarks.spark_peers` tells one story per round: rows are appended to a new table and read, some
are merged and all are read, some are deleted and all are read again. Everybody does each step in turn, and
all have to give the same answers. Maven's own client fetches the jars of the others into a folder, once.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from benchmarks.peers import DeltaPeer, ForklakePeer, IcebergPeer, ParquetPeer, Peer, settings
from benchmarks.peers_jars import jars
from benchmarks.program import Program, begin
from benchmarks.report import Section, table
from benchmarks.spark_read import QUERIES
from benchmarks.spark_shared import Bench, cpu_seconds
from benchmarks.timing import Timing, Timings, Work, cost, cpu_cost, in_turns, same, seconds
from forklake.spark import session

_LESS = "quantity % 50 = 7"
"""Two rows in a hundred, with no order."""
_AGGREGATE, _GROUP_BY = QUERIES


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    rounds: int
    rows: int
    files: int


FULL, QUICK = Scale(4, 4_000_000, 8), Scale(2, 1_000_000, 4)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    sizes = {"rows": "how many rows a table has", "rounds": "how often everything is measured"}
    program = begin("spark_peers", __doc__, ("story",), arguments, sizes)
    scale = QUICK if program.quick else FULL
    rows, rounds = program.numbers.get("rows", scale.rows), program.numbers.get("rounds", scale.rounds)
    found = jars(program.progress)
    versions = f"Spark {pyspark.__version__}, Python {platform.python_version()}, {', '.join(found)}"
    machine = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start"
    print(f"Medians of {rounds} interleaved rounds. {versions}; {machine}.\n", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder,
        _started(found, Path(folder)) as spark,
    ):
        bench = Bench(spark, Path(folder), program.progress)
        with bench.lake() as lake:
            peers = [
                ForklakePeer(lake, bench.catalog(lake)),
                IcebergPeer(spark),
                DeltaPeer(spark, Path(folder) / "delta"),
                ParquetPeer(spark, Path(folder) / "parquet"),
            ]
            print(_measured(program, Story(bench, peers, rows, scale.files), rounds), flush=True)
    program.progress("done")


@contextmanager
def _started(found: dict[str, list[Path]], folder: Path) -> Generator[SparkSession]:
    listed = ",".join(str(path) for paths in found.values() for path in paths)
    spark = session(
        f"local[{os.cpu_count()}]",
        conf={
            "spark.driver.memory": "4g",
            "spark.local.dir": str(folder),
            "spark.log.level": "ERROR",
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.jars": listed,
            **settings(folder / "iceberg"),
        },
    )
    try:
        yield spark
    finally:
        spark.stop()


class Of(Enum):
    """Who does a step."""

    ALL = auto()
    CHANGES = auto()
    """Those that can change rows."""
    LATER = auto()
    """All, but plain files have other rows by then."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done to a table."""

    title: str
    work: Callable[[Peer], Any]
    of: Of = Of.ALL


class Story:
    """One table of each, and what is done to it."""

    def __init__(self, bench: Bench, peers: Sequence[Peer], rows: int, files: int) -> None:
        """Make the rows once, so that everybody is given the same ones from memory."""
        self.peers = peers
        self.rows = rows
        self.made = _kept(bench.rows(rows, files))
        changed = (
            bench.rows(rows, 2)
            .where("pmod(xxhash64(id, 6), 100) = 0")
            .union(bench.rows(rows // 1000, 1, start=rows))
        )
        self._changes = _kept(changed.withColumn("paid", ~changed.paid))
        self._few = _kept(bench.rows(10, 1, start=2 * rows))

    def steps(self, name: str) -> Iterator[Step]:
        """What happens to a table of that name. Plain files stay as the first append left them."""
        point = self.rows // 3
        yield Step("append", lambda peer: peer.append(self.made, name))
        yield Step("aggregate", lambda peer: _AGGREGATE.answer(peer.read(name)))
        yield Step("group by", lambda peer: _GROUP_BY.answer(peer.read(name)))
        yield Step("point filter", lambda peer: peer.read(name, f"id = {point}").collect())
        yield Step("merge 1 % changed + 0.1 % new", lambda peer: peer.merge(self._changes, name), Of.CHANGES)
        yield Step("aggregate after that merge", lambda peer: _AGGREGATE.answer(peer.read(name)), Of.LATER)
        yield Step("delete 2 %", lambda peer: peer.delete(name, _LESS), Of.CHANGES)
        yield Step("group by after that delete", lambda peer: _GROUP_BY.answer(peer.read(name)), Of.LATER)
        yield Step("append 10 rows", lambda peer: peer.append(self._few, name), Of.CHANGES)
        yield Step("branch", lambda peer: peer.branch(name), Of.CHANGES)


def _kept(df: DataFrame) -> DataFrame:
    kept = df.cache()
    kept.count()
    return kept


def _measured(program: Program, story: Story, rounds: int) -> Section:
    taken: dict[str, dict[str, list[Timing]]] = defaultdict(lambda: defaultdict(list))
    # The first round warms Java up.
    for number in range(rounds + 1):
        program.progress("warming up" if number == 0 else f"round {number} of {rounds}")
        name = f"t{number}"
        for peer in story.peers:
            peer.create(story.made, name)
        for step in story.steps(name):
            timings = _one_step(story.peers, step, backwards=bool(number % 2))
            for peer_name, timing in timings.items() if number else ():
                taken[step.title][peer_name].append(timing)
    names = [peer.name for peer in story.peers]
    lines = [_line(title, names, found) for title, found in taken.items()]
    heading = (
        "",
        names[0],
        *(f"of {name}" for name in names[1:]),
        *(f"CPU, of {name}" for name in names[1:]),
    )
    return Section(f"{story.rows:,} rows; {names[0]} takes", table(heading, lines))


def _one_step(peers: Sequence[Peer], step: Step, *, backwards: bool) -> Timings:
    answers: dict[str, Any] = {}
    able = [peer for peer in peers if peer.changes or step.of is not Of.CHANGES]

    def doing(peer: Peer) -> Work:
        def work() -> None:
            answers[peer.name] = step.work(peer)

        return work

    contenders = {peer.name: doing(peer) for peer in (reversed(able) if backwards else able)}
    timings = in_turns(contenders, 1, before=os.sync, warm=False, cpu=cpu_seconds)
    alike = [peer.name for peer in able if peer.changes or step.of is Of.ALL]
    same({name: answers[name] for name in alike})
    return timings


def _line(title: str, names: Sequence[str], found: dict[str, list[Timing]]) -> list[str]:
    joined = {name: _joined(name, timings) for name, timings in found.items()}
    ours = joined[names[0]]
    others = [joined.get(name) for name in names[1:]]
    ratios = [f"{cost(ours, other):.2f}x" if other else "" for other in others]
    cpu = [f"{cpu_cost(ours, other):.2f}x" if other else "" for other in others]
    return [title, seconds(ours.median), *ratios, *cpu]


def _joined(name: str, timings: Sequence[Timing]) -> Timing:
    return Timing(
        name,
        tuple(second for timing in timings for second in timing.seconds),
        # A step that uses less than a tick of the clock used that.
        tuple(max(second, 0.01) for timing in timings for second in timing.cpu_seconds),
    )


if __name__ == "__main__":
    main()
