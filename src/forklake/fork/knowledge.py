"""What catalogs know of each other: which commits of which catalogs have come to each, by forks and merges.

A fork knows all that its parent knew, and a merge brings all that its source knew; so what a catalog knows is
told by one snapshot for each catalog that it has heard of. What one knows and the other does not is what a
merge has to bring, and what may stand in its way: exactly that, whatever ways it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from forklake.errors import MergeConflict
from forklake.model.changes import Change, Verb, from_footprint
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.snapshots import Head
from forklake.store.backend import Database

Known = dict[CatalogId, SnapshotId]
"""Up to which snapshot the commits of each catalog are known."""


class Span(NamedTuple):
    """Commits of one catalog."""

    catalog: CatalogId
    after: SnapshotId
    up_to: SnapshotId


@dataclass(frozen=True, slots=True)
class Relation:
    """How a source and a target stand to each other."""

    since: SnapshotId
    """Up to here, the target knows the history of the source."""
    ours: tuple[Span, ...]
    """What the source knows and the target does not."""
    theirs: tuple[Span, ...]
    """What the target knows and the source does not."""


@dataclass(frozen=True, slots=True)
class Events:
    """What was done in some commits, each where it was first made: a merge itself does nothing new."""

    changes: tuple[tuple[SnapshotId, Change], ...]
    commits: frozenset[SnapshotId] | None
    """The commits; None if whatever is there and was not there before counts, wherever it came from."""
    has_merges: bool = False
    """Whether there are merges among the commits."""

    @property
    def files(self) -> frozenset[int]:
        """The data files that rows were taken from."""
        return frozenset(file for _, change in self.changes for file in change.files)


def relation(database: Database, source: Head, target: Head) -> Relation | None:
    """What two catalogs know of each other; None if they have no ancestor in common."""
    reader = _Reader(database)
    reader.read_lineages([source.catalog_id, target.catalog_id])
    ours, theirs = (reader.inherited(head.catalog_id, head.snapshot_id) for head in (source, target))
    shared = {catalog: min(ours[catalog], theirs[catalog]) for catalog in ours.keys() & theirs.keys()}
    if not shared:
        return None
    # What was merged into ancestors of both, before they parted, both know alike.
    knows, known = (reader.closure(start, shared) for start in (ours, theirs))
    for catalog, snapshot in reader.merged_before(
        shared, (knows.keys() | known.keys()) - shared.keys()
    ).items():
        for one in (knows, known):
            one[catalog] = max(one.get(catalog, SnapshotId(-1)), snapshot)
    return Relation(
        max(min(known.get(catalog, SnapshotId(-1)), bound) for catalog, bound in ours.items()),
        tuple(_beyond(knows, known)),
        tuple(_beyond(known, knows)),
    )


def events(database: Database, spans: Iterable[Span]) -> Events:
    """What was done in some spans, in order."""
    changes: list[tuple[SnapshotId, Change]] = []
    commits: set[SnapshotId] = set()
    has_merges = False
    listed = json.dumps(list(spans))
    for number, footprint in database.rows("footprints_in_spans", spans=listed):
        found = read_footprint(number, footprint)
        if any(change.verb is Verb.MERGE_CATALOG for change in found):
            has_merges = True
            continue
        commits.add(SnapshotId(number))
        changes += [(SnapshotId(number), change) for change in found]
    return Events(tuple(changes), frozenset(commits), has_merges)


def read_footprint(snapshot: int, footprint: str | None) -> tuple[Change, ...]:
    """What a commit did."""
    if footprint is None:
        raise MergeConflict(
            f"snapshot {snapshot} was written by another program that did not say what it changed: "
            "it cannot be merged"
        )
    return from_footprint(footprint)


def _beyond(one: Known, other: Known) -> Iterable[Span]:
    for catalog, snapshot in sorted(one.items()):
        after = other.get(catalog, SnapshotId(-1))
        if snapshot > after:
            yield Span(catalog, after, snapshot)


class _Reader:
    """Reads lineages and merges, of many catalogs at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bounds: dict[CatalogId, Known] = {}

    def read_lineages(self, catalogs: Iterable[CatalogId]) -> None:
        """Whom some catalogs descend from, unless that is known."""
        missing = sorted(set(catalogs) - self._bounds.keys())
        if missing:
            for catalog, ancestor, bound in self._database.rows("lineages", catalogs=json.dumps(missing)):
                self._bounds.setdefault(catalog, {})[ancestor] = bound

    def inherited(self, catalog: CatalogId, at: SnapshotId) -> Known:
        """What a catalog knew at a snapshot, but for what was merged."""
        return {ancestor: min(bound, at) for ancestor, bound in self._bounds[catalog].items()}

    def closure(self, start: Known, floor: Mapping[CatalogId, SnapshotId]) -> Known:
        """With what was merged, over however many others; merges up to the floor are left out."""
        known, done = dict(start), dict(floor)
        while True:
            spans = [
                Span(catalog, done.get(catalog, SnapshotId(-1)), at)
                for catalog, at in known.items()
                if at > done.get(catalog, -1)
            ]
            if not spans:
                return known
            done |= {span.catalog: span.up_to for span in spans}
            self._learn(known, self._database.rows("merges_in_spans", spans=json.dumps(spans)))

    def merged_before(self, shared: Known, sources: Iterable[CatalogId]) -> Known:
        """What was merged of some catalogs before the ancestors of both parted."""
        found: Known = {}
        spans = json.dumps([Span(catalog, SnapshotId(-1), at) for catalog, at in shared.items()])
        wanted = json.dumps(sorted(sources))
        self._learn(found, self._database.rows("merges_of_sources", spans=spans, sources=wanted))
        return found

    def _learn(self, known: Known, merges: Iterable[tuple[int, int]]) -> None:
        listed = [(CatalogId(source), SnapshotId(snapshot)) for source, snapshot in merges]
        self.read_lineages(source for source, _ in listed)
        for source, snapshot in listed:
            for ancestor, bound in self.inherited(source, snapshot).items():
                known[ancestor] = max(known.get(ancestor, SnapshotId(-1)), bound)
