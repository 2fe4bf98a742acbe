"""What a merge writes: the net changes of the source on top of the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from forklake.commit.commit_plan import Merged, Plan
from forklake.commit.draft import Draft
from forklake.commit.inlining import AdoptedFiles, TableWrites
from forklake.commit.write_target import write_staged_rows
from forklake.data.inlined import InlinedRows
from forklake.data.statistics import summary_of_default
from forklake.data.storage.storage import Storage
from forklake.engine.compare import Outcome
from forklake.fork.catalog_state import Kind, Object, Side
from forklake.fork.column_ids import dropped_columns_in_files
from forklake.fork.definition_changes import (
    ChangedElsewhere,
    DefinitionChanges,
    changed_elsewhere,
    kind_of,
    same,
)
from forklake.fork.merged_indexes import index_files_to_adopt, stage_indexes
from forklake.fork.net_rows import RowChanges
from forklake.fork.version_vectors import Divergence, Events
from forklake.lazy.arrow import pa
from forklake.lazy.properties import lazy_property
from forklake.model.alike import alike
from forklake.model.changes import RESOLVED, Change, Verb
from forklake.model.entities import Table, View
from forklake.model.ids import ColumnId, DataFileId, IndexFileId, SchemaId, TableId
from forklake.model.index import Index
from forklake.model.options import Options
from forklake.model.table.files import ColumnStats
from forklake.scan.inlined_rows import stats_of_inlined
from forklake.scan.scan_plan import Positions, ScanFile, ScanRows
from forklake.store.backend import Database
from forklake.store.file_states import FileState, file_states
from forklake.store.files import FileReader
from forklake.store.merges import Span


class MergeBuilder:
    """Puts the net changes of the source on top of the target."""

    def __init__(
        self,
        database: Database,
        known: Divergence,
        done: Events,
        ours: Side,
        theirs: Side,
        net: DefinitionChanges,
        rows: Sequence[RowChanges],
        seen: tuple[Span, ...],
    ) -> None:
        """Stage definitions. `seen` is what the merge adds to the version vector of the target."""
        self._database = database
        self._relation = known
        self._done = done
        self.ours = ours
        self._theirs = theirs
        self._net = net
        self._rows = rows
        self._seen = seen
        self.draft = Draft(theirs.state, theirs.head)
        self.gone: list[Change] = []
        """What the source changed in objects that the target has dropped."""
        self._undone = self._find_undone()
        for entry in self._net.objects:
            if (entry.kind, entry.ours and entry.ours.id) not in self._undone:
                self.draft.adopt(entry.base, entry.ours)
        self._adopt_tags()
        for layout in self._net.layouts:
            table = self.ours.table(layout.table)
            if table is not None and not self._is_gone("table", table):
                self.draft.adopt_layout(layout.table, *layout.ours)
        stage_indexes(self.draft, self._net)
        self._staged = tuple(found for changes in self._rows for found in self._stage(changes))
        self.planned = self._plan(self._staged)
        """What the commit does, before anything is written for it."""

    def with_rows_written(self, storage: Storage, options: Options) -> Plan:
        """What the commit has to write: small deletes stay inline, others are written into delete files."""
        written = {writes.table_id: writes for writes in write_staged_rows(self.draft, storage, options)}
        return self._plan(
            tuple(
                _with_deletes(writes, written[writes.table_id]) if writes.table_id in written else writes
                for writes in self._staged
            )
        )

    def _plan(self, writes: tuple[TableWrites, ...]) -> Plan:
        plan = self.draft.plan(writes)
        if not any(kind_of(event.change) for event in self._done.events):
            return plan
        # Even if nothing is left of what was done: others have to hear of it by way of the target.
        reshaped = tuple(sorted(table for table in self._net.reshaped if self.ours.table(table) is not None))
        head = self.ours.head
        merged = Merged(head.catalog_id, head.snapshot_id, reshaped, self._adopted_index_files, self._seen)
        return replace(plan, changes=(*plan.changes, *self._more_changes(plan)), merged=merged)

    @lazy_property
    def _adopted_index_files(self) -> tuple[IndexFileId, ...]:
        tables = {event.change.object_id for event in self._done.events if kind_of(event.change) == "table"}
        return index_files_to_adopt(
            self._database,
            self.ours,
            self._theirs,
            {index.id for table in tables for index in self._indexes_of(table)},
            [TableId(table) for table in tables],
            frozenset(added.state.file.id for changes in self._rows for added in changes.added),
            frozenset(state.file.id for changes in self._rows for state in changes.retired),
        )

    def _indexes_of(self, table: int) -> list[Index]:
        """The indexes that a table has after the merge, if it is there."""
        there = self.draft.table_if_there(TableId(table))
        return [] if there is None else self.draft.indexes(there)

    def is_free(self, change: Change) -> bool:
        """Whether the target has no other object now with the name that a change claims."""
        return self._theirs.holders(change) <= {change.object_id}

    def other_holders(self, change: Change) -> list[Object]:
        """Objects that would have the name that a change claims, beside the one that claims it."""
        draft, name, schema = self.draft, change.name or "", SchemaId(change.schema_id or 0)
        match kind_of(change):
            case "schema":
                found = alike(name, draft.schemas())
            case "macro":
                macros = (macro for macro in draft.macros() if macro.schema_id == schema)
                found = alike(name, (macro for macro in macros if macro.kind == change.detail))
            case _:
                named = draft.relations_named(schema, name)
                found = [item if isinstance(item, View) else draft.table(item.id) for item in named]
        return [item for item in found if item.id != change.object_id]

    def _find_undone(self) -> set[tuple[Kind, int | None]]:
        """Objects that are again as they were where the target last knew them."""
        if not (self._net.objects or self._net.reshaped):
            return set()
        before = Side.at(self._database, self.ours.head, self._relation.since)
        touched: set[tuple[Kind, int]] = {("table", table) for table in self._net.reshaped}
        changed: set[tuple[Kind, int]] = {
            (entry.kind, entry.ours.id) for entry in self._net.objects if entry.ours is not None
        }
        touched |= changed
        merged = ChangedElsewhere(self._done.merged)
        elsewhere = changed_elsewhere(self._database, self.ours.head, self._done) if changed else merged
        return {
            (kind, number)
            for kind, number in touched
            if (now := self.ours.find(kind, number)) is not None
            and same(now, before.find(kind, number))
            and not (elsewhere if (kind, number) in changed else merged).object(number)
        }

    def _more_changes(self, plan: Plan) -> Iterator[Change]:
        """That it is a merge; and tables whose columns took numbers on the way, but look as before."""
        defined = {change.object_id for change in plan.changes if change.verb in _DEFINES}
        for changes in self._rows:
            if changes.resolved is not None and self.ours.table(changes.table) is not None:
                decided = self.row_change(changes.table, frozenset(changes.resolved.files))
                yield replace(decided, detail=RESOLVED, rows=changes.resolved.ids)
        for number in sorted(self._net.reshaped):
            table = self.ours.table(number)
            is_undone = number not in defined and ("table", number) in self._undone
            if table is not None and is_undone and self._brings_dropped_columns(table):
                yield Change(Verb.ALTER_TABLE, number, table.schema_id, name=table.name)
        yield Change(Verb.MERGE_CATALOG, self.ours.head.catalog_id)

    def _brings_dropped_columns(self, table: Table) -> bool:
        """Whether files come with columns that the source has dropped, under ids that the target uses."""
        theirs = self._theirs.table(table.id)
        used = [] if theirs is None else [column.id for column in theirs.walk()]
        files = [a.state.file for changes in self._rows if changes.table == table.id for a in changes.added]
        return dropped_columns_in_files(self._database, self.ours, table.id, used, files)

    def _adopt_tags(self) -> None:
        for tag in self._net.tags:
            if self._is_gone(tag.kind, tag.owner):
                self.gone.append(Change(_TAGS[tag.kind], tag.owner.id, name=tag.owner.name))
            else:
                self.draft.set_tag(tag.owner, tag.column, tag.key, tag.ours)

    def _is_gone(self, kind: Kind, item: Object) -> bool:
        """Whether the target has dropped what both had."""
        return item.id not in self._net.created and self._theirs.find(kind, item.id) is None

    def _stage(self, changes: RowChanges) -> Iterator[TableWrites]:
        """Stage the rows that the target loses, and tell what it gets."""
        table = self.ours.table(changes.table)
        if table is None:
            return
        if self._is_gone("table", table):
            if changes.shown.is_empty and not changes.conflicts:
                return
            self.gone.append(Change(Verb.INSERT, table.id, table.schema_id, name=table.name))
            return
        if changes.is_empty:
            return
        staged = self.draft.staged(self.draft.table(table.id))
        for state in changes.retired:
            staged.retire(_place(state))
        staged.delete({state.file.id: (_place(state), gone) for state, gone in changes.deleted})
        touched = frozenset((*staged.touched, *staged.retired))
        for added in changes.added:
            if len(added.dropped):
                # It comes even if no row of it is left, so that others can tell what was decided of them.
                staged.deleted[added.state.file.id] = added.dropped
                staged.touched[added.state.file.id] = _place(added.state.without_repeats)
        if changes.resolved is not None:
            staged.add_rows(changes.resolved.rows)
        inherited = not table.path.startswith(self.draft.head.data_path)
        yield TableWrites(
            table.id,
            touched=touched,
            removed=changes.rows_removed,
            removed_bytes=sum(file.file_size_bytes for file in staged.retired.values()),
            is_inherited=inherited and not self.draft.has_statistics(table),
            adopted=self._adopted(table, changes),
            looked=changes.looked,
            imported=changes.imported,
            columns=table.columns,
            was_dropped=changes.is_back,
        )

    def _adopted(self, table: Table, changes: RowChanges) -> AdoptedFiles:
        head = self.ours.head
        reader = FileReader(self._database, head.catalog_id, table.id, head.snapshot_id)
        states = [added.state.without_repeats for added in changes.added]
        wanted = [column.id for column in table.walk()]
        found = reader.stats([state.file for state in states], wanted) if states else {}
        files = {state.file.id for state in states}
        stats = tuple(entry for file in files for entry in found.get(file, {}).values())
        stats += stats_of_inlined(reader, [state.file for state in states], table.columns)
        mappings = {state.file.mapping_id for state in states if state.file.mapping_id is not None}
        if mappings:
            theirs = self._theirs.head
            known = FileReader(self._database, theirs.catalog_id, table.id, theirs.snapshot_id)
            mappings -= known.mappings().keys()
        return AdoptedFiles(
            tuple(state.file.id for state in states),
            tuple(state.file.deletes.id for state in states if state.file.deletes is not None),
            tuple((state.file.id, place) for state in states for place in sorted(state.positions)),
            tuple(sorted(mappings)),
            sum(added.live_rows for added in changes.added),
            sum(state.file.file_size_bytes for state in states),
            stats,
            tuple(_defaults(self.draft.table(table.id), found, files)),
        )

    def row_change(self, number: int, files: frozenset[int]) -> Change:
        """That rows of a table of the source were changed."""
        table = self.ours.table(number)
        if table is None:
            raise AssertionError(f"table {number} is gone")
        schema = self.ours.state.schemas()[table.schema_id].name
        return Change(Verb.DELETE, table.id, table.schema_id, schema, table.name, files=files)

    def conflicting_files(self, changes: RowChanges) -> frozenset[int]:
        """The files in which rows were that both changed."""
        return frozenset() if changes.examined is None else changes.examined.files(Outcome.CONFLICT)

    def paths(self, files: frozenset[int]) -> list[str]:
        """The names of data files."""
        head = self._theirs.head
        found = file_states(self._database, head.catalog_id, head.snapshot_id, files)
        return [state.file.path or f"inlined rows {state.file.id}" for state in found.values()]


def _place(state: FileState) -> ScanFile | ScanRows:
    """A file as a draft knows it; what it holds is not read."""
    deleted: Positions | None = pa.array(sorted(state.positions), pa.int64()) if state.positions else None
    if state.file.inlined:
        return ScanRows(state.file, InlinedRows.of(pa.table({})), deleted)
    return ScanFile(state.file, deleted)


def _with_deletes(writes: TableWrites, written: TableWrites) -> TableWrites:
    """What the target gets, with what it loses as it is written."""
    adopted = writes.adopted
    # A delete file of the source that is united with what else is deleted does not come along.
    kept = {
        key: origin
        for key, origin in written.ended.items()
        if not (key.entity == "delete_file" and key.entity_id in adopted.delete_files)
    }
    dropped = {key.entity_id for key in written.ended.keys() - kept.keys()}
    return replace(
        writes,
        deletes=written.deletes,
        inlined_deletes=written.inlined_deletes,
        files=written.files,
        inlined=written.inlined,
        ended=kept,
        adopted=replace(
            adopted, delete_files=tuple(file for file in adopted.delete_files if file not in dropped)
        ),
    )


_TAGS = {
    "schema": Verb.TAG_SCHEMA,
    "table": Verb.TAG_TABLE,
    "view": Verb.TAG_VIEW,
    "macro": Verb.TAG_MACRO,
}
_DEFINES = (Verb.CREATE_TABLE, Verb.ALTER_TABLE)


def _defaults(
    table: Table, found: Mapping[DataFileId, Mapping[ColumnId, ColumnStats]], files: set[DataFileId]
) -> Iterator[ColumnStats]:
    """What holds for files that lack a column with a default."""
    for column in table.columns:
        if column.initial_default is not None and any(column.id not in found.get(f, {}) for f in files):
            yield summary_of_default(column, 1)
