"""Contenders in one process, in turns: every round runs all of them, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a contender took, round by round."""

    title: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    """What all threads used; a busy machine changes that less."""

    @property
    def cpu(self) -> float:
        """Seconds of CPU of a round in the middle."""
        return statistics.median(self.cpu_seconds)

    @property
    def median(self) -> float:
        """Seconds of a round in the middle."""
        return statistics.median(self.seconds)


Timings = dict[str, Timing]


def in_turns(
    contenders: Mapping[str, Work],
    rounds: int,
    *,
    before: Callable[[], object] = lambda: None,
    warm: bool = True,
    cpu: Callable[[], float] = time.process_time,
) -> Timings:
    """Time every contender once in each round. With `warm`, each ran once before, unmeasured.

    `cpu` says how much has been used so far, for those that do not work in this process alone.
    """
    for work in contenders.values() if warm else ():
        work()
    taken: dict[str, list[tuple[float, float]]] = {title: [] for title in contenders}
    for turn in range(rounds):
        # Nobody is always the one that follows another.
        for title in reversed(contenders) if turn % 2 else contenders:
            before()
            used, began = cpu(), time.perf_counter()
            contenders[title]()
            taken[title].append((time.perf_counter() - began, cpu() - used))
    return {title: Timing(title, *zip(*found, strict=True)) for title, found in taken.items()}


def cost(one: Timing, other: Timing) -> float:
    """How many times as long one took: the median over rounds, as noise hits neighbours alike."""
    return statistics.median(a / b for a, b in zip(one.seconds, other.seconds, strict=True))


def cpu_cost(one: Timing, other: Timing) -> float:
    """How many times the CPU one used, which a busy machine changes less."""
    return statistics.median(a / b for a, b in zip(one.cpu_seconds, other.cpu_seconds, strict=True))


def seconds(value: float) -> str:
    """A time as people read it."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def same(answers: Mapping[str, Any]) -> None:
    """Refuse to compare contenders that do not say the same."""
    (first, expected), *others = answers.items()
    for title, found in others:
        if found != expected:
            raise AssertionError(f"{title} says {found!r}, and {first} says {expected!r}")
