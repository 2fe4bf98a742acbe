"""Snapshots: which there are, and what each of them did."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from forklake.model.history import other_catalogs
from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.snapshots import Author, Snapshot, read_extra
from forklake.store.backend import Allocation, Database, Session, as_time
from forklake.store.row_sets import CHANGES, SNAPSHOTS


class Footprint(NamedTuple):
    """What a commit did, as others have to know it."""

    snapshot: SnapshotId
    text: str | None
    """None if it was written by a program that does not say."""


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
        database.wait_for_commits(latest)
        found = database.rows("snapshots", at=latest)
    else:
        found = database.rows("snapshots_of_catalog", catalog=catalog)
    names = _names_of_others(database, {number for row in found for number in other_catalogs(row[3] or "")})
    return [
        Snapshot(
            SnapshotId(snapshot),
            as_time(timestamp),
            name,
            changes or "",
            author,
            message,
            read_extra(extra),
            schema_version,
            footprint,
            {number: names(number, snapshot) for number in other_catalogs(changes or "")},
        )
        for snapshot, timestamp, schema_version, changes, author, message, extra, name, footprint in found
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


def footprints_since(reader: Database | Session, catalog: CatalogId, base: SnapshotId) -> list[Footprint]:
    """What a catalog itself has committed after a snapshot, in order."""
    return [Footprint(*row) for row in reader.rows("footprints_since", catalog=catalog, base=base)]


def footprints_between(
    reader: Database | Session, catalog: CatalogId, start: int, end: SnapshotId
) -> list[Footprint]:
    """What a catalog and its ancestors committed after one snapshot and up to another, in order."""
    found = reader.rows("footprints_between", catalog=catalog, start=start, end=end)
    return [Footprint(*row) for row in found]


def add_snapshot(
    session: Session,
    numbers: Allocation,
    time: datetime,
    schema_version: int,
    author: Author,
    done: Iterable[tuple[int, str, str]],
) -> None:
    """Add one snapshot that did something to each of many catalogs: their ids, the changes and footprints.

    Their heads are moved by the caller.
    """
    snapshot = numbers.snapshot_id
    session.insert(
        SNAPSHOTS, [(snapshot, time, schema_version, numbers.next_catalog_id, numbers.next_file_id)]
    )
    session.insert(
        CHANGES,
        [
            (snapshot, catalog, changes, author.author, author.message, author.stored_extra, footprint)
            for catalog, changes, footprint in done
        ],
    )


def announce_snapshot(session: Session, snapshot: SnapshotId) -> None:
    """Let whoever reads a later snapshot wait for this one, whose number was drawn long ago."""
    session.execute("announce_snapshot", snapshot=snapshot)
