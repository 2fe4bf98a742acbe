"""What SQL costs: TPC-H, scans against those of handles, and small statements, against what others take.

`python -m benchmarks.sql` measures part by part and prints each as soon as it is there.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.program import Program, begin
from benchmarks.sql_small import small
from benchmarks.sql_tpch import scans, tpch
from benchmarks.tpch import lakes
from forklake.localpg import LocalPostgres

PARTS = ("scan", "tpch", "small")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    scale_factor: float
    rounds: int
    rows: int
    """Of the table that small statements are about."""
    statements: int


FULL = Scale(1, 5, 1_000_000, 200)
QUICK = Scale(0.1, 3, 100_000, 40)


def _measure(program: Program, scale: Scale, folder: Path) -> None:
    with ExitStack() as stack:
        made = None
        for part in program.parts:
            program.progress(part)
            if part == "small":
                server = stack.enter_context(LocalPostgres())
                print(
                    f"{small(server.url, folder, rows=scale.rows, statements=scale.statements)}\n", flush=True
                )
                continue
            made = made or stack.enter_context(lakes(folder, scale.scale_factor))
            if part == "scan":
                section = scans(made, rounds=scale.rounds)
            else:
                section = tpch(made, scale.scale_factor, rounds=scale.rounds)
            print(f"{section}\n", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    program = begin("sql", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    versions = f"DuckDB {duckdb.__version__}, Python {platform.python_version()}"
    machine = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before the start"
    rounds = f"Medians of interleaved rounds: {scale.rounds}, and {scale.statements} small statements"
    print(f"{rounds}. {versions}, {machine}.\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder:
        _measure(program, scale, Path(folder))
    program.progress("done")


if __name__ == "__main__":
    main()
