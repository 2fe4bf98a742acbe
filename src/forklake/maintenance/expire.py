"""Expiring snapshots: from then on nobody can read a catalog as it was there.

A catalog's history is its own, with what it inherited: what one expires, others still have. Nothing is
removed here; the collection of garbage removes what no catalog reaches any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forklake.commit.catalogs import drop_expired
from forklake.commit.reservation_cleanup import sweep
from forklake.data.storage.storage import Storage
from forklake.display import Shown
from forklake.errors import InvalidArgument, SnapshotNotFound
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author
from forklake.model.time_travel import to_utc
from forklake.store.backend import Database, Session
from forklake.store.garbage import begin_cleaning, stop_collection
from forklake.store.lineages import hold_lineages
from forklake.store.retention import (
    expirable_catalogs,
    expire_single,
    forget_catalogs,
    forgettable_catalogs,
    last_snapshots,
    oldest_reserved,
    retained_snapshots,
    retire_catalogs,
    set_oldest,
    set_oldest_of_many,
)

_AT_ONCE = 10_000
NEVER = to_utc(datetime.min)
"""Nothing is older."""
_MOST = 2**63 - 1
"""What databases can count to."""


@dataclass(frozen=True, slots=True)
class ExpireResult(Shown):
    """The result of expiring snapshots of one catalog."""

    catalog: str
    snapshots: tuple[SnapshotId, ...]
    """The ids of the snapshots that were expired, or with `dry_run` would be."""
    oldest: SnapshotId
    """The oldest snapshot that the catalog still has."""
    dry_run: bool


@dataclass(frozen=True, slots=True)
class LakeExpireResult(Shown):
    """The result of expiring snapshots of every catalog."""

    catalogs: int
    """How many catalogs had snapshots to expire."""
    dropped: tuple[str, ...]
    """The catalogs whose time to live was over, and that were dropped."""
    forgotten: int
    """How many dropped catalogs can no longer be brought back."""
    dry_run: bool


def cutoff(database: Database, older_than: object) -> datetime | None:
    """The time before which snapshots are expired, by the clock of the database."""
    match older_than:
        case None:
            return None
        case timedelta():
            if older_than < timedelta(0):
                raise InvalidArgument(f"older_than is an age such as timedelta(days=7), not {older_than!r}")
            return ago(database, older_than)
        case datetime():
            return to_utc(older_than)
        case _:
            raise InvalidArgument(f"older_than is a timedelta or a datetime, not {older_than!r}")


def ago(database: Database, age: timedelta) -> datetime:
    """The time that lies so far back, by the clock of the database, as far as the calendar goes."""
    try:
        return database.now() - age
    except OverflowError:
        return NEVER


def check_keep_last(keep_last: object) -> int:
    """How many snapshots stay in any case."""
    if not isinstance(keep_last, int) or isinstance(keep_last, bool) or keep_last < 1:
        raise InvalidArgument(
            f"keep_last is a whole number of at least 1, not {keep_last!r}: the latest snapshot always stays"
        )
    return min(keep_last, _MOST)


def expire_catalog(
    database: Database,
    catalog: CatalogId,
    name: str,
    *,
    older_than: object,
    versions: Iterable[int] | None,
    keep_last: object,
    dry_run: bool,
) -> ExpireResult:
    """Expire snapshots of one catalog by age, by their ids, or both."""
    before, kept = cutoff(database, older_than), check_keep_last(keep_last)
    chosen = _versions(versions)
    if before is None and chosen is None:
        raise InvalidArgument(
            "say which snapshots are to be expired: older_than=timedelta(days=7), or versions=[3, 4]"
        )
    database.check_writable()
    with database.transaction() as session:
        # A fork that is being made from a snapshot has it, or finds that it is gone.
        hold_lineages(session)
        history = retained_snapshots(session, catalog)
        if not history:
            raise SnapshotNotFound(f'catalog "{name}" has no snapshots: it was dropped')
        gone = _chosen(history, name, before, chosen or (), kept)
        reserved = oldest_reserved(session, catalog)
        if reserved is not None:
            # Whoever commits it compares with what others did since.
            gone = {snapshot for snapshot in gone if snapshot < reserved}
        left = [snapshot for snapshot, _ in history if snapshot not in gone]
        if gone and not dry_run:
            set_oldest(session, catalog, left[0])
            single = sorted(snapshot for snapshot in gone if snapshot > left[0])
            if single:
                expire_single(session, catalog, single)
                # A collection looks at these as it goes on, and at forks only when it begins.
                stop_collection(session)
            session.commit()
    return ExpireResult(name, tuple(sorted(gone)), left[0], dry_run)


def _versions(versions: Iterable[int] | None) -> tuple[SnapshotId, ...] | None:
    if versions is None:
        return None
    if isinstance(versions, str) or not isinstance(versions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"versions is a list of snapshot ids, not {versions!r}")
    listed = list(versions)
    for version in listed:
        if not isinstance(version, int) or isinstance(version, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"the id of a snapshot is a whole number, not {version!r}")
    return tuple(map(SnapshotId, listed))


def _chosen(
    history: Sequence[tuple[SnapshotId, datetime]],
    name: str,
    before: datetime | None,
    versions: Sequence[SnapshotId],
    keep_last: int,
) -> set[SnapshotId]:
    """The snapshots that are to be expired."""
    known = {snapshot for snapshot, _ in history}
    latest = history[-1][0]
    for version in versions:
        if version not in known:
            raise SnapshotNotFound(
                f'catalog "{name}" has no snapshot {version}, or has expired it: `forklake snapshots` lists '
                "those that it has"
            )
        if version == latest:
            raise InvalidArgument(f'snapshot {version} is the latest of catalog "{name}", which always stays')
    candidates = history[:-keep_last]
    by_age = {snapshot for snapshot, time in candidates if before is not None and time < before}
    return by_age | set(versions)


def expire_lake(
    database: Database,
    storage: Storage,
    author: Author,
    *,
    older_than: object,
    keep_last: object,
    dry_run: bool,
    progress: OnProgress | None,
) -> LakeExpireResult:
    """Drop catalogs whose time to live is over, and expire old snapshots of all others.

    Catalogs that were dropped before that time are forgotten: nobody can bring them back, and what only they
    reached can be removed.
    """
    expire = expiry(database, older_than, keep_last)
    database.check_writable()
    dropped: list[str] = []
    if not dry_run:
        dropped = drop_expired(database, author, progress)
        # What a dropped catalog's distributed snapshots left behind is removed first, while it is known.
        sweep(database, storage, database.now(), progress)
    with begin_cleaning(database) as session:
        moved, forgotten = expire(session, progress)
        if not dry_run:
            session.commit()
    return LakeExpireResult(moved, tuple(dropped), forgotten, dry_run)


Expiry = Callable[[Session, OnProgress | None], tuple[int, int]]
"""Expires snapshots in a transaction; gives how many catalogs were expired, and how many are forgotten."""


def expiry(database: Database, older_than: object, keep_last: object) -> Expiry:
    """What expires old snapshots of every catalog, and forgets catalogs that were dropped long ago."""
    before, kept = cutoff(database, older_than), check_keep_last(keep_last)
    if before is None:
        raise InvalidArgument("say which snapshots are to be expired: older_than=timedelta(days=7)")

    def expire(session: Session, progress: OnProgress | None) -> tuple[int, int]:
        hold_lineages(session)
        moved = expirable_catalogs(session, before)
        if kept > 1:
            moved = _with_last(session, moved, kept)
        steps = Steps(progress, "expire snapshots", "catalogs", len(moved))
        for start in range(0, len(moved), _AT_ONCE):
            part = moved[start : start + _AT_ONCE]
            set_oldest_of_many(session, part)
            steps.add(len(part))
        forgotten = _forget(session, before)
        steps.end()
        return len(moved), forgotten

    return expire


def _forget(session: Session, before: datetime) -> int:
    """Forget catalogs that were dropped before a time: first those that no other descends from."""
    count = 0
    while forgotten := forgettable_catalogs(session, before):
        count += len(forgotten)
        for start in range(0, len(forgotten), _AT_ONCE):
            forget_catalogs(session, forgotten[start : start + _AT_ONCE])
    return count + retire_catalogs(session, before)


def _with_last(
    session: Session, moved: Sequence[tuple[CatalogId, SnapshotId]], keep_last: int
) -> list[tuple[CatalogId, SnapshotId]]:
    """The same, but the last snapshots of each catalog stay."""
    kept: list[tuple[CatalogId, SnapshotId]] = []
    for start in range(0, len(moved), _AT_ONCE):
        part = moved[start : start + _AT_ONCE]
        last = last_snapshots(session, [catalog for catalog, _ in part], keep_last)
        # One with fewer snapshots keeps them all.
        kept += [(catalog, min(oldest, last[catalog])) for catalog, oldest in part if catalog in last]
    return kept
