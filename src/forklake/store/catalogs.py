"""Catalogs by name or id, and where they stand: now, at a snapshot of the lake, or at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from forklake.errors import CatalogNotFound, SnapshotNotFound
from forklake.model.alike import alike, nearest, pick
from forklake.model.entities import CatalogInfo
from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.snapshots import Head
from forklake.model.time_travel import AsOf, parse_as_of, to_utc
from forklake.store.backend import Database, Row, Session, as_time
from forklake.store.lineages import fork_point
from forklake.store.retention import check_retained
from forklake.store.snapshots import latest_snapshot, snapshot_exists

_MOST_BESIDE = 500
"""Of how many names before and after one that no catalog has the nearest is looked for."""


class LiveCatalog(NamedTuple):
    """A catalog that was found by its name."""

    id: CatalogId
    uuid: str
    head: Head
    name: str
    """As it was written."""


def catalog_named(database: Database, name: str) -> LiveCatalog:
    """A live catalog by its name; case makes no difference if none has it exactly."""
    found = database.rows("catalog_by_name", name=name)
    if not found:
        name = name_as_written(database, name)
        found = database.rows("catalog_by_name", name=name)
    if not found:
        raise no_catalog(database, name)
    catalog, uuid, *head = found[0]
    return LiveCatalog(CatalogId(catalog), str(uuid), _head(CatalogId(catalog), head), name)


def name_as_written(reader: Database | Session, name: str) -> str:
    """The name of the live catalog that is meant by one, or by one that differs from it only in case."""
    found = pick(name, _names_alike(reader, name), "catalog")
    if found is None:
        raise no_catalog(reader, name)
    return found


def no_catalog(reader: Database | Session, name: str) -> CatalogNotFound:
    """The error for a name that no catalog has."""
    beside = reader.rows("catalogs_beside", name=name, most=_MOST_BESIDE)
    close = nearest(name, [each for (each,) in beside])
    meant = "`forklake catalogs` lists those that are" if close is None else f'did you mean "{close}"?'
    return CatalogNotFound(f'no catalog is named "{name}": {meant}')


def _names_alike(reader: Database | Session, name: str) -> list[str]:
    return alike(name, [each for (each,) in reader.rows("catalogs_alike", name=name)])


def head_of(database: Database, catalog: CatalogId, *, or_dropped: bool = False) -> Head:
    """Where a live catalog stands now, or where a dropped one ended."""
    found = database.rows("head", catalog=catalog)
    if not found:
        raise CatalogNotFound(f"no catalog has the id {catalog}")
    *head, ended = found[0]
    if ended is not None and not or_dropped:
        raise dropped(database, catalog)
    return _head(catalog, head)


def catalog_exists(reader: Database | Session, name: str) -> bool:
    """Whether a live catalog has exactly this name: another may have one that differs in case."""
    return bool(reader.rows("catalog_by_name", name=name))


def is_found(reader: Database | Session, name: str) -> bool:
    """Whether a name is that of a live catalog, whatever its case."""
    return catalog_exists(reader, name) or bool(_names_alike(reader, name))


def dropped_catalog(reader: Database | Session, name: str) -> tuple[CatalogId, str, Head] | None:
    """The catalog of a name that was dropped last, and has not come back: its id, uuid and last head."""
    for catalog, uuid, *head in reader.rows("dropped_catalog", name=name):
        return CatalogId(catalog), str(uuid), _head(CatalogId(catalog), head)
    return None


def latest_name(reader: Database | Session, catalog: CatalogId) -> tuple[str, SnapshotId | None]:
    """What a catalog is called, and the snapshot that dropped it; that is None while it lives."""
    return reader.rows("catalog_name", catalog=catalog)[0]


def dropped(reader: Database | Session, catalog: CatalogId) -> CatalogNotFound:
    """The error for a catalog that is gone."""
    name, ended = latest_name(reader, catalog)
    return CatalogNotFound(
        f'catalog "{name}" was dropped in snapshot {ended}: Lake.undrop_catalog brings it back'
    )


def _head(catalog: CatalogId, row: Iterable[Any]) -> Head:
    snapshot, schema_version, data_path, timestamp = row
    return Head(catalog, SnapshotId(snapshot), schema_version, data_path, as_time(timestamp))


@dataclass(frozen=True, slots=True)
class Stood:
    """A snapshot that a catalog stood at."""

    snapshot_id: SnapshotId
    schema_version: int
    snapshot_time: datetime


def stood_at_time(reader: Database | Session, catalog: CatalogId, time: datetime) -> Stood | None:
    """Where a catalog stood at a time in UTC; None if it did not exist yet."""
    return _stood(reader.rows("catalog_at_time", catalog=catalog, time=time))


def stood_at_snapshot(reader: Database | Session, catalog: CatalogId, at: int) -> Stood | None:
    """Where a catalog stood at a snapshot of the lake; None if it did not exist yet."""
    return _stood(reader.rows("catalog_at_snapshot", catalog=catalog, at=at))


def stood_at_own(reader: Database | Session, catalog: CatalogId, at: int) -> Stood | None:
    """A snapshot of a catalog or, from before it was forked, of an ancestor; None if it has no such one."""
    # Not every backend takes larger numbers.
    return _stood(reader.rows("catalog_at_own_snapshot", catalog=catalog, at=at)) if at < FOREVER else None


def _stood(rows: list[Row]) -> Stood | None:
    for snapshot, schema_version, time in rows:
        return Stood(SnapshotId(snapshot), schema_version, as_time(time))
    return None


def head_at(database: Database, head: Head, at: AsOf, *, or_expired: bool = False) -> Head:
    """Where a catalog stood at a snapshot of the lake, or at a time. Merges compare with expired ones too."""
    at = parse_as_of(at)
    if isinstance(at, datetime):
        asked = to_utc(at)
        # A catalog's own snapshots rise in number and time, so only what is newer than all can still come.
        if asked >= head.snapshot_time:
            database.wait_for_commits(asked)
        found = stood_at_time(database, head.catalog_id, asked)
    else:
        if not snapshot_exists(database, at):
            if 0 <= at < head.snapshot_id:
                check_retained(database, head.catalog_id, at)
            raise SnapshotNotFound(f"there is no snapshot {at}: `forklake snapshots` lists those that are")
        if at > head.snapshot_id:
            database.wait_for_commits(SnapshotId(at))
        found = stood_at_snapshot(database, head.catalog_id, at)
    if not or_expired:
        check_retained(database, head.catalog_id, None if found is None else found.snapshot_id)
    if found is None:
        raise SnapshotNotFound(f"the catalog did not exist yet at {at}: its history starts later")
    return replace(
        head,
        snapshot_id=found.snapshot_id,
        schema_version=found.schema_version,
        snapshot_time=found.snapshot_time,
    )


def catalog_named_at(database: Database, name: str, at: AsOf) -> tuple[CatalogId, str]:
    """The catalog that had a name at a snapshot of the lake or at a time, and its name as it was written.

    If none had it then, it is the fork that has the name now, if its history goes back to before it was made;
    or one that has a name now that differs from it only in case.
    """
    timestamp = _parse_and_wait(database, at)
    if isinstance(timestamp, datetime):
        found = database.rows("catalog_by_name_at_time", name=name, time=timestamp)
    else:
        found = database.rows("catalog_by_name_at", name=name, at=timestamp)
    if found:
        return CatalogId(found[0][0]), name
    for catalog, *_ in database.rows("catalog_by_name", name=name):
        point = fork_point(database, catalog)
        if isinstance(timestamp, datetime):
            stood = stood_at_time(database, catalog, timestamp)
        else:
            stood = stood_at_snapshot(database, catalog, timestamp)
        if point is not None and stood is not None and stood.snapshot_id <= point:
            return CatalogId(catalog), name
    now = pick(name, _names_alike(database, name), "catalog")
    if now is not None and now != name:
        return catalog_named_at(database, now, at)
    _refuse_before_the_lake(database, timestamp)
    shown = at if isinstance(timestamp, datetime) else f"snapshot {at}"
    raise CatalogNotFound(f'no catalog was named "{name}" at {shown}')


def _parse_and_wait(database: Database, at: AsOf) -> SnapshotId | datetime:
    """A snapshot of the lake that is there or a time, after whatever may still come to stand before it."""
    given = parse_as_of(at)
    timestamp = to_utc(given) if isinstance(given, datetime) else SnapshotId(given)
    if not isinstance(timestamp, datetime) and not snapshot_exists(database, timestamp):
        raise SnapshotNotFound(f"there is no snapshot {at}: `forklake snapshots` lists those that are")
    database.wait_for_commits(timestamp)
    return timestamp


def _refuse_before_the_lake(database: Database, at: SnapshotId | datetime) -> None:
    if isinstance(at, datetime) and not database.rows("time_is_known", time=at):
        raise SnapshotNotFound(f"there is no snapshot at {at}: `forklake snapshots` lists those that are")


def catalogs(database: Database, at: AsOf | None) -> list[CatalogInfo]:
    """Every catalog that lives, or that lived at a snapshot of the lake or at a time, by name."""
    timestamp = latest_snapshot(database) if at is None else _parse_and_wait(database, at)
    if isinstance(timestamp, datetime):
        found = database.rows("catalogs_at_time", time=timestamp)
        if not found:
            _refuse_before_the_lake(database, timestamp)
    else:
        found = database.rows("catalogs_at", at=timestamp)
    # If a clock went back, two may have had a name at a time: the one that took it last is meant.
    named = {
        name: CatalogInfo(
            name,
            CatalogId(catalog),
            str(uuid),
            parent,
            None if fork_snapshot is None else SnapshotId(fork_snapshot),
            depth,
            as_time(created),
            None if expires is None else as_time(expires),
            None if parent is None else bool(orphaned),
        )
        for name, catalog, uuid, depth, parent, fork_snapshot, created, expires, orphaned in found
    }
    return list(named.values())
