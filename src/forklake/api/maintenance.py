"""Maintaining the files of a catalog: flush inlined rows, compact, rewrite deletes, build indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, cast

from forklake.api.scoped import Name, ScopedHandle
from forklake.commit.draft import Draft
from forklake.compact.compaction import (
    CompactResult,
    Planner,
    commit_rewrites,
    compact_all,
    compact_one,
    delete_planner,
    merge_planner,
    planned,
)
from forklake.compact.flush import flush
from forklake.compact.plan import Rewrite
from forklake.compact.run import Rewritten
from forklake.maintenance.build_indexes import BuildResult, build_named
from forklake.model.entities import Table
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress
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
        """Write inlined rows to Parquet files, of one table or of all. Returns the number of rows.

        Reads do not change: rows keep their ids and the snapshots that inserted them.
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
        """Merge small files and write inlined rows to files, of one table or of all.

        Files are merged within partitions of at least `min_files` files, in the sort order of the table. No
        row changes: row ids, the change feed and past snapshots stay the same. Each table is a commit of its
        own. Files that other commits change meanwhile are planned again.
        """
        planner = merge_planner(min_files)
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
        """Rewrite files of which at least this share of rows is deleted, of one table or of all."""
        table, threshold = table_first(table, threshold)
        planner = delete_planner(threshold)
        return self._compact(table, planner, info, dry_run=dry_run, progress=progress)

    def plan_compaction(self, table: Name, *, min_files: int = 2) -> tuple[Rewrite, ...]:
        """Plan `compact` of a table: values that any process can run."""
        draft = self._scope.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self._scope.context, merge_planner(min_files))

    def plan_rewrite_deletes(self, table: Name, threshold: float = 0.95) -> tuple[Rewrite, ...]:
        """Plan `rewrite_deletes` of a table: values that any process can run."""
        draft = self._scope.read()
        found = draft.table_named(QualifiedName.parse(table))
        return planned(draft, found.id, self._scope.context, delete_planner(threshold))

    def commit_rewrites(self, done: Sequence[Rewritten], **info: Unpack[CommitInfo]) -> CompactResult:
        """Commit rewrites that were run elsewhere: new files replace the old ones.

        A rewrite whose old files were changed meanwhile is not committed and counts as given up. Safe to
        retry: nothing is committed twice.
        """
        return commit_rewrites(self._scope.with_commit_info(**info), done)

    def build_indexes(
        self,
        table: Name | None = None,
        names: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> BuildResult:
        """Build what indexes lack, of one table or of all: segments for data files that have none.

        Ten segments of one size are merged into one. Each segment is a commit of its own, and conflicts with
        nothing but a drop of the index. `names` are those of the indexes to build. `dry_run` builds nothing.
        """
        scope = self._scope.with_commit_info(**info)
        return build_named(scope, table, names, dry_run=dry_run, progress=progress)

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
