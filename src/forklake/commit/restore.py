"""Going back: tables, or a whole catalog, as they were at an earlier snapshot, as one more change.

History stays. Files that have not changed since stay as they are; those that went or lost rows come back as
they were, under other ids and with the same paths, and those that came are retired. No file is read or
written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from forklake.commit.draft import Draft, Tagged
from forklake.data.parquet.positions import ascending
from forklake.errors import SchemaNotFound, TableExists, TableNotFound
from forklake.model.entities import Table
from forklake.model.ids import DataFileId, SnapshotId, TableId
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps
from forklake.scan.scan_plan import Positions, ScanFile
from forklake.store import changed_objects
from forklake.store.file_states import FileState, file_states
from forklake.store.files import FileReader, inlined_contents
from forklake.store.lineages import reads_ancestors


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A data file that is not what it was: then, and now."""

    then: FileState | None
    """None if it was not there."""
    now: FileState | None


ChangedFiles = Mapping[TableId, list[ChangedFile]]


def restore_table(draft: Draft, then: Draft, table: TableId, as_name: QualifiedName | None = None) -> None:
    """Make a table what it was, with its rows, or bring one back that was dropped since."""
    for side in (draft, then):
        side.state.prepare([table])
    past = then.state.table(table)
    if past is None:
        raise TableNotFound(
            f"table {table} was not there at snapshot {then.head.snapshot_id}, so it cannot be restored"
        )
    draft.past.add(then.head.snapshot_id)
    wanted = _placed(draft, then, past, as_name)
    changed = changed_files(draft, then.head.snapshot_id, draft.head.snapshot_id, [table])
    restore_as(draft, then, wanted, changed.get(table, ()), contents_of(draft, changed))


def restore_all(draft: Draft, then: Draft, progress: OnProgress | None = None) -> None:
    """Make everything what it was: what was dropped since is back, and what was created since is gone."""
    draft.past.add(then.head.snapshot_id)
    catalog, start, end = draft.head.catalog_id, then.head.snapshot_id, draft.head.snapshot_id
    touched = changed_objects.changed_objects(draft.state.database, catalog, start, end)
    touched |= draft.staged_objects()
    touched |= {table.id for table, _ in draft.staged_rows()}
    changed = changed_files(draft, start, end, [table.id for table in then.tables()])
    _restore(draft, then, touched | changed.keys(), changed, progress)
    draft.is_restored = True


def restore_objects(draft: Draft, then: Draft, objects: Iterable[int]) -> None:
    """Make some schemas, tables, views and macros what they were, or drop those that were not there."""
    draft.past.add(then.head.snapshot_id)
    wanted = set(objects)
    there = [table.id for table in then.tables() if table.id in wanted]
    changed = changed_files(draft, then.head.snapshot_id, draft.head.snapshot_id, there)
    _restore(draft, then, wanted, changed)


def _restore(
    draft: Draft,
    then: Draft,
    numbers: set[int],
    changed: ChangedFiles,
    progress: OnProgress | None = None,
) -> None:
    for side in (draft, then):
        side.state.prepare(sorted(number for number in numbers if number >= 0))
    now_there, then_there = others_of(draft), others_of(then)
    stored = others_of(Draft(draft.state, draft.head))
    present = {table.id for table in draft.tables()}
    for number in sorted(numbers & (now_there.keys() | then_there.keys())):
        past = then_there.get(number)
        if past is not None:
            draft.bring_back(stored.get(number), past)
            _restore_tags(draft, then, past)
        else:
            draft.adopt(now_there[number], None)
    contents = contents_of(draft, changed)
    for number in Steps(progress, "restore", "objects", len(numbers)).over(sorted(numbers)):
        table = then.state.table(TableId(number)) if number >= 0 else None
        if table is not None:
            restore_as(draft, then, table, changed.get(table.id, ()), contents)
        elif number in present:
            draft.adopt(draft.table(TableId(number)), None)


def changed_files(
    draft: Draft, start: SnapshotId, end: SnapshotId, tables: Collection[int]
) -> dict[TableId, list[ChangedFile]]:
    """The files of tables that differ between two snapshots, in a fixed number of queries."""
    if not tables:
        return {}
    database, catalog = draft.state.database, draft.head.catalog_id
    left = _left_behind(draft, tables, start)
    numbers = {*changed_objects.changed_files(database, catalog, tables, start, end), *left}
    then, now = (file_states(database, catalog, at, numbers) for at in (start, end))
    found: dict[TableId, list[ChangedFile]] = {}
    for number in sorted(numbers):
        entry = ChangedFile(live(then.get(number)), live(now.get(number)))
        if number in left or not is_same(entry.then, entry.now):
            state = entry.then or entry.now
            found.setdefault(state.table, []).append(entry) if state is not None else None
    return found


def _left_behind(draft: Draft, tables: Collection[int], then: SnapshotId) -> set[DataFileId]:
    """Inherited files of tables that were dropped: they did not end, for nobody looks for them any more.

    With its table each comes back under another id, as those do that ended. A merge of the drop ended them
    where they were made.
    """
    database, catalog = draft.state.database, draft.head.catalog_id
    draft.state.prepare(sorted(tables))
    gone = [TableId(table) for table in tables if draft.state.table(TableId(table)) is None]
    found: set[DataFileId] = set()
    if gone and reads_ancestors(database, catalog):
        for table in gone:
            reader = FileReader(database, catalog, table, then)
            found.update(file.id for file in (*reader.files(), *(file for file, _ in reader.inlined_files())))
    return found


def live(state: FileState | None) -> FileState | None:
    """A file, if it was there."""
    return state if state is not None and state.is_live else None


def is_same(one: FileState | None, other: FileState | None) -> bool:
    """Whether a file has the same rows in both states."""
    return (one and one.deletes) == (other and other.deletes)


def contents_of(draft: Draft, changed: ChangedFiles) -> Mapping[DataFileId, str]:
    """The inlined rows that come back."""
    files = [entry.then.file for entries in changed.values() for entry in entries if entry.then is not None]
    inlined = [file.id for file in files if file.inlined]
    return inlined_contents(draft.state.database, draft.head.catalog_id, inlined)


def stage_files(
    draft: Draft, table: Table, changed: Iterable[ChangedFile], contents: Mapping[DataFileId, str]
) -> None:
    """Retire files as they are, and let them count again as they were."""
    staged = draft.staged(table)
    for entry in changed:
        if entry.now is not None:
            staged.retire(ScanFile(entry.now.file, _positions(entry.now)))
        if entry.then is not None:
            file = entry.then.file
            staged.bring_back(file, _positions(entry.then), contents[file.id] if file.inlined else None)


def _positions(state: FileState) -> Positions | None:
    return ascending(state.positions) if state.positions else None


def restore_as(
    draft: Draft,
    then: Draft,
    table: Table,
    changed: Iterable[ChangedFile],
    contents: Mapping[DataFileId, str],
    detail: str | None = None,
) -> None:
    """Stage a table with its columns, tags, layout and rows; what the draft did to it before is forgotten."""
    before = draft.state.table(table.id)
    draft.forget_rows(table.id)
    draft.bring_back(before, table)
    _restore_tags(draft, then, table)
    draft.restore_layout(table, then.partitioning(table), then.sort_order(table))
    draft.restore_indexes(table, then.indexes(table))
    draft.staged(table).was_dropped = before is None
    stage_files(draft, table, changed, contents)
    draft.restored[table.id] = detail


def others_of(draft: Draft) -> dict[int, Tagged]:
    """Schemas, views and macros by their ids."""
    return {item.id: item for item in (*draft.schemas(), *draft.views(), *draft.macros())}


def _restore_tags(draft: Draft, then: Draft, item: Tagged) -> None:
    was, now = then.tags(item.id), draft.tags(item.id)
    for key in was.keys() | now.keys():
        if was.get(key) != now.get(key):
            draft.set_tag(item, None, key, was.get(key))
    if not isinstance(item, Table):
        return
    past, present = then.column_tags(item.id), draft.column_tags(item.id)
    for column in past.keys() | present.keys():
        old, new = past.get(column, {}), present.get(column, {})
        for key in old.keys() | new.keys():
            if old.get(key) != new.get(key):
                draft.set_tag(item, column, key, old.get(key))


def _placed(draft: Draft, then: Draft, past: Table, as_name: QualifiedName | None) -> Table:
    """The table under the name that it had, or another; that must be free."""
    name = as_name or then.name_of(past)
    schemas = {schema.id: schema for schema in draft.schemas()}
    schema = schemas.get(past.schema_id) if as_name is None else None
    if schema is None:
        # The schema may have been made anew since.
        schema = draft.find_schema(name.schema)
    if schema is None:
        raise SchemaNotFound(
            f'table "{name}" was in schema "{name.schema}", which is gone: '
            "create that, restore the table under another name, or restore the whole catalog"
        )
    for holder in draft.relations_named(schema.id, name.name):
        if holder.id != past.id:
            raise TableExists(
                f'"{QualifiedName(schema.name, holder.name)}" is another table or view now: '
                "rename that, or restore the table under another name"
            )
    return replace(past, schema_id=schema.id, name=name.name)


def dropped_table(draft: Draft, name: QualifiedName) -> tuple[TableId, SnapshotId]:
    """The table of a name that was dropped last, and the last snapshot that shows it."""
    found = changed_objects.dropped_table(draft.state.database, draft.head, name.schema, name.name)
    if found is None:
        raise TableNotFound(f'no table "{name}" was dropped in this catalog')
    table, end = found
    return table, SnapshotId(end - 1)
