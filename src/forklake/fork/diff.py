"""How a catalog differs from what it was, or from another: schemas, tables, files, and which rows to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from forklake.commit.draft import Draft
from forklake.data.deletes import positions_of
from forklake.data.storage import Storage
from forklake.fork.net import Net, NetFiles, same
from forklake.fork.side import Side
from forklake.model.entities import Column, Table
from forklake.model.ids import DataFileId, SnapshotId, TableId
from forklake.model.types import to_sql
from forklake.scan.changes import ChangePlan, Gone, place_of, plan_of
from forklake.scan.plan import Positions, ScanFile, ScanRows, Source, plan_scan
from forklake.store.backend import Database
from forklake.store.files import totals_of
from forklake.store.states import FileState

HowChanged = Literal["created", "dropped", "altered", "changed"]


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    """A schema, view or macro that came, went or changed."""

    kind: Literal["schema", "view", "macro"]
    name: str
    change: HowChanged


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table that came, went or changed, as far as the metadata says."""

    name: str
    change: HowChanged
    """`altered` if its definition is another, `changed` if only its rows or tags are."""
    schema_changes: tuple[str, ...] = ()
    """One line for each column, name, tag or layout that is another."""
    files_added: tuple[str, ...] = ()
    files_retired: tuple[str, ...] = ()
    files_with_deletes: tuple[str, ...] = ()
    """Files that are still there and have lost rows."""
    rows_added: int = 0
    """A row that was updated counts here and among those removed."""
    rows_removed: int = 0
    inlined_added: int = 0
    """So many of the rows that were added lie in the metadata, in no file."""
    inlined_removed: int = 0
    """So many of the rows that were removed lay in the metadata."""


def object_diffs(net: Net, base: Side, ours: Side) -> Iterator[ObjectDiff]:
    """Schemas, views and macros."""
    for entry in net.objects:
        if entry.kind == "table":
            continue
        side, item = (ours, entry.ours) if entry.ours is not None else (base, entry.base)
        if item is not None:
            how = "created" if entry.base is None else "dropped" if entry.ours is None else "altered"
            yield ObjectDiff(entry.kind, side.name_of(item), how)


def table_facts(database: Database, net: Net, base: Side, ours: Side) -> dict[TableId, TableFacts]:
    """Every table that is different, by id."""
    files = {entry.table: entry for entry in net.files}
    numbers = [entry.ours or entry.base for entry in net.objects if entry.kind == "table"]
    tables = {table.id for table in numbers if isinstance(table, Table)} | set(files)
    tables |= {layout.table for layout in net.layouts}
    tables |= {tag.owner.id for tag in net.tags if isinstance(tag.owner, Table)}
    found: dict[TableId, TableFacts] = {}
    for number in sorted(tables):
        before, after = base.table(number), ours.table(number)
        if after is not None:
            changes = tuple(_schema_changes(net, before, after, base, ours))
            how: HowChanged = "created" if before is None else "changed" if same(before, after) else "altered"
            found[after.id] = _with_files(TableFacts(ours.name_of(after), how, changes), files.get(after.id))
        elif before is not None:
            totals = totals_of(database, base.head.catalog_id, before.id, base.head.snapshot_id)
            found[before.id] = TableFacts(base.name_of(before), "dropped", rows_removed=totals.record_count)
    return found


def _with_files(facts: TableFacts, files: NetFiles | None) -> TableFacts:
    if files is None:
        return facts
    inlined = _inlined(files)
    return replace(
        facts,
        files_added=_paths(files.added),
        files_retired=_paths(files.retired),
        files_with_deletes=_paths(now for _, now in files.holed),
        rows_added=files.rows_added,
        rows_removed=files.rows_removed,
        inlined_added=inlined.rows_added,
        inlined_removed=inlined.rows_removed,
    )


def _paths(states: Iterable[FileState]) -> tuple[str, ...]:
    return tuple(state.file.path for state in states if not state.file.inlined)


def _inlined(files: NetFiles) -> NetFiles:
    """The same, of rows that lie in the metadata."""
    return NetFiles(
        files.table,
        tuple(state for state in files.added if state.file.inlined),
        tuple(state for state in files.retired if state.file.inlined),
        tuple((before, now) for before, now in files.holed if now.file.inlined),
    )


def _schema_changes(net: Net, before: Table | None, after: Table, base: Side, ours: Side) -> Iterator[str]:
    if before is not None:
        if base.name_of(before) != ours.name_of(after):
            yield f"renamed from {base.name_of(before)}"
        yield from _column_changes(before, after)
    for layout in net.layouts:
        if layout.table == after.id:
            if layout.base[0] != layout.ours[0]:
                yield "partitioned otherwise"
            if layout.base[1] != layout.ours[1]:
                yield "sorted otherwise"
    for tag in net.tags:
        if tag.owner.id == after.id and isinstance(tag.owner, Table):
            yield f"{tag.key} {'removed' if tag.ours is None else 'set'}"


def _column_changes(before: Table, after: Table) -> Iterator[str]:
    old, new = ({column.id: column for column in table.walk()} for table in (before, after))
    for number in sorted(old.keys() | new.keys()):
        was, now = old.get(number), new.get(number)
        if was is None and now is not None:
            yield f"added {_shown(now)}"
        elif was is not None and now is None:
            yield f"dropped {_shown(was)}"
        elif was is not None and now is not None and replace(was, children=()) != replace(now, children=()):
            yield f"{_shown(was)} is {_shown(now)}"


def _shown(column: Column) -> str:
    required = "" if column.nullable else " NOT NULL"
    default = f" DEFAULT {column.default.value}" if column.default is not None else ""
    return f'"{column.name}" {to_sql(column.data_type)}{required}{default}'


def row_plan(storage: Storage, source: Source, files: NetFiles | None, at: SnapshotId) -> ChangePlan:
    """What an engine has to read to tell the rows apart; all of it counts as done at one snapshot."""
    if files is None:
        return ChangePlan(plan_of(source, []), plan_of(source, []), (), frozenset({at}))
    states = [*files.added, *files.retired, *(now for _, now in files.holed)]
    contents = source.reader.contents([state.file for state in states if state.file.inlined])
    return ChangePlan(
        plan_of(source, [_place(state, contents, at) for state in files.added]),
        plan_of(source, [_place(state, contents, at) for state in files.retired]),
        tuple(_gone(storage, before, now, contents, at) for before, now in files.holed),
        frozenset({at}),
    )


def dropped_plan(draft: Draft, table: Table, at: SnapshotId) -> ChangePlan:
    """All rows of a table that is gone."""
    source = draft.source(table)
    plan = plan_scan(source)
    places = [replace(place, file=replace(place.file, begin=at)) for place in (*plan.files, *plan.rows)]
    return ChangePlan(plan_of(source, []), plan_of(source, places), (), frozenset())


def _place(state: FileState, contents: Mapping[DataFileId, str], at: SnapshotId) -> ScanFile | ScanRows:
    deleted = pa.array(sorted(state.positions), pa.int64()) if state.positions else None
    return replace(place_of(replace(state.file, begin=at), contents), deleted=deleted)


def _gone(
    storage: Storage, before: FileState, now: FileState, contents: Mapping[DataFileId, str], at: SnapshotId
) -> Gone:
    lost = _positions(storage, now) - _positions(storage, before)
    # All rows of the file, whatever was deleted: the lost ones are among them.
    whole = place_of(replace(now.file, deletes=None), contents)
    return Gone(whole, pa.array(sorted(lost), pa.int64()), at)


def _positions(storage: Storage, state: FileState) -> set[int]:
    named: Positions | None = (
        None if state.file.deletes is None else positions_of(storage, state.file.deletes)
    )
    return {*state.positions, *([] if named is None else named.to_pylist())}
