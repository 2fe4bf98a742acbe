"""What a commit has to write, worked out before anything is locked."""

from __future__ import annotations

from dataclasses import dataclass

from forklake.commit.changes import Pair
from forklake.commit.index_writes import IndexWrites
from forklake.commit.inlining import TableWrites
from forklake.model.changes import Change
from forklake.model.entities import Origin
from forklake.model.ids import CatalogId, IndexFileId, SnapshotId, TableId
from forklake.store.entity_rows import RowKey


@dataclass(frozen=True, slots=True)
class Merged:
    """A catalog whose changes a commit takes over."""

    source: CatalogId
    snapshot: SnapshotId
    """Up to which."""
    reshaped: tuple[TableId, ...] = ()
    """Tables that it altered on the way."""
    index_files: tuple[IndexFileId, ...] = ()
    """Segments and models that find rows of what the target has after it."""
    seen: tuple[tuple[CatalogId, SnapshotId, SnapshotId, int], ...] = ()
    """What it adds to the version vector of the target: commits of a catalog after one snapshot and up to
    another, about one table or, with 0, about anything."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit has to write."""

    changes: tuple[Change, ...]
    pairs: tuple[Pair, ...]
    dropped_rows: dict[RowKey, Origin]
    """Rows of dropped objects that the draft never looked at, such as columns."""
    new_ids: tuple[int, ...]
    """Provisional ids, in the order in which they were given out."""
    rows: tuple[TableWrites, ...] = ()
    """What becomes of the rows of tables."""
    index_files: tuple[IndexWrites, ...] = ()
    """What becomes of files of indexes."""
    dropped_tables: tuple[int, ...] = ()
    burnt_columns: tuple[tuple[int, int, str], ...] = ()
    """Tables with the ids and names of columns that came and went: files may know them."""
    returning: frozenset[int] = frozenset()
    """Objects that the catalog had before, and has again."""
    merged: Merged | None = None
    """What was merged, if that is what the commit does."""
    past: frozenset[SnapshotId] = frozenset()
    """Snapshots of the catalog that rows come back from: they must not have been expired meanwhile."""
