"""Version vectors: which commits of which catalogs have come to a catalog, by forks and merges.

A fork has seen all that its parent had seen, and a merge brings all that its source had seen. So what a
catalog has seen is told by one snapshot for each other catalog, and by one more for each table that was
merged alone. Every merge stores what it added to the vector of its target, whatever ways it came: nothing has
to be followed through third catalogs, a vector is read from the lineage of a catalog and the merges into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forklake.errors import MergeConflict
from forklake.model.changes import RESOLVED, Change, Verb, from_footprint
from forklake.model.ids import CatalogId, DataFileId, SnapshotId
from forklake.model.snapshots import Head
from forklake.store.backend import Database
from forklake.store.lineages import shared_histories
from forklake.store.merges import (
    EVERY_TABLE,
    Merge,
    Span,
    footprints_in,
    merged_up_to,
    merges_in,
    merges_of,
)

NOTHING = SnapshotId(-1)
Bounds = dict[CatalogId, SnapshotId]
"""The ancestors of a catalog, itself included, and up to which snapshot it shares their history."""


@dataclass(frozen=True, slots=True)
class VersionVector:
    """Up to which snapshot the commits of other catalogs have been seen."""

    catalogs: dict[CatalogId, SnapshotId]
    tables: dict[tuple[CatalogId, int], SnapshotId] = field(
        default_factory=dict[tuple[CatalogId, int], SnapshotId]
    )
    """Beyond that, as far as single tables are concerned."""

    def seen(self, catalog: CatalogId, table: int = EVERY_TABLE) -> SnapshotId:
        """Up to which snapshot of a catalog everything, or everything about one table, has been seen."""
        return max(self.catalogs.get(catalog, NOTHING), self.tables.get((catalog, table), NOTHING))

    def add(self, catalog: CatalogId, table: int, snapshot: SnapshotId) -> None:
        """Note that commits up to a snapshot were seen."""
        if table == EVERY_TABLE:
            self.catalogs[catalog] = max(snapshot, self.catalogs.get(catalog, NOTHING))
        else:
            self.tables[catalog, table] = max(snapshot, self.tables.get((catalog, table), NOTHING))

    def overlaps(self, merge: Merge) -> bool:
        """Whether a part of what a merge brought has been seen."""
        if self.seen(merge.source, merge.table) > merge.base:
            return True
        return merge.table == EVERY_TABLE and any(
            catalog == merge.source and snapshot > merge.base
            for (catalog, _), snapshot in self.tables.items()
        )


@dataclass(frozen=True, slots=True)
class Unseen:
    """Commits that one catalog has seen and another has not."""

    spans: tuple[Span, ...]
    floor: VersionVector
    """What the other one has seen."""
    told: tuple[Span, ...] = ()
    """Those of the spans in which merges are told as commits; in others, what they brought tells them."""
    mixed: frozenset[SnapshotId] = frozenset()
    """Merges in there that are told by what they brought all the same, as some of that has been seen."""

    def by_catalog(self) -> dict[CatalogId, list[Span]]:
        """The spans of each catalog: there may be very many catalogs."""
        found: dict[CatalogId, list[Span]] = {}
        for span in self.spans:
            found.setdefault(span.catalog, []).append(span)
        return found

    def tells(self, catalog: CatalogId, merge: SnapshotId) -> bool:
        """Whether a merge is told as a commit of its own."""
        told = [span for span in self.told if span.catalog == catalog]
        return merge not in self.mixed and _in_spans(told, merge, EVERY_TABLE)


@dataclass(frozen=True, slots=True)
class Divergence:
    """How a source and a target stand to each other."""

    since: SnapshotId
    """Up to here, the target has seen the history of the source."""
    theirs_since: SnapshotId
    """Up to here, the source has seen the history of the target."""
    ours: Unseen
    """Commits of the source that the target has not seen."""
    theirs: Unseen
    """Commits of the target that the source has not seen."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change that a commit of some catalog made."""

    catalog: CatalogId
    snapshot: SnapshotId
    change: Change


@dataclass(frozen=True, slots=True)
class Events:
    """What was done in some commits, each told once: by itself, or by a merge that brought it."""

    events: tuple[Event, ...]
    is_everything: bool = False
    """Whether whatever is there and was not there before counts, wherever it came from."""
    merged: frozenset[Change] = frozenset()
    """What merges did that are told by what they brought."""

    @property
    def changes(self) -> list[tuple[SnapshotId, Change]]:
        """The changes with the commits that made them."""
        return [(event.snapshot, event.change) for event in self.events]

    @property
    def files(self) -> frozenset[DataFileId]:
        """The files that they changed."""
        return frozenset(DataFileId(file) for event in self.events for file in event.change.files)

    def only(self, verb: Verb) -> Events:
        """Only what was done in one way."""
        return Events(tuple(event for event in self.events if event.change.verb is verb))

    def of_objects(self, objects: frozenset[int]) -> Events:
        """Only what was done to some objects."""
        kept = tuple(event for event in self.events if event.change.object_id in objects)
        return Events(kept, self.is_everything, self.merged)


def relation(database: Database, source: Head, target: Head) -> Divergence | None:
    """What two catalogs have seen of each other; None if they have no ancestor in common."""
    bounds = _bounds(database, (source, target))
    ours, theirs = bounds[source.catalog_id], bounds[target.catalog_id]
    shared = {catalog: min(ours[catalog], theirs[catalog]) for catalog in ours.keys() & theirs.keys()}
    if not shared:
        return None
    own_merges = merges_in(database, _beyond(ours, shared))
    # Catalogs that are not among these, the source has seen nothing of, but for what both inherited alike.
    known = ours.keys() | {merge.source for merge in own_merges}
    met_merges = merges_of(database, known, _beyond(theirs, shared))
    mine, yours = VersionVector(dict(ours)), VersionVector(dict(theirs))
    up_to_there = [Span(catalog, NOTHING, bound) for catalog, bound in shared.items()]
    for catalog, table, snapshot in merged_up_to(database, known, up_to_there):
        mine.add(catalog, table, snapshot)
        yours.add(catalog, table, snapshot)
    for vector, merges in ((mine, own_merges), (yours, met_merges)):
        for merge in merges:
            vector.add(merge.source, merge.table, merge.up_to)
    return Divergence(
        max(min(yours.seen(catalog), bound) for catalog, bound in ours.items()),
        max(min(mine.seen(catalog), bound) for catalog, bound in theirs.items()),
        Unseen(tuple(_missing(mine, yours)), yours),
        _unseen_of_target(database, theirs, mine, met_merges),
    )


def events(database: Database, unseen: Unseen, *, definitions_only: bool = False) -> Events:
    """What was done, in order; on request only by commits that may have changed definitions."""
    committed = footprints_in(database, unseen.spans, definitions_only=definitions_only)
    found: list[Event] = []
    merged = set[Change]()
    told: set[tuple[CatalogId, SnapshotId]] = set()
    of_catalog = unseen.by_catalog()
    for catalog, number, footprint in committed:
        if (catalog, number) in told:
            continue
        told.add((catalog, number))
        changes = read_footprint(number, footprint)
        is_merge = any(change.verb is Verb.MERGE_CATALOG for change in changes)
        if is_merge and not unseen.tells(catalog, number):
            merged |= set(changes)
            # What was decided of rows that both sides had changed is not told by what was brought.
            changes = tuple(change for change in changes if change.detail == RESOLVED)
        found += [
            Event(catalog, number, change)
            for change in changes
            if change.verb is not Verb.MERGE_CATALOG
            and unseen.floor.seen(catalog, change.object_id) < number
            and _in_spans(of_catalog[catalog], number, change.object_id)
        ]
    return Events(tuple(found), merged=frozenset(merged))


class UnseenEvents:
    """What was done in commits that one side has not seen; read when it is needed."""

    def __init__(self, database: Database, unseen: Unseen) -> None:
        """Read nothing yet."""
        self._database = database
        self._unseen = unseen
        self._everything: Events | None = None

    def definitions(self) -> Events:
        """By commits that may have changed definitions."""
        return self._everything or events(self._database, self._unseen, definitions_only=True)

    def everything(self) -> Events:
        """By all commits."""
        if self._everything is None:
            self._everything = events(self._database, self._unseen)
        return self._everything


def brought(ours: Unseen, tables: Iterable[int] | None) -> Iterator[Span]:
    """What a merge adds to the version vector of its target, of some tables or of everything."""
    if tables is None:
        yield from ours.spans
        return
    for table in sorted(set(tables)):
        found: dict[CatalogId, list[Span]] = {}
        for span in ours.spans:
            if span.table in (EVERY_TABLE, table):
                found.setdefault(span.catalog, []).append(span)
        for catalog, spans in found.items():
            after = max(min(span.after for span in spans), ours.floor.seen(catalog, table))
            up_to = max(span.up_to for span in spans)
            if up_to > after:
                yield Span(catalog, after, up_to, table)


def read_footprint(snapshot: int, footprint: str | None) -> tuple[Change, ...]:
    """What a commit did."""
    if footprint is None:
        raise MergeConflict(
            f"snapshot {snapshot} was written by another program that did not say what it changed: "
            "it cannot be merged"
        )
    return from_footprint(footprint)


def _bounds(database: Database, heads: Iterable[Head]) -> dict[CatalogId, Bounds]:
    at = {head.catalog_id: head.snapshot_id for head in heads}
    return {
        catalog: {ancestor: min(bound, at[catalog]) for ancestor, bound in bounds.items()}
        for catalog, bounds in shared_histories(database, at).items()
    }


def _missing(mine: VersionVector, yours: VersionVector) -> Iterator[Span]:
    """What one vector has and the other has not."""
    for catalog, snapshot in sorted(mine.catalogs.items()):
        if snapshot > yours.seen(catalog):
            yield Span(catalog, yours.seen(catalog), snapshot)
    for (catalog, table), snapshot in sorted(mine.tables.items()):
        after = max(yours.seen(catalog, table), mine.seen(catalog))
        if snapshot > after:
            yield Span(catalog, after, snapshot, table)


def _unseen_of_target(
    database: Database, theirs: Bounds, mine: VersionVector, merges: Iterable[Merge]
) -> Unseen:
    """The commits of a target and its ancestors; merges that brought also seen ones by what else they did."""
    own = tuple(_beyond(theirs, mine.catalogs))
    after = {span.catalog: span.after for span in own}
    mixed = {
        (merge.catalog, merge.snapshot)
        for merge in merges
        if merge.snapshot > after.get(merge.catalog, merge.snapshot) and mine.overlaps(merge)
    }
    if not mixed:
        return Unseen(own, mine, own)
    single = [Span(catalog, SnapshotId(snapshot - 1), snapshot) for catalog, snapshot in sorted(mixed)]
    expanded = [
        Span(merge.source, max(merge.base, mine.seen(merge.source, merge.table)), merge.up_to, merge.table)
        for merge in merges_in(database, single)
    ]
    spans = (*own, *(span for span in expanded if span.up_to > span.after))
    return Unseen(spans, mine, own, frozenset(snapshot for _, snapshot in mixed))


def _in_spans(spans: Iterable[Span], snapshot: SnapshotId, table: int) -> bool:
    return any(span.after < snapshot <= span.up_to for span in spans if span.table in (EVERY_TABLE, table))


def _beyond(one: Bounds, other: Bounds) -> Iterator[Span]:
    for catalog, snapshot in sorted(one.items()):
        after = other.get(catalog, NOTHING)
        if snapshot > after:
            yield Span(catalog, after, snapshot)
