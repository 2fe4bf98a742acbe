"""Statistics as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that should hold, with what was found."""

    met: bool
    what: str
    found: str


@dataclass(frozen=True, slots=True)
class Section:
    """What one part of a report says."""

    title: str
    text: str
    targets: Sequence[Target] = ()

    def __str__(self) -> str:
        """All of it."""
        return "\n".join(filter(None, (f"== {self.title}", self.text, verdicts(self.targets))))


def table(heading: Row, rows: Iterable[Row]) -> str:
    """Columns side by side; the first is text and the others are numbers."""
    lines = [heading, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def verdicts(targets: Iterable[Target]) -> str:
    """One line for each target."""
    return "\n".join(
        f"{'PASS' if target.met else 'FAIL'}  {target.what}: {target.found}" for target in targets
    )
