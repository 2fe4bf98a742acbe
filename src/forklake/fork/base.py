"""What two catalogs have in common: the state from which their changes are told apart."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database


class Holding(NamedTuple):
    """A catalog holds all that another one, or one of its ancestors, did up to a snapshot."""

    source: CatalogId
    source_snapshot: SnapshotId
    snapshot: SnapshotId
    """The commit that brought it."""


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Whom a catalog descends from, and what came to it by merges, over however many others."""

    bounds: Mapping[CatalogId, SnapshotId]
    """Up to which snapshot it holds what each of them did; itself without bound."""
    merged: tuple[Holding, ...] = ()

    def holdings_of(self, other: Ancestry) -> list[Holding]:
        """What came here by merges of what the other catalog holds as well."""
        return [
            Holding(source, min(snapshot, other.bounds[source]), brought)
            for source, snapshot, brought in self.merged
            if source in other.bounds
        ]


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
    """And these later commits of the target too: they brought nothing but what the source had done."""


def merge_base(source: Ancestry, target: Ancestry) -> MergeBase | None:
    """The base for merging one catalog into another; None if they have nothing in common.

    Two catalogs were last alike where they parted, or where one was merged into the other; the latest of
    these moments counts. An ancestor's moments are those of its descendants, up to where they left it.
    """
    shared = source.bounds.keys() & target.bounds.keys()
    if not shared:
        return None
    parted = max(min(source.bounds[catalog], target.bounds[catalog]) for catalog in shared)
    given = [held for held in target.holdings_of(source) if held.source_snapshot > parted]
    taken = [held for held in source.holdings_of(target) if held.source_snapshot > parted]
    known = max([parted, *(held.source_snapshot for held in taken)])
    # A merge from a third catalog may have brought what the source did, and more.
    news = {
        held.snapshot for held in target.merged if held.source_snapshot > source.bounds.get(held.source, -1)
    }
    merges = frozenset(held.snapshot for held in target.merged) - news
    last_given = max(given, key=lambda held: held.snapshot, default=None)
    last_taken = max(taken, key=lambda held: held.snapshot, default=None)
    if last_given and (last_taken is None or last_given.snapshot > last_taken.snapshot):
        at = last_given.source_snapshot
        return MergeBase("source", at, at, known, merges)
    if last_taken:
        return MergeBase("target", last_taken.source_snapshot, parted, known, merges)
    return MergeBase("source", parted, parted, known, merges)


def ancestries(database: Database, source: CatalogId, target: CatalogId) -> tuple[Ancestry, Ancestry]:
    """Two catalogs, with what each of them holds of the other."""
    one, other = (_bounds(database, catalog) for catalog in (source, target))
    return (
        Ancestry(one, tuple(_merged(database, source, one, other))),
        Ancestry(other, tuple(_merged(database, target, other, one))),
    )


def _bounds(database: Database, catalog: CatalogId) -> dict[CatalogId, SnapshotId]:
    return {
        ancestor: bound if copied is None else copied
        for ancestor, bound, _, copied in database.rows("lineage", catalog=catalog)
    }


def _merged(
    database: Database,
    catalog: CatalogId,
    own: Mapping[CatalogId, SnapshotId],
    wanted: Mapping[CatalogId, SnapshotId],
) -> list[Holding]:
    """What merges brought to a catalog of some others, also by way of third ones."""
    found: list[Holding] = []
    apart = wanted.keys() - own.keys()
    for source, snapshot, brought in _merges(database, catalog, wanted, apart):
        through: dict[CatalogId, SnapshotId] = {}
        _collect(database, CatalogId(source), SnapshotId(snapshot), wanted, apart, through)
        found += [Holding(held, up_to, SnapshotId(brought)) for held, up_to in through.items()]
    return found


def _collect(
    database: Database,
    catalog: CatalogId,
    at: SnapshotId,
    wanted: Collection[CatalogId],
    apart: Collection[CatalogId],
    found: dict[CatalogId, SnapshotId],
) -> None:
    """All that a catalog held at a snapshot, itself included; each is gone through once for what it held."""
    if found.get(catalog, -1) >= at:
        return
    found[catalog] = at
    for ancestor, bound in _bounds(database, catalog).items():
        found[ancestor] = SnapshotId(max(found.get(ancestor, -1), min(bound, at)))
    for source, snapshot, brought in _merges(database, catalog, wanted, apart):
        if brought <= at:
            _collect(database, CatalogId(source), SnapshotId(snapshot), wanted, apart, found)


def _merges(
    database: Database, catalog: CatalogId, wanted: Collection[CatalogId], apart: Collection[CatalogId]
) -> list[tuple[int, int, int]]:
    listed, others = json.dumps(sorted(wanted)), json.dumps(sorted(apart))
    rows = database.rows("merges_into", catalog=catalog, wanted=listed, apart=others)
    return [(source, snapshot, brought) for source, snapshot, brought in rows]
