"""What forks cost: one, very many, deep chains of them, and agents that each work in one and merge back.

`python -m benchmarks.fork` starts a throwaway PostgreSQL with fsync on, measures part by part there and on
SQLite, and prints each part as soon as it is there.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.fork_agents import agents, appends
from benchmarks.fork_chain import chain
from benchmarks.fork_latency import latency
from benchmarks.fork_million import million
from benchmarks.fork_rate import rate
from benchmarks.fork_shared import BACKENDS, Bench
from benchmarks.fork_updates import updates
from benchmarks.program import begin
from benchmarks.report import Section
from forklake.localpg import LocalPostgres

PARTS = ("fork", "rate", "million", "chain", "agents", "updates")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure."""

    files: int
    forks: int
    copied_files: int
    copies: int
    seconds: float
    rounds: int
    many: int
    million: int
    levels: int
    chain_files: int
    agents: int
    embedded_agents: int
    """On SQLite, where one writes at a time."""
    updated_rows: int
    """Of the table that agents update."""
    updating_agents: int


FULL = Scale(
    1_000_000, 1_000, 10_000, 10, 3.0, 5, 100_000, 1_000_000, 500, 100_000, 1_000, 200, 10_000_000, 1_000
)
QUICK = Scale(100_000, 500, 10_000, 3, 1.5, 3, 20_000, 50_000, 100, 10_000, 100, 40, 200_000, 20)


def measured(part: str, scale: Scale, bench: Bench) -> Iterator[Section]:
    """The sections of one part, as they are done."""
    match part:
        case "fork":
            for backend in BACKENDS:
                yield latency(
                    bench,
                    backend,
                    files=scale.files,
                    forks=scale.forks,
                    copied_files=scale.copied_files,
                    copies=scale.copies,
                )
        case "rate":
            for backend in BACKENDS:
                yield rate(bench, backend, seconds=scale.seconds, rounds=scale.rounds, many=scale.many)
        case "million":
            yield million(bench, forks=scale.million)
        case "chain":
            for backend in BACKENDS:
                yield chain(bench, backend, levels=scale.levels, files=scale.chain_files)
        case "updates":
            for backend in BACKENDS:
                yield updates(bench, backend, rows=scale.updated_rows, agents=scale.updating_agents)
        case _:
            yield from _with_agents(scale, bench)


def _with_agents(scale: Scale, bench: Bench) -> Iterator[Section]:
    for backend in BACKENDS:
        number = scale.agents if backend == "PostgreSQL" else scale.embedded_agents
        yield agents(bench, backend, agents=number)
        yield appends(bench, backend)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    program = begin("fork", __doc__, PARTS, arguments)
    scale = QUICK if program.quick else FULL
    load = os.getloadavg()[0]
    for part in program.parts:
        # Each part has a server of its own, so none is slowed down by what another left behind.
        with LocalPostgres() as server, tempfile.TemporaryDirectory(prefix="forklake-bench-") as folder:
            if part == program.parts[0]:
                print(f"{introduction(server.url, load)}\n", flush=True)
            for section in measured(part, scale, Bench(server.url, Path(folder), program.progress)):
                print(f"{section}\n", flush=True)
    program.progress("done")


def introduction(server: str, load: float) -> str:
    """What was measured, and where."""
    with psycopg.connect(server) as connection:
        (version,) = connection.execute("SHOW server_version").fetchone() or ("",)
        (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
    return (
        f"PostgreSQL {version} on loopback, fsync {fsync}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores, load average {load:.1f} before the start."
    )


if __name__ == "__main__":
    main()
