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
from forklake.model.time_travel import Moment, moment_of


class RestoreVerbs(ScopedHandle):
    """Verbs that make something what it was, as one more commit."""

    def restore(self, at: Moment, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> None:
        """Make everything what it was at a snapshot or a time, as one more commit; history stays.

        What was dropped since is back, and what was created since is gone. No file is written: files of the
        past count again. Rows have the ids that they had.
        """
        moment_of(at)
        self._scope.with_commit_info(**info).apply(
            lambda draft: restore_all(draft, self._scope.at(at).read(), progress)
        )

    def restore_table(
        self, name: Name, at: Moment, *, as_name: Name | None = None, **info: Unpack[CommitInfo]
    ) -> Table:
        """Make a table what it was at a snapshot or a time, when it had this name; it may be gone now.

        One that was dropped is back, under the name that it had or as `as_name`.
        """
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)
        moment_of(at)

        def change(draft: Draft) -> TableId:
            then = self._scope.at(at).read()
            table = then.table_named(target).id
            restore_table(draft, then, table, other)
            return table

        return Table(self._scope, self._scope.with_commit_info(**info).apply(change)[0])

    def undrop_table(self, name: Name, *, as_name: Name | None = None, **info: Unpack[CommitInfo]) -> Table:
        """Bring back the table of a name that was dropped last, as it was then."""
        target = QualifiedName.parse(name)
        other = None if as_name is None else QualifiedName.parse(as_name)

        def change(draft: Draft) -> TableId:
            table, last = dropped_table(draft, target)
            restore_table(draft, self._scope.at(last).read(), table, other)
            return table

        return Table(self._scope, self._scope.with_commit_info(**info).apply(change)[0])

    def undo(self, snapshot: int, *, progress: OnProgress | None = None, **info: Unpack[CommitInfo]) -> None:
        """Take back what one earlier commit did, as one more commit; history stays.

        What it added is gone, what it deleted is back, what it changed is what it was. If something that came
        later is in the way, `CommitConflict` says what. A merge is undone as a whole.
        """
        self._scope.with_commit_info(**info).apply(self._undoing(snapshot, progress))

    def _undoing(self, snapshot: int, progress: OnProgress | None) -> Callable[[Draft], None]:
        def at(moment: int) -> Draft:
            return self._scope.at(moment).read()

        return lambda draft: undo_commit(draft, snapshot, at, self._scope.context, progress)
