"""Reservations of snapshots that are written elsewhere.

Whether one is open, committed, cancelled or expired is changed by conditional updates: whoever gets the row
back has done it, and nobody else will.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from forklake.model.distributed import ReservationInfo, ReservationState
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Allocation, Database, Session, as_time
from forklake.store.row_sets import RESERVATIONS


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is stored of one."""

    commit_uuid: str
    state: ReservationState
    expires_at: datetime
    committed_snapshot_id: SnapshotId | None
    manifest_digest: str | None
    """What was committed."""


@dataclass(frozen=True, slots=True)
class ExpiredReservation:
    """One whose time is over, and that may have left files behind."""

    catalog: CatalogId
    reservation_id: str
    commit_uuid: str
    parent: SnapshotId
    state: ReservationState
    committed: SnapshotId | None
    data_path: str
    """Where its catalog keeps files."""
    is_dropped: bool
    """Whether its catalog was."""


def add_reservation(
    session: Session,
    catalog: CatalogId,
    reservation: str,
    commit_uuid: str,
    parent: SnapshotId,
    numbers: Allocation,
    expires: datetime,
    properties: Mapping[str, Any],
) -> None:
    """Add an open reservation of the snapshot whose number was drawn."""
    about = json.dumps(dict(properties), ensure_ascii=False)
    session.insert(
        RESERVATIONS,
        [
            (
                catalog,
                reservation,
                numbers.snapshot_id,
                parent,
                str(UUID(commit_uuid)),
                "open",
                numbers.snapshot_time,
                expires,
                about,
            )
        ],
    )


def reservation_of(reader: Database | Session, catalog: CatalogId, reservation: str) -> Reservation | None:
    """One reservation of a catalog; None if it has none of this id."""
    found = reader.rows("reservation", catalog=catalog, reservation=reservation)
    if not found:
        return None
    _, _, commit_uuid, state, expires, committed, digest = found[0]
    return Reservation(UUID(str(commit_uuid)).hex, state, as_time(expires), committed, digest)


def reservations(database: Database, catalog: CatalogId) -> list[ReservationInfo]:
    """Every reservation of a catalog, oldest first."""
    return [
        ReservationInfo(
            str(reservation),
            SnapshotId(snapshot),
            SnapshotId(parent),
            state,
            as_time(created),
            as_time(expires),
            committed,
            json.loads(properties or "{}"),
        )
        for reservation, snapshot, parent, state, created, expires, committed, properties in database.rows(
            "reservations_of_catalog", catalog=catalog
        )
    ]


def take_reservation(
    session: Session,
    catalog: CatalogId,
    reservation: str,
    digest: str,
    *,
    now: datetime,
    reserved: SnapshotId,
    otherwise: SnapshotId,
) -> SnapshotId | None:
    """Commit an open reservation; gives the number that the commit has, or None if it is open no longer.

    That is the `reserved` one unless a later snapshot of the lake is there, or else the other.
    """
    taken = session.rows(
        "take_reservation",
        catalog=catalog,
        reservation=reservation,
        snapshot=otherwise,
        reserved=reserved,
        digest=digest,
        now=now,
    )
    return SnapshotId(taken[0][0]) if taken else None


def cancel_reservation(session: Session, catalog: CatalogId, reservation: str) -> bool:
    """Cancel a reservation; False if it was not open."""
    return bool(session.rows("cancel_reservation", catalog=catalog, reservation=reservation))


def expire_reservations(session: Session, now: datetime) -> None:
    """End every reservation whose time is over."""
    session.execute("expire_reservations", now=now)


def unswept_reservations(database: Database, now: datetime) -> list[ExpiredReservation]:
    """Those whose time is over, and whose files nobody has cleared up."""
    return [
        ExpiredReservation(
            CatalogId(catalog),
            str(reservation),
            UUID(str(uuid)).hex,
            SnapshotId(parent),
            state,
            committed,
            data_path,
            ended is not None,
        )
        for catalog, reservation, uuid, parent, state, committed, data_path, ended in database.rows(
            "unswept_reservations", now=now
        )
    ]


def mark_swept(session: Session, catalog: CatalogId, reservation: str, now: datetime) -> None:
    """Note that a reservation has no files left that nobody refers to."""
    session.execute("mark_swept", catalog=catalog, reservation=reservation, now=now)
