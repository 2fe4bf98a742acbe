"""The handle on a lake, and how to get one."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from uuid import uuid4

from forklake.api.lake_maintenance import LakeMaintenance
from forklake.display import Listing
from forklake.errors import (
    ForklakeError,
    InvalidArgument,
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
from forklake.model.time_travel import AsOf
from forklake.store.catalog_writes import set_expiry
from forklake.store.catalogs import catalog_named, catalog_named_at, catalogs, is_found
from forklake.store.fork_tree import MOST_FORKS, fork_tree
from forklake.store.snapshots import latest_snapshot, snapshots

if TYPE_CHECKING:
    from forklake.api import catalog as handles
    from forklake.api import file_rows, notebook, scoped
    from forklake.api import sql as statements
    from forklake.api.catalog import Catalog
    from forklake.api.file_rows import FileRows, Paths
    from forklake.api.sql_result import SqlResult
    from forklake.commit import catalogs as commits
    from forklake.commit import restore
    from forklake.context import catalog_scope
    from forklake.context.lake_context import LakeContext
    from forklake.fork import create as forks
    from forklake.fork import merge as merges
    from forklake.fork import replay as replays
    from forklake.fork.create import ForkOptions, Mode
    from forklake.fork.merge import MergeResult
    from forklake.fork.replay import ReplayResult
    from forklake.fork.row_changes import Prefer
else:
    # To open a lake and list its catalogs takes none of these.
    handles = LazyModule("forklake.api.catalog")
    file_rows = LazyModule("forklake.api.file_rows")
    notebook = LazyModule("forklake.api.notebook")
    scoped = LazyModule("forklake.api.scoped")
    statements = LazyModule("forklake.api.sql")
    commits = LazyModule("forklake.commit.catalogs")
    restore = LazyModule("forklake.commit.restore")
    catalog_scope = LazyModule("forklake.context.catalog_scope")
    forks = LazyModule("forklake.fork.create")
    merges = LazyModule("forklake.fork.merge")
    replays = LazyModule("forklake.fork.replay")

_REPLAY = timedelta(hours=1)
"""After that, the fork that a replay needed may be dropped, if the process that made it is gone."""


class Lake(LakeMaintenance):
    """A lake: a metadata database with its catalogs, and the folder or bucket of their data files."""

    @property
    def url(self) -> str:
        """The URL of the metadata database, without the password."""
        return self._database.url

    def __repr__(self) -> str:
        """The URL, without a password, and the latest snapshot."""
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
        return is_found(self._database, name)

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
        author = author_of(**info)
        commits.create_catalog(self._database, name, if_not_exists=if_not_exists, author=author)
        return self.catalog(name)

    def fork(
        self,
        parent: str | Catalog,
        name: str,
        *,
        at: AsOf | None = None,
        data_path: str | Path | None = None,
        mode: Mode = "reference",
        if_not_exists: bool = False,
        ttl: timedelta | None = None,
        progress: OnProgress | None = None,
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
        options = forks.ForkOptions(at, path, mode, if_not_exists, ttl)
        made = self._fork(parent, [name], options, author_of(**info), progress)
        return self._handle(made[name], name) if name in made else self.catalog(name)

    def fork_many(
        self,
        parent: str | Catalog,
        names: Iterable[str],
        *,
        at: AsOf | None = None,
        mode: Mode = "reference",
        if_not_exists: bool = False,
        ttl: timedelta | None = None,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> list[Catalog]:
        """Create many forks of a catalog in one commit.

        The options are those of `fork`, and apply to each fork. There is no `data_path`, because no two
        catalogs share one.
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
        """Merge the commits of one catalog that another has not seen into that one, as one commit.

        Works for a fork into its parent, a parent into its fork, and between forks of one parent. Data files
        are taken over as they are. Rows and definitions that both changed raise `MergeConflict`, and nothing
        is written. `prefer` decides rows that both changed: "source" or "target". `tables` merges some tables
        only; the others can be merged later. `dry_run` writes nothing and returns the conflicts.
        """
        chosen = None if tables is None else tuple(_listed(tables, "tables"))
        author = author_of(**info)
        taken, target = self._name(source), self._name(into)
        merger = merges.Merger(self._context)
        options = merges.MergeOptions(prefer, chosen, dry_run=dry_run, progress=progress)
        return merger.merge(taken, target, author, options)

    def replay(
        self,
        fork: str | Catalog,
        onto: str | Catalog,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> ReplayResult:
        """Replay the changes of a fork on top of the current state of another catalog, such as its parent.

        The fork gets the commits of the other catalog and keeps its own changes, row by row. Where both
        changed a row or a definition, the fork gets the version of the other catalog, and its own change is
        listed as refused. The other catalog is not changed; afterwards the fork can be merged into it.
        `dry_run` writes nothing.
        """
        name, target = self._name(fork), self._name(onto)
        merger = merges.Merger(self._context)
        actions = _ReplayActions(self, self.catalog(name).with_commit_info(**info))
        author = author_of(**info)
        return replays.Replay(merger, actions).run(name, target, author, dry_run=dry_run, progress=progress)

    def set_ttl(self, name: str | Catalog, ttl: timedelta | None) -> None:
        """Set the time to live of a catalog, counted from now, or remove it with None.

        An expired catalog works until `drop_expired` drops it.
        """
        commits.check_ttl(ttl)
        catalog_id = catalog_named(self._database, self._name(name)).id
        expires = None if ttl is None else self._database.now() + ttl
        with self._database.transaction() as session:
            set_expiry(session, catalog_id, expires)
            session.commit()

    def now(self) -> datetime:
        """The current time of the database, which dates commits and expires catalogs."""
        return self._database.now()

    def drop_expired(self, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> list[str]:
        """Drop every expired catalog. Returns their names. No other catalog loses anything."""
        return commits.drop_expired(self._database, author_of(**info), progress)

    def _name(self, catalog: str | Catalog) -> str:
        return handles.name_of(self._context, catalog)

    def _handle(self, catalog_id: CatalogId, name: str) -> Catalog:
        return handles.Catalog(catalog_scope.CatalogScope(self._context, catalog_id, name), self)

    def catalog(self, name: str, *, at: AsOf | None = None) -> Catalog:
        """Open a catalog, or with `at` the catalog that had this name at a snapshot or timestamp, read-only.

        If no catalog had the name then, it is the catalog that has it now, if it inherited that snapshot.
        """
        check_name(name, "catalog")
        if at is None:
            found = catalog_named(self._database, name)
            return self._handle(found.id, found.name)
        catalog_id, name = catalog_named_at(self._database, name, at)
        return handles.Catalog(catalog_scope.CatalogScope(self._context, catalog_id, name, at), self)

    def read(self, path: Paths, *, format: str | None = None, **options: object) -> FileRows:
        """Read CSV, Parquet or JSON files, for `append`, `create_table` and other methods that take rows.

        A path may be a glob pattern (`in/*.csv`) or a list. Files are streamed batch by batch when they are
        used. Options are those of DuckDB's readers: `delim=";"`, `header=False`.
        """
        return file_rows.read_files(self._context.engine, path, format, options)

    def catalogs(self, *, at: AsOf | None = None) -> list[CatalogInfo]:
        """List the catalogs by name, as they are now or were at a snapshot or timestamp."""
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
        author = author_of(**info)
        commits.rename_catalog(self._database, self._name(name), new_name, author=author)
        return self.catalog(new_name)

    def drop_catalog(
        self,
        name: str | Catalog,
        **info: Unpack[CommitInfo],
    ) -> None:
        """Drop a catalog. Past snapshots still show it, and no other catalog loses anything."""
        author = author_of(**info)
        commits.drop_catalog(self._database, self._name(name), author=author)

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
        """Drop several catalogs in one commit; none of them if one does not exist."""
        author = author_of(**info)
        wanted = [self._name(name) for name in _listed(names, "catalogs")]
        if len(set(wanted)) < len(wanted):
            raise InvalidArgument("a catalog can be dropped once: one is listed twice")
        commits.drop_catalogs(self._database, wanted, author=author, progress=progress)

    def snapshots(self, catalog: str | Catalog | None = None) -> list[Snapshot]:
        """List the snapshots of the lake, or of one catalog with those that it inherited, oldest first."""
        if catalog is None:
            return Listing(snapshots(self._database, None))
        return self.catalog(self._name(catalog)).snapshots()

    def sql(
        self, text: str, params: statements.Parameters = None, **options: Unpack[statements.SqlKeywords]
    ) -> SqlResult:
        """Run SQL over all catalogs: tables are named `catalog.schema.table`; see `Catalog.sql`.

        `USE catalog` says where statements change something, and where bare names are.
        """
        return statements.run_sql(self._sql, self, None, None, text, params, options)

    def options(self) -> Options:
        """The options of the lake."""
        return self._context.options

    def set_option(self, name: str, value: object) -> None:
        """Set an option, such as `target_file_size`, for all tables that do not override it."""
        self._context.set_option(name, value)

    def close(self) -> None:
        """Close all connections. The lake cannot be used afterwards."""
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


def context_of(lake: Lake) -> LakeContext:
    """What all handles of a lake share, for engines that work on it."""
    return lake._context  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True, slots=True)
class _ReplayActions:
    """What a replay does to the fork, and beside it."""

    lake: Lake
    fork: Catalog

    def restore_objects(self, objects: Iterable[int], since: SnapshotId) -> None:
        scope = scoped.scope_of(self.fork)
        scope.apply(lambda draft: restore.restore_objects(draft, scope.at(since).read(), objects))

    def restore(self, snapshot: SnapshotId) -> None:
        self.fork.restore(snapshot)

    @contextmanager
    def temporary_fork(self, onto: str) -> Generator[str]:
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
