"""Maintaining the files of a catalog: flush inlined rows, compact, rewrite files with many deletes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack, cast

from forklake.api.scoped import Name, ScopedHandle
from forklake.commit.draft import Draft
from forklake.commit.flush_inlined import write_inlined
from forklake.commit.write_target import writer_for
from forklake.compact.compaction import (
    CompactResult,
    Planner,
    commit_rewrites,
    compact_all,
    compact_one,
    filling,
    merging,
    planned,
)
from forklake.compact.plan import Rewrite
from forklake.compact.run import Rewritten
from forklake.context.scope import Scope
from forklake.model.entities import Table
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import CommitInfo


class MaintenanceVerbs(ScopedHandle):
    """Verbs that rewrite files and change no row."""

    def flush_inlined(
        self,
        table: Name | None = None,
        *,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Move rows that live in the metadata database into Parquet files, of one table or of all.

        Nobody sees a difference: the rows keep their ids and the snapshots that inserted them. Returns how
        many there were.
        """

        def tables(draft: Draft) -> list[Table]:
            if table is None:
                return [draft.table(number) for number in draft.inlined_tables()]
            return [draft.table_named(QualifiedName.parse(table))]

        return flush(self._scope.with_commit_info(**info), tables, progress)

    def compact(
        self,
        table: Name | None = None,
        *,
        min_files: int = 2,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Merge small files, and move inlined rows into files, of one table or of all.

        Files are merged within partitions, in the sort order of the table, where there are at least
        `min_files`. No row changes: ids, the change feed and older snapshots stay what they were. Every table
        is a commit of its own. Others may write meanwhile; what they touch is planned again.
        """
        planner = merging(min_files)
        return self._compact(table, planner, info, dry_run=dry_run, progress=progress)

    def rewrite_deletes(
        self,
        table: Name | None = None,
        threshold: float = 0.95,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Rewrite files that have lost at least such a share of their rows, of one table or of all."""
        table, threshold = table_first(table, threshold)
        planner = filling(threshold)
        return self._compact(table, planner, info, dry_run=dry_run, progress=progress)

    def plan_compaction(self, table: Name, *, min_files: int = 2) -> tuple[Rewrite, ...]:
        """What `compact` would do to a table, as values that can be run anywhere."""
        draft = self._scope.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self._scope.context, merging(min_files))

    def plan_rewrite_deletes(self, table: Name, threshold: float = 0.95) -> tuple[Rewrite, ...]:
        """What `rewrite_deletes` would do to a table, as values that can be run anywhere."""
        draft = self._scope.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self._scope.context, filling(threshold))

    def commit_rewrites(self, done: Sequence[Rewritten], **info: Unpack[CommitInfo]) -> CompactResult:
        """Let files that were rewritten elsewhere take the place of the old ones.

        Where somebody has touched an old file since, the new ones come too late and count as given up. It is
        safe to try again after a failure: what stands is not committed twice.
        """
        return commit_rewrites(self._scope.with_commit_info(**info), done)

    def _compact(
        self,
        table: Name | None,
        planner: Planner,
        info: CommitInfo,
        *,
        dry_run: bool,
        progress: OnProgress | None,
    ) -> CompactResult:
        scope = self._scope.with_commit_info(**info)
        if table is None:
            return compact_all(scope, planner, dry_run=dry_run, progress=progress)
        number = self._scope.read().table_named(QualifiedName.parse(table)).id
        return compact_one(scope, number, planner, dry_run=dry_run, progress=progress)


def table_first(table: Name | float | None, threshold: Name | float) -> tuple[Name | None, float]:
    """Both orders: once, `rewrite_deletes` took the threshold before the table."""
    if not isinstance(table, int | float):
        # What is no share at all is refused by the planner.
        return table, cast("float", threshold)
    return (None if isinstance(threshold, int | float) else threshold), table


def flush(
    scope: Scope, tables: Callable[[Draft], Sequence[Table]], progress: OnProgress | None = None
) -> int:
    """Write the inlined rows of some tables into files; returns how many there were."""
    context = scope.context

    def change(draft: Draft) -> int:
        wanted = tables(draft)
        steps = Steps(progress, "flush inlined rows", "tables", len(wanted))
        # All are written before any is staged, so that a failure leaves a transaction as it was.
        written = [
            write_inlined(
                draft, table, writer_for(draft, table, context.storage, context.options, draft.written)
            )
            for table in steps.over(wanted)
        ]
        flushes = [each for each in written if each is not None]
        for each in flushes:
            each.stage(draft)
        return sum(each.count for each in flushes)

    return scope.apply(change)[0]
