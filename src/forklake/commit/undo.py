"""Taking back what one commit did, where nothing that came later is in the way.

Definitions go back part by part: a name, columns, a tag, a layout, each if it is still what the commit made
of it. So do files: if one is still as the commit left it, it becomes what it was before. Rows of files that
were touched since have to be told apart by their ids; which tables have such is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from forklake.commit.conflicts import INDEX_TAKEN, RENAMES, RESHAPES, TAKEN
from forklake.commit.draft import Draft, Tagged
from forklake.commit.restore import (
    ChangedFile,
    changed_files,
    contents_of,
    is_same,
    live,
    others_of,
    restore_as,
    stage_files,
)
from forklake.errors import CommitConflict, InvalidArgument, SchemaNotEmpty
from forklake.model.alike import alike
from forklake.model.changes import UNDONE, Change, Conflict, Verb, describe, from_footprint
from forklake.model.entities import Macro, Schema, Table
from forklake.model.ids import ColumnId, DataFileId, SnapshotId, TableId
from forklake.store.catalog_state import TableName
from forklake.store.changed_objects import changed_objects
from forklake.store.entity_rows import entity_rows
from forklake.store.file_states import file_states
from forklake.store.snapshots import footprints_between

_OF_THE_CATALOG = frozenset(
    {
        Verb.CREATE_CATALOG,
        Verb.RENAME_CATALOG,
        Verb.DROP_CATALOG,
        Verb.UNDROP_CATALOG,
        Verb.FORK_CATALOG,
        Verb.COPY_CATALOG,
    }
)

CHANGED_SINCE = "it is no longer what the commit made of it"
_Tags = dict[tuple[ColumnId | None, str], str]


@dataclass(frozen=True, slots=True)
class Undoing:
    """One commit of a catalog, with the catalog before it, after it, and as it is now."""

    draft: Draft
    before: Draft
    after: Draft
    done: tuple[Change, ...]
    later: tuple[tuple[SnapshotId, Change], ...]
    found: list[Conflict] = field(default_factory=list[Conflict])

    @property
    def snapshot(self) -> SnapshotId:
        """The commit."""
        return self.after.head.snapshot_id

    def refuse(self) -> None:
        """Say what stands in the way, if anything does."""
        if self.found:
            raise refusal(self.snapshot, self.before.head.snapshot_id, self.found)

    def stands_in_the_way(self, number: int, name: str, rule: str, verbs: Iterable[Verb] = ()) -> None:
        """Note that something that came later keeps an object from what it was."""
        ours = next(
            (c for c in self.done if c.object_id == number), Change(Verb.ALTER_TABLE, number, name=name)
        )
        wanted = frozenset(verbs)
        met = [(s, c) for s, c in self.later if c.object_id == number and (not wanted or c.verb in wanted)]
        snapshot, theirs = met[-1] if met else (self.draft.head.snapshot_id, replace(ours, name=name))
        self.found.append(Conflict(rule, ours, theirs, snapshot))


def refusal(snapshot: SnapshotId, before: SnapshotId, found: Iterable[Conflict]) -> CommitConflict:
    """The exception for a commit that cannot be undone."""
    conflicts = list(dict.fromkeys(found))
    reasons = list(dict.fromkeys(str(conflict) for conflict in conflicts))
    more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return CommitConflict(
        f"snapshot {snapshot} cannot be undone: {'; '.join(reasons[:3])}{more}: undo that first, "
        f"or restore what is to go back to snapshot {before}",
        conflicts,
    )


def undoing(draft: Draft, before: Draft, after: Draft) -> Undoing:
    """What there is to undo; refuse what never can be."""
    database, catalog = draft.state.database, draft.head.catalog_id
    start, snapshot = before.head.snapshot_id, after.head.snapshot_id
    later: list[tuple[SnapshotId, Change]] = []
    for number, footprint in footprints_between(database, catalog, start, draft.head.snapshot_id):
        if footprint is None:
            raise CommitConflict(
                f"snapshot {number} was written by another program that did not say what it changed: "
                f"what snapshot {snapshot} did cannot be told apart from that"
            )
        later += [(number, change) for change in from_footprint(footprint)]
    done = tuple(change for number, change in later if number == snapshot)
    if not done:
        raise InvalidArgument(f"snapshot {snapshot} did nothing to the catalog that could be undone")
    for change in done:
        if change.verb in _OF_THE_CATALOG:
            raise InvalidArgument(f"snapshot {snapshot} cannot be undone: {describe(change)} in it")
    return Undoing(draft, before, after, done, tuple(entry for entry in later if entry[0] > snapshot))


def undo_definitions(work: Undoing) -> set[int]:
    """Stage definitions as they were before the commit; gives the tables that came or went as a whole."""
    draft, before, after = work.draft, work.before, work.after
    numbers = changed_objects(
        draft.state.database, draft.head.catalog_id, before.head.snapshot_id, after.head.snapshot_id
    )
    touched = draft.staged_objects() | {table.id for table, _ in draft.staged_rows()}
    if touched & (numbers | {change.object_id for change in work.done}):
        raise InvalidArgument(
            f"this transaction has changed what snapshot {work.snapshot} did: undo that before, or in another"
        )
    for side in (draft, before, after):
        side.state.prepare(sorted(numbers))
    sides = [{**others_of(side), **_tables(side, numbers)} for side in (before, after, draft)]
    objects = [_Object(number, *(side.get(number) for side in sides)) for number in sorted(numbers)]
    schemas = [one for one in objects if isinstance(one.was or one.done, Schema)]
    others = [one for one in objects if one not in schemas]
    # Schemas come before what is in them, and go after it; a name is given up before another takes it.
    for one in (*schemas, *(one for one in others if one.was is None)):
        if not (one.was is None and one in schemas):
            _undo_object(work, one, numbers)
    for one in others:
        if one.was is not None:
            _undo_object(work, one, numbers)
    for one in schemas:
        if one.was is None:
            _undo_object(work, one, numbers)
    return {one.number for one in others if one.was is None or one.done is None}


@dataclass(frozen=True, slots=True)
class _Object:
    """Something that the commit changed: before it, after it, and now."""

    number: int
    was: Tagged | None
    done: Tagged | None
    now: Tagged | None

    @property
    def name(self) -> str:
        named = self.now or self.done or self.was
        return "" if named is None else named.name


def _tables(side: Draft, numbers: Iterable[int]) -> dict[int, Tagged]:
    found = {number: side.state.table(TableId(number)) for number in numbers}
    return {number: table for number, table in found.items() if table is not None}


def undo_files(work: Undoing, but: set[int]) -> set[TableId]:
    """Stage files as they were before the commit; gives tables where files were touched since, untouched."""
    draft = work.draft
    start, end = work.before.head.snapshot_id, work.snapshot
    tables = {change.object_id for change in work.done if change.verb == Verb.INSERT or change.files}
    tables -= but
    changed = changed_files(draft, start, end, tables)
    numbers = [_number(entry) for entries in changed.values() for entry in entries]
    now = file_states(draft.state.database, draft.head.catalog_id, draft.head.snapshot_id, numbers)
    mixed: set[TableId] = set()
    ready: dict[TableId, list[ChangedFile]] = {}
    for table, entries in changed.items():
        if draft.state.table(table) is None:
            # All rows went with it.
            continue
        if all(is_same(entry.now, live(now.get(_number(entry)))) for entry in entries):
            ready[table] = [replace(entry, now=live(now.get(_number(entry)))) for entry in entries]
        else:
            mixed.add(table)
    contents = contents_of(draft, ready)
    for table, entries in ready.items():
        stage_files(draft, draft.table(table), entries, contents)
        draft.restored[table] = UNDONE
    return mixed


def _number(entry: ChangedFile) -> DataFileId:
    state = entry.then or entry.now
    return DataFileId(-1) if state is None else state.file.id


def _undo_object(work: Undoing, one: _Object, numbers: set[int]) -> None:
    was, done, now = one.was, one.done, one.now
    if was is None and done is None:
        return
    if was is None:
        if now is not None:
            _undo_creation(work, one, now)
    elif done is None:
        if now is not None:
            work.stands_in_the_way(one.number, one.name, "it is there again")
        elif _is_free(work, one, was, numbers):
            _undo_drop(work, was)
    elif now is not None:
        wanted = _altered_back(work, one, was, done, now)
        if wanted != now and (_place(wanted) == _place(now) or _is_free(work, one, wanted, numbers)):
            work.draft.bring_back(now, wanted)
        if isinstance(wanted, Table):
            _undo_layout(work, one, wanted)
            _undo_indexes(work, one, wanted)
        _undo_tags(work, wanted, _tags(work.before, was), _tags(work.after, done))


def _undo_creation(work: Undoing, one: _Object, now: Tagged) -> None:
    """What the commit made goes, if nobody has done anything to it since."""
    if isinstance(now, Schema):
        try:
            work.draft.drop_schema(now, cascade=False)
        except SchemaNotEmpty:
            work.stands_in_the_way(one.number, one.name, "it is no longer empty")
    elif any(change.object_id == one.number for _, change in work.later):
        work.stands_in_the_way(one.number, one.name, "it was changed since it was created")
    else:
        work.draft.adopt(now, None)


def _undo_drop(work: Undoing, was: Tagged) -> None:
    """What the commit dropped comes back, a table with its rows."""
    draft = work.draft
    if isinstance(was, Table):
        changed = changed_files(draft, work.before.head.snapshot_id, draft.head.snapshot_id, [was.id])
        restore_as(draft, work.before, was, changed.get(was.id, ()), contents_of(draft, changed), UNDONE)
    else:
        draft.bring_back(None, was)
        _undo_tags(work, was, _tags(work.before, was), {})


def _altered_back(work: Undoing, one: _Object, was: Tagged, done: Tagged, now: Tagged) -> Tagged:
    """An object with what the commit altered as it was: its place, and what it consists of."""
    wanted = now
    if _place(was) != _place(done):
        if _place(done) != _place(now):
            work.stands_in_the_way(one.number, one.name, CHANGED_SINCE, RENAMES)
        wanted = _at_place_of(was, wanted)
    if not _same(_at_place_of(was, done), was):
        if not _same(_at_place_of(done, now), done):
            work.stands_in_the_way(one.number, one.name, CHANGED_SINCE, RESHAPES)
        elif any(c.object_id == one.number and c.verb == Verb.INSERT for _, c in work.later):
            rule = "rows were written for the columns that it got"
            work.stands_in_the_way(one.number, one.name, rule, {Verb.INSERT})
        wanted = _at_place_of(wanted, was)
    return wanted


def _place(item: Tagged) -> tuple[int | None, str]:
    return (None if isinstance(item, Schema) else item.schema_id), item.name


def _at_place_of(other: Tagged, item: Tagged) -> Tagged:
    """The same object with the name, and in the schema, of another version."""
    if isinstance(item, Schema) or isinstance(other, Schema):
        return replace(item, name=other.name)
    return replace(item, name=other.name, schema_id=other.schema_id)


def _undo_layout(work: Undoing, one: _Object, table: Table) -> None:
    was, done, now = (side.state.layout(table.id) for side in (work.before, work.after, work.draft))
    if was == done:
        return
    changed = [old != made for old, made in zip(was, done, strict=True)]
    if any(is_other and made != seen for is_other, made, seen in zip(changed, done, now, strict=True)):
        work.stands_in_the_way(one.number, one.name, CHANGED_SINCE, RESHAPES)
        return
    part, order = (was[0] if changed[0] else now[0]), (was[1] if changed[1] else now[1])
    work.draft.restore_layout(table, part, order)


def _undo_indexes(work: Undoing, one: _Object, table: Table) -> None:
    """Indexes that the commit made go, and those that it dropped are made again."""
    was, done = (side.state.indexes(table.id) for side in (work.before, work.after))
    for index in work.draft.indexes(table):
        if index in done and index not in was:
            work.draft.drop_index(index)
    columns = {column.id for column in table.columns}
    for index in was:
        if index in done or not columns.issuperset((*index.keys, *index.include)):
            continue
        if alike(index.name, work.draft.indexes(table)):
            work.stands_in_the_way(one.number, one.name, INDEX_TAKEN, {Verb.CREATE_INDEX})
        else:
            work.draft.remake_index(index)


def _is_free(work: Undoing, one: _Object, wanted: Tagged, numbers: set[int]) -> bool:
    """Whether an object can have its schema and name; those that the commit changed too make room."""
    draft = work.draft
    holders: Sequence[Tagged | TableName]
    if isinstance(wanted, Schema):
        holders = alike(wanted.name, draft.schemas())
    elif all(schema.id != wanted.schema_id for schema in draft.schemas()):
        work.stands_in_the_way(wanted.schema_id, one.name, "its schema is gone")
        return False
    elif isinstance(wanted, Macro):
        place = (wanted.schema_id, wanted.kind)
        holders = alike(wanted.name, (m for m in draft.macros() if (m.schema_id, m.kind) == place))
    else:
        holders = draft.relations_named(wanted.schema_id, wanted.name)
    for holder in holders:
        if holder.id != one.number and holder.id not in numbers:
            work.stands_in_the_way(holder.id, holder.name, TAKEN)
            return False
    return True


def _undo_tags(work: Undoing, owner: Tagged, was: _Tags, done: _Tags) -> None:
    now = _tags(work.draft, owner)
    for column, key in sorted(was.keys() | done.keys(), key=str):
        old, made = was.get((column, key)), done.get((column, key))
        if old == made:
            continue
        if now.get((column, key)) != made:
            work.stands_in_the_way(owner.id, owner.name, f'its tag "{key}" was set again')
        work.draft.set_tag(owner, column, key, old)


def _tags(side: Draft, item: Tagged) -> _Tags:
    found: _Tags = {(None, key): value for key, value in side.tags(item.id).items()}
    if isinstance(item, Table):
        for column, tags in side.column_tags(item.id).items():
            found |= {(column, key): value for key, value in tags.items()}
    return found


def _same(one: Tagged | None, other: Tagged | None) -> bool:
    return (one and entity_rows(one)) == (other and entity_rows(other))
