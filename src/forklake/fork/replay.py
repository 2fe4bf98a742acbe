"""Replaying a fork: what it did is put on top of another catalog as that is now, where it can be.

The fork gets what the other one did since, and keeps its own changes. Rows that both changed are as the other
one has them, and so are tables and other objects whose definitions both changed. What the fork did to those
is listed, and stays readable in its history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from forklake.errors import MergeConflict, StoreBusy
from forklake.fork.merge import SAME_ROWS, MergeOptions, Merging, Prepared
from forklake.fork.net import kind_of
from forklake.model.changes import Conflict
from forklake.model.ids import SnapshotId
from forklake.model.snapshots import Author

ATTEMPTS = 100

TakeBack = Callable[[Iterable[int], SnapshotId], None]
"""Makes objects of the fork again what they were at a snapshot."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What became of the commits of a fork."""

    fork: str
    onto: str
    onto_snapshot: SnapshotId
    """The snapshot of the other catalog that the fork stands on now."""
    snapshot: SnapshotId | None
    """The commit of the fork; None if there was nothing to do, or nothing was to be written."""
    refused: tuple[Conflict, ...] = ()
    """What could not be made again: `theirs` is the change of the fork, `rows()` has the rows."""


class Replay:
    """Brings a fork up to date, whatever stands in the way."""

    def __init__(self, merging: Merging, take_back: TakeBack) -> None:
        """Do nothing yet."""
        self._merging = merging
        self._take_back = take_back

    def run(self, fork: str, onto: str, author: Author, *, dry_run: bool) -> ReplayResult:
        """Replay, or say what would happen."""
        refused: dict[Conflict, None] = {}
        for _ in range(ATTEMPTS):
            found = self._merging.prepare(onto, fork, MergeOptions())
            refused |= dict.fromkeys(found.conflicts)
            at = found.compared.ours.head.snapshot_id
            if dry_run:
                return ReplayResult(fork, onto, at, None, tuple(refused))
            objects = _objects(found)
            if objects:
                self._take_back(objects, found.compared.relation.theirs_since)
            try:
                result = self._merging.merge(onto, fork, author, MergeOptions(prefer="source"))
            except MergeConflict:
                # Somebody has changed one of the two meanwhile.
                continue
            return ReplayResult(fork, onto, result.source_snapshot, result.snapshot, tuple(refused))
        raise StoreBusy(f'"{fork}" or "{onto}" changed {ATTEMPTS} times while it was replayed: try again')


def _objects(found: Prepared) -> list[int]:
    """Objects of the fork that stand in the way with their definitions."""
    changes = [conflict.theirs for conflict in found.conflicts if conflict.rule != SAME_ROWS]
    return sorted({change.object_id for change in changes if kind_of(change) is not None})
