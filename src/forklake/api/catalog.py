"""The handle on one catalog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from forklake.api.diff import CatalogDiff, catalog_diff
from forklake.api.distributed import DistributedVerbs
from forklake.api.notebook import catalog_html, shown
from forklake.api.scoped import Name, scope_of
from forklake.api.sql import Parameters, SqlKeywords, run_sql
from forklake.api.table import Table
from forklake.api.transaction import Transaction
from forklake.api.verbs import CatalogVerbs
from forklake.commit.once import check_work
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.context.scope import seen_at
from forklake.context.transaction_scope import TransactionScope
from forklake.display import Listing
from forklake.errors import InvalidArgument
from forklake.fork.catalog_state import Side
from forklake.fork.copy import materialize
from forklake.fork.create import Mode
from forklake.fork.definition_changes import net_changes, own_events
from forklake.fork.diff import Sides
from forklake.fork.merge import MergeOptions, Merger, MergeResult
from forklake.fork.net_rows import RowChanges
from forklake.fork.replay import ReplayResult
from forklake.fork.row_changes import Prefer, RowComparison
from forklake.maintenance.checkpoint import CheckpointResult, checkpoint
from forklake.maintenance.expire import ExpireResult, expire_catalog
from forklake.model.entities import MacroInfo, Schema, TableInfo, ViewInfo
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_name
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo, Head, Snapshot
from forklake.model.time_travel import AsOf
from forklake.store.backend import Database
from forklake.store.catalogs import catalog_named, dropped, latest_name
from forklake.store.lineages import fork_point, parent_of
from forklake.store.snapshots import snapshots

if TYPE_CHECKING:
    from forklake.api.lake import Lake
    from forklake.api.sql_result import SqlResult


class ForkKeywords(CommitInfo, total=False):
    """The options of `Lake.fork`."""

    at: AsOf | None
    data_path: str | Path | None
    mode: Mode
    if_not_exists: bool
    ttl: timedelta | None
    progress: OnProgress | None


class MergeKeywords(CommitInfo, total=False):
    """The options of `Lake.merge`."""

    prefer: Prefer | None
    tables: Iterable[str] | None
    dry_run: bool
    progress: OnProgress | None


class Catalog(DistributedVerbs, CatalogVerbs):
    """A catalog of a lake. Each change is a snapshot of its own; `transaction` makes several one snapshot."""

    def __init__(self, scope: CatalogScope, lake: Lake) -> None:
        """Use `Lake.catalog`."""
        self._shown = scope
        self._lake = lake
        self._sql: dict[str, Any] = {}

    @property
    def _scope(self) -> CatalogScope:
        return self._shown

    def __repr__(self) -> str:
        """The name, and the snapshot that it stands at or is shown at."""
        return f"<Catalog {self.name!r}{seen_at(self._scope)}>"

    def _repr_html_(self) -> str:
        """For notebooks: where it stands, and its first tables."""
        return shown(self, lambda: catalog_html(self._database, self.name, self._scope.head()))

    @property
    def id(self) -> CatalogId:
        """The number of the catalog, unique in the lake."""
        return self._scope.id

    @property
    def snapshot(self) -> int:
        """The id of the catalog's current snapshot."""
        return self._scope.head().snapshot_id

    def at(self, as_of: AsOf) -> Catalog:
        """The same catalog at a snapshot or timestamp, read-only."""
        return Catalog(self._scope.at(as_of), self._lake)

    @property
    def parent(self) -> Catalog | None:
        """The catalog that this one was forked from; None if it was not forked.

        Of a dropped parent only name and id are known: anything else raises `CatalogNotFound`.
        """
        found = parent_of(self._database, self.id)
        if found is None:
            return None
        parent, name = found
        return Catalog(replace(self._scope.present(), id=parent, name=name), self._lake)

    def fork(self, name: str, **options: Unpack[ForkKeywords]) -> Catalog:
        """Fork this catalog, at its current snapshot or the one that this handle reads; see `Lake.fork`."""
        if self._scope.as_of is not None:
            options.setdefault("at", self._scope.as_of)
        present = Catalog(self._scope.present(), self._lake)
        return self._lake.fork(present, name, **{**self._scope.info, **options})

    def expire(
        self,
        *,
        older_than: timedelta | datetime | None = None,
        versions: Iterable[int] | None = None,
        keep_last: int = 1,
        dry_run: bool = False,
    ) -> ExpireResult:
        """Expire snapshots of this catalog by age, by their ids, or both: they can no longer be read.

        The latest `keep_last` snapshots always stay. No other catalog loses anything: forks keep the history
        that they inherited. Files are removed by `Lake.collect_garbage`. `dry_run` expires nothing.
        """
        return expire_catalog(
            self._database,
            self.id,
            self.name,
            older_than=older_than,
            versions=versions,
            keep_last=keep_last,
            dry_run=dry_run,
        )

    def checkpoint(
        self,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CheckpointResult:
        """Flush, expire, compact and rewrite deletes of this catalog, as the options of the lake say.

        It works on files that this catalog wrote, not on those that it inherited. Files that nobody needs any
        more are removed by `Lake.checkpoint`. `dry_run` changes nothing.
        """
        return checkpoint(self._context, info=info, catalog=self._scope, dry_run=dry_run, progress=progress)

    def merge_into(self, target: str | Catalog, **options: Unpack[MergeKeywords]) -> MergeResult:
        """Merge this catalog into another one; see `Lake.merge`."""
        return self._lake.merge(self, target, **{**self._scope.info, **options})

    def replay(
        self,
        onto: str | Catalog | None = None,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> ReplayResult:
        """Replay this fork on top of its parent, or of another catalog; see `Lake.replay`."""
        target = self.parent if onto is None else onto
        if target is None:
            raise InvalidArgument(
                f'"{self.name}" was not forked from another catalog: say what to replay it onto'
            )
        given = self._scope.info | info
        return self._lake.replay(self, target, dry_run=dry_run, progress=progress, **given)

    def sql(self, text: str, params: Parameters = None, **options: Unpack[SqlKeywords]) -> SqlResult:
        """Run SQL: queries, DDL, DML and CALL, in DuckDB's dialect. Returns the result of the last statement.

        `params` are bound to `?`, `$1` or `$name`. `read_only` refuses changes, `allow` lists folders whose
        files may be read and written, `one_transaction` makes all statements one snapshot, and `max_rows`,
        `max_seconds` and `max_memory` (`'512MiB'`) end a statement that takes more. `data={'new': df}` lets
        statements read rows that are here: DataFrames, Arrow, lists of dicts. BEGIN, USE, PREPARE and SET
        VARIABLE hold for this handle.
        """
        return run_sql(self._sql, self._lake, self, None, text, params, options)

    def snapshots(self) -> list[Snapshot]:
        """List the catalog's snapshots, inherited ones included, oldest first."""
        return Listing(snapshots(self._database, self.id))

    def materialize(self, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> None:
        """Copy what the catalog inherits, so that it no longer depends on its ancestors.

        This is a snapshot of its own. The contents of the catalog and of its forks stay the same.
        """
        author = self._scope.author(info)
        materialize(self._database, self._scope.draft().head, self.name, author, progress)

    def diff(self, other: str | Catalog | None = None) -> CatalogDiff:
        """What this catalog changed since it was forked, or what it changed that `other` has not seen.

        Changes of the other catalog are not part of it. Counts and files come from the metadata; rows are
        read by `.rows()` of a table.
        """
        head = self._scope.head()
        if other is None:
            return self._diff_with_fork_point(head)
        name = name_of(self._context, other)
        theirs = catalog_named(self._database, name).head
        if theirs.catalog_id == self.id:
            raise InvalidArgument(f'"{name}" cannot be compared with itself')
        merger = Merger(self._context)
        found = merger.compare(self.name, head, name, theirs, MergeOptions())
        parted = Side.at(self._database, head, found.relation.since)
        sides = Sides(found.ours, found.theirs, parted)
        return catalog_diff(self._context, self.name, sides, found.net, _shown(found.rows))

    def _diff_with_fork_point(self, head: Head) -> CatalogDiff:
        ours, since = Side(self._context.states.get(head), head), self._fork_point(head)
        base = Side.at(self._database, head, since)
        done = own_events(self._database, ours, since)
        rows = RowComparison(self._database, self._context.engine, ours, base, done, since).changes()
        sides = Sides(ours, base, base)
        net = net_changes(ours, base, done)
        return catalog_diff(self._context, self.name, sides, net, _shown(rows))

    def _fork_point(self, head: Head) -> SnapshotId:
        point = fork_point(self._database, self.id)
        if point is None:
            raise InvalidArgument(
                f'"{self.name}" was not forked from another catalog: say what to compare it with'
            )
        if head.snapshot_id < point:
            raise InvalidArgument(
                f'"{self.name}" is shown as it was at snapshot {head.snapshot_id}, before it was forked at '
                f"{point}: it had done nothing of its own yet"
            )
        return point

    def transaction(
        self,
        *,
        once: str | None = None,
        **info: Unpack[CommitInfo],
    ) -> Transaction:
        """Begin a transaction: its changes become one snapshot.

        `once` names the work: if it was committed before under that name, this transaction changes nothing.
        """
        author = self._scope.author(info)
        return Transaction(TransactionScope(self._scope, author, check_work(once)), self)

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> Catalog:
        """The same catalog, with an author, message and extra info for all its commits.

        Every method that commits takes the same keywords, for its own commit.
        """
        return Catalog(self._scope.with_commit_info(**info), self._lake) if info else self

    @property
    def _context(self) -> LakeContext:
        return self._scope.context

    @property
    def _database(self) -> Database:
        return self._scope.context.database

    # Listings and look-ups take `at`, for those who want to see the past without a second handle.

    def schemas(self, *, at: AsOf | None = None) -> list[Schema]:
        """List the schemas."""
        return super().schemas() if at is None else self.at(at).schemas()

    def tables(self, *, schema: str | None = None, at: AsOf | None = None) -> list[TableInfo]:
        """List the tables, or those of one schema."""
        return super().tables(schema=schema) if at is None else self.at(at).tables(schema=schema)

    def table(self, name: Name, *, at: AsOf | None = None) -> Table:
        """Open a table, as it is now or at a snapshot or timestamp."""
        return super().table(name) if at is None else self.at(at).table(name)

    def views(self, *, at: AsOf | None = None) -> list[ViewInfo]:
        """List the views."""
        return super().views() if at is None else self.at(at).views()

    def macros(self, *, at: AsOf | None = None) -> list[MacroInfo]:
        """List the macros with their overloads."""
        return super().macros() if at is None else self.at(at).macros()


def _shown(rows: Iterable[RowChanges]) -> list[RowChanges]:
    """What is different in rows."""
    found = (changes.shown for changes in rows)
    return [changes for changes in found if not changes.is_empty or changes.conflicts]


def name_of(context: LakeContext, catalog: object) -> str:
    """The name of a live catalog of a lake, given by its name or by a handle on it."""
    if not isinstance(catalog, Catalog):
        return check_name(catalog, "catalog")
    scope = scope_of(catalog)
    if not isinstance(scope, CatalogScope) or scope.context is not context:
        raise InvalidArgument(
            f'"{catalog.name}" is a catalog of a lake that was opened otherwise: pass its name'
        )
    if scope.as_of is not None:
        raise InvalidArgument(
            f'"{catalog.name}" is shown as it was at {scope.as_of}: pass it as it is now, or its name'
        )
    # It may have been renamed since the handle was made.
    name, ended = latest_name(context.database, catalog.id)
    if ended is not None:
        raise dropped(context.database, catalog.id)
    return name
