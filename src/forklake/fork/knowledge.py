"""What catalogs know of each other: which commits of which catalogs have come to each, by forks and merges.

A fork knows all that its parent knew, and a merge brings all that its source knew; so what a catalog knows is
told by one snapshot for each catalog that it has heard of. What one knows and the other does not is what a
merge has to bring, and what may stand in its way: exactly that, whatever ways it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from forklake.errors import MergeConflict
from forklake.model.changes import Change, Verb, from_footprint
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.snapshots import Head
from forklake.store.backend import Database

Known = dict[CatalogId, SnapshotId]
"""Up to which snapshot the commits of each catalog are known."""


NOTHING = SnapshotId(-1)


class Span(NamedTuple):
    """Commits of one catalog."""

    catalog: CatalogId
    after: SnapshotId
    up_to: SnapshotId


@dataclass(frozen=True, slots=True)
class News:
    """What one catalog knows and another does not."""

    spans: tuple[Span, ...]
    whole: frozenset[SnapshotId]
    """Merges among the commits that brought nothing but news: they tell it as well as what they brought."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How a source and a target stand to each other."""

    since: SnapshotId
    """Up to here, the target knows the history of the source."""
    ours: News
    """Of the source."""
    theirs: News
    """Of the target."""


@dataclass(frozen=True, slots=True)
class Events:
    """What was done in some commits, each told once: by itself, or by a merge that brought it."""

    changes: tuple[tuple[SnapshotId, Change], ...]
    commits: frozenset[SnapshotId] | None
    """The commits; None if whatever is there and was not there before counts, wherever it came from."""
    has_merges: bool = False
    """Whether there are merges among the commits that brought more than news."""

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
    others = (knows.keys() | known.keys()) - shared.keys()
    for catalog, snapshot in reader.merged_before(shared, others).items():
        for one in (knows, known):
            one[catalog] = max(one.get(catalog, NOTHING), snapshot)
    return Relation(
        max(min(known.get(catalog, NOTHING), bound) for catalog, bound in ours.items()),
        reader.news(ours, shared, known),
        reader.news(theirs, shared, knows),
    )


def events(database: Database, news: News) -> Events:
    """What was done, in order."""
    changes: list[tuple[SnapshotId, Change]] = []
    commits: set[SnapshotId] = set()
    has_merges = False
    for number, footprint in database.rows("footprints_in_spans", spans=json.dumps(news.spans)):
        found = read_footprint(number, footprint)
        if number not in news.whole and any(change.verb is Verb.MERGE_CATALOG for change in found):
            has_merges = True
            continue
        commits.add(SnapshotId(number))
        changes += [(SnapshotId(number), change) for change in found if change.verb is not Verb.MERGE_CATALOG]
    return Events(tuple(changes), frozenset(commits), has_merges)


def read_footprint(snapshot: int, footprint: str | None) -> tuple[Change, ...]:
    """What a commit did."""
    if footprint is None:
        raise MergeConflict(
            f"snapshot {snapshot} was written by another program that did not say what it changed: "
            "it cannot be merged"
        )
    return from_footprint(footprint)


class _Merge(NamedTuple):
    """What was merged into a catalog by one commit."""

    catalog: CatalogId
    snapshot: SnapshotId
    source: CatalogId
    source_snapshot: SnapshotId


class _Reader:
    """Reads lineages and merges, of many catalogs at a time, and each once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bounds: dict[CatalogId, Known] = {}
        self._read: dict[CatalogId, SnapshotId] = {}
        """Up to where the merges into each catalog are known."""
        self._merges: dict[CatalogId, list[_Merge]] = {}

    def read_lineages(self, catalogs: Iterable[CatalogId]) -> None:
        """Whom some catalogs descend from, unless that is known."""
        missing = sorted(set(catalogs) - self._bounds.keys())
        if missing:
            for catalog, ancestor, bound in self._database.rows("lineages", catalogs=json.dumps(missing)):
                self._bounds.setdefault(catalog, {})[ancestor] = bound

    def inherited(self, catalog: CatalogId, at: SnapshotId) -> Known:
        """What a catalog knew at a snapshot, but for what was merged."""
        return {ancestor: min(bound, at) for ancestor, bound in self._bounds[catalog].items()}

    def closure(self, start: Known, floor: Known, but: frozenset[SnapshotId] = frozenset()) -> Known:
        """With what was merged, over however many others; merges up to the floor are left out, and some."""
        known, done = dict(start), dict(floor)
        while True:
            spans = list(_beyond(known, done))
            if not spans:
                return known
            done |= {span.catalog: span.up_to for span in spans}
            self._read_merges(spans)
            for span in spans:
                for merge in self._merges.get(span.catalog, ()):
                    if span.after < merge.snapshot <= span.up_to and merge.snapshot not in but:
                        _join(known, self.inherited(merge.source, merge.source_snapshot))

    def news(self, start: Known, shared: Known, known: Known) -> News:
        """What a catalog knows and another does not; merges are told as they are, if they can be."""
        whole = frozenset(
            merge.snapshot
            for span in _beyond(start, shared)
            for merge in self._merges.get(span.catalog, ())
            if span.after < merge.snapshot <= span.up_to and self._is_news(merge, start, shared, known)
        )
        return News(tuple(_beyond(self.closure(start, shared, whole), known)), whole)

    def merged_before(self, shared: Known, sources: Iterable[CatalogId]) -> Known:
        """What was merged of some catalogs before the ancestors of both parted."""
        found: Known = {}
        spans = json.dumps([Span(catalog, NOTHING, at) for catalog, at in shared.items()])
        wanted = json.dumps(sorted(sources))
        for source, snapshot in self._database.rows("merges_of_sources", spans=spans, sources=wanted):
            _join(found, self.inherited(CatalogId(source), SnapshotId(snapshot)))
        return found

    def _is_news(self, merge: _Merge, start: Known, shared: Known, known: Known) -> bool:
        brought = self.closure(self.inherited(merge.source, merge.source_snapshot), shared)
        return all(known.get(catalog, NOTHING) <= start.get(catalog, NOTHING) for catalog in brought)

    def _read_merges(self, spans: Iterable[Span]) -> None:
        """What was merged into catalogs in some spans, and whom the sources descend from."""
        unread = [span for span in spans if span.up_to > self._read.get(span.catalog, span.after)]
        if not unread:
            return
        wanted = [Span(c, self._read.get(c, after), up_to) for c, after, up_to in unread]
        for row in self._database.rows("merges_in_spans", spans=json.dumps(wanted)):
            merge = _Merge(*row)
            self._merges.setdefault(merge.catalog, []).append(merge)
        self._read |= {span.catalog: span.up_to for span in unread}
        self.read_lineages(merge.source for span in unread for merge in self._merges.get(span.catalog, ()))


def _beyond(one: Known, other: Known) -> Iterable[Span]:
    for catalog, snapshot in sorted(one.items()):
        after = other.get(catalog, NOTHING)
        if snapshot > after:
            yield Span(catalog, after, snapshot)


def _join(known: Known, more: Known) -> None:
    for catalog, snapshot in more.items():
        known[catalog] = max(known.get(catalog, NOTHING), snapshot)
