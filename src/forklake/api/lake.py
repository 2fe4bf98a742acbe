"""The handle on a lake, and how to get one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, Unpack
from uuid import uuid4

from forklake.api.catalog import Catalog, name_of
from forklake.api.file_rows import FileRows, Paths, read_files
from forklake.api.handle import Handle
from forklake.api.moving import check_moved, guarded, move
from forklake.api.scoped import scope_of
from forklake.commit.catalogs import (
    check_ttl,
    create_catalog,
    drop_catalog,
    drop_catalogs,
    drop_expired,
    rename_catalog,
    undrop_catalog,
)
from forklake.commit.reservation_cleanup import Swept, sweep
from forklake.commit.restore import restore_objects
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.data.storage.storage import Storage, open_storage, split_data_path
from forklake.engine.remote_files import check_extensions
from forklake.errors import (
    ForklakeError,
    InvalidArgument,
    InvalidUrl,
    MetadataExists,
    NamingError,
)
from forklake.fork.create import ForkOptions, Mode, fork_catalogs
from forklake.fork.merge import MergeOptions, MergeResult, Merging
from forklake.fork.paths import own_data_path
from forklake.fork.replay import Replay, ReplayResult
from forklake.fork.row_changes import Prefer
from forklake.model.entities import CatalogInfo
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_name
from forklake.model.options import Options
from forklake.model.snapshots import Author, CommitInfo, Snapshot, author_of
from forklake.store.address import parse_url
from forklake.store.backend import Database
from forklake.store.open import (
    check_version,
    create_lake,
    data_path_of,
    is_finished,
    open_database,
)
from forklake.store.read_catalogs import (
    Moment,
    catalog_named,
    catalog_named_at,
    catalogs,
    latest_snapshot,
    snapshots,
)

_REPLAY = timedelta(hours=1)
"""After that, the fork that a replay needed may be dropped, if the process that made it is gone."""


class Lake(Handle):
    """A lake: a metadata database with its catalogs, and the folder or bucket of their data files."""

    def __init__(self, database: Database, storage: Storage) -> None:
        """Use `forklake.connect`."""
        self._context = LakeContext(database, storage)
        self._database = database
        self.data_path = storage.data_path
        """The folder or bucket of the data files."""

    @property
    def url(self) -> str:
        """The URL of the metadata database, without the password."""
        return self._database.url

    def __repr__(self) -> str:
        """The address, without a password, and the latest snapshot."""
        try:
            latest = f" at snapshot {latest_snapshot(self._database)}"
        except ForklakeError:
            latest = ""
        return f"<Lake {self.url}{latest}>"

    def __contains__(self, catalog: object) -> bool:
        """Whether there is a catalog, by its name or by a handle on it."""
        try:
            name = self._name(catalog)  # pyright: ignore[reportArgumentType]
        except (NamingError, InvalidArgument):
            return False
        return bool(self._database.rows("catalog_by_name", name=name))

    def __iter__(self) -> Iterator[str]:
        """The names of the catalogs."""
        return iter([info.name for info in self.catalogs()])

    def create_catalog(
        self,
        name: str,
        *,
        if_not_exists: bool = False,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Create an empty catalog with a schema `main`."""
        said = author_of(**info)
        create_catalog(self._database, name, if_not_exists=if_not_exists, author=said)
        return self.catalog(name)

    def fork(
        self,
        parent: str | Catalog,
        name: str,
        *,
        at: Moment | None = None,
        data_path: str | Path | None = None,
        mode: Mode = "reference",
        if_not_exists: bool = False,
        ttl: timedelta | None = None,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Create a catalog that starts with everything its parent has now, or had at a snapshot or timestamp.

        It writes a few rows of metadata, whatever the size of the parent, and copies nothing. Neither catalog
        sees later commits of the other. `mode="copy"` copies the parent's metadata rows, so the fork does not
        depend on it. `data_path` is another folder or bucket for the fork's new files. After `ttl` the
        fork is dropped by `drop_expired`. `if_not_exists` returns an existing fork of the same parent as it
        is, and ignores `at`, `ttl`, `mode` and `data_path`.
        """
        path = None if data_path is None else own_data_path(data_path)
        options = ForkOptions(at, path, mode, if_not_exists, ttl)
        made = self._fork(parent, [name], options, author_of(**info))
        return self._handle(made[name], name) if name in made else self.catalog(name)

    def fork_many(
        self,
        parent: str | Catalog,
        names: Iterable[str],
        *,
        at: Moment | None = None,
        mode: Mode = "reference",
        if_not_exists: bool = False,
        ttl: timedelta | None = None,
        **info: Unpack[CommitInfo],
    ) -> list[Catalog]:
        """Create many forks of a catalog in one commit.

        The options are those of `fork`, and apply to each fork. There is no `data_path`, because no two
        catalogs share one.
        """
        wanted = _listed(names, "forks")
        options = ForkOptions(at, mode=mode, if_not_exists=if_not_exists, ttl=ttl)
        made = self._fork(parent, wanted, options, author_of(**info))
        return [self._handle(made[name], name) if name in made else self.catalog(name) for name in wanted]

    def _fork(
        self, parent: str | Catalog, names: Sequence[str], options: ForkOptions, author: Author
    ) -> dict[str, CatalogId]:
        found = self._name(parent)
        return fork_catalogs(self._database, found, names, options, author, self.data_path)

    def merge(
        self,
        source: str | Catalog,
        into: str | Catalog,
        *,
        prefer: Prefer | None = None,
        tables: Iterable[str] | None = None,
        dry_run: bool = False,
        **info: Unpack[CommitInfo],
    ) -> MergeResult:
        """Merge the commits of one catalog that another has not seen into that one, as one commit.

        Works for a fork into its parent, a parent into its fork, and between forks of one parent. Data files
        are taken over as they are. Rows and definitions that both changed raise `MergeConflict`, and nothing
        is written. `prefer` decides rows that both changed: "source" or "target". `tables` merges some tables
        only; the others can be merged later. `dry_run` writes nothing and returns the conflicts.
        """
        chosen = None if tables is None else tuple(_listed(tables, "tables"))
        said = author_of(**info)
        taken, target = self._name(source), self._name(into)
        merging = Merging(self._context)
        return merging.merge(taken, target, said, MergeOptions(prefer, chosen, dry_run))

    def replay(
        self,
        fork: str | Catalog,
        onto: str | Catalog,
        *,
        dry_run: bool = False,
        **info: Unpack[CommitInfo],
    ) -> ReplayResult:
        """Replay the changes of a fork on top of the current state of another catalog, such as its parent.

        The fork gets the commits of the other catalog and keeps its own changes, row by row. Where both
        changed a row or a definition, the fork gets the version of the other catalog, and its own change is
        listed as refused. The other catalog is not changed; afterwards the fork can be merged into it.
        `dry_run` writes nothing.
        """
        name, target = self._name(fork), self._name(onto)
        merging = Merging(self._context)
        hands = _Hands(self, self.catalog(name).with_commit_info(**info))
        return Replay(merging, hands).run(name, target, author_of(**info), dry_run=dry_run)

    def set_ttl(self, name: str | Catalog, ttl: timedelta | None) -> None:
        """Set the time to live of a catalog, counted from now, or remove it with None.

        An expired catalog works until `drop_expired` drops it.
        """
        check_ttl(ttl)
        catalog_id, _, _ = catalog_named(self._database, self._name(name))
        with self._database.transaction() as session:
            expires = None if ttl is None else self._database.now() + ttl
            session.execute("set_expiry", catalog=catalog_id, expires=expires)
            session.commit()

    def now(self) -> datetime:
        """The current time of the database, which dates commits and expires catalogs."""
        return self._database.now()

    def drop_expired(self, **info: Unpack[CommitInfo]) -> list[str]:
        """Drop every expired catalog. Returns their names. No other catalog loses anything."""
        return drop_expired(self._database, author_of(**info))

    def _name(self, catalog: str | Catalog) -> str:
        return name_of(self._context, catalog)

    def expire_reservations(self) -> list[Swept]:
        """End expired distributed snapshots, and delete their files that were not committed."""
        return sweep(self._database, self._context.storage, self._database.now())

    def _handle(self, catalog_id: CatalogId, name: str) -> Catalog:
        return Catalog(CatalogScope(self._context, catalog_id, name), self)

    def catalog(self, name: str, *, at: Moment | None = None) -> Catalog:
        """Open a catalog, or with `at` the catalog that had this name at a snapshot or timestamp, read-only.

        If no catalog had the name then, it is the catalog that has it now, if it inherited that snapshot.
        """
        check_name(name, "catalog")
        if at is None:
            catalog_id, _, _ = catalog_named(self._database, name)
            return self._handle(catalog_id, name)
        catalog_id = catalog_named_at(self._database, name, at)
        return Catalog(CatalogScope(self._context, catalog_id, name, at), self)

    def read(self, path: Paths, *, format: str | None = None, **options: object) -> FileRows:
        """Read CSV, Parquet or JSON files, for `append`, `create_table` and other methods that take rows.

        A path may be a glob pattern (`in/*.csv`) or a list. Files are streamed batch by batch when they are
        used. Options are those of DuckDB's readers: `delim=";"`, `header=False`.
        """
        return read_files(self._context.engine, path, format, options)

    def catalogs(self, *, at: Moment | None = None) -> list[CatalogInfo]:
        """List the catalogs by name, as they are now or were at a snapshot or timestamp."""
        return catalogs(self._database, at)

    def rename_catalog(
        self,
        name: str | Catalog,
        new_name: str,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Give a catalog another name."""
        said = author_of(**info)
        rename_catalog(self._database, self._name(name), new_name, author=said)
        return self.catalog(new_name)

    def drop_catalog(
        self,
        name: str | Catalog,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Drop a catalog. Past snapshots still show it, and no other catalog loses anything."""
        said = author_of(**info)
        drop_catalog(self._database, self._name(name), author=said)

    def undrop_catalog(
        self,
        name: str,
        *,
        as_name: str | None = None,
        ttl: timedelta | None = None,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Bring back the catalog of this name that was dropped last, with its id and history.

        If the name is taken, `as_name` gives it another one. It has no time to live unless `ttl` is given.
        Transactions and distributed snapshots that were open when it was dropped fail.
        """
        check_ttl(ttl)
        expires = None if ttl is None else self._database.now() + ttl
        return self.catalog(undrop_catalog(self._database, name, as_name, expires, author=author_of(**info)))

    def drop_catalogs(
        self,
        names: Iterable[str | Catalog],
        **info: Unpack[CommitInfo],
    ) -> None:
        """Drop several catalogs in one commit; none of them if one does not exist."""
        said = author_of(**info)
        wanted = [self._name(name) for name in _listed(names, "catalogs")]
        if len(set(wanted)) < len(wanted):
            raise InvalidArgument("a catalog can be dropped once: one is listed twice")
        drop_catalogs(self._database, wanted, author=said)

    def snapshots(self, catalog: str | Catalog | None = None) -> list[Snapshot]:
        """List the snapshots of the lake, or of one catalog with those that it inherited, oldest first."""
        if catalog is None:
            return snapshots(self._database, None)
        return self.catalog(self._name(catalog)).snapshots()

    def options(self) -> Options:
        """The write options of the lake."""
        return self._context.options

    def set_option(self, name: str, value: object) -> None:
        """Set a write option for all tables that do not override it, such as `target_file_size`."""
        self._context.set_option(name, value)

    def close(self) -> None:
        """Close all connections. The lake cannot be used afterwards."""
        self._context.close()

    def __enter__(self) -> Self:
        """Use it as a block that closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


@dataclass(frozen=True, slots=True)
class _Hands:
    """What a replay does to the fork, and beside it."""

    lake: Lake
    fork: Catalog

    def take_back(self, objects: Iterable[int], since: SnapshotId) -> None:
        scope = scope_of(self.fork)
        scope.apply(lambda draft: restore_objects(draft, scope.at(since).read(), objects))

    def go_back(self, snapshot: SnapshotId) -> None:
        self.fork.restore(snapshot)

    @contextmanager
    def beside(self, onto: str) -> Generator[str]:
        made = self.lake.fork(onto, f"{onto[:200]} replay {uuid4().hex}", ttl=_REPLAY)
        try:
            yield made.name
        finally:
            self.lake.drop_catalog(made)


def _listed(names: object, of: str) -> list[Any]:
    """Names that were given as a list, or as anything that lists them."""
    if isinstance(names, str | Catalog) or not isinstance(names, Iterable):
        raise InvalidArgument(
            f"the names of {of} are given as a list, not as {type(names).__name__} {names!r}"
        )
    return list[Any](names)


def connect(
    url: str,
    *,
    data_path: str | Path | None = None,
    create: bool = False,
    moved: bool | Literal["force"] = False,
) -> Lake:
    """Open a lake by the URL of its metadata database.

    `sqlite:///lake.db`, `sqlite:////absolute/lake.db`, `duckdb:///lake.duckdb`, `postgresql://user@host:5432/db`;
    the last two take `?metadata_schema=name`, so that several lakes share a database. `create=True` creates
    the lake if it does not exist. `data_path`, the folder or `s3://bucket/prefix` of the data files, is
    stored then and may be omitted afterwards.

    `moved=True` declares once that the lake was moved: that this is the only copy of its metadata, and that
    its data files are in `data_path` now, if given. Some files are looked up there, unless it is `"force"`.
    """
    check_moved(moved)
    return _open(url, data_path, create=create, moved=moved)


def init(url: str, *, data_path: str | Path | None = None) -> Lake:
    """Create a lake, also in a database with a schema created by `psql -f`; refuse one that exists."""
    return _open(url, data_path, create=True, refuse_existing=True)


def _open(
    url: str,
    data_path: str | Path | None,
    *,
    create: bool,
    refuse_existing: bool = False,
    moved: bool | Literal["force"] = False,
) -> Lake:
    address = parse_url(url)
    # Credentials are for this process: what is stored is only where the files are.
    text, options = split_data_path(str(data_path)) if data_path is not None else ("", {})
    given = None if data_path is None else text
    if given is not None:
        check_extensions(open_storage(given, options))
    default = f"{address.path}.files/" if given is None and address.path is not None else given
    database = open_database(address, create=create)
    try:
        if create:
            if default is None and not database.exists():
                raise InvalidUrl(
                    "a new lake on PostgreSQL needs a data path: a folder or bucket for its files"
                )
            created = create_lake(database, default or "")
            # A lake that was created by hand is finished by saying where its files are.
            if refuse_existing and not created and (given is None or is_finished(database)):
                raise MetadataExists(f"there is a lake at {database.url} already")
        check_version(database)
        if moved:
            found = given if given is not None else data_path_of(database, None)
            move(database, open_storage(found, options), force=moved == "force")
        storage = open_storage(data_path_of(database, given), options)
        check_extensions(storage)
        return Lake(guarded(database, storage.data_path), storage)
    except BaseException:
        database.close()
        raise
