"""What the rows of the metadata say, worked out naively in memory: who can reach what.

This is the definition that cleaning is measured by, so none of the code that cleans is used here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

from forklake.store.tables import TABLES

FOREVER = 2**63 - 1
Row = dict[str, Any]
ENTITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "schema": ("ducklake_schema", ("schema_id",)),
    "table": ("ducklake_table", ("table_id",)),
    "view": ("ducklake_view", ("view_id",)),
    "macro": ("ducklake_macro", ("macro_id",)),
    "tag": ("ducklake_tag", ("object_id", "", "key")),
    "column_tag": ("ducklake_column_tag", ("table_id", "column_id", "key")),
    "partition_info": ("ducklake_partition_info", ("partition_id",)),
    "sort_info": ("ducklake_sort_info", ("sort_id",)),
    "data_file": ("ducklake_data_file", ("data_file_id",)),
    "delete_file": ("ducklake_delete_file", ("delete_file_id",)),
    "index": ("ducklake_index", ("index_id",)),
    "index_file": ("ducklake_index_file", ("index_file_id",)),
}
"""Tables whose rows have a beginning and an end, and what names a row there."""


@dataclass(frozen=True, slots=True)
class Source:
    """A catalog whose rows another one sees, up to a bound; and up to where its history is shared."""

    catalog: int
    bound: int
    shared: int


class Picture:
    """All rows of the metadata at one moment."""

    def __init__(self, query: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.rows: dict[str, list[Row]] = {}
        for table, columns in TABLES.items():
            names = list(columns)
            found = query(f"SELECT {', '.join(names)} FROM {table}")
            self.rows[table] = [dict(zip(names, row, strict=True)) for row in found]

    @cached_property
    def sources(self) -> dict[int, list[Source]]:
        """Whose rows each catalog sees, itself included."""
        found: dict[int, list[Source]] = {}
        for row in self.rows["ducklake_catalog_lineage"]:
            copied, bound = row["copied_snapshot"], row["max_snapshot"]
            shared = bound if copied is None else copied
            found.setdefault(row["catalog_id"], []).append(Source(row["source_catalog_id"], bound, shared))
        return found

    @cached_property
    def heads(self) -> dict[int, Row]:
        return {row["catalog_id"]: row for row in self.rows["ducklake_catalog_head"]}

    @cached_property
    def viewers(self) -> list[int]:
        """Catalogs that can be read, or brought back to be read."""
        return sorted(
            catalog
            for catalog, sources in self.sources.items()
            if catalog in self.heads and any(s.catalog == catalog and s.bound == FOREVER for s in sources)
        )

    @cached_property
    def retained(self) -> dict[int, list[int]]:
        """The snapshots of each viewer that are not expired."""
        own: dict[int, set[int]] = {}
        for row in self.rows["ducklake_snapshot_changes"]:
            own.setdefault(row["catalog_id"], set()).add(row["snapshot_id"])
        expired = {(row["catalog_id"], row["snapshot_id"]) for row in self.rows["ducklake_expired_snapshot"]}
        return {
            viewer: sorted(
                snapshot
                for source in self.sources[viewer]
                for snapshot in own.get(source.catalog, ())
                if snapshot <= source.shared
                and snapshot >= (self.heads[viewer]["oldest_snapshot"] or 0)
                and (viewer, snapshot) not in expired
            )
            for viewer in self.viewers
        }

    @cached_property
    def _masks(self) -> dict[tuple[Any, ...], list[tuple[int, int]]]:
        """By entity, key and beginning of a row: who has ended it for itself, and when."""
        found: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        for row in self.rows["ducklake_inherited_end"]:
            key = (row["entity"], row["entity_id"], row["sub_id"], row["sub_key"], row["row_begin"])
            found.setdefault(key, []).append((row["catalog_id"], row["end_snapshot"]))
        return found

    def seen(self, entity: str, viewer: int) -> Iterator[tuple[Row, int]]:
        """The rows that began within what a catalog sees, with their ends as it sees them."""
        masks = self._masks
        bounds = {source.catalog: source.bound for source in self.sources[viewer]}
        for row, key in self.keyed(entity):
            bound = bounds.get(row["catalog_id"])
            if bound is None or row["begin_snapshot"] > bound:
                continue
            end = row["end_snapshot"]
            if end is None or end > bound:
                ends = [at for by, at in masks.get(key, ()) if at <= bounds.get(by, -1)]
                end = min(ends, default=FOREVER)
            yield row, end

    def keyed(self, entity: str) -> Iterator[tuple[Row, tuple[Any, ...]]]:
        """The rows of an entity, with what their masks name them by."""
        table, keys = ENTITIES[entity]
        padded = (*keys, *([""] * (3 - len(keys))))
        for row in self.rows[table]:
            parts = [row[name] if name else default for name, default in zip(padded, (0, 0, ""), strict=True)]
            yield row, (entity, *parts, row["begin_snapshot"])

    def reached(self, entity: str) -> dict[int, Row]:
        """Rows, by their place in memory, that some viewer shows at some snapshot that is not expired."""
        found: dict[int, Row] = {}
        for viewer in self.viewers:
            kept = self.retained[viewer]
            for row, end in self.seen(entity, viewer):
                place = bisect_left(kept, row["begin_snapshot"])
                if place < len(kept) and kept[place] < end:
                    found[id(row)] = row
        return found

    def needed_to_merge(self, entity: str) -> dict[int, Row]:
        """Rows that stood where a catalog left its parent, was merged, or got what another one had."""
        points = {
            (source.catalog, source.bound)
            for sources in self.sources.values()
            for source in sources
            if 0 <= source.bound < FOREVER
        }
        for row in self.rows["ducklake_catalog_merge"]:
            points |= {
                (row["source_catalog_id"], row["source_snapshot"]),
                (row["catalog_id"], row["merge_snapshot"]),
            }
        points |= self._partings()
        by_catalog: dict[int, list[int]] = {}
        for catalog, snapshot in points:
            by_catalog.setdefault(catalog, []).append(snapshot)
        return {
            id(row): row
            for row in self.rows[ENTITIES[entity][0]]
            if any(
                row["begin_snapshot"] <= at and (row["end_snapshot"] is None or at < row["end_snapshot"])
                for at in by_catalog.get(row["catalog_id"], ())
            )
        }

    def _partings(self) -> set[tuple[int, int]]:
        """Where any two catalogs part that share a history: what either of them saw there, copied or not."""
        points: set[tuple[int, int]] = set()
        shared = {
            catalog: {s.catalog: s.shared for s in sources} for catalog, sources in self.sources.items()
        }
        for one, other in permutations(shared, 2):
            common = shared[one].keys() & shared[other].keys()
            if common:
                since = max(min(shared[one][catalog], shared[other][catalog]) for catalog in common)
                points |= {(s.catalog, min(since, s.bound)) for s in self.sources[one] if s.bound >= 0}
        return points
