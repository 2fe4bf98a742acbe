"""Catalogs as a whole: created, renamed, dropped and brought back, each one snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from forklake.commit.publish import record_of
from forklake.commit.retry import commit_once
from forklake.errors import CatalogExists, CatalogNotFound, InvalidArgument
from forklake.model.changes import Change, Verb, notation, to_footprint
from forklake.model.entities import Schema
from forklake.model.ids import FOREVER, CatalogId, SchemaId, SnapshotId
from forklake.model.names import check_name, folder_for
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author, Head
from forklake.store.backend import (
    Allocation,
    Database,
    Row,
    Session,
    UniqueViolation,
    as_time,
)
from forklake.store.entity_rows import STORED, rows_of
from forklake.store.read_catalogs import catalog_named

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
    if if_not_exists and database.rows("catalog_by_name", name=name):
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
    catalog, uuid, head = catalog_named(database, name)
    if check_name(new_name, "catalog") == name:
        return

    def write(session: Session) -> tuple[SnapshotId, None]:
        new, numbers = advance(session, head, name)
        if session.rows("catalog_name", catalog=catalog)[0][0] != name:
            raise CatalogNotFound(f'catalog "{name}" was renamed by somebody else')
        _refuse_taken(session, new_name)
        session.execute("end_catalog", catalog=catalog, snapshot=new.snapshot_id)
        _insert_catalog(session, catalog, uuid, new_name, new)
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
        found = session.rows("dropped_catalog", name=name)
        if not found:
            raise CatalogNotFound(f'no catalog of the name "{name}" was dropped')
        catalog, uuid, snapshot, schema_version, data_path, moment = found[0]
        locked = session.lock_head(CatalogId(catalog))
        if locked is None or locked[0][3] is None:
            raise CatalogExists(f'catalog "{name}" was brought back by somebody else')
        if session.rows("catalog_by_name", name=new_name):
            raise _taken_again(new_name)
        _, numbers = locked
        head = Head(CatalogId(catalog), SnapshotId(snapshot), schema_version, data_path, as_time(moment))
        new = replace(
            head,
            snapshot_id=numbers.snapshot_id,
            snapshot_time=max(numbers.snapshot_time, head.snapshot_time + _TICK),
        )
        _insert_catalog(session, new.catalog_id, str(uuid), new_name, new)
        session.execute("reopen_head", catalog=catalog, expires=expires)
        session.execute("cancel_reservations", catalog=catalog)
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
    listed = json.dumps(names)

    def lock(session: Session) -> list[Row]:
        locked = session.rows("lock_heads", names=listed)
        # Somebody may have renamed one while we waited for it.
        named = {(row[0], row[1]) for row in session.rows("catalogs_by_names", names=listed)}
        found = [row for row in locked if (row[0], row[1]) in named]
        missing = set(names) - {row[0] for row in found}
        if missing:
            raise CatalogNotFound(
                f'no catalog is named "{min(missing)}": `forklake catalogs` lists those that are'
            )
        return found

    _drop(database, lock, author)
    steps.add(len(names))


def drop_expired(database: Database, author: Author, progress: OnProgress | None = None) -> list[str]:
    """End every catalog whose time to live is over, in one commit."""
    steps = Steps(progress, "drop expired catalogs", "catalogs")
    now = database.now()
    if not database.rows("expired_catalogs", now=now):
        return []
    dropped = _drop(database, lambda session: session.rows("lock_expired", now=now), author)
    steps.add(len(dropped))
    return dropped


def _drop(database: Database, lock: Callable[[Session], list[Row]], author: Author) -> list[str]:
    """End the catalogs whose heads were locked: name, id, schema version, time of the last commit."""

    def write(session: Session) -> tuple[SnapshotId, list[str]]:
        found = lock(session)
        if not found:
            return SnapshotId(0), []
        numbers = session.allocate()
        moment = max(numbers.snapshot_time, *(as_time(row[3]) + _TICK for row in found))
        snapshot, listed = numbers.snapshot_id, json.dumps([row[1] for row in found])
        session.execute("end_catalogs", catalogs=listed, snapshot=snapshot)
        session.execute("close_heads", catalogs=listed, snapshot=snapshot, time=moment)
        dropped = [Change(Verb.DROP_CATALOG, catalog, name=name) for name, catalog, *_ in found]
        record_for_many(session, numbers, moment, max(row[2] for row in found), dropped, author)
        return snapshot, [row[0] for row in found]

    return commit_once(database, write)


def record_for_many(
    session: Session,
    numbers: Allocation,
    moment: datetime,
    schema_version: int,
    changes: Sequence[Change],
    author: Author,
    *,
    catalogs: Sequence[CatalogId] | None = None,
) -> None:
    """Add one snapshot that did something to each of many catalogs; their heads are moved by the caller."""
    owners = [change.object_id for change in changes] if catalogs is None else catalogs
    extra = None if author.extra is None else json.dumps(author.extra, ensure_ascii=False)
    session.insert(
        "ducklake_snapshot",
        ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id"),
        [(numbers.snapshot_id, moment, schema_version, numbers.next_catalog_id, numbers.next_file_id)],
    )
    session.insert(
        "ducklake_snapshot_changes",
        (
            "snapshot_id",
            "catalog_id",
            "changes_made",
            "author",
            "commit_message",
            "commit_extra_info",
            "footprint",
        ),
        [
            (
                numbers.snapshot_id,
                owner,
                notation([change]),
                author.author,
                author.message,
                extra,
                # A fork collides with nothing, and there may be a million of them.
                "[]" if change.verb == Verb.FORK_CATALOG else to_footprint([change]),
            )
            for owner, change in zip(owners, changes, strict=True)
        ],
    )


def _write_root(session: Session, name: str, author: Author) -> SnapshotId:
    numbers = session.allocate(catalog_ids=2)
    catalog, main = CatalogId(numbers.catalog_ids[0]), SchemaId(numbers.catalog_ids[1])
    uuid = str(uuid4())
    head = Head(catalog, numbers.snapshot_id, 0, folder_for(name, uuid), numbers.snapshot_time)
    _insert_catalog(session, catalog, uuid, name, head)
    session.insert(
        "ducklake_catalog_head",
        ("catalog_id", "snapshot_id", "snapshot_time", "schema_version", "data_path", "created_at"),
        [
            (
                catalog,
                head.snapshot_id,
                head.snapshot_time,
                head.schema_version,
                head.data_path,
                head.snapshot_time,
            )
        ],
    )
    session.insert(
        "ducklake_catalog_lineage",
        ("catalog_id", "source_catalog_id", "max_snapshot", "depth"),
        [(catalog, catalog, FOREVER, 0)],
    )
    schema = Schema(main, str(uuid4()), "main", head.data_path + "main/")
    session.insert(
        "ducklake_schema",
        ("catalog_id", "begin_snapshot", *STORED["schema"].columns),
        [(catalog, head.snapshot_id, *row) for row in rows_of(schema).values()],
    )
    changes = (Change(Verb.CREATE_CATALOG, catalog, name=name), Change(Verb.CREATE_SCHEMA, main, name="main"))
    session.record(record_of(head, numbers, changes, author))
    return head.snapshot_id


def advance(session: Session, head: Head, name: str) -> tuple[Head, Allocation]:
    """Lock a live catalog and take the next snapshot for it."""
    locked = session.lock_head(head.catalog_id)
    if locked is None or locked[0][3] is not None:
        raise CatalogNotFound(f'catalog "{name}" was dropped by somebody else')
    row, numbers = locked
    moment = max(numbers.snapshot_time, as_time(row[2]) + _TICK)
    return replace(
        head, snapshot_id=numbers.snapshot_id, schema_version=row[1], snapshot_time=moment
    ), numbers


def _insert_catalog(session: Session, catalog: CatalogId, uuid: str, name: str, head: Head) -> None:
    session.insert(
        "ducklake_catalog",
        ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot"),
        [(catalog, uuid, name, head.snapshot_id)],
    )


def _refuse_taken(session: Session, name: str) -> None:
    if session.rows("catalog_by_name", name=name):
        raise _taken(name)


def _taken_again(name: str) -> CatalogExists:
    return CatalogExists(
        f'another catalog is named "{name}" now: bring this one back under another name (as_name)'
    )


def _taken(name: str) -> CatalogExists:
    return CatalogExists(f'catalog "{name}" exists: choose another name, or ask for it only if it is missing')
