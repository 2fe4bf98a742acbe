"""How a catalog differs from what it was, or from another: schemas, tables, files, and which rows to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forklake.commit.draft import Draft
from forklake.data.parquet.positions import ascending, united
from forklake.display import Shown
from forklake.fork.catalog_state import Side
from forklake.fork.definition_changes import DefinitionChanges, LayoutChange, same
from forklake.fork.net_rows import RowChanges
from forklake.fork.touched_rows import no_positions
from forklake.model.entities import Column, Table
from forklake.model.ids import ColumnId, DataFileId, SnapshotId, TableId
from forklake.model.types.data_types import to_sql
from forklake.scan.change_plan import ChangePlan, Gone, place_of, plan_of
from forklake.scan.scan_plan import Positions, ScanFile, ScanRows, Source, plan_scan
from forklake.store.backend import Database
from forklake.store.file_states import FileState
from forklake.store.files import totals_of

HowChanged = Literal["created", "dropped", "altered", "changed"]


@dataclass(frozen=True, slots=True)
class ObjectDiff(Shown):
    """A schema, view or macro that was created, dropped or changed."""

    kind: Literal["schema", "view", "macro"]
    name: str
    change: HowChanged


@dataclass(frozen=True, slots=True)
class TableChanges:
    """A table that came, went or changed, as far as the metadata says."""

    name: str
    change: HowChanged
    """`created`, `dropped`, `altered` (its definition), or `changed` (only rows or tags)."""
    schema_changes: tuple[str, ...] = ()
    """One line per changed column, name, tag, index, partitioning or sort order."""
    files_added: tuple[str, ...] = ()
    files_retired: tuple[str, ...] = ()
    files_with_deletes: tuple[str, ...] = ()
    """Files with newly deleted rows."""
    rows_added: int = 0
    """An updated row counts here and in `rows_removed`."""
    rows_removed: int = 0
    inlined_added: int = 0
    """How many of the added rows are inlined."""
    inlined_removed: int = 0
    """How many of the removed rows were inlined."""


def object_diffs(net: DefinitionChanges, base: Side, ours: Side) -> Iterator[ObjectDiff]:
    """Schemas, views and macros."""
    for entry in net.objects:
        if entry.kind == "table":
            continue
        side, item = (ours, entry.ours) if entry.ours is not None else (base, entry.base)
        if item is not None:
            how = "created" if entry.base is None else "dropped" if entry.ours is None else "altered"
            yield ObjectDiff(entry.kind, side.name_of(item), how)


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared: a catalog as it is, as it was, and what it is compared with."""

    ours: Side
    base: Side
    """What ours is compared with: its own past, or another catalog as it is."""
    parted: Side
    """Ours as it was where the other one has seen it last."""

    def before(self, table: int) -> Table | None:
        """A table as it was before ours did something to it."""
        return self.parted.table(table) or self.base.table(table)


def table_changes(
    database: Database, net: DefinitionChanges, rows: Sequence[RowChanges], sides: Sides
) -> dict[TableId, TableChanges]:
    """Every table that is different, by id."""
    files = {entry.table: entry for entry in rows}
    numbers = [entry.ours or entry.base for entry in net.objects if entry.kind == "table"]
    defined = {table.id for table in numbers if isinstance(table, Table)}
    tables = defined | set(files)
    tables |= {layout.table for layout in net.layouts if list(_layout_changes(layout, sides))}
    tables |= {change.index.table_id for change in net.indexes}
    tables |= {tag.owner.id for tag in net.tags if isinstance(tag.owner, Table)}
    found: dict[TableId, TableChanges] = {}
    for number in sorted(tables):
        before, after, other = sides.before(number), sides.ours.table(number), sides.base.table(number)
        if after is not None:
            changes = tuple(_schema_changes(net, before, after, sides))
            is_altered = number in defined and not same(before, after)
            how: HowChanged = "created" if before is None else "altered" if is_altered else "changed"
            name = sides.ours.name_of(after)
            found[after.id] = _with_files(TableChanges(name, how, changes), files.get(after.id))
        elif other is not None:
            head = sides.base.head
            totals = totals_of(database, head.catalog_id, other.id, head.snapshot_id)
            name = sides.base.name_of(other)
            found[other.id] = TableChanges(name, "dropped", rows_removed=totals.record_count)
    return found


def _with_files(table: TableChanges, changes: RowChanges | None) -> TableChanges:
    if changes is None:
        return table
    inlined = _inlined(changes)
    return replace(
        table,
        files_added=_paths(added.state for added in changes.added),
        files_retired=_paths(changes.retired),
        files_with_deletes=_paths(state for state, _ in changes.deleted),
        rows_added=changes.rows_added,
        rows_removed=changes.rows_removed,
        inlined_added=inlined.rows_added,
        inlined_removed=inlined.rows_removed,
    )


def _paths(states: Iterable[FileState]) -> tuple[str, ...]:
    return tuple(state.file.path for state in states if not state.file.inlined)


def _inlined(changes: RowChanges) -> RowChanges:
    """The same, of rows that lie in the metadata."""
    return RowChanges(
        changes.table,
        tuple(added for added in changes.added if added.state.file.inlined),
        tuple(state for state in changes.retired if state.file.inlined),
        tuple((state, gone) for state, gone in changes.deleted if state.file.inlined),
    )


def _schema_changes(
    net: DefinitionChanges, before: Table | None, after: Table, sides: Sides
) -> Iterator[str]:
    """What ours changed and the other does not have: what only the other changed is no part of it."""
    ours, base, parted = sides.ours, sides.base, sides.parted
    other = base.table(after.id)
    if before is not None:
        old = (parted if parted.table(after.id) is not None else base).name_of(before)
        if ours.name_of(after) not in {old, *([] if other is None else [base.name_of(other)])}:
            yield f"renamed from {old}"
        differing = None if other is None else {number for number, _ in _column_changes(other, after)}
        for number, line in _column_changes(before, after):
            if differing is None or number in differing:
                yield line
    for layout in net.layouts:
        if layout.table == after.id:
            yield from _layout_changes(layout, sides)
    yield from _index_changes(net, after.id)
    for tag in net.tags:
        if tag.owner.id == after.id and isinstance(tag.owner, Table):
            yield f"{tag.key} {'removed' if tag.ours is None else 'set'}"


def _index_changes(net: DefinitionChanges, table: TableId) -> Iterator[str]:
    for change in net.indexes:
        if change.index.table_id == table:
            yield f'index "{change.index.name}" {"created" if change.is_new else "dropped"}'


def _layout_changes(layout: LayoutChange, sides: Sides) -> Iterator[str]:
    known = sides.parted.table(layout.table) is not None
    was = sides.parted.layout(layout.table) if known else layout.base
    for at, word in enumerate(("partitioned", "sorted")):
        if layout.ours[at] not in (layout.base[at], was[at]):
            yield f"{word} otherwise"


def _column_changes(before: Table, after: Table) -> Iterator[tuple[ColumnId, str]]:
    """Columns that are others, by id, with a line for people."""
    old, new = ({column.id: column for column in table.walk()} for table in (before, after))
    for number in sorted(old.keys() | new.keys()):
        was, now = old.get(number), new.get(number)
        if was is None and now is not None:
            yield number, f"added {_shown(now)}"
        elif was is not None and now is None:
            yield number, f"dropped {_shown(was)}"
        elif was is not None and now is not None and replace(was, children=()) != replace(now, children=()):
            yield number, f"{_shown(was)} is {_shown(now)}"


def _shown(column: Column) -> str:
    required = "" if column.nullable else " NOT NULL"
    default = f" DEFAULT {column.default.value}" if column.default is not None else ""
    return f'"{column.name}" {to_sql(column.data_type)}{required}{default}'


def row_plan(source: Source, base: Side, changes: RowChanges | None, at: SnapshotId) -> ChangePlan:
    """What an engine has to read to tell the rows apart; all of it counts as done at one snapshot."""
    if changes is None:
        return ChangePlan(plan_of(source, []), plan_of(source, []), (), frozenset({at}))
    there = [*changes.retired, *(state for state, _ in changes.deleted)]
    past = replace(source.reader, catalog=base.head.catalog_id)
    contents = {
        **past.contents([state.file for state in there if state.file.inlined]),
        **source.reader.contents([each.state.file for each in changes.added if each.state.file.inlined]),
    }
    return ChangePlan(
        plan_of(source, [_place(added.state, contents, at, added.dropped) for added in changes.added]),
        plan_of(source, [_place(state, contents, at) for state in changes.retired]),
        # All rows of the file, whatever was deleted: the lost ones are among them.
        tuple(
            Gone(place_of(replace(state.file, deletes=None), contents), gone, at)
            for state, gone in changes.deleted
        ),
        frozenset({at}),
    )


def dropped_plan(draft: Draft, table: Table, at: SnapshotId) -> ChangePlan:
    """All rows of a table that is gone."""
    source = draft.source(table)
    plan = plan_scan(source)
    places = [replace(place, file=replace(place.file, begin=at)) for place in (*plan.files, *plan.rows)]
    return ChangePlan(plan_of(source, []), plan_of(source, places), (), frozenset())


def _place(
    state: FileState, contents: Mapping[DataFileId, str], at: SnapshotId, more: Positions | None = None
) -> ScanFile | ScanRows:
    lost = united([ascending(state.positions), no_positions() if more is None else more])
    return replace(place_of(replace(state.file, begin=at), contents), deleted=lost if len(lost) else None)
