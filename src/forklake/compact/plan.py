"""Which files become which: from the files of a table to rewrites, each of which anybody can run. Pure.

A rewrite says all that is needed to run it elsewhere, and travels as JSON. Files that are near the size that
files should have stay as they are. Files of different partitions never become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from forklake.model.entities import Table
from forklake.model.ids import SnapshotId
from forklake.model.json_values import from_text, to_text
from forklake.model.table.files import DataFile
from forklake.model.table.name_mapping import Mapping
from forklake.model.table.write_target import WriteTarget

Why = Literal["small", "deletes", "inlined", "layout", "empty"]

_CHEAP = 16 * 2**20
"""Files up to this size are merged whatever they are merged with."""
_MUCH = 4
"""A larger file is left alone if all that it would be merged with is so many times smaller."""
_INLINED_SHRINK = 4
"""How many times larger inlined rows are, as text, than they will be in a file; roughly."""
_UNSORTED = "~~~"

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """A file to be rewritten, and the rows that are left out of it."""

    file: DataFile
    deleted: tuple[int, ...] = ()
    """Positions that are gone beside those that its delete file names."""
    content: str | None = None
    """The rows themselves, if they live in the metadata database."""
    partition_values: Values = ()
    low: str | None = None
    """The smallest key of the column that rows are sorted by first."""

    @property
    def deleted_rows(self) -> int:
        """How many rows are gone."""
        named = 0 if self.file.deletes is None else self.file.deletes.own_count
        return named + len(self.deleted)

    @property
    def live_rows(self) -> int:
        """The number of rows that are not deleted."""
        return self.file.record_count - self.deleted_rows

    @property
    def live_bytes(self) -> int:
        """About how large its rows will be in another file."""
        size = self.file.file_size_bytes
        if self.content is not None:
            size = len(self.content) // _INLINED_SHRINK
        return size * self.live_rows // max(self.file.record_count, 1)


@dataclass(frozen=True, slots=True)
class Target:
    """The table whose files are rewritten, and where new ones go."""

    table: Table
    at: SnapshotId
    """The snapshot that was looked at."""
    write: WriteTarget
    mappings: tuple[Mapping, ...] = ()
    """The names that imported files have for columns."""
    has_old_names: bool = False
    """Whether files may know fields inside structs by other names than the table does now."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A planned rewrite: the live rows of some files become new files."""

    target: Target
    inputs: tuple[Input, ...]
    why: tuple[Why, ...]
    partition_values: Values | None = None
    """The partition of all rows; None if rows are of several partitions, or there are none."""

    @property
    def newest_row(self) -> SnapshotId:
        """The last of the snapshots that inserted the rows."""
        return max(
            one.file.begin if one.file.newest_row is None else one.file.newest_row for one in self.inputs
        )

    @property
    def live_rows(self) -> int:
        """The number of rows that the new files will have."""
        return sum(one.live_rows for one in self.inputs)

    def to_json(self) -> str:
        """The rewrite as JSON, for the process that runs it."""
        return to_text(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Rewrite:
        """Parse the JSON that `to_json` returned."""
        return from_text(cls, text)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the small files of a table are merged."""

    min_bytes: int = 0
    """Only files that are at least so large."""
    max_bytes: int | None = None
    """Only files that are smaller."""
    most: int | None = None
    """At most so many merges."""
    inlined: bool = True
    """Whether inlined rows get a file as well."""

    def takes(self, one: Input) -> bool:
        """Whether a file, or inlined rows, may be merged."""
        if one.file.inlined:
            return self.inlined
        size = one.file.file_size_bytes
        return size >= self.min_bytes and (self.max_bytes is None or size < self.max_bytes)


ALL = Choice()


def plan_merges(
    target: Target, inputs: Iterable[Input], *, least: int = 2, choice: Choice = ALL
) -> tuple[Rewrite, ...]:
    """Merge small files where there are at least so many in a partition, and give inlined rows a file."""
    size = target.write.options.target_file_size
    small = [
        one
        for one in inputs
        if choice.takes(one) and (one.file.inlined or one.live_bytes * 4 < size * 3 or not one.live_rows)
    ]
    found = _rewrites(target, small, lambda bunch: _worthwhile(bunch, target, least))
    return tuple(islice(found, choice.most))


def plan_deletes(target: Target, inputs: Iterable[Input], threshold: float) -> tuple[Rewrite, ...]:
    """Rewrite the files of which at least such a share of the rows is deleted."""
    holed = [
        one
        for one in inputs
        if one.deleted_rows and not one.file.inlined and one.deleted_rows >= threshold * one.file.record_count
    ]
    return tuple(_rewrites(target, holed, lambda bunch: bunch))


def _rewrites(
    target: Target, inputs: Sequence[Input], chosen: Callable[[Sequence[Input]], Sequence[Input]]
) -> Iterator[Rewrite]:
    partitions: dict[Values | None, list[Input]] = {}
    for one in inputs:
        partitions.setdefault(_partition(one, target), []).append(one)
    for values, found in partitions.items():
        for bunch in _bunches(found, target.write.options.target_file_size):
            kept = chosen(bunch)
            if kept:
                yield Rewrite(target, tuple(kept), _why(kept, target), values)


def _partition(one: Input, target: Target) -> Values | None:
    """Where the rows of a file are, if its partitioning is the present one."""
    current = target.write.partitioning
    return one.partition_values if current is not None and one.file.partition_id == current.id else None


def _bunches(inputs: Sequence[Input], most: int) -> Iterator[list[Input]]:
    """Neighbours, as many as make one file: in the order of the table's rows, or in which they came."""
    bunch: list[Input] = []
    size = 0
    for one in sorted(inputs, key=lambda one: (one.low or _UNSORTED, one.file.begin, one.file.id)):
        if bunch and size + one.live_bytes > most:
            yield bunch
            bunch, size = [], 0
        bunch.append(one)
        size += one.live_bytes
    if bunch:
        yield bunch


def _worthwhile(bunch: Sequence[Input], target: Target, least: int) -> Sequence[Input]:
    """Without files that would be written again for the sake of very little."""
    kept = list(bunch)
    while len(kept) > 1:
        largest = max(kept, key=lambda one: one.live_bytes)
        rest = sum(one.live_bytes for one in kept) - largest.live_bytes
        if _must(largest, target) or largest.live_bytes <= _CHEAP or rest * _MUCH >= largest.live_bytes:
            break
        kept.remove(largest)
    if len(kept) >= max(least, 2):
        return kept
    return [one for one in kept if _must(one, target)]


def _must(one: Input, target: Target) -> bool:
    """Whether a file is not to stay whatever else there is."""
    return one.file.inlined or not one.live_rows or _is_misplaced(one, target)


def _is_misplaced(one: Input, target: Target) -> bool:
    return target.write.partitioning is not None and one.file.partition_id != target.write.partitioning.id


def _why(inputs: Sequence[Input], target: Target) -> tuple[Why, ...]:
    files = [one for one in inputs if not one.file.inlined]
    reasons: dict[Why, bool] = {
        "inlined": len(files) < len(inputs),
        "layout": any(_is_misplaced(one, target) for one in files),
        "deletes": any(one.deleted_rows for one in files),
        "empty": not any(one.live_rows for one in inputs),
        "small": len(files) > 1,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
