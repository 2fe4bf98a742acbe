"""What the target of a merge did and has taken back: it stands in nobody's way."""

from __future__ import annotations

from forklake.commit.conflicts import CREATES_INDEX, DML, DROPS_INDEX, TAGS
from forklake.engine.local import Engine
from forklake.fork.catalog_state import Kind, Side
from forklake.fork.column_ids import dropped_columns_in_files
from forklake.fork.definition_changes import ChangedElsewhere, changed_elsewhere, kind_of, own_events, same
from forklake.fork.row_changes import RowComparison
from forklake.fork.version_vectors import UnseenEvents
from forklake.lazy.properties import lazy_property
from forklake.model.alike import alike
from forklake.model.changes import Change, Conflict
from forklake.model.ids import SnapshotId, TableId
from forklake.store.backend import Database


class TakenBack:
    """Compares the target of a merge with what it was where the source saw it last."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        source: Side,
        target: Side,
        met: UnseenEvents,
        since: SnapshotId,
    ) -> None:
        """Read nothing yet: mostly nothing is asked."""
        self._database = database
        self._engine = engine
        self._source = source
        self._now = target
        self._met = met
        self._since = since

    def covers(self, conflict: Conflict) -> bool:
        """Whether what theirs is about is as it was before, and no file remembers it."""
        kind = kind_of(conflict.theirs)
        if kind is None or not self._is_as_before(kind, conflict):
            return False
        # What others did may have come to the source too: then it knows more than the target before.
        return not self._elsewhere.changed(conflict.theirs)

    @lazy_property
    def _before(self) -> Side:
        return Side.at(self._database, self._now.head, self._since)

    @lazy_property
    def _elsewhere(self) -> ChangedElsewhere:
        return changed_elsewhere(self._database, self._now.head, self._met.everything())

    @lazy_property
    def _with_other_rows(self) -> frozenset[TableId]:
        """Tables that have not the rows that they had before."""
        done = own_events(self._database, self._now, self._since)
        compared = RowComparison(self._database, self._engine, self._now, self._before, done, self._since)
        return frozenset(changes.table for changes in compared.changes() if not changes.shown.is_empty)

    def _is_as_before(self, kind: Kind, conflict: Conflict) -> bool:
        change, number = conflict.theirs, conflict.theirs.object_id
        now, before = self._now.find(kind, number), self._before.find(kind, number)
        if now is None or before is None:
            return False
        if change.verb in DML:
            return number not in self._with_other_rows
        if change.verb in TAGS:
            tags, there = (side.tags(kind, number) for side in (self._now, self._before))
            return tags.get(change.tag) == there.get(change.tag)
        if change.verb in CREATES_INDEX | DROPS_INDEX:
            name = change.detail or ""
            return alike(name, self._now.indexes(number)) == alike(name, self._before.indexes(number))
        if not same(now, before):
            return False
        return kind != "table" or self._has_same_layout(TableId(number), conflict.ours)

    def _has_same_layout(self, table: TableId, ours: Change) -> bool:
        """Whether new files are laid out as before, and no file has columns whose ids ours uses."""
        if self._now.layout(table) != self._before.layout(table):
            return False
        coming = self._source.table(ours.object_id)
        used = [] if coming is None else [column.id for column in coming.walk()]
        return not dropped_columns_in_files(self._database, self._now, table, used)
