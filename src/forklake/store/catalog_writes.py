"""Writing catalogs as a whole: made, renamed, dropped, brought back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forklake.model.entities import Schema
from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.snapshots import Head
from forklake.store.backend import Database, Row, Session, as_time
from forklake.store.entity_rows import entity_rows
from forklake.store.lineages import Ancestor, lineage_of_fork
from forklake.store.row_sets import CATALOGS, ENTITIES, HEADS, LINEAGES


@dataclass(frozen=True, slots=True)
class LockedCatalog:
    """A live catalog that nobody else can commit to meanwhile."""

    name: str
    id: CatalogId
    schema_version: int
    snapshot_time: datetime


def lock_catalogs(session: Session, names: Sequence[str]) -> list[LockedCatalog]:
    """Wait for live catalogs by their names; those that were renamed while we waited may be among them."""
    return _locked(session.rows("lock_heads", names=json.dumps(names)))


def lock_expired(session: Session, now: datetime) -> list[LockedCatalog]:
    """Wait for every catalog whose time to live is over."""
    return _locked(session.rows("lock_expired", now=now))


def has_expired(database: Database, now: datetime) -> bool:
    """Whether the time to live of any catalog is over."""
    return bool(database.rows("expired_catalogs", now=now))


def _locked(rows: list[Row]) -> list[LockedCatalog]:
    return [
        LockedCatalog(name, CatalogId(catalog), version, as_time(time))
        for name, catalog, version, time in rows
    ]


def add_root(session: Session, head: Head, uuid: str, name: str, schema: Schema) -> None:
    """Add a catalog that descends from no other, with its first schema."""
    add_name(session, head.catalog_id, uuid, name, head.snapshot_id)
    time = head.snapshot_time
    session.insert(
        HEADS,
        [(head.catalog_id, head.snapshot_id, time, head.schema_version, head.data_path, time, None, None)],
    )
    session.insert(LINEAGES, [(head.catalog_id, head.catalog_id, FOREVER, 0, None)])
    rows = entity_rows(schema).values()
    session.insert(ENTITIES["schema"], [(head.catalog_id, head.snapshot_id, *row) for row in rows])


def add_forks(
    session: Session,
    snapshot: SnapshotId,
    time: datetime,
    schema_version: int,
    lineage: Sequence[Ancestor],
    expires: datetime | None,
    oldest: SnapshotId | None,
    forks: Sequence[tuple[CatalogId, str, str, str]],
) -> None:
    """Add forks that begin with one snapshot: their ids, uuids, names and data paths.

    `lineage` is whom they descend from beside themselves, `oldest` the first of the inherited snapshots that
    are not expired.
    """
    session.insert(CATALOGS, [(fork, uuid, name, snapshot) for fork, uuid, name, _ in forks])
    session.insert(
        HEADS,
        [(fork, snapshot, time, schema_version, path, time, expires, oldest) for fork, _, _, path in forks],
    )
    session.insert(LINEAGES, [(fork, *row) for fork, *_ in forks for row in lineage_of_fork(fork, lineage)])


def add_name(session: Session, catalog: CatalogId, uuid: str, name: str, begin: SnapshotId) -> None:
    """Let a catalog have a name from a snapshot on."""
    session.insert(CATALOGS, [(catalog, uuid, name, begin)])


def end_name(session: Session, catalog: CatalogId, end: SnapshotId) -> None:
    """Let a catalog have its name no longer."""
    session.execute("end_catalog", catalog=catalog, snapshot=end)


def end_catalogs(session: Session, catalogs: Sequence[CatalogId], end: SnapshotId, time: datetime) -> None:
    """Drop catalogs whose heads are locked."""
    listed = json.dumps(catalogs)
    session.execute("end_catalogs", catalogs=listed, snapshot=end)
    session.execute("close_heads", catalogs=listed, snapshot=end, time=time)


def reopen_catalog(session: Session, catalog: CatalogId, expires: datetime | None) -> None:
    """Let a dropped catalog live again; whoever wrote for it before has to begin anew."""
    session.execute("reopen_head", catalog=catalog, expires=expires)
    session.execute("cancel_reservations", catalog=catalog)


def set_expiry(session: Session, catalog: CatalogId, expires: datetime | None) -> None:
    """Let a catalog expire at a time, or not at all."""
    session.execute("set_expiry", catalog=catalog, expires=expires)
