"""A checkpoint: everything that keeps a lake small and quick, in the right order.

Inlined rows are flushed, snapshots expired, small files merged and files with many deletes rewritten; then
garbage is collected and orphans are removed. What is done when stands in the options of the lake. A catalog
works only on what it has itself: files that a fork inherited are compacted where they were written. A table
that cannot be worked on is reported, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from forklake.commit.draft import Draft
from forklake.commit.write_target import options_of
from forklake.compact.compaction import CompactedTable, Planner, Runner, compact_one
from forklake.compact.flush import flush
from forklake.compact.plan import Input, Rewrite, Target, plan_deletes, plan_merges
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.display import Shown
from forklake.errors import CatalogNotFound, ForklakeError, ReadOnlyStore, StoreUnavailable, TableNotFound
from forklake.maintenance.build_indexes import BuiltIndex, build_table
from forklake.maintenance.build_indexes import Runner as Builder
from forklake.maintenance.collect import GarbageResult, collect
from forklake.maintenance.expire import (
    NEVER,
    ExpireResult,
    LakeExpireResult,
    expire_catalog,
    expire_lake,
    expiry,
)
from forklake.maintenance.orphans import OrphansResult, remove_orphans
from forklake.model.ids import CatalogId
from forklake.model.options import Options
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import CommitInfo, author_of
from forklake.store.checkpoint_work import (
    TableWork,
    tables_to_compact,
    tables_to_flush,
    tables_to_index,
    tables_to_rewrite,
)

_STOPS = (StoreUnavailable, ReadOnlyStore)
"""Without a database there is nothing to go on with."""


@dataclass(frozen=True, slots=True)
class FlushedTable:
    """Inlined rows of a table that got a file, or with `dry_run` would."""

    catalog: str
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class RewrittenTable:
    """Files of a table that were rewritten; with `dry_run`, an estimate."""

    catalog: str
    rewritten: CompactedTable


@dataclass(frozen=True, slots=True)
class IndexedTable:
    """An index that was built for files that it lacked; with `dry_run`, would be."""

    catalog: str
    built: BuiltIndex


@dataclass(frozen=True, slots=True)
class CheckpointFailure:
    """What could not be done. The next checkpoint tries it again."""

    step: str
    """`flush`, `expire`, `compact`, `rewrite`, `index`, `collect` or `orphans`."""
    catalog: str | None
    table: str | None
    error: str


@dataclass(frozen=True, slots=True)
class CheckpointResult(Shown):
    """The result of a checkpoint, step by step."""

    flush: tuple[FlushedTable, ...]
    expire: LakeExpireResult | ExpireResult | None
    """None if it failed, as are the others."""
    compact: tuple[RewrittenTable, ...]
    rewrite: tuple[RewrittenTable, ...]
    index: tuple[IndexedTable, ...]
    collect: GarbageResult | None
    """None for a checkpoint of one catalog: files are the lake's."""
    orphans: OrphansResult | None
    failures: tuple[CheckpointFailure, ...]
    files: int
    """How many files were removed; with `dry_run`, would be, now or when `delete_older_than` has passed."""
    bytes: int
    """Their size."""
    dry_run: bool

    @property
    def succeeded(self) -> bool:
        """Whether everything was done that was to be done."""
        kept = [part.kept for part in (self.collect, self.orphans) if part is not None]
        return not self.failures and not any(file.failed for files in kept for file in files)


@dataclass(slots=True)
class _Checkpoint:
    """One checkpoint, while it runs."""

    context: LakeContext
    info: CommitInfo
    catalog: CatalogScope | None
    """The only catalog that is worked on; None for all."""
    runner: Runner | None
    builder: Builder | None
    dry_run: bool
    progress: OnProgress | None
    failures: list[CheckpointFailure] = field(default_factory=list[CheckpointFailure])

    @property
    def options(self) -> Options:
        return self.context.options

    @property
    def only(self) -> CatalogId | None:
        return None if self.catalog is None else self.catalog.id

    def run(self) -> CheckpointResult:
        flushed = self._flush()
        expired = self._expire()
        target, threshold = self.options.target_file_size, self.options.rewrite_delete_threshold
        database = self.context.database
        merged = self._rewrite("compact", tables_to_compact(database, self.only, target), _merge_own)
        rewritten = self._rewrite("rewrite", tables_to_rewrite(database, self.only, threshold), _rewrite_own)
        indexed = self._index()
        collected = self._collect()
        orphans = self._orphans()
        files, size = _freed(collected, orphans, dry_run=self.dry_run)
        return CheckpointResult(
            flushed,
            expired,
            merged,
            rewritten,
            indexed,
            collected,
            orphans,
            tuple(self.failures),
            files,
            size,
            self.dry_run,
        )

    # ---- Tables ---

    def _flush(self) -> tuple[FlushedTable, ...]:
        done: list[FlushedTable] = []

        def work(one: TableWork, scope: CatalogScope, draft: Draft) -> None:
            table = draft.table(one.table)
            if not options_of(draft, table, self.options).auto_compact:
                return
            name = str(draft.name_of(table))
            rows = one.found
            if not self.dry_run:
                rows = flush(scope, lambda newer: [newer.table(one.table)], own=True)
            done.append(FlushedTable(one.catalog_name, name, rows))

        tables = tables_to_flush(self.context.database, self.only)
        steps = Steps(self.progress, "flush inlined rows", "tables", len(tables))
        self._each("flush", steps.over(tables), work)
        return tuple(done)

    def _rewrite(
        self, step: str, tables: Sequence[TableWork], planner: Callable[[CatalogId], Planner]
    ) -> tuple[RewrittenTable, ...]:
        done: list[RewrittenTable] = []

        def work(one: TableWork, scope: CatalogScope, draft: Draft) -> None:
            result = compact_one(
                scope,
                one.table,
                planner(one.catalog),
                dry_run=self.dry_run,
                progress=self.progress,
                runner=self.runner,
            )
            done.extend(RewrittenTable(one.catalog_name, table) for table in result.tables)

        self._each(step, iter(tables), work)
        return tuple(done)

    def _index(self) -> tuple[IndexedTable, ...]:
        done: list[IndexedTable] = []

        def work(one: TableWork, scope: CatalogScope, draft: Draft) -> None:
            result = build_table(
                scope,
                one.table,
                own=True,
                dry_run=self.dry_run,
                progress=self.progress,
                runner=self.builder,
            )
            done.extend(IndexedTable(one.catalog_name, index) for index in result.indexes)

        self._each("index", iter(tables_to_index(self.context.database, self.only)), work)
        return tuple(done)

    def _each(
        self,
        step: str,
        tables: Iterator[TableWork],
        work: Callable[[TableWork, CatalogScope, Draft], None],
    ) -> None:
        """Work on tables; one that fails is noted, and one that somebody has dropped since is left out."""
        for one in tables:
            scope = self.catalog or CatalogScope(self.context, one.catalog, one.catalog_name, info=self.info)
            name = str(one.table)
            try:
                draft = scope.read()
                name = str(draft.name_of(draft.table(one.table)))
                work(one, scope, draft)
            except (TableNotFound, CatalogNotFound):
                continue
            except _STOPS:
                raise
            except ForklakeError as error:
                self.failures.append(CheckpointFailure(step, one.catalog_name, name, str(error)))

    # ---- The lake ---

    @contextmanager
    def _noted(self, step: str) -> Generator[None]:
        """Note that a step failed, and go on with the next."""
        try:
            yield
        except _STOPS:
            raise
        except ForklakeError as error:
            name = None if self.catalog is None else self.catalog.name
            self.failures.append(CheckpointFailure(step, name, None, str(error)))

    def _expire(self) -> LakeExpireResult | ExpireResult | None:
        older_than = self.options.expire_older_than
        keep_last = self.options.keep_last_snapshots
        database = self.context.database
        with self._noted("expire"):
            if self.catalog is not None:
                return expire_catalog(
                    database,
                    self.catalog.id,
                    self.catalog.name,
                    older_than=NEVER if older_than is None else older_than,
                    versions=None,
                    keep_last=keep_last,
                    dry_run=self.dry_run,
                )
            return expire_lake(
                database,
                self.context.storage,
                author_of(**self.info),
                older_than=NEVER if older_than is None else older_than,
                keep_last=keep_last,
                dry_run=self.dry_run,
                progress=self.progress,
            )
        return None

    def _collect(self) -> GarbageResult | None:
        if self.catalog is not None:
            return None
        older_than, keep_last = self.options.expire_older_than, self.options.keep_last_snapshots
        with self._noted("collect"):
            database = self.context.database
            # A dry run expires what it would have expired, and takes it back.
            before = expiry(database, NEVER if older_than is None else older_than, keep_last)
            return collect(
                database,
                self.context.storage,
                older_than=self.options.delete_older_than,
                dry_run=self.dry_run,
                progress=self.progress,
                before=before if self.dry_run else None,
            )
        return None

    def _orphans(self) -> OrphansResult | None:
        if self.catalog is not None:
            return None
        with self._noted("orphans"):
            return remove_orphans(
                self.context.database,
                self.context.storage,
                older_than=self.options.orphans_older_than,
                unknown=False,
                dry_run=self.dry_run,
                progress=self.progress,
            )
        return None


def checkpoint(
    context: LakeContext,
    *,
    info: CommitInfo,
    catalog: CatalogScope | None = None,
    runner: Runner | None = None,
    builder: Builder | None = None,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> CheckpointResult:
    """Do everything for one catalog, or for the whole lake.

    `runner` rewrites files elsewhere, and `builder` builds indexes.
    """
    author_of(**info)
    context.database.check_writable()
    if catalog is not None:
        # Refuses the past before anything is done.
        catalog.draft()
        catalog = catalog.with_commit_info(**info)
    # Another process may have set them.
    context.forget_options()
    return _Checkpoint(context, info, catalog, runner, builder, dry_run, progress).run()


def _merge_own(catalog: CatalogId) -> Planner:
    """Plans to merge small files of a catalog, but for those that it inherited."""

    def planner(target: Target, inputs: Iterable[Input]) -> tuple[Rewrite, ...]:
        if not target.write.options.auto_compact:
            return ()
        return plan_merges(target, [one for one in inputs if one.file.source == catalog])

    return planner


def _rewrite_own(catalog: CatalogId) -> Planner:
    """Plans to rewrite files that a catalog wrote itself, or has itself deleted rows of."""

    def planner(target: Target, inputs: Iterable[Input]) -> tuple[Rewrite, ...]:
        options = target.write.options
        if not options.auto_compact:
            return ()
        return plan_deletes(
            target, [one for one in inputs if _is_touched(one, catalog)], options.rewrite_delete_threshold
        )

    return planner


def _is_touched(one: Input, catalog: CatalogId) -> bool:
    deletes = one.file.deletes
    return (
        one.file.source == catalog or bool(one.deleted) or (deletes is not None and deletes.source == catalog)
    )


def _freed(
    collected: GarbageResult | None, orphans: OrphansResult | None, *, dry_run: bool
) -> tuple[int, int]:
    """Files and bytes that were removed, or would be."""
    files = size = 0
    if collected is not None:
        files, size = collected.removed, collected.removed_bytes
        if dry_run:
            files, size = files + collected.scheduled, size + collected.scheduled_bytes
    if orphans is not None:
        files, size = files + orphans.files, size + orphans.bytes
    return files, size
