"""What two catalogs have in common: the state from which their changes are told apart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from forklake.model.ids import CatalogId, SnapshotId


class Merge(NamedTuple):
    """Something that a catalog did was brought into another, or into one of its ancestors."""

    source: CatalogId
    source_snapshot: SnapshotId
    snapshot: SnapshotId
    """The commit that brought it."""


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Whom a catalog descends from, and what was merged into it."""

    bounds: Mapping[CatalogId, SnapshotId]
    """Up to which snapshot it holds what each of them did; itself without bound."""
    merges: tuple[Merge, ...] = ()

    def holds(self, merge: Merge) -> bool:
        """Whether what was merged elsewhere comes from this catalog or its ancestors."""
        return merge.source_snapshot <= self.bounds.get(merge.source, -1)


@dataclass(frozen=True, slots=True)
class MergeBase:
    """The last state that a source and a target had in common."""

    seen_by: Literal["source", "target"]
    snapshot: SnapshotId
    """The state is that of the source, or of the target, at this snapshot."""
    since: SnapshotId
    """What the source did after this may be missing in the target."""
    known: SnapshotId
    """What the target did up to here, the source knows."""
    known_merges: frozenset[SnapshotId]
    """And these later commits of the target too: they brought what the source had done."""


def merge_base(source: Ancestry, target: Ancestry) -> MergeBase | None:
    """The base for merging one catalog into another; None if they have nothing in common.

    Two catalogs were last alike where they parted, or where one was merged into the other; the latest of
    these moments counts. An ancestor's moments are those of its descendants, up to where they left it.
    """
    shared = source.bounds.keys() & target.bounds.keys()
    if not shared:
        return None
    parted = max(min(source.bounds[catalog], target.bounds[catalog]) for catalog in shared)
    given = [merge for merge in target.merges if source.holds(merge)]
    taken = [merge for merge in source.merges if target.holds(merge)]
    known = max([parted, *(merge.source_snapshot for merge in taken)])
    merges = frozenset(merge.snapshot for merge in given)
    last_given = max(given, key=lambda merge: merge.snapshot, default=None)
    last_taken = max(taken, key=lambda merge: merge.snapshot, default=None)
    if last_given and last_given.snapshot > max(parted, last_taken.snapshot if last_taken else -1):
        at = last_given.source_snapshot
        return MergeBase("source", at, at, known, merges)
    if last_taken and last_taken.snapshot > parted:
        return MergeBase("target", last_taken.source_snapshot, parted, known, merges)
    return MergeBase("source", parted, parted, known, merges)
