"""Making forks: a few rows, however much the parent holds.

A fork sees the rows of its parent that began up to the fork point, and nothing that happens there later. No
lock on the parent is needed for that: a catalog's snapshots are numbered in the order in which it commits, so
whatever is committed after its head was read has a higher number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import uuid4

from forklake.commit.catalogs import check_ttl, record_for_many
from forklake.commit.retry import commit_once
from forklake.errors import CatalogExists, CatalogNotFound, InvalidArgument, SnapshotNotFound, StoreBusy
from forklake.fork.copy import copy_ancestors, copying
from forklake.fork.paths import refuse_overlap
from forklake.model.changes import Change, Verb
from forklake.model.ids import FOREVER, CatalogId, SnapshotId
from forklake.model.names import check_name, folder_for
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author
from forklake.store.backend import Allocation, Database, Row, Session, UniqueViolation, as_time
from forklake.store.read_catalogs import Moment, aware, moment_of

Mode = Literal["reference", "copy"]
ATTEMPTS = 100
_TICK = timedelta(microseconds=1)
_NO_FORK = " by a catalog that is no fork of this one, though perhaps of a dropped one of its name"


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """How forks are made."""

    at: Moment | None = None
    """The snapshot or time of the parent that they start from; None for the present."""
    data_path: str | None = None
    """Where new files go, if not below the data path of the lake."""
    mode: Mode = "reference"
    if_not_exists: bool = False
    ttl: timedelta | None = None

    def check(self) -> None:
        """Refuse what can be refused without looking."""
        if self.at is not None:
            moment_of(self.at)
        if self.mode not in ("reference", "copy"):
            raise InvalidArgument(f'a fork is made by "reference" or by "copy", not by {self.mode!r}')
        check_ttl(self.ttl)


@dataclass(frozen=True, slots=True)
class _Point:
    """Where forks leave their parent."""

    catalog: CatalogId
    snapshot: SnapshotId
    schema_version: int
    time: datetime
    lineage: tuple[Row, ...]
    """Whom the parent descends from: id, bound, depth, and up to where its rows were copied."""


def fork_catalogs(
    database: Database,
    parent: str,
    names: Sequence[str],
    options: ForkOptions,
    author: Author,
    lake_path: str,
    progress: OnProgress | None = None,
) -> dict[str, CatalogId]:
    """Make forks of a catalog in one commit; gives the ids of those that were made."""
    check_name(parent, "catalog")
    options.check()
    wanted = [check_name(name, "catalog") for name in names]
    if len(set(wanted)) < len(wanted):
        raise InvalidArgument("each fork needs a name of its own: one is listed twice")

    steps = Steps(progress, f"fork {parent}", "catalogs", len(wanted))

    def write(session: Session) -> tuple[SnapshotId, dict[str, CatalogId]]:
        return _fork(session, parent, wanted, options, author, lake_path, progress)

    at = None if options.at is None else moment_of(options.at)
    if isinstance(at, datetime):
        database.settle(aware(at))
    for _ in range(ATTEMPTS):
        try:
            made = commit_once(database, write)
            # They are there together, or not at all.
            steps.add(len(wanted))
            return made
        except UniqueViolation as error:
            found = database.rows("catalogs_by_names", names=json.dumps(wanted))
            if not found:
                raise
            # Somebody took a name after we looked; where it may be there, look again.
            if not options.if_not_exists:
                raise _taken([row[0] for row in found]) from error
    raise StoreBusy(f'names of these forks of "{parent}" were taken {ATTEMPTS} times meanwhile: try again')


def _fork(
    session: Session,
    parent: str,
    wanted: Sequence[str],
    options: ForkOptions,
    author: Author,
    lake_path: str,
    progress: OnProgress | None,
) -> tuple[SnapshotId, dict[str, CatalogId]]:
    if options.data_path is None:
        session.execute("share_lineages")
    else:
        # It is compared with those of all others, so one at a time takes one.
        session.execute("hold_lineages")
    found = session.ask("lineage_by_name", name=parent)
    named = session.ask("catalogs_by_names", names=json.dumps(wanted))
    # Drawn with the same packet, after the head was read; where names may be there, first look for them.
    drawn = None if options.if_not_exists else session.allocate(catalog_ids=len(wanted))
    point = _fork_point(session, parent, found(), options.at)
    missing = _missing(named(), wanted, point.catalog, options)
    if not missing:
        return point.snapshot, {}
    if options.data_path is not None:
        refuse_overlap(session, options.data_path, lake_path)
    numbers = drawn or session.allocate(catalog_ids=len(missing))
    made = dict(zip(missing, map(CatalogId, numbers.catalog_ids), strict=True))
    _write_forks(session, made, point, numbers, options, author)
    if options.mode == "copy":
        steps = copying(progress, parent, len(made))
        for catalog in made.values():
            copy_ancestors(session, catalog, steps)
    return numbers.snapshot_id, made


def _fork_point(session: Session, parent: str, found: list[Row], at: Moment | None) -> _Point:
    if not found:
        raise CatalogNotFound(f'no catalog is named "{parent}": `forklake catalogs` lists those that are')
    catalog, snapshot, schema_version, moment, *_ = found[0]
    if at is not None:
        at = moment_of(at)
        if isinstance(at, datetime):
            rows = session.rows("catalog_at_time", catalog=catalog, time=aware(at))
        else:
            # Not every backend takes larger numbers.
            known = 0 <= at < FOREVER
            rows = session.rows("catalog_at_own_snapshot", catalog=catalog, at=at) if known else []
        if not rows:
            raise SnapshotNotFound(
                f'"{parent}" did not exist yet at {at}: `forklake snapshots` tells since when it does'
                if isinstance(at, datetime)
                else f'"{parent}" has no snapshot {at}: `forklake snapshots` lists those that it has'
            )
        snapshot, schema_version, moment = rows[0]
    lineage = tuple(row[4:] for row in found)
    return _Point(CatalogId(catalog), SnapshotId(snapshot), schema_version, as_time(moment), lineage)


def _missing(found: list[Row], names: Sequence[str], parent: CatalogId, options: ForkOptions) -> list[str]:
    """The names that no catalog has yet; a fork of the same parent will do if that was said."""
    others = [name for name, _, source in found if not options.if_not_exists or source != parent]
    if others:
        raise _taken(others, by=_NO_FORK if options.if_not_exists else "")
    there = {name for name, _, _ in found}
    return [name for name in names if name not in there]


def _taken(names: Sequence[str], *, by: str = "") -> CatalogExists:
    shown = ", ".join(f'"{name}"' for name in names[:3])
    return CatalogExists(f"{shown} is taken{by}: choose another name, or drop that catalog first")


def _write_forks(
    session: Session,
    made: dict[str, CatalogId],
    point: _Point,
    numbers: Allocation,
    options: ForkOptions,
    author: Author,
) -> None:
    snapshot, moment = numbers.snapshot_id, max(numbers.snapshot_time, point.time + _TICK)
    # Snapshots may be dated ahead of the clock, if that went back; a time to live counts from now.
    expires = None if options.ttl is None else numbers.snapshot_time + options.ttl
    catalogs: list[Row] = []
    heads: list[Row] = []
    for name, catalog in made.items():
        uuid = str(uuid4())
        # No other catalog has this folder, whatever it is or was called: tables are told apart by it.
        path = options.data_path or f"{folder_for(name, uuid)[:-1]}.{catalog}/"
        catalogs.append((catalog, uuid, name, snapshot))
        heads.append((catalog, snapshot, moment, point.schema_version, path, moment, expires))
    record_for_many(
        session,
        numbers,
        moment,
        point.schema_version,
        [Change(Verb.FORK_CATALOG, point.catalog)] * len(made),
        author,
        catalogs=list(made.values()),
    )
    session.insert(
        "ducklake_catalog", ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot"), catalogs
    )
    session.insert(
        "ducklake_catalog_head",
        (
            "catalog_id",
            "snapshot_id",
            "snapshot_time",
            "schema_version",
            "data_path",
            "created_at",
            "expires_at",
        ),
        heads,
    )
    session.insert(
        "ducklake_catalog_lineage",
        ("catalog_id", "source_catalog_id", "max_snapshot", "depth", "copied_snapshot"),
        _lineages(made.values(), point),
    )


def _lineages(forks: Iterable[CatalogId], point: _Point) -> list[Row]:
    """Forks descend from their parent and from whom it descends from, as these were at the fork point."""
    inherited = [
        (source, min(bound, point.snapshot), depth, None if copied is None else min(copied, point.snapshot))
        for source, bound, depth, copied in point.lineage
    ]
    depth = 1 + max(depth for _, _, depth, _ in inherited)
    return [(fork, *row) for fork in forks for row in (*inherited, (fork, FOREVER, depth, None))]
