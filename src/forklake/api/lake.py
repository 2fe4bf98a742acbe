"""The handle on a lake, and how to get one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from uuid import uuid4

from forklake.api.handle import Handle
from forklake.api.moving import check_moved, guarded, move
from forklake.data.storage.storage import Storage, open_storage, split_data_path
from forklake.display import Listing
from forklake.errors import (
    ForklakeError,
    InvalidArgument,
    InvalidUrl,
    MetadataExists,
    NamingError,
)
from forklake.fork.paths import own_data_path
from forklake.lazy import LazyModule
from forklake.model.entities import CatalogInfo
from forklake.model.fork_tree import ForkTree
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_name
from forklake.model.options import Options
from forklake.model.progress import OnProgress
from forklake.model.snapshots import Author, CommitInfo, Snapshot, author_of
from forklake.model.time_travel import Moment
from forklake.store.address import parse_url
from forklake.store.backend import Database
from forklake.store.catalog_writes import set_expiry
from forklake.store.catalogs import catalog_exists, catalog_named, catalog_named_at, catalogs
from forklake.store.fork_tree import MOST_FORKS, fork_tree
from forklake.store.open import (
    check_version,
    create_lake,
    data_path_of,
    is_finished,
    open_database,
)
from forklake.store.snapshots import latest_snapshot, snapshots

if TYPE_CHECKING:
    from forklake.api import catalog as handles
    from forklake.api import file_rows, notebook, scoped
    from forklake.api.catalog import Catalog
    from forklake.api.file_rows import FileRows, Paths
    from forklake.commit import catalogs as commits
    from forklake.commit import reservation_cleanup, restore
    from forklake.commit.reservation_cleanup import Swept
    from forklake.context import catalog_scope, lake_context
    from forklake.context.lake_context import LakeContext
    from forklake.engine import remote_files
    from forklake.fork import create as forks
    from forklake.fork import merge as merges
    from forklake.fork import replay as replays
    from forklake.fork.create import ForkOptions, Mode
    from forklake.fork.merge import MergeResult
    from forklake.fork.replay import ReplayResult
    from forklake.fork.row_changes import Prefer
    from forklake.store.upgrades import upgrade as upgrades
    from forklake.store.upgrades.upgrade import UpgradeResult
else:
    # To open a lake and list its catalogs takes none of these.
    handles = LazyModule("forklake.api.catalog")
    file_rows = LazyModule("forklake.api.file_rows")
    notebook = LazyModule("forklake.api.notebook")
    scoped = LazyModule("forklake.api.scoped")
    commits = LazyModule("forklake.commit.catalogs")
    reservation_cleanup = LazyModule("forklake.commit.reservation_cleanup")
    restore = LazyModule("forklake.commit.restore")
    catalog_scope = LazyModule("forklake.context.catalog_scope")
    lake_context = LazyModule("forklake.context.lake_context")
    remote_files = LazyModule("forklake.engine.remote_files")
    forks = LazyModule("forklake.fork.create")
    merges = LazyModule("forklake.fork.merge")
    replays = LazyModule("forklake.fork.replay")
    upgrades = LazyModule("forklake.store.upgrades.upgrade")

_REPLAY = timedelta(hours=1)
"""After that, the fork that a replay needed may be dropped, if the process that made it is gone."""


class Lake(Handle):
    """A metadata database with its catalogs, and the folder or bucket where their files are."""

    def __init__(self, database: Database, storage: Storage) -> None:
        """Use `forklake.connect`."""
        self._database = database
        self._storage = storage
        self._making = Lock()
        self._made: LakeContext | None = None
        self.data_path = storage.data_path

    @property
    def _context(self) -> LakeContext:
        """What all handles share, made for the first of them."""
        with self._making:
            if self._made is None:
                self._made = lake_context.LakeContext(self._database, self._storage)
            return self._made

    @property
    def url(self) -> str:
        """The address of the metadata database, without a password."""
        return self._database.url

    def __repr__(self) -> str:
        """The address, without a password, and the latest snapshot."""
        try:
            latest = f" at snapshot {latest_snapshot(self._database)}"
        except ForklakeError:
            latest = ""
        return f"<Lake {self.url}{latest}>"

    def _repr_html_(self) -> str:
        """For notebooks: where it is, and the first catalogs."""
        return notebook.shown(self, lambda: notebook.lake_html(self._database, self.data_path))

    def __contains__(self, catalog: object) -> bool:
        """Whether there is a catalog, by its name or by a handle on it."""
        try:
            name = self._name(catalog)  # pyright: ignore[reportArgumentType]
        except (NamingError, InvalidArgument):
            return False
        return catalog_exists(self._database, name)

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
        commits.create_catalog(self._database, name, if_not_exists=if_not_exists, author=said)
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
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Make a catalog that begins as another one is now, or was at one of its snapshots or at a time.

        It takes a few rows, however large the parent is: nothing is copied, and neither sees what the other
        does from then on. `mode="copy"` copies the rows of the parent's metadata instead, so that the fork
        does not depend on it. `data_path` is another place for the fork's own files. From `ttl` on it may be
        dropped by `drop_expired`. `if_not_exists` takes a fork of that parent that is there already, as it
        is: then `at`, `ttl`, `mode` and `data_path` are not looked at.
        """
        path = None if data_path is None else own_data_path(data_path)
        options = forks.ForkOptions(at, path, mode, if_not_exists, ttl)
        made = self._fork(parent, [name], options, author_of(**info), progress)
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
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> list[Catalog]:
        """Make many forks of a catalog in one commit.

        The options are those of `fork`, and hold for each. There is no `data_path`, for two catalogs never
        share one: make a fork that is to have its own by `fork`.
        """
        wanted = _listed(names, "forks")
        options = forks.ForkOptions(at, mode=mode, if_not_exists=if_not_exists, ttl=ttl)
        made = self._fork(parent, wanted, options, author_of(**info), progress)
        return [self._handle(made[name], name) if name in made else self.catalog(name) for name in wanted]

    def _fork(
        self,
        parent: str | Catalog,
        names: Sequence[str],
        options: ForkOptions,
        author: Author,
        progress: OnProgress | None,
    ) -> dict[str, CatalogId]:
        found = self._name(parent)
        return forks.fork_catalogs(self._database, found, names, options, author, self.data_path, progress)

    def merge(
        self,
        source: str | Catalog,
        into: str | Catalog,
        *,
        prefer: Prefer | None = None,
        tables: Iterable[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> MergeResult:
        """Bring what one catalog did since it was last like another into that one, as one commit.

        A fork into its parent, a parent into its fork, or between forks of one parent: only what is new is
        merged, and no row is rewritten. Rows that both changed, and definitions that both changed, raise
        `MergeConflict`, and nothing is written. `prefer` says whose version of such a row counts: that of the
        "source" or that of the "target". `tables` merges what was done to some tables; the rest can be merged
        later. `dry_run` writes nothing in any case and returns the conflicts.
        """
        chosen = None if tables is None else tuple(_listed(tables, "tables"))
        said = author_of(**info)
        taken, target = self._name(source), self._name(into)
        merging = merges.Merging(self._context)
        return merging.merge(taken, target, said, merges.MergeOptions(prefer, chosen, dry_run, progress))

    def replay(
        self,
        fork: str | Catalog,
        onto: str | Catalog,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> ReplayResult:
        """Put what a fork did on top of another catalog as that is now, such as its parent, where it can be.

        The fork gets all that the other one did since, and keeps its own changes: appends, deletes and
        updates row by row, and definitions. Rows and definitions that both changed are as the other one has
        them; what the fork did there is listed as refused, and stays in its history. Nothing changes in the
        other one: afterwards, the fork can be merged into it. `dry_run` writes nothing.
        """
        name, target = self._name(fork), self._name(onto)
        merging = merges.Merging(self._context)
        hands = _Hands(self, self.catalog(name).with_commit_info(**info))
        said = author_of(**info)
        return replays.Replay(merging, hands).run(name, target, said, dry_run=dry_run, progress=progress)

    def set_ttl(self, name: str | Catalog, ttl: timedelta | None) -> None:
        """Let a catalog expire after some time from now, or not at all.

        One that has expired works on until `drop_expired` drops it.
        """
        commits.check_ttl(ttl)
        catalog_id, _, _ = catalog_named(self._database, self._name(name))
        with self._database.transaction() as session:
            expires = None if ttl is None else self._database.now() + ttl
            set_expiry(session, catalog_id, expires)
            session.commit()

    def now(self) -> datetime:
        """The time on the database's clock: that by which commits are dated, and catalogs expire."""
        return self._database.now()

    def drop_expired(self, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> list[str]:
        """Drop every catalog whose time to live is over; gives their names. Nobody else loses anything."""
        return commits.drop_expired(self._database, author_of(**info), progress)

    def _name(self, catalog: str | Catalog) -> str:
        return handles.name_of(self._context, catalog)

    def expire_reservations(self, *, progress: OnProgress | None = None) -> list[Swept]:
        """End distributed snapshots whose time is over, and remove the files that no commit has taken."""
        return reservation_cleanup.sweep(self._database, self._storage, self._database.now(), progress)

    def _handle(self, catalog_id: CatalogId, name: str) -> Catalog:
        return handles.Catalog(catalog_scope.CatalogScope(self._context, catalog_id, name), self)

    def catalog(self, name: str, *, at: Moment | None = None) -> Catalog:
        """The handle on a catalog, or on the catalog that had this name at some moment, as it was then.

        If none had it then, it is the catalog that has the name now, as far as that inherited the moment.
        """
        check_name(name, "catalog")
        if at is None:
            catalog_id, _, _ = catalog_named(self._database, name)
            return self._handle(catalog_id, name)
        catalog_id = catalog_named_at(self._database, name, at)
        return handles.Catalog(catalog_scope.CatalogScope(self._context, catalog_id, name, at), self)

    def read(self, path: Paths, *, format: str | None = None, **options: object) -> FileRows:
        """Rows of CSV, Parquet and JSON files, for `append`, `create_table` and all that takes rows.

        A path may be a pattern (`in/*.csv`), and there may be several. Nothing is read before it is asked
        for, and then batch by batch. Options are those of DuckDB's reader: `delim=";"`, `header=False`.
        """
        return file_rows.read_files(self._context.engine, path, format, options)

    def catalogs(self, *, at: Moment | None = None) -> list[CatalogInfo]:
        """Every catalog by name, as they are now or were at some moment."""
        return Listing(catalogs(self._database, at))

    def tree(
        self,
        root: str | Catalog | None = None,
        *,
        depth: int | None = None,
        limit: int = MOST_FORKS,
        dropped: bool = False,
    ) -> ForkTree:
        """The catalogs with their forks below them: `print(lake.tree())`, `lake.tree().svg()`.

        It begins with `root`, or with every catalog that was not forked, and goes `depth` levels down. Of
        each catalog, `limit` forks are shown, and how many there are more; two thousand catalogs in all. A
        dropped catalog is shown if a fork of it lives, or with `dropped`.
        """
        start = None if root is None else self._name(root)
        return fork_tree(self._database, start, depth=depth, limit=limit, dropped=dropped)

    def rename_catalog(
        self,
        name: str | Catalog,
        new_name: str,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Give a catalog another name."""
        said = author_of(**info)
        commits.rename_catalog(self._database, self._name(name), new_name, author=said)
        return self.catalog(new_name)

    def drop_catalog(
        self,
        name: str | Catalog,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Drop a catalog. Older snapshots still show it, and nobody else loses anything."""
        said = author_of(**info)
        commits.drop_catalog(self._database, self._name(name), author=said)

    def undrop_catalog(
        self,
        name: str,
        *,
        as_name: str | None = None,
        ttl: timedelta | None = None,
        **info: Unpack[CommitInfo],
    ) -> Catalog:
        """Bring back the catalog of a name that was dropped last: the same one, with its history.

        If another catalog has the name now, `as_name` gives it a new one. It does not expire any more, or
        after `ttl` from now. Transactions and distributed snapshots that were open when it was dropped fail.
        """
        commits.check_ttl(ttl)
        expires = None if ttl is None else self._database.now() + ttl
        return self.catalog(
            commits.undrop_catalog(self._database, name, as_name, expires, author=author_of(**info))
        )

    def drop_catalogs(
        self,
        names: Iterable[str | Catalog],
        *,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Drop many catalogs in one commit, or none of them if one is missing."""
        said = author_of(**info)
        wanted = [self._name(name) for name in _listed(names, "catalogs")]
        if len(set(wanted)) < len(wanted):
            raise InvalidArgument("a catalog can be dropped once: one is listed twice")
        commits.drop_catalogs(self._database, wanted, author=said, progress=progress)

    def snapshots(self, catalog: str | Catalog | None = None) -> list[Snapshot]:
        """Every commit of the lake, or of one catalog with what it inherited, oldest first."""
        if catalog is None:
            return Listing(snapshots(self._database, None))
        return self.catalog(self._name(catalog)).snapshots()

    def options(self) -> Options:
        """The settings of the lake."""
        return self._context.options

    def set_option(self, name: str, value: object) -> None:
        """Change a setting for every table that has none of its own, such as `data_inlining_row_limit`."""
        self._context.set_option(name, value)

    def close(self) -> None:
        """Give back every connection. The lake is not used afterwards."""
        if self._made is None:
            self._database.close()
        else:
            self._made.close()

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
        scope = scoped.scope_of(self.fork)
        scope.apply(lambda draft: restore.restore_objects(draft, scope.at(since).read(), objects))

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
    if isinstance(names, str | handles.Catalog) or not isinstance(names, Iterable):
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
    upgrade: bool = False,
) -> Lake:
    """Open a lake by the address of its metadata database.

    `sqlite:///lake.db`, `sqlite:////absolute/lake.db`, `duckdb:///lake.duckdb`, `postgresql://user@host:5432/db`;
    the last two take `?metadata_schema=name`, so that several lakes share a database. `create=True` makes the
    lake if there is none. `data_path` is stored then and may be left out afterwards.

    `moved=True` says once that the lake was moved: that this is the only copy of its metadata, and that its
    files are in `data_path` now, if that is given. Some of them are looked for, unless it is `"force"`.

    `upgrade=True` brings a lake that an earlier version made to the present version of the metadata first, as
    `forklake.upgrade` does; one that has it already is left alone.
    """
    check_moved(moved)
    return _open(url, data_path, create=create, moved=moved, upgrade=upgrade)


def upgrade(url: str, *, dry_run: bool = False) -> UpgradeResult:
    """Bring the metadata of a lake that an earlier version made to the present version, all or nothing.

    No file is touched, and no row changes. Programs that have the lake open are to be ended before, and a
    backup of the metadata is to be taken: there is no way back. `dry_run` changes nothing and gives the
    statements: they are run, and taken back.
    """
    database = open_database(parse_url(url), create=False)
    try:
        return upgrades.upgrade_lake(database, dry_run=dry_run)
    finally:
        database.close()


def init(url: str, *, data_path: str | Path | None = None) -> Lake:
    """Create a lake, or finish one that was created by hand; refuse if there is a finished one."""
    return _open(url, data_path, create=True, refuse_existing=True)


def _open(
    url: str,
    data_path: str | Path | None,
    *,
    create: bool,
    refuse_existing: bool = False,
    moved: bool | Literal["force"] = False,
    upgrade: bool = False,
) -> Lake:
    address = parse_url(url)
    # Credentials are for this process: what is stored is only where the files are.
    text, options = split_data_path(str(data_path)) if data_path is not None else ("", {})
    given = None if data_path is None else text
    if given is not None:
        _check_readable(open_storage(given, options))
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
        if upgrade:
            upgrades.upgrade_lake(database)
        check_version(database)
        if moved:
            found = given if given is not None else data_path_of(database, None)
            move(database, open_storage(found, options), force=moved == "force")
        storage = open_storage(data_path_of(database, given), options)
        _check_readable(storage)
        return Lake(guarded(database, storage.data_path), storage)
    except BaseException:
        database.close()
        raise


def _check_readable(storage: Storage) -> None:
    """Refuse a bucket that the engine could not read; it can read folders in any case."""
    if not storage.is_local:
        remote_files.check_extensions(storage)
