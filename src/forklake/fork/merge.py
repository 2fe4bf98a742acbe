"""Merging: what one catalog knows and another does not becomes one commit of the other.

The rules are those of any commit, and two more: what the target knows and the source does not must not
collide with what comes. Data files are taken over as they are; no row is read or written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forklake.commit.conflicts import MERGE_RULES, TAKEN, YIELDING, conflicts
from forklake.commit.draft import Draft
from forklake.commit.figures import KnownFigures
from forklake.commit.plan import Merged, Plan
from forklake.commit.publish import publish
from forklake.commit.settle import AdoptedFiles, TableWrites, ends_of, origin_of
from forklake.data.summary import summary_of_default
from forklake.errors import CommitConflict, InvalidArgument, MergeConflict, StoreBusy
from forklake.fork.knowledge import Events, Relation, Span, events, relation
from forklake.fork.net import Net, NetFiles, kind_of, net_changes, same
from forklake.fork.side import Kind, Object, Side
from forklake.model.changes import Change, Conflict, Verb
from forklake.model.entities import Origin, Table
from forklake.model.files import ColumnStats
from forklake.model.ids import ColumnId, DataFileId, DeleteFileId, SnapshotId, TableId
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Database
from forklake.store.cache import StateCache
from forklake.store.files import FileReader, totals_of
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
    """Up to which snapshot of the source the target knew all before."""
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
    theirs: Side
    relation: Relation
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
                return _result(self._database, source, into, found, None)
            try:
                published = publish(
                    self._database, found.plan, found.draft.head, author, figures=self._figures
                )
            except CommitConflict:
                # Somebody committed to the target meanwhile: what stands in the way shows the next time.
                continue
            return _result(self._database, source, into, found, published.head.snapshot_id)
        raise StoreBusy(f'"{into}" changed {ATTEMPTS} times while "{source}" was merged: try again')

    def prepare(self, source: str, into: str) -> _Prepared:
        """Work out what a merge would write, and what stands in its way."""
        _, _, ours_head = catalog_named(self._database, source)
        _, _, theirs_head = catalog_named(self._database, into)
        known = self.relation(source, ours_head, into, theirs_head)
        ours = Side(self._states.get(ours_head), ours_head)
        theirs = Side(self._states.get(theirs_head), theirs_head)
        done, met = (events(self._database, news) for news in (known.ours, known.theirs))
        net = net_changes(self._database, ours, theirs, done, known.since)
        builder = _Builder(self._database, known, done, met, ours, theirs, net)
        plan = builder.plan()
        found = [
            conflict
            for conflict in conflicts(met.changes, builder.compared(plan.changes), MERGE_RULES)
            if not (conflict.rule == TAKEN and builder.is_free(conflict.ours))
        ]
        told = {conflict.ours.object_id for conflict in found}
        for gone in builder.gone:
            if gone.object_id not in told:
                found += conflicts(met.changes, [gone]) or [
                    Conflict("it is gone", gone, gone, theirs_head.snapshot_id)
                ]
        return _Prepared(ours, theirs, known, net, builder.draft, plan, self._told(found, net, builder))

    def relation(self, source: str, ours: Head, into: str, theirs: Head) -> Relation:
        """What two catalogs know of each other."""
        found = relation(self._database, ours, theirs)
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

    def delete(self, held: FileState, now: FileState) -> None:
        """A file loses the rows that it has lost in the source."""
        self.touched.append(held.file.id)
        self.rows += now.deleted_count - held.deleted_count
        known = held.positions
        if now.file.deletes is not None and now.deletes[0] != held.deletes[0]:
            self.delete_files.append(now.file.deletes.id)
            known = frozenset[int]()
            if held.file.deletes is not None:
                self.ended[RowKey("delete_file", held.file.deletes.id)] = origin_of(held.file.deletes)
        self.positions += [(held.file.id, place) for place in sorted(now.positions - known)]

    def delete_more(self, held: FileState, positions: frozenset[int]) -> None:
        """A file loses other rows than the target has taken from it."""
        self.touched.append(held.file.id)
        self.rows += len(positions)
        self.positions += [(held.file.id, place) for place in sorted(positions)]

    def delete_from_new(self, state: FileState) -> None:
        """A file comes without rows that it has lost already."""
        self.delete_files += [] if state.file.deletes is None else [state.file.deletes.id]
        self.positions += [(state.file.id, place) for place in sorted(state.positions)]


class _Builder:
    """Puts the net changes of the source on top of the target."""

    def __init__(
        self,
        database: Database,
        known: Relation,
        done: Events,
        met: Events,
        ours: Side,
        theirs: Side,
        net: Net,
    ) -> None:
        self._database = database
        self._relation = known
        self._done = done
        self._met = met
        self._ours = ours
        self._theirs = theirs
        self._net = net
        self.draft = Draft(theirs.state, theirs.head)
        self.gone: list[Change] = []
        """What the source changed in objects that the target has dropped."""
        self._both = done.files & met.files
        """Files that both took rows from."""
        self._apart = self._positions_apart()
        """Those of them from which they took different rows, and which the source took."""

    def plan(self) -> Plan:
        """What the commit has to write."""
        undone = self._undone()
        for entry in self._net.objects:
            if (entry.kind, entry.ours and entry.ours.id) not in undone:
                self.draft.adopt(entry.base, entry.ours)
        self._adopt_tags()
        for layout in self._net.layouts:
            table = self._ours.table(layout.table)
            if table is not None and not self._is_gone("table", table):
                self.draft.adopt_layout(layout.table, *layout.ours)
        writes = tuple(found for files in self._net.files for found in self._writes(files))
        plan = self.draft.plan(writes)
        if not any(kind_of(change) for _, change in self._done.changes):
            return plan
        # Even if nothing is left of what was done: others have to hear of it by way of the target.
        reshaped = tuple(sorted(table for table in self._net.reshaped if self._ours.table(table) is not None))
        merged = Merged(self._ours.head.catalog_id, self._ours.head.snapshot_id, reshaped)
        return replace(plan, changes=(*plan.changes, *self._more_changes(plan, undone)), merged=merged)

    def compared(self, changes: Sequence[Change]) -> list[Change]:
        """The changes as they are compared with the target's: files that both took rows from are named apart.

        From some of these both can take rows; the others stand in the way, whatever is left to do there.
        """
        told = [replace(change, files=change.files - self._both) for change in changes]
        for table, files in self._named().items():
            known = self._ours.table(table)
            if known is not None and files & self._both - self._apart.keys():
                contested = frozenset(files & self._both - self._apart.keys())
                told.append(Change(Verb.DELETE, table, known.schema_id, name=known.name, files=contested))
        return told

    def _named(self) -> dict[int, set[int]]:
        """The files that rows were taken from in the source, by table."""
        found: dict[int, set[int]] = {}
        for _, change in self._done.changes:
            if change.files:
                found.setdefault(change.object_id, set()).update(change.files)
        return found

    def is_free(self, change: Change) -> bool:
        """Whether the target has no other object now with the name that a change claims."""
        holder = self._theirs.holder(change)
        return holder is None or holder == change.object_id

    def _undone(self) -> set[tuple[Kind, int | None]]:
        """Objects that are again as they were where the target last knew them."""
        if self._done.has_merges or not (self._net.objects or self._net.reshaped):
            return set()
        before = Side.at(self._database, self._ours.head, self._relation.since)
        touched: set[tuple[Kind, int]] = {("table", table) for table in self._net.reshaped}
        touched |= {(entry.kind, entry.ours.id) for entry in self._net.objects if entry.ours is not None}
        return {
            (kind, number)
            for kind, number in touched
            if (now := self._ours.find(kind, number)) is not None and same(now, before.find(kind, number))
        }

    def _more_changes(self, plan: Plan, undone: set[tuple[Kind, int | None]]) -> Iterator[Change]:
        """That it is a merge; and tables whose columns took numbers on the way, but look as before."""
        said = {change.object_id for change in plan.changes if change.verb in _DEFINES}
        for number in sorted(self._net.reshaped):
            table = self._ours.table(number)
            if table is not None and number not in said and ("table", number) in undone:
                yield Change(Verb.ALTER_TABLE, number, table.schema_id, name=table.name)
        yield Change(Verb.MERGE_CATALOG, self._ours.head.catalog_id)

    def _adopt_tags(self) -> None:
        for tag in self._net.tags:
            if self._is_gone(tag.kind, tag.owner):
                self.gone.append(Change(_TAGS[tag.kind], tag.owner.id, name=tag.owner.name))
            else:
                self.draft.set_tag(tag.owner, tag.column, tag.key, tag.ours)

    def _is_gone(self, kind: Kind, item: Object) -> bool:
        """Whether the target has dropped what both had."""
        return item.id not in self._net.created and self._theirs.find(kind, item.id) is None

    def _writes(self, net: NetFiles) -> Iterator[TableWrites]:
        table = self._ours.table(net.table)
        if table is None:
            return
        if self._is_gone("table", table):
            self.gone.append(Change(Verb.INSERT, table.id, table.schema_id, name=table.name))
            return
        taken = self._taken(net)
        for state in net.added:
            taken.delete_from_new(state)
        if not (net.added or taken.touched):
            return
        inherited = not table.path.startswith(self.draft.head.data_path)
        yield TableWrites(
            net.table,
            ended=taken.ended,
            touched=frozenset(taken.touched),
            removed=taken.rows,
            removed_bytes=taken.file_size_bytes,
            is_inherited=inherited and not self.draft.has_figures(table),
            adopted=self._adopted(table, net.added, taken),
            looked=net.looked,
            imported=net.imported,
        )

    def _taken(self, net: NetFiles) -> _Taken:
        """Rows that the target loses."""
        taken = _Taken()
        for held in net.retired:
            if held.file.id not in self._both:
                taken.retire(held)
        for held, now in net.holed:
            if held.file.id in self._apart:
                taken.delete_more(held, self._apart[held.file.id])
            elif held.file.id not in self._both:
                taken.delete(held, now)
        return taken

    def _positions_apart(self) -> dict[DataFileId, frozenset[int]]:
        """Files that both took rows from inline, and not the same rows; with those that the source took."""
        pairs = {held.file.id: (held, now) for net in self._net.files for held, now in net.holed}
        files = [file for file, states in pairs.items() if file in self._both and _alike(*states)]
        if not files:
            return {}
        ours, theirs = (
            self._deleted(news.spans, done, files)
            for news, done in ((self._relation.ours, self._done), (self._relation.theirs, self._met))
        )
        return {
            file: frozenset(ours[file])
            for file in files
            if file in ours and file in theirs and not ours[file] & theirs[file]
        }

    def _deleted(self, spans: Sequence[Span], done: Events, files: Sequence[int]) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for file, position, begin in self._database.rows(
            "positions_in_spans", spans=json.dumps(spans), files=json.dumps(sorted(files))
        ):
            # Other merges have their positions from where they were deleted first.
            if begin in (done.commits or ()):
                found.setdefault(file, set()).add(position)
        return found

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

    def paths(self, files: frozenset[int]) -> list[str]:
        """The names of data files."""
        if not files:
            return []
        head = self._theirs.head
        found = file_states(self._database, head.catalog_id, head.snapshot_id, files)
        return [state.file.path or f"inlined rows {state.file.id}" for state in found.values()]


_TAGS = {
    "schema": Verb.TAG_SCHEMA,
    "table": Verb.TAG_TABLE,
    "view": Verb.TAG_VIEW,
    "macro": Verb.TAG_MACRO,
}
_DEFINES = (Verb.CREATE_TABLE, Verb.ALTER_TABLE)


def _alike(held: FileState, now: FileState) -> bool:
    """Whether two states of a file differ in nothing but what was deleted inline."""
    return held.is_live and now.is_live and held.deletes[0] == now.deletes[0]


def _defaults(
    table: Table, found: Mapping[DataFileId, Mapping[ColumnId, ColumnStats]], files: set[DataFileId]
) -> Iterator[ColumnStats]:
    """What holds for files that lack a column with a default."""
    for column in table.columns:
        if column.initial_default is not None and any(column.id not in found.get(f, {}) for f in files):
            yield summary_of_default(column, 1)


def _result(
    database: Database, source: str, into: str, found: _Prepared, snapshot: SnapshotId | None
) -> MergeResult:
    # What a table amounted to, it does no longer when it was dropped.
    tables = list(_tables(database, found))
    return MergeResult(
        source,
        into,
        found.ours.head.snapshot_id,
        found.relation.since,
        snapshot,
        found.plan.changes,
        tuple(tables),
        tuple(found.conflicts),
    )


def _tables(database: Database, found: _Prepared) -> Iterator[MergedTable]:
    written = {writes.table_id: writes for writes in found.plan.rows}
    for files in found.net.files:
        writes = written.get(TableId(files.table))
        table = found.ours.table(files.table)
        if writes is not None and table is not None:
            retired = sum(key.entity == "data_file" for key in writes.ended)
            yield MergedTable(
                found.ours.name_of(table),
                len(writes.adopted.files),
                retired,
                writes.adopted.rows,
                writes.removed,
            )
    head = found.theirs.head
    for number in found.plan.dropped_tables:
        table = found.theirs.table(number)
        if table is not None:
            totals = totals_of(database, head.catalog_id, table.id, head.snapshot_id)
            yield MergedTable(found.theirs.name_of(table), 0, totals.files, 0, totals.record_count)


def _refusal(source: str, into: str, found: _Prepared) -> MergeConflict:
    said = list(dict.fromkeys(str(conflict) for conflict in found.conflicts))
    more = f" and {len(said) - 3} more" if len(said) > 3 else ""
    if all(conflict.rule in YIELDING for conflict in found.conflicts):
        advice = f'Merge "{into}" into "{source}" first, then this can be merged'
    else:
        advice = f'Make the change anew in a fork of "{into}" as it is now, or undo it on one side'
    return MergeConflict(
        f'"{source}" cannot be merged into "{into}": there, {"; ".join(said[:3])}{more}. {advice}',
        found.conflicts,
    )
