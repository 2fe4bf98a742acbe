"""What was merged into catalogs, and what catalogs committed, in spans of their snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, Session
from forklake.store.row_sets import MERGES

EVERY_TABLE = 0
"""Stands for all objects of a catalog where a table is named otherwise; no table has this id."""


class Span(NamedTuple):
    """Commits of one catalog, as far as they are about one table or about anything."""

    catalog: CatalogId
    after: SnapshotId
    up_to: SnapshotId
    table: int = EVERY_TABLE


class Merge(NamedTuple):
    """What one merge added to the version vector of its target: a span of commits of some catalog."""

    catalog: CatalogId
    snapshot: SnapshotId
    source: CatalogId
    table: int
    base: SnapshotId
    up_to: SnapshotId


class Reached(NamedTuple):
    """Up to which snapshot commits of a catalog, about a table or about anything, were merged."""

    source: CatalogId
    table: int
    up_to: SnapshotId


class Committed(NamedTuple):
    """What a commit of a catalog did, as others have to know it."""

    catalog: CatalogId
    snapshot: SnapshotId
    footprint: str | None


def merges_in(database: Database, spans: Iterable[Span]) -> list[Merge]:
    """What was merged into catalogs."""
    return [Merge(*row) for row in database.rows("merges_in_spans", spans=_listed(spans))]


def merges_of(database: Database, sources: Iterable[CatalogId], spans: Iterable[Span]) -> list[Merge]:
    """What was merged into catalogs of some sources."""
    found = database.rows("merges_of_sources", spans=_listed(spans), sources=json.dumps(sorted(sources)))
    return [Merge(*row) for row in found]


def merged_up_to(database: Database, sources: Iterable[CatalogId], spans: Iterable[Span]) -> list[Reached]:
    """How far some sources were merged into catalogs."""
    found = database.rows("merged_up_to", spans=_listed(spans), sources=json.dumps(sorted(sources)))
    return [Reached(*row) for row in found]


def footprints_in(
    database: Database, spans: Iterable[Span], *, definitions_only: bool = False
) -> list[Committed]:
    """What catalogs committed, in order; on request only commits that may have changed definitions.

    A commit comes once for each span that it lies in.
    """
    if definitions_only:
        found = database.rows("definitions_in_spans", spans=_listed(spans))
    else:
        found = database.rows("footprints_in_spans", spans=_listed(spans))
    return [Committed(*row) for row in found]


def add_merge(
    session: Session,
    catalog: CatalogId,
    snapshot: SnapshotId,
    seen: Iterable[tuple[CatalogId, SnapshotId, SnapshotId, int]],
) -> None:
    """Note what a merge adds to the version vector of its target, as spans of commits."""
    session.insert(
        MERGES, [(catalog, snapshot, source, table, after, up_to) for source, after, up_to, table in seen]
    )


def _listed(spans: Iterable[Span]) -> str:
    return json.dumps(list(spans))
