"""How far a stream has come, and how much more it takes at once. Pure.

A stream has everything up to a snapshot. If that was too much for one batch, it has only the first files of
the last one: those that the snapshot added, or those of the whole table if the stream began with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from forklake.errors import InvalidArgument
from forklake.model.table.files import DataFile
from forklake.spark.source.admission import ReadLimit, ReadMaxBytes, ReadMaxFiles, ReadMaxRows

Begin = Literal["table", "latest"]


@dataclass(frozen=True, slots=True)
class Offset:
    """A place between two batches."""

    snapshot: int = -1
    files: int | None = None
    """How many of the last snapshot's files are done, if not all."""
    table: bool = False
    """Whether those are the files of the table, and not what the snapshot added."""
    begin: Begin | None = None
    """Given before the first batch, unless it begins at a snapshot."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Offset:
        """As it stands in a checkpoint."""
        try:
            return cls(**given)
        except TypeError:
            raise InvalidArgument(
                f"{given!r} in the checkpoint is no place in a table: choose another one"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """As it goes into a checkpoint."""
        if self.begin is not None:
            return {"begin": self.begin}
        some: dict[str, Any] = {} if self.files is None else {"files": self.files}
        return {"snapshot": self.snapshot, **some, **({"table": True} if self.table else {})}

    @property
    def after(self) -> int:
        """The snapshot after which there is something left to read."""
        return self.snapshot if self.files is None else self.snapshot - 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that a snapshot brought."""

    snapshot: int
    rows: int
    size: int

    @classmethod
    def of(cls, file: DataFile) -> Arrival:
        """What counts of a file."""
        return cls(file.begin, file.record_count, file.file_size_bytes)


class Budget:
    """What a batch may still take; the first thing is taken whatever it costs, or nothing would ever come."""

    def __init__(self, limit: ReadLimit) -> None:
        """Begin a batch."""
        self._limit = limit
        self._taken = 0
        self._left = getattr(
            limit, "max_files", getattr(limit, "max_rows", getattr(limit, "max_bytes", None))
        )

    def takes(self, arrivals: Sequence[Arrival]) -> bool:
        """Whether these are taken, all or none."""
        match self._limit:
            case ReadMaxFiles():
                cost = len(arrivals)
            case ReadMaxRows():
                cost = sum(arrival.rows for arrival in arrivals)
            case ReadMaxBytes():
                cost = sum(arrival.size for arrival in arrivals)
            case _:
                cost = 0
        fits = self._left is None or self._taken == 0 or cost <= self._left
        if fits:
            self._taken += len(arrivals)
            self._left = None if self._left is None else self._left - cost
        return fits


def admitted_of_table(arrivals: Sequence[Arrival], done: int, limit: ReadLimit) -> int | None:
    """How many files of a table are done after a batch; None for all."""
    budget = Budget(limit)
    for at, arrival in enumerate(arrivals[done:], done):
        if not budget.takes([arrival]):
            return at
    return None


def admitted(
    arrivals: Sequence[Arrival], whole: frozenset[int], start: Offset, head: int, limit: ReadLimit
) -> Offset:
    """Where a batch ends. What a snapshot of `whole` did is never told in parts."""
    budget = Budget(limit)
    reached = start
    for snapshot, units in _by_snapshot(arrivals, whole, start):
        for done, unit in units:
            if not budget.takes(unit):
                return reached
            reached = Offset(snapshot, done)
        reached = Offset(snapshot)
    return Offset(head)


def _by_snapshot(
    arrivals: Sequence[Arrival], whole: frozenset[int], start: Offset
) -> Iterator[tuple[int, list[tuple[int, list[Arrival]]]]]:
    """What is left, snapshot by snapshot: what is taken together, and how many files are done then."""
    for snapshot, group in groupby(sorted(arrivals, key=lambda a: a.snapshot), lambda a: a.snapshot):
        files = list(group)
        done = (start.files or 0) if snapshot == start.snapshot else 0
        if snapshot in whole:
            yield snapshot, [(len(files), files)]
        else:
            yield snapshot, [(at + 1, [files[at]]) for at in range(done, len(files))]
