"""What tables cost with Spark: reads, point filters, appends, merges, and snapshots of very many files.

`python -m benchmarks.spark` measures part by part, in one session on all cores, and prints each part as soon
as it is there.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyspark

from benchmarks.distributed import BACKENDS, distributed
from benchmarks.program import Program, begin
from benchmarks.report import Section
from benchmarks.spark_append import append
from benchmarks.spark_index import index
from benchmarks.spark_merge import merge
from benchmarks.spark_point import point
from benchmarks.spark_read import read
from benchmarks.spark_shared import Bench, started
from forklake.localpg import LocalPostgres

PARTS = ("read", "source", "point", "index", "append", "merge", "distributed")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    rounds: int
    slow_rounds: int
    """Where each takes so long that noise matters less."""
    read: int
    files: int
    """How many files those rows are in."""
    source: int
    point_files: int
    indexed: tuple[int, int]
    """How many files, and the rows of each."""
    append: int
    tasks: int
    """How many tasks append those rows, each to a file, or to one of each partition."""
    merge: int
    distributed_files: int


FULL = Scale(5, 3, 20_000_000, 20, 2_000_000, 5_000, (100, 100_000), 5_000_000, 8, 10_000_000, 20_000)
QUICK = Scale(3, 3, 2_000_000, 4, 200_000, 500, (20, 50_000), 500_000, 4, 1_000_000, 2_000)


def measured(part: str, scale: Scale, bench: Bench) -> Iterator[Section]:
    """The sections of one part that needs Spark, as they are done."""
    rounds, slow, files = scale.rounds, scale.slow_rounds, scale.files
    match part:
        case "read":
            yield from read(bench, rows=scale.read, files=files, rounds=rounds, source=False)
        case "source":
            yield from read(bench, rows=scale.source, files=files, rounds=rounds, source=True)
        case "point":
            yield point(bench, files=scale.point_files, rounds=slow)
        case "index":
            yield index(bench, files=scale.indexed[0], rows=scale.indexed[1], rounds=rounds)
        case "append":
            yield from append(bench, rows=scale.append, tasks=scale.tasks, rounds=rounds)
        case _:
            yield merge(bench, rows=scale.merge, files=files, rounds=slow)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    program = begin("spark", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    versions = f"Spark {pyspark.__version__}, Python {platform.python_version()}"
    machine = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start"
    rounds = f"Medians of {scale.rounds} interleaved rounds to read and append, else {scale.slow_rounds}"
    print(f"{rounds}. {versions}, {machine}.\n", flush=True)
    with_spark = [part for part in program.parts if part != "distributed"]
    if with_spark:
        _print_with_spark(program, with_spark, scale)
    if "distributed" in program.parts:
        with LocalPostgres() as server:
            for backend in BACKENDS:
                with tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder:
                    found = distributed(
                        backend,
                        server.url,
                        Path(folder),
                        files=scale.distributed_files,
                        progress=program.progress,
                    )
                    print(f"{found}\n", flush=True)
    program.progress("done")


def _print_with_spark(program: Program, parts: Sequence[str], scale: Scale) -> None:
    with ExitStack() as stack:
        spark = stack.enter_context(started(Path(stack.enter_context(_folder()))))
        for part in parts:
            program.progress(part)
            with _folder() as folder:
                for section in measured(part, scale, Bench(spark, Path(folder), program.progress)):
                    print(f"{section}\n", flush=True)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="forklake-bench-")


if __name__ == "__main__":
    main()
