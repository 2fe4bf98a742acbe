"""Reservations: snapshots that are written elsewhere and committed once.

A reservation is open until it is committed, cancelled or expired, and each of these is one conditional
update: whoever gets the row back has done it, and nobody else will.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

from forklake.errors import CorruptMetadata, InvalidArgument, ReservationConsumed, ReservationExpired
from forklake.model.distributed import DistributedSnapshot
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.snapshots import Author
from forklake.store import reservations as store
from forklake.store.backend import PAUSES, Allocation, Database, Interrupted, Session
from forklake.store.reservations import (
    Reservation,
    add_reservation,
    cancel_reservation,
    expire_reservations,
    reservation_of,
    take_reservation,
)
from forklake.store.snapshots import announce_snapshot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reserved:
    """What is stored of a reservation when it is begun."""

    reservation_id: str
    commit_uuid: str
    snapshot_id: SnapshotId
    expires_at: datetime


def reserve(
    database: Database,
    catalog: CatalogId,
    parent: SnapshotId,
    ttl: timedelta,
    properties: Mapping[str, Any] | None,
) -> Reserved:
    """Draw a snapshot's number and keep it until it is committed, or its time is over."""
    reservation, commit_uuid = str(uuid4()), uuid4().hex

    def write(session: Session) -> Reserved:
        # The parent has been committed, so its number was drawn before this one and is lower.
        numbers = session.allocate()
        expires = numbers.snapshot_time + ttl
        add_reservation(
            session, catalog, reservation, commit_uuid, parent, numbers, expires, properties or {}
        )
        return Reserved(reservation, commit_uuid, numbers.snapshot_id, expires)

    return _write(database, write)


@dataclass(frozen=True, slots=True)
class Taking:
    """The commit of a reservation, as far as the reservation is concerned."""

    ds: DistributedSnapshot
    digest: str
    """What is committed: a second try of the same is no second commit."""
    author: Author

    def take(self, session: Session, at: SnapshotId, numbers: Allocation) -> tuple[Allocation, Author]:
        """Commit the reservation or raise.

        Its number is used if it follows on the snapshot that it began with, and if no later one of the whole
        lake is there: whoever has read the lake at that one would see something else afterwards.
        """
        reserved = numbers.snapshot_id
        if at == self.ds.parent_snapshot_id:
            reserved = self.ds.snapshot_id
            # From now on, whoever reads a later snapshot waits for us.
            announce_snapshot(session, reserved)
        taken = self._take(session, numbers.snapshot_id, numbers.snapshot_time, reserved)
        numbers = replace(numbers, snapshot_id=taken)
        about = {"id": self.ds.reservation_id, "snapshot": self.ds.snapshot_id}
        about |= {"parent": self.ds.parent_snapshot_id}
        return numbers, self.author.with_extra({"reservation": about})

    def take_nothing(self, database: Database, now: datetime) -> SnapshotId:
        """Commit a reservation that changes nothing: the catalog stays where it is."""
        snapshot = self.ds.parent_snapshot_id

        def write(session: Session) -> SnapshotId:
            return self._take(session, snapshot, now, snapshot)

        try:
            return _write(database, write)
        except ReservationConsumed:
            # A commit that seemed to fail may have gone through.
            done = self.committed(database)
            if done is None:
                raise
            return done

    def _take(
        self, session: Session, snapshot: SnapshotId, now: datetime, reserved: SnapshotId
    ) -> SnapshotId:
        """Gives the number that the commit has: the reserved one where it may, or else the other."""
        taken = take_reservation(
            session,
            self.ds.catalog_id,
            self.ds.reservation_id,
            self.digest,
            now=now,
            reserved=reserved,
            otherwise=snapshot,
        )
        if taken is None:
            raise refusal(session, self.ds)
        return taken

    def stands(self, reader: Database | Session, snapshot: SnapshotId) -> bool:
        """Whether this was committed: the number of the snapshot was drawn for all who might try."""
        return self.committed(reader) == snapshot

    def committed(self, database: Database | Session) -> SnapshotId | None:
        """The snapshot that it became, if exactly this was committed."""
        found = _stored(database, self.ds)
        return found.committed_snapshot_id if found and found.manifest_digest == self.digest else None


def check_open(database: Database, ds: DistributedSnapshot, now: datetime) -> ReservationConsumed | None:
    """Raise if a reservation cannot be committed any more; gives the error if it was committed before."""
    found = _stored(database, ds)
    if found is None:
        raise InvalidArgument(
            f'catalog "{ds.catalog}" knows no distributed snapshot {ds.reservation_id}: '
            "it was begun in another lake"
        )
    if found.commit_uuid != ds.commit_uuid:
        raise InvalidArgument(f"the distributed snapshot {ds.reservation_id} is not as it was begun")
    if found.state == "open" and found.expires_at > now:
        return None
    error = refusal(database, ds)
    if isinstance(error, ReservationConsumed) and error.snapshot_id is not None:
        return error
    raise error


def refusal(reader: Database | Session, ds: DistributedSnapshot) -> ReservationConsumed | ReservationExpired:
    """Why a reservation cannot be committed."""
    found = _stored(reader, ds)
    if found is None:
        raise CorruptMetadata(f"the distributed snapshot {ds.reservation_id} is gone from the metadata")
    if found.state == "committed":
        committed = found.committed_snapshot_id
        return ReservationConsumed(
            f"the distributed snapshot {ds.reservation_id} was committed as snapshot {committed} before, by "
            "another coordinator or with other manifests: nothing was added",
            committed,
        )
    if found.state == "cancelled":
        return ReservationConsumed(
            f"the distributed snapshot {ds.reservation_id} was cancelled: begin another one"
        )
    return ReservationExpired(
        f"the distributed snapshot {ds.reservation_id} expired at {found.expires_at:%Y-%m-%d %H:%M:%S} UTC: "
        "begin another one, with a longer ttl"
    )


def cancel(database: Database, ds: DistributedSnapshot) -> None:
    """End a reservation that shall not be committed; one that has ended without a commit is fine."""

    def write(session: Session) -> None:
        if cancel_reservation(session, ds.catalog_id, ds.reservation_id):
            return
        found = _stored(session, ds)
        if found is None:
            raise InvalidArgument(f'catalog "{ds.catalog}" knows no distributed snapshot {ds.reservation_id}')
        if found.state == "committed":
            raise refusal(session, ds)

    _write(database, write)


def expire(database: Database, now: datetime) -> None:
    """End every reservation whose time is over."""
    _write(database, lambda session: expire_reservations(session, now))


def mark_swept(database: Database, catalog: CatalogId, reservation: str, now: datetime) -> None:
    """Note that a reservation has no files left that nobody refers to."""
    _write(database, lambda session: store.mark_swept(session, catalog, reservation, now))


def _stored(reader: Database | Session, ds: DistributedSnapshot) -> Reservation | None:
    return reservation_of(reader, ds.catalog_id, ds.reservation_id)


def _write(database: Database, write: Callable[[Session], T]) -> T:
    """Run a write that may be done twice, until it stands."""
    for pause in (*PAUSES, None):
        try:
            with database.transaction() as session:
                result = write(session)
                session.commit()
                return result
        except Interrupted:
            if pause is None:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")
