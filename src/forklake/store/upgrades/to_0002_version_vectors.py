"""From 0.5-dev1 to 0.5-dev2: merges store version vectors.

A merge stored its source and up to which snapshot of that it went. What else had come to the source, by forks
and by other merges, was followed when somebody asked. Now each merge stores all that it added to the version
vector of its target. That follows from what was stored: a merge brought all that its source had seen.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forklake.store.upgrades.script import Script, named

NOTHING = -1
WHOLE_CATALOG = 0
"""Stands where the id of a table is, if a merge brought commits in full."""

Bounds = dict[int, int]
"""The ancestors of a catalog, itself included, and up to which snapshot it shares their history."""
_COLUMNS = (
    "catalog_id",
    "merge_snapshot",
    "source_catalog_id",
    "table_id",
    "base_snapshot",
    "source_snapshot",
)


class Merged(NamedTuple):
    """A merge as it was stored."""

    catalog: int
    snapshot: int
    source: int
    source_snapshot: int


class Brought(NamedTuple):
    """What a merge added to the version vector of its target, as it is stored now."""

    catalog: int
    snapshot: int
    source: int
    table: int
    base: int
    up_to: int


def upgrade(script: Script) -> None:
    """Change the table of merges and what is stored in others."""
    sql = named("to_0002_version_vectors")
    columns = {name for (name,) in script.rows(_catalog(script)["columns"], table="ducklake_catalog_merge")}
    # Lakes that were made in between have the new table under the old version.
    if "table_id" not in columns:
        merges = [Merged(*row) for row in script.rows(sql["merges"])]
        brought = list(version_vectors(script.rows(sql["lineages"]), merges))
        script.run(sql["drop_merges"])
        script.run(sql["create_merges"])
        script.run(sql["index_merges"])
        script.insert("ducklake_catalog_merge", _COLUMNS, brought)
        script.run(sql["name_parents_by_place"])
    script.run(sql["forget_bounds"])
    if script.home is not None and not script.rows(sql["home"]):
        home = json.dumps([script.home.name, script.home.identity])
        script.run(sql["remember_home"], home=home)


def version_vectors(lineages: Iterable[tuple[int, ...]], merges: Iterable[Merged]) -> Iterator[Brought]:
    """What each merge added to the version vector of its target, in the order in which they were made."""
    vectors = _Vectors(lineages)
    # A merge has a higher number than all that its source had seen.
    for merge in sorted(merges, key=lambda merge: merge.snapshot):
        yield from vectors.add(merge)


class _Vectors:
    """What catalogs had seen at their snapshots, as far as merges were added."""

    def __init__(self, lineages: Iterable[tuple[int, ...]]) -> None:
        self._lineages: dict[int, Bounds] = {}
        for catalog, ancestor, bound in lineages:
            self._lineages.setdefault(catalog, {})[ancestor] = bound
        self._merges: dict[int, list[tuple[int, set[int]]]] = {}
        """The merges into each catalog, and of which catalogs they brought commits."""
        self._brought: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        """By a catalog and another one whose commits came: when, and up to which. Both rise."""

    def add(self, merge: Merged) -> list[Brought]:
        """Add a merge to those that are known, and tell what it brought."""
        ours = self._bounds(merge.source, merge.source_snapshot)
        theirs = self._bounds(merge.catalog, merge.snapshot - 1)
        brought = [
            Brought(merge.catalog, merge.snapshot, catalog, WHOLE_CATALOG, base, up_to)
            for catalog in sorted(ours.keys() | self._met(ours, theirs))
            if (up_to := self._seen(ours, catalog)) > (base := self._seen(theirs, catalog))
        ]
        sources = {entry.source for entry in brought}
        self._merges.setdefault(merge.catalog, []).append((merge.snapshot, sources))
        for entry in brought:
            snapshots, bounds = self._brought.setdefault((merge.catalog, entry.source), ([], []))
            snapshots.append(entry.snapshot)
            bounds.append(entry.up_to)
        return brought

    def _bounds(self, catalog: int, at: int) -> Bounds:
        found = self._lineages.get(catalog, {catalog: at})
        return {ancestor: min(bound, at) for ancestor, bound in found.items()}

    def _met(self, ours: Bounds, theirs: Bounds) -> set[int]:
        """The catalogs that came by merges into what one side has alone: the rest both have seen."""
        found: set[int] = set()
        for catalog, bound in ours.items():
            merges = self._merges.get(catalog, [])
            start = bisect_right(merges, theirs.get(catalog, NOTHING), key=lambda entry: entry[0])
            end = bisect_right(merges, bound, key=lambda entry: entry[0])
            found.update(*(sources for _, sources in merges[start:end]))
        return found

    def _seen(self, bounds: Bounds, catalog: int) -> int:
        """Up to which snapshot the commits of a catalog were seen."""
        found = bounds.get(catalog, NOTHING)
        for ancestor, bound in bounds.items():
            snapshots, up_to = self._brought.get((ancestor, catalog), ([], []))
            place = bisect_right(snapshots, bound)
            if place:
                found = max(found, up_to[place - 1])
        return found


def _catalog(script: Script) -> dict[str, str]:
    return dict(named(f"catalog.{script.dialect}"))
