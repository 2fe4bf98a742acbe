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
STRETCH = 4
"""How much longer slow ones are counted."""


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
    rates: dict[int, float]
    """By round."""
    slowest: float
    latency: float
    cpu: float
    wal: float
    failed: int
    errors: dict[str, int]


TableStatistics = dict[tuple[str, int], Figure]
"""By contender and number of writers."""


@dataclass(frozen=True, slots=True)
class Race:
    """How long and how often to measure."""

    server: str
    folder: Path
    rounds: int
    seconds: float
    ramp: float

    def run(self, entries: Sequence[Entry], said: Callable[[str], None]) -> TableStatistics:
        """Measure every entry in every round, slow ones in every other."""
        steps = [
            (turn, contender, writers)
            for turn in range(self.rounds)
            for contender, writers in entries
            if not (contender.slow and turn % 2)
        ]
        results: dict[tuple[str, int], dict[int, Result]] = {}
        with Crew(max(writers for _, writers in entries)) as crew:
            for step, (turn, contender, writers) in enumerate(steps, 1):
                result = self._measure(crew, contender, writers, f"run_{step}")
                results.setdefault((contender.title, writers), {})[turn] = result
                failed = f", {result.errors.total()} failed" if result.errors else ""
                told = f"{contender.title}, {writers}: {result.rate:.0f} commits/s{failed}"
                said(f"[{step}/{len(steps)}] {told}")
        return {key: _figure(*key, found) for key, found in results.items()}

    def _measure(self, crew: Crew, contender: Contender, writers: int, schema: str) -> Result:
        seconds = self.seconds * (STRETCH if contender.slow and writers > 1 else 1)
        with psycopg.connect(self.server, autocommit=True) as connection:
            crew.prepare(contender.make(self.server, schema, self.folder, writers))
            (before,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
            tallies = crew.go(writers, ramp=self.ramp, seconds=seconds)
            (wal,) = connection.execute("SELECT pg_current_wal_lsn() - %s", [before]).fetchone() or (0,)
            # What is gone needs no vacuum while the next one is measured.
            _drop(connection, schema)
        return _result(tallies, float(wal), seconds)


def ratio(one: Figure, other: Figure) -> float:
    """How many times faster one is: the median over rounds, as what disturbs one disturbs its neighbour."""
    both = one.rates.keys() & other.rates.keys()
    return statistics.median(one.rates[turn] / max(other.rates[turn], 1e-9) for turn in both)


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


def _figure(contender: str, writers: int, found: dict[int, Result]) -> Figure:
    results = list(found.values())
    errors = sum((result.errors for result in results), Counter[str]())
    return Figure(
        contender,
        writers,
        statistics.median(result.rate for result in results),
        {turn: result.rate for turn, result in found.items()},
        statistics.median(result.slowest for result in results),
        statistics.median(result.latency for result in results),
        statistics.median(result.cpu for result in results),
        statistics.median(result.wal for result in results),
        errors.total(),
        dict(errors),
    )
