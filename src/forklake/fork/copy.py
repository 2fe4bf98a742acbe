"""Copying what a fork inherits, so that it no longer depends on its ancestors."""

from __future__ import annotations

from dataclasses import replace

from forklake.commit.catalogs import advance
from forklake.commit.publish import record_of
from forklake.commit.retry import commit_once
from forklake.model.changes import Change, Verb
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Database, Session
from forklake.store.built_statements import COPIED


def copying(progress: OnProgress | None, name: str, catalogs: int = 1) -> Steps:
    """What counts the tables of the metadata that are copied."""
    return Steps(progress, f"copy metadata of {name}", "metadata tables", catalogs * len(COPIED))


def copy_ancestors(session: Session, catalog: CatalogId, steps: Steps) -> None:
    """Give a catalog rows of its own for everything that it sees of others, its past included.

    Rows keep the snapshots at which they began and ended, so nothing looks different afterwards, neither to
    the catalog nor to its forks, which from now on read the copies too.
    """
    for table in steps.over(COPIED):
        session.execute(f"copy_{table}", catalog=catalog)
    # Only now, and until the commit: making a fork waits for as long as this is held.
    session.execute("hold_lineages")
    session.execute("leave_ancestors", catalog=catalog)
    session.execute("forget_masks", catalog=catalog)


def materialize(
    database: Database, head: Head, name: str, author: Author, progress: OnProgress | None = None
) -> None:
    """Copy what a fork inherits, in place; nothing happens if it inherits nothing."""
    catalog = head.catalog_id

    def write(session: Session) -> tuple[SnapshotId, None]:
        new, numbers = advance(session, head, name)
        if not session.rows("live_ancestors", catalog=catalog):
            return head.snapshot_id, None
        copy_ancestors(session, catalog, copying(progress, name))
        # What was read of the structure says whose rows it is made of, and these are other rows now.
        new = replace(new, schema_version=new.schema_version + 1)
        session.record(record_of(new, numbers, (Change(Verb.COPY_CATALOG, catalog, name=name),), author))
        return new.snapshot_id, None

    commit_once(database, write)
