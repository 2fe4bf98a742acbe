"""Copying what a fork inherits, so that it no longer depends on its ancestors."""

from __future__ import annotations

from dataclasses import replace

from forklake.commit.catalogs import advance
from forklake.commit.publish import record_of
from forklake.commit.retry import commit_once
from forklake.model.changes import Change, Verb
from forklake.model.ids import SnapshotId
from forklake.model.progress import OnProgress
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Database, Session
from forklake.store.garbage import stop_collection
from forklake.store.lineages import copy_ancestors, copying, reads_ancestors


def materialize(
    database: Database, head: Head, name: str, author: Author, progress: OnProgress | None = None
) -> None:
    """Copy what a fork inherits, in place; nothing happens if it inherits nothing."""
    catalog = head.catalog_id

    def write(session: Session) -> tuple[SnapshotId, None]:
        new, numbers = advance(session, head, name)
        if not reads_ancestors(session, catalog):
            return head.snapshot_id, None
        copy_ancestors(session, catalog, copying(progress, name))
        # Merges compare with copies that were not there when it noted what is in reach.
        stop_collection(session)
        # What was read of the structure says whose rows it is made of, and these are other rows now.
        new = replace(new, schema_version=new.schema_version + 1)
        session.record(record_of(new, numbers, (Change(Verb.COPY_CATALOG, catalog, name=name),), author))
        return new.snapshot_id, None

    commit_once(database, write)
