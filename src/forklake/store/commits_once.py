"""Commits under a name, which nobody makes twice."""

from __future__ import annotations

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, Session
from forklake.store.row_sets import COMMITS_ONCE


def committed_as(reader: Database | Session, catalog: CatalogId, work: str) -> SnapshotId | None:
    """The snapshot that some work became, here or before the catalog was forked."""
    found = reader.rows("committed_once", catalog=catalog, work=work)
    return SnapshotId(found[0][0]) if found else None


def add_committed(session: Session, catalog: CatalogId, work: str, snapshot: SnapshotId) -> None:
    """Note which snapshot some work becomes."""
    session.insert(COMMITS_ONCE, [(catalog, work, snapshot)])
