"""Replaying a fork: what it did is put on top of another catalog as that is now, where it can be.

The fork gets what the other one did since, and keeps its own changes. Rows that both changed are as the other
one has them, and so are tables and other objects whose definitions both changed. What the fork did to those
is listed, and stays readable in its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from forklake.display import Shown
from forklake.errors import MergeConflict
from forklake.fork.definition_changes import kind_of
from forklake.fork.merge import SAME_ROWS, MergeOptions, Merger, Prepared
from forklake.model.changes import Conflict
from forklake.model.ids import SnapshotId
from forklake.model.progress import OnProgress
from forklake.model.snapshots import Author


@dataclass(frozen=True, slots=True)
class ReplayResult(Shown):
    """The result of a replay."""

    fork: str
    onto: str
    onto_snapshot: SnapshotId
    """The snapshot id of the other catalog on which the fork was replayed."""
    snapshot: SnapshotId | None
    """The new snapshot id of the fork; None if there was nothing to do, or with `dry_run`."""
    refused: tuple[Conflict, ...] = ()
    """Changes that could not be replayed: `ours` is the fork's, `theirs` the other catalog's."""


class ReplayActions(Protocol):
    """What a replay needs to be done to catalogs."""

    def restore_objects(self, objects: Iterable[int], since: SnapshotId) -> None:
        """Make objects of the fork again what they were at a snapshot."""
        ...

    def restore(self, snapshot: SnapshotId) -> None:
        """Make the fork again what it was at a snapshot, because the replay failed."""
        ...

    def temporary_fork(self, onto: str) -> AbstractContextManager[str]:
        """A fork of the other catalog, for as long as it is needed."""
        ...


class Replay:
    """Brings a fork up to date, whatever stands in the way."""

    def __init__(self, merger: Merger, actions: ReplayActions) -> None:
        """Do nothing yet."""
        self._merger = merger
        self._actions = actions

    def run(
        self, fork: str, onto: str, author: Author, *, dry_run: bool, progress: OnProgress | None = None
    ) -> ReplayResult:
        """Replay, or say what would happen."""
        if dry_run:
            found = self._merger.prepare(fork, onto, MergeOptions(progress=progress))
            at = found.compared.theirs.head.snapshot_id
            return ReplayResult(fork, onto, at, None, tuple(found.conflicts))
        with self._actions.temporary_fork(onto) as beside:
            # On top of the other catalog, definitions of the fork fit to rows that were written before them.
            found = self._merger.prepare(fork, beside, MergeOptions(progress=progress))
            before, at = (side.head.snapshot_id for side in (found.compared.ours, found.compared.theirs))
            objects = _objects(found)
            if objects:
                self._actions.restore_objects(objects, found.compared.relation.since)
            try:
                self._merger.merge(fork, beside, author, MergeOptions(prefer="target", progress=progress))
                result = self._merger.merge(
                    beside, fork, author, MergeOptions(prefer="source", progress=progress)
                )
            except MergeConflict:
                if objects:
                    self._actions.restore(before)
                raise
            return ReplayResult(fork, onto, at, result.snapshot, tuple(found.conflicts))


def _objects(found: Prepared) -> list[int]:
    """Objects of the fork that stand in the way with their definitions."""
    changes = [conflict.ours for conflict in found.conflicts if conflict.rule != SAME_ROWS]
    return sorted({change.object_id for change in changes if kind_of(change) is not None})
