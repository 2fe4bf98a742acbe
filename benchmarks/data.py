"""What rows cost: appends, reads, memory, planning and single-row inserts, against what others take.

`python -m benchmarks.data` measures part by part and prints each as soon as it is there.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.append import append
from benchmarks.formats import formats
from benchmarks.insert import insert
from benchmarks.memory import memory
from benchmarks.plan import plan
from benchmarks.program import begin
from benchmarks.read import read
from benchmarks.report import Section
from forklake.localpg import LocalPostgres

PARTS = ("append", "read", "memory", "plan", "formats", "inserts")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    rows: int
    rounds: int
    streamed: int
    files: int
    wide_files: int
    wide_columns: int
    formats: int
    inserts: int


FULL = Scale(10_000_000, 5, 4 * 10**9, 100_000, 60_000, 200, 10_000, 1_000)
QUICK = Scale(1_000_000, 3, 2 * 10**8, 10_000, 2_000, 100, 2_000, 100)


def measured(part: str, scale: Scale, server: str, folder: Path) -> Iterator[Section]:
    """The sections of one part, as they are done."""
    match part:
        case "append":
            yield append(folder, rows=scale.rows, rounds=scale.rounds)
        case "read":
            yield from read(folder, rows=scale.rows, rounds=scale.rounds)
        case "memory":
            yield memory(folder, size=scale.streamed)
        case "plan":
            for backend in ("PostgreSQL", "SQLite", "DuckDB"):
                yield plan(
                    server,
                    folder,
                    backend=backend,
                    files=scale.files,
                    columns=8,
                    rounds=scale.rounds,
                    has_target=backend != "DuckDB",
                )
            for backend in ("PostgreSQL", "SQLite"):
                yield plan(
                    server,
                    folder,
                    backend=backend,
                    files=scale.wide_files,
                    columns=scale.wide_columns,
                    rounds=scale.rounds,
                    has_target=True,
                )
        case "formats":
            yield formats(server, folder, files=scale.formats, rounds=scale.rounds)
        case _:
            yield insert(server, folder, inserts=scale.inserts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    program = begin("data", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    versions = f"DuckDB {duckdb.__version__}, pyarrow {pa.__version__}, Python {platform.python_version()}"
    machine = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start"
    print(f"Medians of {scale.rounds} interleaved rounds. {versions}, {machine}.\n", flush=True)
    with LocalPostgres() as server:
        for part in program.parts:
            program.progress(part)
            with tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder:
                for section in measured(part, scale, server.url, Path(folder)):
                    print(f"{section}\n", flush=True)
    program.progress("done")


if __name__ == "__main__":
    main()
