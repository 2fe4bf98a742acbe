"""Replaying a fork: what it did is put on top of another catalog as that is now, where it can be.

The fork gets what the other one did since, and keeps its own changes, also those of tables that only the
other one altered. Rows that both changed are as the other one has them, and so are tables and other objects
whose definitions both changed. What the fork did to those is listed, and stays readable in its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from forklake.commit.conflicts import YIELDING
from forklake.display import Shown
from forklake.errors import MergeConflict
from forklake.fork.definition_changes import kind_of
from forklake.fork.merge import SAME_ROWS, MergeOptions, Merger
from forklake.model.changes import Conflict
from forklake.model.ids import SnapshotId, TableId
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
            found = self._compare(fork, onto, progress)
            return ReplayResult(fork, onto, found.at, None, found.refused)
        with self._actions.temporary_fork(onto) as beside:
            # On top of the other catalog, definitions of the fork fit to rows that were written before them.
            found = self._compare(fork, beside, progress)
            if found.objects:
                self._actions.restore_objects(found.objects, found.since)
            made: SnapshotId | None = None
            try:
                # What was dropped here and altered there comes back as it was, and is altered then.
                first = self._mergeable(fork, beside, {*found.tables, *found.outdated})
                if first:
                    some = MergeOptions("source", table_ids=tuple(sorted(first)), progress=progress)
                    made = self._merger.merge(beside, fork, author, some).snapshot
                self._merger.merge(fork, beside, author, MergeOptions("target", progress=progress))
                rest = MergeOptions("source", progress=progress)
                made = self._merger.merge(beside, fork, author, rest).snapshot or made
            except MergeConflict:
                if found.objects or found.outdated:
                    self._actions.restore(found.before)
                raise
            return ReplayResult(fork, onto, found.at, made, found.refused)

    def _compare(self, fork: str, onto: str, progress: OnProgress | None) -> _Compared:
        """What stands in the way, and what the fork gets before its own changes are put on top of it."""
        found = self._merger.prepare(fork, onto, MergeOptions(progress=progress))
        met: dict[int, set[str]] = {}
        for conflict in found.conflicts:
            if kind_of(conflict.ours) is not None and conflict.rule != SAME_ROWS:
                met.setdefault(conflict.ours.object_id, set()).add(conflict.rule)
        outdated = self._mergeable(fork, onto, {number for number, rules in met.items() if rules <= YIELDING})
        ours, theirs = found.compared.ours.head, found.compared.theirs.head
        return _Compared(
            ours.snapshot_id,
            theirs.snapshot_id,
            found.compared.relation.since,
            tuple(sorted(met.keys() - outdated)),
            tuple(sorted(n for n in met.keys() - outdated if found.compared.theirs.table(n) is not None)),
            tuple(sorted(outdated)),
            tuple(
                conflict
                for conflict in found.conflicts
                if conflict.rule == SAME_ROWS or conflict.ours.object_id not in outdated
            ),
        )

    def _mergeable(self, fork: str, onto: str, tables: set[int]) -> set[TableId]:
        """Those of some tables whose definitions the fork can take over, and keep its changes."""
        left = set(map(TableId, tables))
        while left:
            options = MergeOptions("source", table_ids=tuple(sorted(left)))
            found = self._merger.prepare(onto, fork, options)
            met = {TableId(conflict.ours.object_id) for conflict in found.conflicts}
            if not met:
                break
            left = left - met if met & left else set()
        return left


@dataclass(frozen=True, slots=True)
class _Compared:
    """A fork and another catalog, before a replay."""

    before: SnapshotId
    """Where the fork stands."""
    at: SnapshotId
    """Where the other one stands."""
    since: SnapshotId
    """Up to here, the other one has seen the history of the fork."""
    objects: tuple[int, ...]
    """Objects of the fork that stand in the way with their definitions, or with rows that fit to none."""
    tables: tuple[int, ...]
    """Those of them that are tables of the other one."""
    outdated: tuple[TableId, ...]
    """Tables that only the other one altered: what the fork wrote fits to their new definitions."""
    refused: tuple[Conflict, ...]
