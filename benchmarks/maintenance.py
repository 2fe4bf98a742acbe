"""What cleaning costs: a collection among very many files, very many forks that are dropped, and busy days.

`python -m benchmarks.maintenance` starts a throwaway PostgreSQL with fsync on, measures part by part there
and on SQLite, and prints each part as soon as it is there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.fork import introduction
from benchmarks.fork_shared import BACKENDS, Bench
from benchmarks.maintenance_collect import collection
from benchmarks.maintenance_days import days
from benchmarks.maintenance_forks import dropped_forks
from benchmarks.program import begin
from benchmarks.report import Section
from forklake.localpg import LocalPostgres

PARTS = ("collect", "forks", "days")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    files: int
    forks: int
    days: int
    agents: int
    """That come in an hour."""
    hours: int = 24
    """Of each day."""


FULL = Scale(1_000_000, 100_000, 24, 10)
QUICK = Scale(100_000, 10_000, 6, 3)


def measured(part: str, scale: Scale, bench: Bench) -> Iterator[Section]:
    """The sections of one part, as they are done."""
    for backend in BACKENDS:
        match part:
            case "collect":
                yield collection(bench, backend, files=scale.files)
            case "forks":
                yield dropped_forks(bench, backend, forks=scale.forks)
            case _:
                yield days(bench, backend, days=scale.days, hours=scale.hours, agents=scale.agents)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = {
        "agents": "agents an hour in the part `days`",
        "days": "days of that part",
        "hours": "of each day",
    }
    program = begin("maintenance", __doc__, PARTS, arguments, options)
    scale = replace(QUICK if program.quick else FULL, **program.numbers)
    load = os.getloadavg()[0]
    for part in program.parts:
        # Each part has a server of its own, so none is slowed down by what another left behind.
        with LocalPostgres() as server, tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder:
            if part == program.parts[0]:
                print(f"{introduction(server.url, load)}\n", flush=True)
            for section in measured(part, scale, Bench(server.url, Path(folder), program.progress)):
                print(f"{section}\n", flush=True)
    program.progress("done")


if __name__ == "__main__":
    main()
