"""Catalogs as a whole: created, renamed, dropped and brought back, each one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from forklake.commit.publish import record_of
from forklake.commit.retry import commit_once
from forklake.errors import CatalogExists, CatalogNotFound, InvalidArgument
from forklake.model.changes import Change, Verb, notation, to_footprint
from forklake.model.entities import Schema
from forklake.model.ids import CatalogId, SchemaId, SnapshotId
from forklake.model.names import check_name, folder_for
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Allocation, Database, Session, UniqueViolation
from forklake.store.catalog_writes import (
    LockedCatalog,
    add_name,
    add_root,
    end_catalogs,
    end_name,
    has_expired,
    lock_catalogs,
    lock_expired,
    reopen_catalog,
)
from forklake.store.catalogs import (
    catalog_exists,
    catalog_named,
    dropped_catalog,
    latest_name,
    name_as_written,
    no_catalog,
)
from forklake.store.lineages import named
from forklake.store.snapshots import add_snapshot

_TICK = timedelta(microseconds=1)
_LONGEST = timedelta(days=365_000)


def check_ttl(ttl: object) -> None:
    """A time to live ends in the future, and in one that the calendar knows."""
    if ttl is not None and (not isinstance(ttl, timedelta) or not timedelta(0) < ttl <= _LONGEST):
        shown = ttl if isinstance(ttl, timedelta) else repr(ttl)
        raise InvalidArgument(
            f"a time to live is a positive timedelta of a thousand years at most, not {shown}"
        )


def create_catalog(database: Database, name: str, *, if_not_exists: bool, author: Author) -> None:
    """Create a root catalog with its schema `main`."""
    check_name(name, "catalog")
    if if_not_exists and catalog_exists(database, name):
        return

    def write(session: Session) -> tuple[SnapshotId, None]:
        _refuse_taken(session, name)
        return _write_root(session, name, author), None

    try:
        commit_once(database, write)
    except (UniqueViolation, CatalogExists) as error:
        if not if_not_exists:
            raise _taken(name) from error


def rename_catalog(database: Database, name: str, new_name: str, *, author: Author) -> None:
    """Give a catalog another name; its folder and everything that refers to it stay."""
    catalog, uuid, head, name = catalog_named(database, name)
    if check_name(new_name, "catalog") == name:
        return

    def write(session: Session) -> tuple[SnapshotId, None]:
        new, numbers = advance(session, head, name)
        if latest_name(session, catalog)[0] != name:
            raise CatalogNotFound(f'catalog "{name}" was renamed by somebody else')
        _refuse_taken(session, new_name)
        end_name(session, catalog, new.snapshot_id)
        add_name(session, catalog, uuid, new_name, new.snapshot_id)
        session.record(
            record_of(new, numbers, (Change(Verb.RENAME_CATALOG, catalog, name=new_name),), author)
        )
        return new.snapshot_id, None

    try:
        commit_once(database, write)
    except UniqueViolation as error:
        raise _taken(new_name) from error


def undrop_catalog(
    database: Database, name: str, as_name: str | None, expires: datetime | None, *, author: Author
) -> str:
    """Let the catalog of a name that was dropped last live again, with its history; gives its name now."""
    check_name(name, "catalog")
    new_name = name if as_name is None else check_name(as_name, "catalog")

    def write(session: Session) -> tuple[SnapshotId, None]:
        found = dropped_catalog(session, name)
        if found is None:
            raise CatalogNotFound(f'no catalog of the name "{name}" was dropped')
        catalog, uuid, head = found
        locked = session.lock_head(catalog)
        if locked is None or locked[0].end_snapshot is None:
            raise CatalogExists(f'catalog "{name}" was brought back by somebody else')
        if catalog_exists(session, new_name):
            raise _taken_again(new_name)
        _, numbers = locked
        new = replace(
            head,
            snapshot_id=numbers.snapshot_id,
            snapshot_time=max(numbers.snapshot_time, head.snapshot_time + _TICK),
        )
        add_name(session, catalog, uuid, new_name, new.snapshot_id)
        reopen_catalog(session, catalog, expires)
        change = Change(Verb.UNDROP_CATALOG, catalog, name=new_name)
        session.record(record_of(new, numbers, (change,), author))
        return new.snapshot_id, None

    try:
        commit_once(database, write)
    except UniqueViolation as error:
        raise _taken_again(new_name) from error
    return new_name


def drop_catalog(database: Database, name: str, *, author: Author) -> None:
    """End a catalog. Its rows stay for time travel and for the forks that inherit them."""
    drop_catalogs(database, [name], author=author)


def drop_catalogs(
    database: Database, names: Sequence[str], *, author: Author, progress: OnProgress | None = None
) -> None:
    """End catalogs in one commit, all or none."""
    steps = Steps(progress, "drop catalogs", "catalogs", len(names))

    def lock(session: Session) -> list[LockedCatalog]:
        found = _locked(session, names)
        missing = set(names) - {catalog.name for catalog in found}
        if missing:
            written = {name_as_written(session, name) for name in sorted(missing)}
            others = _locked(session, sorted(written - {catalog.name for catalog in found}))
            found += others
            gone = written - {catalog.name for catalog in found}
            if gone:
                raise no_catalog(session, min(gone))
        return found

    _drop(database, lock, author)
    steps.add(len(names))


def _locked(session: Session, names: Sequence[str]) -> list[LockedCatalog]:
    locked = lock_catalogs(session, names)
    # Somebody may have renamed one while we waited for it.
    still = {(found.name, found.id) for found in named(session, names)}
    return [catalog for catalog in locked if (catalog.name, catalog.id) in still]


def drop_expired(database: Database, author: Author, progress: OnProgress | None = None) -> list[str]:
    """End every catalog whose time to live is over, in one commit."""
    steps = Steps(progress, "drop expired catalogs", "catalogs")
    now = database.now()
    if not has_expired(database, now):
        return []
    dropped = _drop(database, lambda session: lock_expired(session, now), author)
    steps.add(len(dropped))
    return dropped


def _drop(database: Database, lock: Callable[[Session], list[LockedCatalog]], author: Author) -> list[str]:
    """End the catalogs whose heads were locked."""

    def write(session: Session) -> tuple[SnapshotId, list[str]]:
        found = lock(session)
        if not found:
            return SnapshotId(0), []
        numbers = session.allocate()
        timestamp = max(numbers.snapshot_time, *(catalog.snapshot_time + _TICK for catalog in found))
        end_catalogs(session, [catalog.id for catalog in found], numbers.snapshot_id, timestamp)
        dropped = [Change(Verb.DROP_CATALOG, catalog.id, name=catalog.name) for catalog in found]
        version = max(catalog.schema_version for catalog in found)
        record_for_many(session, numbers, timestamp, version, dropped, author)
        return numbers.snapshot_id, [catalog.name for catalog in found]

    return commit_once(database, write)


def record_for_many(
    session: Session,
    numbers: Allocation,
    timestamp: datetime,
    schema_version: int,
    changes: Sequence[Change],
    author: Author,
    *,
    catalogs: Sequence[CatalogId] | None = None,
) -> None:
    """Add one snapshot that did something to each of many catalogs; their heads are moved by the caller."""
    owners = [change.object_id for change in changes] if catalogs is None else catalogs
    done = (
        # A fork collides with nothing, and there may be a million of them.
        (owner, notation([change]), "[]" if change.verb == Verb.FORK_CATALOG else to_footprint([change]))
        for owner, change in zip(owners, changes, strict=True)
    )
    add_snapshot(session, numbers, timestamp, schema_version, author, done)


def _write_root(session: Session, name: str, author: Author) -> SnapshotId:
    numbers = session.allocate(catalog_ids=2)
    catalog, main = CatalogId(numbers.catalog_ids[0]), SchemaId(numbers.catalog_ids[1])
    uuid = str(uuid4())
    head = Head(catalog, numbers.snapshot_id, 0, folder_for(name, uuid), numbers.snapshot_time)
    schema = Schema(main, str(uuid4()), "main", head.data_path + "main/")
    add_root(session, head, uuid, name, schema)
    changes = (Change(Verb.CREATE_CATALOG, catalog, name=name), Change(Verb.CREATE_SCHEMA, main, name="main"))
    session.record(record_of(head, numbers, changes, author))
    return head.snapshot_id


def advance(session: Session, head: Head, name: str) -> tuple[Head, Allocation]:
    """Lock a live catalog and take the next snapshot for it."""
    locked = session.lock_head(head.catalog_id)
    if locked is None or locked[0].end_snapshot is not None:
        raise CatalogNotFound(f'catalog "{name}" was dropped by somebody else')
    at, numbers = locked
    timestamp = max(numbers.snapshot_time, at.snapshot_time + _TICK)
    return replace(
        head, snapshot_id=numbers.snapshot_id, schema_version=at.schema_version, snapshot_time=timestamp
    ), numbers


def _refuse_taken(session: Session, name: str) -> None:
    if catalog_exists(session, name):
        raise _taken(name)


def _taken_again(name: str) -> CatalogExists:
    return CatalogExists(
        f'another catalog is named "{name}" now: bring this one back under another name (as_name)'
    )


def _taken(name: str) -> CatalogExists:
    return CatalogExists(f'catalog "{name}" exists: choose another name, or ask for it only if it is missing')
