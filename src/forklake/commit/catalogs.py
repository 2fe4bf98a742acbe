"""Catalogs as a whole: created, renamed and dropped, each one snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from forklake.commit.attempts import commit_once
from forklake.commit.publish import record_of
from forklake.errors import CatalogExists, CatalogNotFound
from forklake.model.changes import Change, Verb
from forklake.model.entities import Schema
from forklake.model.ids import FOREVER, CatalogId, SchemaId, SnapshotId
from forklake.model.names import check_name, folder_for
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Allocation, Database, Session, UniqueViolation, as_time, utc_now
from forklake.store.read import catalog_named, head_of
from forklake.store.rows import STORED, rows_of

_TICK = timedelta(microseconds=1)


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


def drop_catalog(database: Database, name: str, *, author: Author) -> None:
    """End a catalog. Its rows stay for time travel and for the forks that inherit them."""
    _, _, head = catalog_named(database, name)
    _drop(database, head, name, author)


def _drop(database: Database, head: Head, name: str, author: Author, *, only_expired: bool = False) -> None:
    catalog = head.catalog_id

    def write(session: Session) -> tuple[SnapshotId, None]:
        new, numbers = advance(session, head, name)
        if only_expired and not session.rows("has_expired", catalog=catalog, now=utc_now()):
            raise CatalogNotFound(f'catalog "{name}" has got more time')
        session.execute("end_catalog", catalog=catalog, snapshot=new.snapshot_id)
        session.record(record_of(new, numbers, (Change(Verb.DROP_CATALOG, catalog, name=name),), author))
        session.execute("close_head", catalog=catalog, snapshot=new.snapshot_id)
        return new.snapshot_id, None

    commit_once(database, write)


def drop_expired(database: Database, author: Author) -> list[str]:
    """Drop every catalog whose time to live is over, each in a commit of its own."""
    gone: list[str] = []
    for name, catalog in database.rows("expired_catalogs", now=utc_now()):
        try:
            _drop(database, head_of(database, catalog), name, author, only_expired=True)
        except CatalogNotFound:
            # Somebody else dropped it, or gave it more time.
            continue
        gone.append(name)
    return gone


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


def _taken(name: str) -> CatalogExists:
    return CatalogExists(f'catalog "{name}" exists: choose another name, or ask for it only if it is missing')
