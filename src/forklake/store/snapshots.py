"""Snapshots: which there are, and what each of them did."""

from __future__ import annotations

import json
from collections.abc import Callable

from forklake.model.history import other_catalogs
from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.snapshots import Snapshot
from forklake.store.backend import Database, Session, as_time


def snapshot_exists(reader: Database | Session, snapshot: int) -> bool:
    """Whether a snapshot is there."""
    # Not every backend takes larger numbers.
    return 0 <= snapshot < FOREVER and bool(reader.rows("snapshot_exists", at=snapshot))


def latest_snapshot(database: Database) -> SnapshotId:
    """The number of the lake's last commit."""
    return SnapshotId(database.rows("latest_snapshot")[0][0])


def snapshots(database: Database, catalog: CatalogId | None) -> list[Snapshot]:
    """The history of the lake, or of one catalog with what it inherited, oldest first."""
    if catalog is None:
        # One that comes to stand later has a higher number than all that are shown.
        latest = latest_snapshot(database)
        database.settle(latest)
        found = database.rows("snapshots", at=latest)
    else:
        found = database.rows("snapshots_of_catalog", catalog=catalog)
    names = _names_of_others(database, {number for row in found for number in other_catalogs(row[3] or "")})
    return [
        Snapshot(
            SnapshotId(snapshot),
            as_time(moment),
            name,
            changes or "",
            author,
            message,
            None if extra is None else json.loads(extra),
            schema_version,
            footprint,
            {number: names(number, snapshot) for number in other_catalogs(changes or "")},
        )
        for snapshot, moment, schema_version, changes, author, message, extra, name, footprint in found
    ]


def _names_of_others(database: Database, catalogs: set[int]) -> Callable[[int, int], str]:
    """What catalogs were called at some snapshot, read in one query."""
    known: dict[int, list[tuple[int, str]]] = {}
    found = database.rows("names_of_catalogs", catalogs=json.dumps(sorted(catalogs))) if catalogs else ()
    for number, begin, name in found:
        known.setdefault(number, []).append((begin, name))

    def name_at(number: int, snapshot: int) -> str:
        names = [name for begin, name in known.get(number, ()) if begin <= snapshot]
        return names[-1] if names else f"catalog {number}"

    return name_at
