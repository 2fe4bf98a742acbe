"""How far a piece of work is: one value for all verbs, and what counts its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from forklake.errors import InvalidArgument

ROWS_AT_ONCE = 10_000
"""Rows are not reported one by one: so many have to come in between."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a piece of work is. Work that is done again, since others got in between, counts from 0."""

    what: str
    """What is being done: `append to main.orders`. A verb may consist of several pieces of work."""
    done: int
    total: int | None
    """How many there are; None if that is not known before."""
    unit: str
    """What is counted: `rows`, `files`, `tables`, `catalogs`, …"""


OnProgress = Callable[[Progress], None]
"""Called with every report, in the thread that does the work. What it raises ends the work."""


class Steps:
    """Counts the steps of one piece of work, and reports them if somebody wants to know."""

    def __init__(
        self, report: OnProgress | None, what: str, unit: str, total: int | None = None, *, every: int = 1
    ) -> None:
        """Report the beginning, unless there is nothing to do; then after at least `every` steps."""
        if report is not None and not callable(report):
            raise InvalidArgument(
                f"progress is a function that takes each report, not a {type(report).__name__}"
            )
        self._report = report
        self._what = what
        self._unit = unit
        self._total = total
        self._every = every
        self._done = 0
        self._reported = 0
        if total != 0:
            self._tell()

    def add(self, number: int = 1) -> None:
        """Count steps that are done."""
        self._done += number
        if self._done - self._reported >= self._every:
            self._tell()

    def end(self) -> None:
        """Report the last steps, if they were too few for a report of their own."""
        if self._done != self._reported:
            self._tell()

    def over(self, items: Iterable[T], size: Callable[[T], int] | None = None) -> Iterator[T]:
        """The same items; each is done, with as many steps as its size, when the next is asked for."""
        for item in items:
            yield item
            self.add(1 if size is None else size(item))
        self.end()

    def _tell(self) -> None:
        self._reported = self._done
        if self._report is not None:
            self._report(Progress(self._what, self._done, self._total, self._unit))
