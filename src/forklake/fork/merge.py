"""Merging: what one catalog did since it was last like another becomes one commit of the other.

The base is what both know, and the rules are those of any commit: what the target did meanwhile must not
collide with what the source did. Data files are taken over as they are; no row is read or written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from forklake.commit.conflicts import conflicts
from forklake.commit.draft import Draft
from forklake.commit.figures import KnownFigures
from forklake.commit.plan import Merged, Plan
from forklake.commit.publish import publish
from forklake.commit.settle import AdoptedFiles, TableWrites, ends_of, origin_of
from forklake.data.summary import summary_of_default
from forklake.errors import CommitConflict, InvalidArgument, MergeConflict, StoreBusy
from forklake.fork.base import MergeBase, ancestries, merge_base
from forklake.fork.net import Net, NetFiles, commits, net_changes, same
from forklake.fork.side import Kind, Object, Side
from forklake.model.changes import Change, Conflict, Verb
from forklake.model.entities import Origin, Table
from forklake.model.files import ColumnStats, DataFile
from forklake.model.ids import ColumnId, DataFileId, DeleteFileId, SnapshotId
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Database
from forklake.store.cache import StateCache
from forklake.store.files import FileReader
from forklake.store.read import catalog_named
from forklake.store.rows import RowKey
from forklake.store.states import FileState, file_states

ATTEMPTS = 1000


@dataclass(frozen=True, slots=True)
class MergedTable:
    """What a merge does to one table."""

    name: str
    files_added: int
    files_retired: int
    rows_added: int
    """In files that come; rows of updates are among them."""
    rows_removed: int


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did, or with `dry_run` would do."""

    source: str
    into: str
    source_snapshot: SnapshotId
    """Up to which the source was merged."""
    base_snapshot: SnapshotId
    """The last state that both had in common."""
    snapshot: SnapshotId | None
    """The commit of the target; None if there was nothing to merge, or nothing was to be written."""
    changes: tuple[Change, ...] = ()
    tables: tuple[MergedTable, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    """What stands in the way; only a dry run returns any."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A merge that was worked out."""

    ours: Side
    base: MergeBase
    net: Net
    draft: Draft
    plan: Plan
    conflicts: list[Conflict]


class Merging:
    """Merges one catalog into another, with what a lake has at hand for that."""

    def __init__(self, database: Database, states: StateCache, figures: KnownFigures) -> None:
        """Do nothing yet."""
        self._database = database
        self._states = states
        self._figures = figures

    def merge(self, source: str, into: str, author: Author, *, dry_run: bool) -> MergeResult:
        """Merge, or say what would happen; raise `MergeConflict` if it cannot be done."""
        if source == into:
            raise InvalidArgument(f'"{source}" cannot be merged into itself')
        for _ in range(ATTEMPTS):
            found = self.prepare(source, into)
            if found.conflicts and not dry_run:
                raise _refusal(source, into, found)
            if dry_run or not found.plan.changes:
                return _result(source, into, found, None)
            try:
                published = publish(
                    self._database, found.plan, found.draft.head, author, figures=self._figures
                )
            except CommitConflict:
                # Somebody committed to the target meanwhile: what stands in the way shows the next time.
                continue
            return _result(source, into, found, published.head.snapshot_id)
        raise StoreBusy(f'"{into}" changed {ATTEMPTS} times while "{source}" was merged: try again')

    def prepare(self, source: str, into: str) -> _Prepared:
        """Work out what a merge would write, and what stands in its way."""
        _, _, ours_head = catalog_named(self._database, source)
        _, _, theirs_head = catalog_named(self._database, into)
        base = self.base(source, ours_head, into, theirs_head)
        ours = Side(self._states.get(ours_head), ours_head)
        theirs = Side(self._states.get(theirs_head), theirs_head)
        seen_by = ours_head if base.seen_by == "source" else theirs_head
        known = Side.at(self._database, seen_by, base.snapshot)
        net = net_changes(self._database, ours, known, base.since)
        builder = _Builder(self._database, ours, known, theirs, net)
        plan = builder.plan(base)
        met = [
            (snapshot, change)
            for snapshot, change in commits(self._database, theirs, base.known, theirs_head.snapshot_id)
            if snapshot not in base.known_merges
        ]
        found = conflicts(met, plan.changes)
        told = {conflict.ours.object_id for conflict in found}
        for diverging in builder.diverging:
            if diverging.ours.object_id not in told:
                # Their own commits tell best what stands in the way, where they tell it.
                found += conflicts(met, [diverging.ours]) or [diverging]
        return _Prepared(ours, base, net, builder.draft, plan, self._told(found, net, builder))

    def base(self, source: str, ours: Head, into: str, theirs: Head) -> MergeBase:
        """What two catalogs have in common."""
        found = merge_base(*ancestries(self._database, ours.catalog_id, theirs.catalog_id))
        if found is None:
            raise InvalidArgument(
                f'"{source}" and "{into}" have no ancestor in common: only forks and their parents are merged'
            )
        return found

    def _told(self, found: Sequence[Conflict], net: Net, builder: _Builder) -> list[Conflict]:
        """Conflicts with the names of files, and the commits of both sides."""
        return [
            replace(
                conflict,
                ours_snapshot=net.last.get(conflict.ours.object_id),
                files=tuple(builder.paths(conflict.ours.files & conflict.theirs.files)),
            )
            for conflict in dict.fromkeys(found)
        ]


@dataclass(slots=True)
class _Taken:
    """Rows of one table that the target loses."""

    ended: dict[RowKey, Origin] = field(default_factory=dict[RowKey, Origin])
    touched: list[DataFileId] = field(default_factory=list[DataFileId])
    delete_files: list[DeleteFileId] = field(default_factory=list[DeleteFileId])
    positions: list[tuple[DataFileId, int]] = field(default_factory=list[tuple[DataFileId, int]])
    rows: int = 0
    file_size_bytes: int = 0

    def retire(self, held: FileState) -> None:
        """A whole file goes."""
        self.ended |= ends_of(held.file)
        self.touched.append(held.file.id)
        self.rows += held.live_rows
        self.file_size_bytes += held.file.file_size_bytes

    def delete(self, held: FileState, before: FileState, now: FileState) -> None:
        """A file loses the rows that the source has taken from it since."""
        self.touched.append(held.file.id)
        self.rows += now.deleted_count - before.deleted_count
        known = before.positions
        if now.file.deletes is not None and now.deletes[0] != before.deletes[0]:
            self.delete_files.append(now.file.deletes.id)
            known = frozenset[int]()
            if held.file.deletes is not None:
                self.ended[RowKey("delete_file", held.file.deletes.id)] = origin_of(held.file.deletes)
        self.positions += [(held.file.id, place) for place in sorted(now.positions - known)]

    def delete_from_new(self, state: FileState) -> None:
        """A file comes without rows that it has lost already."""
        self.delete_files += [] if state.file.deletes is None else [state.file.deletes.id]
        self.positions += [(state.file.id, place) for place in sorted(state.positions)]


class _Builder:
    """Puts the net changes of the source on top of the target."""

    def __init__(self, database: Database, ours: Side, base: Side, theirs: Side, net: Net) -> None:
        self._database = database
        self._ours = ours
        self._base = base
        self._theirs = theirs
        self._net = net
        self.draft = Draft(theirs.state, theirs.head)
        self.diverging: list[Conflict] = []
        numbers = [
            state.file.id
            for files in net.files
            for state in (*files.added, *files.retired, *(now for _, now in files.holed))
        ]
        numbers += net.gone
        self._held = file_states(database, theirs.head.catalog_id, theirs.head.snapshot_id, numbers)

    def plan(self, base: MergeBase) -> Plan:
        """What the commit has to write."""
        self._adopt_objects()
        self._adopt_tags()
        for layout in self._net.layouts:
            table = self._ours.table(layout.table)
            if table is None or self._is_gone("table", table):
                continue
            theirs = self._theirs.layout(layout.table) if self._theirs.table(layout.table) else (None, None)
            if theirs != layout.ours:
                if theirs != layout.base:
                    self._diverge(Change(Verb.ALTER_TABLE, layout.table))
                self.draft.adopt_layout(layout.table, *layout.ours)
        writes = tuple(found for files in self._files() for found in self._writes(files))
        plan = self.draft.plan(writes)
        ended = self._passed_on()
        if not (plan.changes or ended):
            return plan
        merged = Merged(
            self._ours.head.catalog_id,
            self._ours.head.snapshot_id,
            base.since,
            tuple(sorted(table for table in self._net.reshaped if self._ours.table(table) is not None)),
        )
        more = self._more_changes(plan, merged, ended)
        return replace(plan, changes=(*plan.changes, *more), merged=merged)

    def _more_changes(self, plan: Plan, merged: Merged, ended: frozenset[DataFileId]) -> Iterator[Change]:
        """That it is a merge, and what ended on the way; and tables whose columns took numbers there."""
        said = {change.object_id for change in plan.changes if change.verb in _DEFINES}
        for number in merged.reshaped:
            table = self._ours.table(number)
            if number not in said and table is not None and not same(table, self._base.table(number)):
                # The target has the same definition already.
                continue
            if number not in said and table is not None:
                yield Change(Verb.ALTER_TABLE, number, table.schema_id, name=table.name)
        yield Change(Verb.MERGE_CATALOG, merged.source, files=ended)

    def _adopt_objects(self) -> None:
        for entry in self._net.objects:
            number = (entry.ours or entry.base).id  # pyright: ignore[reportOptionalMemberAccess]
            theirs = self._theirs.find(entry.kind, number)
            if same(theirs, entry.ours):
                continue
            if not same(theirs, entry.base):
                known = theirs or entry.ours or entry.base
                self._diverge(Change(_ALTERS[entry.kind], number, name=known.name if known else None))
            self.draft.adopt(theirs, entry.ours)

    def _adopt_tags(self) -> None:
        for tag in self._net.tags:
            there = self._theirs.find(tag.kind, tag.owner.id) is not None
            if self._is_gone(tag.kind, tag.owner):
                self._diverge(Change(_TAGS[tag.kind], tag.owner.id, name=tag.owner.name))
                continue
            theirs = self._theirs.tags(tag.kind, tag.owner.id) if there else {}
            value = theirs.get((tag.column, tag.key))
            if value == tag.ours:
                continue
            if value != tag.base:
                column = "" if tag.column is None else tag.column
                detail = f"{column}:{tag.key}"
                self._diverge(Change(_TAGS[tag.kind], tag.owner.id, name=tag.owner.name, detail=detail))
            self.draft.set_tag(tag.owner, tag.column, tag.key, tag.ours)

    def _is_gone(self, kind: Kind, item: Object) -> bool:
        """Whether the target has dropped what both had."""
        there = self._theirs.find(kind, item.id) is not None
        return not there and self._base.find(kind, item.id) is not None

    def _writes(self, net: NetFiles) -> Iterator[TableWrites]:
        table = self._ours.table(net.table)
        if table is None:
            return
        if self._is_gone("table", table):
            self._diverge(Change(Verb.INSERT, table.id, table.schema_id, name=table.name))
            return
        taken = self._taken(net, table)
        added = [state for state in net.added if self._is_new(state, table)]
        for state in added:
            taken.delete_from_new(state)
        if not (added or taken.touched):
            return
        inherited = not table.path.startswith(self.draft.head.data_path)
        yield TableWrites(
            net.table,
            ended=taken.ended,
            touched=frozenset(taken.touched),
            removed=taken.rows,
            removed_bytes=taken.file_size_bytes,
            is_inherited=inherited and not self.draft.has_figures(table),
            adopted=self._adopted(table, added, taken),
        )

    def _files(self) -> list[NetFiles]:
        """What changed in each table; the target may hold files of others that are gone."""
        known = {files.table for files in self._net.files}
        held = {self._held[number].table for number in self._net.gone if number in self._held}
        return [*self._net.files, *(NetFiles(table) for table in sorted(held - known))]

    def _passed_on(self) -> frozenset[DataFileId]:
        """Files that the target never had, and that it has to tell the end of to those who hold them."""
        unknown = self._net.gone - self._held.keys()
        passes = bool(unknown) and (self._net.has_merged or self._is_known_elsewhere)
        return frozenset(unknown) if passes else frozenset()

    @cached_property
    def _is_known_elsewhere(self) -> bool:
        catalogs = {"catalog": self._ours.head.catalog_id, "target": self._theirs.head.catalog_id}
        return bool(self._database.rows("is_known_elsewhere", **catalogs))

    def _taken(self, net: NetFiles, table: Table) -> _Taken:
        taken = _Taken()
        for state in net.retired:
            held = self._untouched(state, table)
            if held is not None:
                taken.retire(held)
            else:
                taken.touched.append(state.file.id)
        for number in sorted(self._net.gone):
            held = self._held.get(number)
            if held is not None and held.is_live and held.table == net.table:
                # Both have it from a third catalog, and the source has rows of it elsewhere, or nowhere.
                if held.deleted_count:
                    self._diverge_on(held.file, table)
                taken.retire(held)
        for before, now in net.holed:
            held = self._untouched(before, table)
            if held is not None:
                taken.delete(held, before, now)
            else:
                taken.touched.append(before.file.id)
        return taken

    def _untouched(self, before: FileState, table: Table) -> FileState | None:
        """A file of both as the target has it, if it is as it was; None if both took rows from it.

        Even if they took the same rows: these may live on in other files, with two values.
        """
        held = self._held.get(before.file.id)
        if held is None or not held.is_live or held.deletes != before.deletes:
            self._diverge_on(before.file, table)
            return None
        return held

    def _is_new(self, state: FileState, table: Table) -> bool:
        """Whether the target never had a file. Both may have it from a third catalog, and differ in it."""
        held = self._held.get(state.file.id)
        if held is None:
            return True
        differs = held.deletes != state.deletes if held.is_live else state.deleted_count > 0
        if differs and state.file.id in self._net.touched:
            self._diverge_on(state.file, table)
        return False

    def _adopted(self, table: Table, added: Sequence[FileState], taken: _Taken) -> AdoptedFiles:
        reader = FileReader(self._database, self._ours.head.catalog_id, table.id, self._ours.head.snapshot_id)
        wanted = [column.id for column in table.walk()]
        found = reader.stats([state.file for state in added], wanted) if added else {}
        files = {state.file.id for state in added}
        stats = tuple(entry for file in files for entry in found.get(file, {}).values())
        mappings = {state.file.mapping_id for state in added if state.file.mapping_id is not None}
        if mappings:
            known = FileReader(
                self._database, self._theirs.head.catalog_id, table.id, self._theirs.head.snapshot_id
            )
            mappings -= known.mappings().keys()
        return AdoptedFiles(
            tuple(state.file.id for state in added),
            tuple(taken.delete_files),
            tuple(taken.positions),
            tuple(sorted(mappings)),
            sum(state.live_rows for state in added),
            sum(state.file.file_size_bytes for state in added),
            stats,
            tuple(_defaults(self.draft.table(table.id), found, files)),
        )

    def _diverge_on(self, file: DataFile, table: Table) -> None:
        self._diverge(
            Change(Verb.DELETE, table.id, table.schema_id, name=table.name, files=frozenset({file.id}))
        )

    def _diverge(self, change: Change) -> None:
        """Both sides changed it, on ways that their commits do not tell."""
        reason = "both changed it since they were last alike"
        self.diverging.append(Conflict(reason, change, change, self._theirs.head.snapshot_id))

    def paths(self, files: frozenset[int]) -> list[str]:
        """The names of data files."""
        if not files:
            return []
        head = self._theirs.head
        found = file_states(self._database, head.catalog_id, head.snapshot_id, files)
        return [state.file.path or f"inlined rows {state.file.id}" for state in found.values()]


_ALTERS = {
    "schema": Verb.RENAME_SCHEMA,
    "table": Verb.ALTER_TABLE,
    "view": Verb.ALTER_VIEW,
    "macro": Verb.RENAME_MACRO,
}
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


def _result(source: str, into: str, found: _Prepared, snapshot: SnapshotId | None) -> MergeResult:
    return MergeResult(
        source,
        into,
        found.ours.head.snapshot_id,
        found.base.snapshot,
        snapshot,
        found.plan.changes,
        tuple(_tables(found)),
        tuple(found.conflicts),
    )


def _tables(found: _Prepared) -> Iterator[MergedTable]:
    written = {writes.table_id: writes for writes in found.plan.rows}
    for number, writes in written.items():
        table = found.ours.table(number)
        if table is not None:
            retired = sum(key.entity == "data_file" for key in writes.ended)
            yield MergedTable(
                found.ours.name_of(table),
                len(writes.adopted.files),
                retired,
                writes.adopted.rows,
                writes.removed,
            )


def _refusal(source: str, into: str, found: _Prepared) -> MergeConflict:
    shown = "; ".join(str(conflict) for conflict in found.conflicts[:3])
    more = f" and {len(found.conflicts) - 3} more" if len(found.conflicts) > 3 else ""
    return MergeConflict(
        f'"{source}" cannot be merged into "{into}": there, {shown}{more}. '
        f'Merge "{into}" into "{source}" first, or undo one of the two',
        found.conflicts,
    )
