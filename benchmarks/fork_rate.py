"""How many forks are made in a second: by processes at once, and in one commit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import forklake
from benchmarks.fork_shared import FEW, WORKERS, Bench, ms
from benchmarks.harness import Change, Crew, Tally
from benchmarks.many_files import Backend
from benchmarks.report import Section, Target, table

LEAST = 1_000
LEAST_IN_ONE = 20_000
_RAMP = 0.5


@dataclass(frozen=True, slots=True)
class Forker:
    """A process that makes forks of one parent."""

    url: str
    name: str

    @contextmanager
    def open(self) -> Iterator[Change]:
        """Through the public interface, like any user."""
        numbers = count()

        def fork() -> None:
            lake.fork("bench", f"{self.name}_{next(numbers)}")

        with forklake.connect(self.url) as lake:
            yield fork


@dataclass(frozen=True, slots=True)
class _Figure:
    forkers: int
    rates: tuple[float, ...]
    tallies: tuple[Tally, ...]

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def errors(self) -> list[str]:
        return sorted({error for tally in self.tallies for error in tally.errors})


def rate(bench: Bench, backend: Backend, *, seconds: float, rounds: int, many: int) -> Section:
    """Fork one parent from processes of their own, then very often in one commit."""
    place = bench.lake_of_files(backend, "rate", FEW)
    bench.progress(f"{backend}: forks from 1 and {WORKERS} processes, {rounds} rounds of {seconds:g} s each")
    measured = _measured(place.url, seconds, rounds)
    bench.progress(f"{backend}: {many:,} forks in one commit")
    with forklake.connect(place.url) as lake:
        names = [f"one_of_many_{number}" for number in range(many)]
        began = time.perf_counter()
        made = lake.fork_many("bench", names)
        taken = time.perf_counter() - began
    assert [one.name for one in made] == names
    lines = [
        (
            f"fork, {figure.forkers} process{'es' if figure.forkers > 1 else ''}",
            f"{figure.rate:,.0f}",
            ms(statistics.median(tally.latency for tally in figure.tallies)),
            ms(statistics.median(tally.cpu for tally in figure.tallies)),
        )
        for figure in measured
    ]
    lines.append((f"fork_many, {many:,} in one commit", f"{many / taken:,.0f}", "", ms(taken / many)))
    lines += [(f"  {error}", "", "", "") for figure in measured for error in figure.errors]
    text = table(("", "forks/s", "latency", "client's time for each"), lines)
    failed = sum(sum(tally.errors.values()) for figure in measured for tally in figure.tallies)
    found = [Target(not failed, "no fork fails", f"{failed} failed")]
    if backend == "PostgreSQL":
        last = measured[-1].rate
        what = f"at least {LEAST:,} forks/s from {WORKERS} processes"
        found.append(Target(last >= LEAST, what, f"{last:,.0f}/s"))
        what = f"at least {LEAST_IN_ONE:,} forks/s in one commit"
        found.append(Target(many / taken >= LEAST_IN_ONE, what, f"{many / taken:,.0f}/s"))
    return Section(f"rate: forks of one parent on {backend}", text, found)


def _measured(url: str, seconds: float, rounds: int) -> list[_Figure]:
    rates: dict[int, list[float]] = {1: [], WORKERS: []}
    tallies: dict[int, list[Tally]] = {1: [], WORKERS: []}
    with Crew(WORKERS) as crew:
        for turn in range(rounds):
            for number in rates:
                crew.prepare([Forker(url, f"fork_{number}_{turn}_{place}") for place in range(number)])
                done = crew.go(number, ramp=_RAMP, seconds=seconds)
                rates[number].append(sum(tally.done for tally in done) / seconds)
                tallies[number] += done
    return [_Figure(number, tuple(found), tuple(tallies[number])) for number, found in rates.items()]
