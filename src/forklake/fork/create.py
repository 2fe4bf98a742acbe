"""Making forks: a few rows, however much the parent holds.

A fork sees the rows of its parent that began up to the fork point, and nothing that happens there later. No
lock on the parent is needed for that: a catalog's snapshots are numbered in the order in which it commits, so
whatever is committed after its head was read has a higher number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import uuid4

from forklake.commit.catalogs import check_ttl, record_for_many
from forklake.commit.retry import commit_once
from forklake.errors import CatalogExists, InvalidArgument, SnapshotNotFound, StoreBusy
from forklake.fork.paths import refuse_overlap
from forklake.model.changes import Change, Verb
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_name, folder_of_fork
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author
from forklake.model.time_travel import AsOf, parse_as_of, to_utc
from forklake.store.backend import Allocation, Database, Session, UniqueViolation
from forklake.store.catalog_writes import add_forks
from forklake.store.catalogs import name_as_written, no_catalog, stood_at_own, stood_at_time
from forklake.store.lineages import (
    ForkOf,
    ForkParent,
    ask_named,
    ask_parent,
    copy_ancestors,
    copying,
    hold_lineages,
    named,
    share_lineages,
)
from forklake.store.retention import check_retained, inherit_expired

Mode = Literal["reference", "copy"]
ATTEMPTS = 100
_TICK = timedelta(microseconds=1)
_NO_FORK = " by a catalog that is no fork of this one, though perhaps of a dropped one of its name"


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """How forks are made."""

    at: AsOf | None = None
    """The snapshot or time of the parent that they start from; None for the present."""
    data_path: str | None = None
    """Where new files go, if not below the data path of the lake."""
    mode: Mode = "reference"
    if_not_exists: bool = False
    ttl: timedelta | None = None

    def check(self) -> None:
        """Refuse what can be refused without looking."""
        if self.at is not None:
            parse_as_of(self.at)
        if self.mode not in ("reference", "copy"):
            raise InvalidArgument(f'a fork is made by "reference" or by "copy", not by {self.mode!r}')
        check_ttl(self.ttl)


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

    at = None if options.at is None else parse_as_of(options.at)
    if isinstance(at, datetime):
        database.wait_for_commits(to_utc(at))
    for _ in range(ATTEMPTS):
        try:
            made = commit_once(database, write)
            # They are there together, or not at all.
            steps.add(len(wanted))
            return made
        except UniqueViolation as error:
            found = named(database, wanted)
            if not found:
                raise
            # Somebody took a name after we looked; where it may be there, look again.
            if not options.if_not_exists:
                raise _taken([catalog.name for catalog in found]) from error
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
        share_lineages(session)
    else:
        # It is compared with those of all others, so one at a time takes one.
        hold_lineages(session)
    found = ask_parent(session, parent)
    there = ask_named(session, wanted)
    # Drawn with the same packet, after the head was read; where names may be there, first look for them.
    drawn = None if options.if_not_exists else session.allocate(catalog_ids=len(wanted))
    point = _fork_point(session, parent, found() or _alike(session, parent), options.at)
    missing = _missing(there(), wanted, point.catalog, options)
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


def _alike(session: Session, parent: str) -> ForkParent | None:
    """The only catalog whose name differs from this one in case."""
    return ask_parent(session, name_as_written(session, parent))()


def _fork_point(session: Session, parent: str, found: ForkParent | None, at: AsOf | None) -> ForkParent:
    """The parent as it was where forks leave it."""
    if found is None:
        raise no_catalog(session, parent)
    if at is None:
        return found
    at = parse_as_of(at)
    if isinstance(at, datetime):
        stood = stood_at_time(session, found.catalog, to_utc(at))
    else:
        stood = stood_at_own(session, found.catalog, at) if at >= 0 else None
    check_retained(session, found.catalog, None if stood is None else stood.snapshot_id)
    if stood is None:
        raise SnapshotNotFound(
            f'"{parent}" did not exist yet at {at}: `forklake snapshots` tells since when it does'
            if isinstance(at, datetime)
            else f'"{parent}" has no snapshot {at}: `forklake snapshots` lists those that it has'
        )
    return replace(
        found, snapshot=stood.snapshot_id, schema_version=stood.schema_version, time=stood.snapshot_time
    )


def _missing(
    found: Sequence[ForkOf], names: Sequence[str], parent: CatalogId, options: ForkOptions
) -> list[str]:
    """The names that no catalog has yet; a fork of the same parent will do if that was said."""
    others = [fork.name for fork in found if not options.if_not_exists or fork.parent != parent]
    if others:
        raise _taken(others, by=_NO_FORK if options.if_not_exists else "")
    there = {fork.name for fork in found}
    return [name for name in names if name not in there]


def _taken(names: Sequence[str], *, by: str = "") -> CatalogExists:
    shown = ", ".join(f'"{name}"' for name in names[:3])
    return CatalogExists(f"{shown} is taken{by}: choose another name, or drop that catalog first")


def _write_forks(
    session: Session,
    made: dict[str, CatalogId],
    point: ForkParent,
    numbers: Allocation,
    options: ForkOptions,
    author: Author,
) -> None:
    snapshot, timestamp = numbers.snapshot_id, max(numbers.snapshot_time, point.time + _TICK)
    # Snapshots may be dated ahead of the clock, if that went back; a time to live counts from now.
    expires = None if options.ttl is None else numbers.snapshot_time + options.ttl
    forks: list[tuple[CatalogId, str, str, str]] = []
    for name, catalog in made.items():
        uuid = str(uuid4())
        path = options.data_path or folder_of_fork(name, uuid, catalog)
        forks.append((catalog, uuid, name, path))
    record_for_many(
        session,
        numbers,
        timestamp,
        point.schema_version,
        [Change(Verb.FORK_CATALOG, point.catalog)] * len(made),
        author,
        catalogs=list(made.values()),
    )
    # Forks descend from their parent and from whom it descends from, as these were at the fork point.
    lineage = [ancestor.at(point.snapshot) for ancestor in point.lineage]
    add_forks(session, snapshot, timestamp, point.schema_version, lineage, expires, point.oldest, forks)
    if point.has_gaps:
        inherit_expired(session, point.catalog, point.snapshot, list(made.values()))
