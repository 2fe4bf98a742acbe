"""Going back: a catalog or a table as it was, and commits that are undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from forklake.api.scoped import Name, ScopedHandle
from forklake.api.table import Table
from forklake.api.undo import undo_commit
from forklake.commit.draft import Draft
from forklake.commit.restore import dropped_table, restore_all, restore_table
from forklake.model.ids import TableId
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo
from forklake.model.time_travel import AsOf, parse_as_of


class RestoreVerbs(ScopedHandle):
    """Verbs that make something what it was, as one more commit."""

    def restore(self, at: AsOf, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> None:
        """Restore the whole catalog to a snapshot or timestamp, as a new commit; history stays.

        Brings back what was dropped since, and drops what was created since. No file is written; rows keep
        the ids that they had.
        """
        parse_as_of(at)
        self._scope.with_commit_info(**info).apply(
            lambda draft: restore_all(draft, self._scope.at(at).read(), progress)
        )

    def restore_table(
        self, name: Name, at: AsOf, *, as_name: Name | None = None, **info: Unpack[CommitInfo]
    ) -> Table:
        """Restore the table that had this name at a snapshot or timestamp, even if it was dropped since.

        It gets the name that it had, or `as_name`.
        """
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)
        parse_as_of(at)

        def change(draft: Draft) -> TableId:
            then = self._scope.at(at).read()
            table = then.table_named(target).id
            restore_table(draft, then, table, other)
            return table

        return Table(self._scope, self._scope.with_commit_info(**info).apply(change)[0])

    def undrop_table(self, name: Name, *, as_name: Name | None = None, **info: Unpack[CommitInfo]) -> Table:
        """Bring back the table of this name that was dropped last, as it was then."""
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)

        def change(draft: Draft) -> TableId:
            table, last = dropped_table(draft, target)
            restore_table(draft, self._scope.at(last).read(), table, other)
            return table

        return Table(self._scope, self._scope.with_commit_info(**info).apply(change)[0])

    def undo(self, snapshot: int, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> None:
        """Revert one earlier commit, as a new commit; later commits and history stay.

        Rows and definitions that it created are removed, deleted ones come back, changed ones get their old
        values. If a later commit changed the same, it raises `CommitConflict`. A merge is undone as a whole.
        """
        self._scope.with_commit_info(**info).apply(self._undoing(snapshot, progress))

    def _undoing(self, snapshot: int, progress: OnProgress | None) -> Callable[[Draft], None]:
        def undo(draft: Draft) -> None:
            def at(snapshot: int) -> Draft:
                past = self._scope.at(snapshot).read()
                draft.past.add(past.head.snapshot_id)
                return past

            undo_commit(draft, snapshot, at, self._scope.context, progress)

        return undo
