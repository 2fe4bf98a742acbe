"""Which snapshots of catalogs are expired, and which dropped catalogs nobody brings back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from forklake.errors import SnapshotNotFound
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Database, Session, as_time
from forklake.store.row_sets import EXPIRED_SNAPSHOTS, OLDEST_SNAPSHOTS


def retained_snapshots(reader: Database | Session, catalog: CatalogId) -> list[tuple[SnapshotId, datetime]]:
    """The history of a catalog that is not expired, oldest first."""
    found = reader.rows("retained_snapshots", catalog=catalog)
    return [(SnapshotId(snapshot), as_time(time)) for snapshot, time in found]


def oldest_snapshot(reader: Database | Session, catalog: CatalogId) -> SnapshotId | None:
    """The oldest snapshot of a catalog that is not expired; None if none is."""
    for (oldest,) in reader.rows("retention", catalog=catalog):
        return None if oldest is None else SnapshotId(oldest)
    return None


def oldest_reserved(reader: Database | Session, catalog: CatalogId) -> SnapshotId | None:
    """The oldest snapshot that an open distributed snapshot of a catalog was begun from."""
    ((found,),) = reader.rows("oldest_reserved", catalog=catalog)
    return None if found is None else SnapshotId(found)


def is_retained(reader: Database | Session, catalog: CatalogId, snapshot: SnapshotId) -> bool:
    """Whether a snapshot in the history of a catalog is not expired."""
    return bool(reader.rows("is_retained", catalog=catalog, snapshot=snapshot))


def check_retained(reader: Database | Session, catalog: CatalogId, snapshot: int | None) -> None:
    """Refuse a snapshot in the history of a catalog that is expired; None for one that is gone."""
    if snapshot is not None and is_retained(reader, catalog, SnapshotId(snapshot)):
        return
    oldest = oldest_snapshot(reader, catalog)
    if oldest is None and snapshot is None:
        return
    what = "that snapshot" if snapshot is None else f"snapshot {snapshot}"
    since = "" if oldest is None else f": the oldest that this catalog still has is {oldest}"
    raise SnapshotNotFound(f"{what} was expired{since}")


def expired_between(
    reader: Database | Session, catalog: CatalogId, start: int, end: SnapshotId
) -> SnapshotId | None:
    """A single snapshot after one and up to another that is expired."""
    for (snapshot,) in reader.rows("expired_between", catalog=catalog, start=start, end=end):
        return SnapshotId(snapshot)
    return None


def set_oldest(session: Session, catalog: CatalogId, oldest: SnapshotId) -> None:
    """Expire all snapshots of a catalog before one."""
    session.execute("set_oldest", catalog=catalog, oldest=oldest)
    session.execute("drop_passed", catalog=catalog, oldest=oldest)


def set_oldest_of_many(session: Session, oldest: Sequence[tuple[CatalogId, SnapshotId]]) -> None:
    """Expire all snapshots before one, of many catalogs."""
    session.update(OLDEST_SNAPSHOTS, oldest)


def expire_single(session: Session, catalog: CatalogId, snapshots: Iterable[SnapshotId]) -> None:
    """Expire some snapshots of a catalog that are in the midst of others."""
    session.insert(EXPIRED_SNAPSHOTS, [(catalog, snapshot) for snapshot in snapshots])


def inherit_expired(session: Session, parent: CatalogId, at: SnapshotId, forks: Sequence[CatalogId]) -> None:
    """Let forks have no snapshot that their parent has expired."""
    session.execute("inherit_expired", parent=parent, at=at, forks=json.dumps(forks))


def expirable_catalogs(session: Session, time: datetime) -> list[tuple[CatalogId, SnapshotId]]:
    """Catalogs with snapshots before a time, and the first one since then, or the latest."""
    return [
        (CatalogId(catalog), SnapshotId(oldest))
        for catalog, oldest in session.rows("expirable_catalogs", time=time)
    ]


def last_snapshots(
    session: Session, catalogs: Sequence[CatalogId], place: int
) -> dict[CatalogId, SnapshotId]:
    """The snapshot at some place from the end of each catalog's history, if it has that many."""
    found = session.rows("last_snapshots", catalogs=json.dumps(catalogs), place=place)
    return {CatalogId(catalog): SnapshotId(snapshot) for catalog, snapshot in found}


def forgettable_catalogs(session: Session, time: datetime) -> list[CatalogId]:
    """Catalogs that were dropped before a time."""
    return [CatalogId(catalog) for (catalog,) in session.rows("forgettable_catalogs", time=time)]


def retire_catalogs(session: Session, time: datetime) -> int:
    """Let nobody bring back catalogs that were dropped before a time and live on in others; gives how many.

    What others do not have of them can go.
    """
    found = [catalog for (catalog,) in session.rows("retirable_catalogs", time=time)]
    if found:
        listed = json.dumps(found)
        session.execute("retire_catalogs", catalogs=listed)
        session.execute("retire_heads", catalogs=listed)
    return len(found)


def forget_catalogs(session: Session, catalogs: Sequence[CatalogId]) -> None:
    """Let nobody bring dropped catalogs back: what only they reached can go."""
    session.execute("forget_catalogs", catalogs=json.dumps(catalogs))
