"""Contenders in turns: every round measures all of them, so that noise hits all alike."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.contenders import Contender
from benchmarks.harness import Crew, Tally

Entry = tuple[Contender, int]
"""A contender with a number of writers."""


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement."""

    rate: float
    """Commits of all writers in a second."""
    slowest: float
    """Commits of the slowest writer, as a share of the mean."""
    latency: float
    cpu: float
    """Seconds of the client's CPU for each commit."""
    wal: float
    """Bytes of write-ahead log for each commit."""
    errors: Counter[str]


@dataclass(frozen=True, slots=True)
class Figure:
    """The medians of several measurements, and all failures."""

    contender: str
    writers: int
    rate: float
    rates: tuple[float, ...]
    slowest: float
    latency: float
    cpu: float
    wal: float
    failed: int
    errors: dict[str, int]


@dataclass(frozen=True, slots=True)
class Race:
    """How long and how often to measure."""

    server: str
    folder: Path
    rounds: int
    seconds: float
    ramp: float

    def run(self, entries: Sequence[Entry], said: Callable[[str], None]) -> dict[tuple[str, int], Figure]:
        """Measure every entry in every round."""
        results: dict[tuple[str, int], list[Result]] = {}
        steps = self.rounds * len(entries)
        with Crew(max(writers for _, writers in entries)) as crew:
            for step in range(steps):
                contender, writers = entries[step % len(entries)]
                result = self._measure(crew, contender, writers, f"run_{step}")
                results.setdefault((contender.title, writers), []).append(result)
                failed = f", {result.errors.total()} failed" if result.errors else ""
                said(
                    f"[{step + 1}/{steps}] {contender.title}, {writers}: {result.rate:.0f} commits/s{failed}"
                )
        return {key: _figure(*key, found) for key, found in results.items()}

    def _measure(self, crew: Crew, contender: Contender, writers: int, schema: str) -> Result:
        seconds = self.seconds * contender.stretch
        with psycopg.connect(self.server, autocommit=True) as connection:
            crew.prepare(contender.make(self.server, schema, self.folder, writers))
            (before,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
            tallies = crew.go(writers, ramp=self.ramp, seconds=seconds)
            (wal,) = connection.execute("SELECT pg_current_wal_lsn() - %s", [before]).fetchone() or (0,)
            # What is gone needs no vacuum while the next one is measured.
            _drop(connection, schema)
        return _result(tallies, float(wal), seconds)


def _drop(connection: psycopg.Connection[tuple[str, ...]], prefix: str) -> None:
    query = "SELECT nspname FROM pg_namespace WHERE nspname = %s OR starts_with(nspname, %s)"
    for (schema,) in connection.execute(query, [prefix, f"{prefix}_"]).fetchall():
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def _result(tallies: Sequence[Tally], wal: float, seconds: float) -> Result:
    done = [tally.done for tally in tallies]
    return Result(
        sum(done) / seconds,
        min(done) / statistics.mean(done) if any(done) else 0.0,
        statistics.median(tally.latency for tally in tallies),
        statistics.mean(tally.cpu for tally in tallies),
        wal / max(sum(tally.total for tally in tallies), 1),
        sum((tally.errors for tally in tallies), Counter[str]()),
    )


def _figure(contender: str, writers: int, found: Sequence[Result]) -> Figure:
    errors = sum((result.errors for result in found), Counter[str]())
    return Figure(
        contender,
        writers,
        statistics.median(result.rate for result in found),
        tuple(result.rate for result in found),
        statistics.median(result.slowest for result in found),
        statistics.median(result.latency for result in found),
        statistics.median(result.cpu for result in found),
        statistics.median(result.wal for result in found),
        errors.total(),
        dict(errors),
    )
