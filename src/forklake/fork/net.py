"""What a catalog did, compared with another state: net, so that what was undone does not show.

Which objects and files may have changed, the footprints of its commits tell; so the cost is that of what was
touched, whatever the tables hold. How they are there and here is then compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from forklake.commit.conflicts import ALTERS, CREATES, DROPS, TAGS
from forklake.fork.knowledge import Events, read_footprint
from forklake.fork.side import KINDS, Kind, Object, Side
from forklake.model.changes import UNLESS_THERE, Change, Verb
from forklake.model.ids import ColumnId, DataFileId, SnapshotId, TableId
from forklake.model.layout import Partitioning, SortOrder
from forklake.store.backend import Database
from forklake.store.rows import rows_of
from forklake.store.states import FileState, file_states

DML = (Verb.INSERT, Verb.DELETE, Verb.FLUSH, Verb.COMPACT)
_DEFINES = CREATES | ALTERS | DROPS
_RESHAPES = (Verb.ALTER_TABLE, Verb.CREATE_TABLE, Verb.REQUIRE_COLUMN)


@dataclass(frozen=True, slots=True)
class NetObject:
    """A schema, table, view or macro that is not what it is there."""

    kind: Kind
    base: Object | None
    ours: Object | None


@dataclass(frozen=True, slots=True)
class NetTag:
    """A tag that is not what it is there."""

    kind: Kind
    owner: Object
    column: ColumnId | None
    key: str
    base: str | None
    ours: str | None


@dataclass(frozen=True, slots=True)
class NetLayout:
    """A table whose new files are laid out otherwise."""

    table: TableId
    base: tuple[Partitioning | None, SortOrder | None]
    ours: tuple[Partitioning | None, SortOrder | None]


@dataclass(frozen=True, slots=True)
class NetFiles:
    """The files of a table that came, went, or lost rows."""

    table: TableId
    added: tuple[FileState, ...] = ()
    retired: tuple[FileState, ...] = ()
    """As they are there."""
    holed: tuple[tuple[FileState, FileState], ...] = ()
    """As they are there and as they are here."""
    looked: bool = False
    """Whether rows were added because none with their keys were there."""
    imported: frozenset[str] = frozenset()
    """Files that existed before and became part of the table."""

    @property
    def rows_added(self) -> int:
        """Rows in new files; those of updates are among them."""
        return sum(state.live_rows for state in self.added)

    @property
    def rows_removed(self) -> int:
        """Rows that are no longer where they were; those of updates are among them."""
        lost = sum(ours.deleted_count - base.deleted_count for base, ours in self.holed)
        return lost + sum(state.live_rows for state in self.retired)


@dataclass(frozen=True, slots=True)
class Net:
    """All that is different."""

    objects: tuple[NetObject, ...] = ()
    tags: tuple[NetTag, ...] = ()
    layouts: tuple[NetLayout, ...] = ()
    files: tuple[NetFiles, ...] = ()
    reshaped: frozenset[TableId] = frozenset()
    """Tables that were altered on the way, whether that shows or not."""
    created: frozenset[int] = frozenset()
    """Objects that were created on the way."""
    last: dict[int, SnapshotId] = field(default_factory=dict[int, SnapshotId])
    """The last commit that touched each object."""


def net_changes(database: Database, ours: Side, other: Side, done: Events, since: SnapshotId) -> Net:
    """How one side differs from the other in what was done; `since` is where its own part of that begins."""
    touched: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    tagged: dict[tuple[Kind, int], set[str]] = {}
    created: set[int] = set()
    last: dict[int, SnapshotId] = {}
    with_rows: dict[int, list[Change]] = {}
    reshaped: set[TableId] = set()
    for snapshot, change in done.changes:
        kind = kind_of(change)
        if kind is None:
            continue
        last[change.object_id] = snapshot
        if change.verb in _DEFINES:
            touched[kind].add(change.object_id)
        if change.verb in CREATES:
            created.add(change.object_id)
        if change.verb in TAGS and change.detail is not None:
            tagged.setdefault((kind, change.object_id), set()).add(change.detail)
        if change.verb in DML:
            with_rows.setdefault(change.object_id, []).append(change)
        if change.verb in _RESHAPES:
            reshaped.add(TableId(change.object_id))
    objects = [
        NetObject(kind, other.find(kind, number), ours.find(kind, number))
        for kind in KINDS
        for number in sorted(touched[kind])
    ]
    return Net(
        tuple(entry for entry in objects if not same(entry.base, entry.ours)),
        tuple(_all_tags(objects, tagged, other, ours)),
        tuple(_layouts(sorted(reshaped), other, ours)),
        tuple(_files(database, ours, other, with_rows, done, since)),
        frozenset(reshaped),
        frozenset(created),
        last,
    )


def own_events(database: Database, side: Side, since: SnapshotId) -> Events:
    """All that a catalog committed after a snapshot, merges with what they brought."""
    head = side.head
    changes = tuple(
        (SnapshotId(snapshot), change)
        for snapshot, footprint in database.rows(
            "footprints_between", catalog=head.catalog_id, start=since, end=head.snapshot_id
        )
        for change in read_footprint(snapshot, footprint)
    )
    return Events(changes, None)


def kind_of(change: Change) -> Kind | None:
    """What kind of object a change is about; None for the catalog itself."""
    noun = change.verb.partition("_")[2]
    match noun:
        case "catalog":
            return None
        case "schema" | "view" | "macro":
            return noun
        case _:
            return "table"


def same(one: Object | None, other: Object | None) -> bool:
    """Whether two versions of an object are stored alike."""
    if one is None or other is None:
        return one is other
    return rows_of(one) == rows_of(other)


def _all_tags(
    objects: Sequence[NetObject], tagged: dict[tuple[Kind, int], set[str]], other: Side, ours: Side
) -> Iterator[NetTag]:
    """All tags of what is new, and those of other objects that were set."""
    for entry in objects:
        if entry.base is None and entry.ours is not None:
            yield from _tags(entry.kind, entry.ours, {}, ours.tags(entry.kind, entry.ours.id), None)
    new = {(entry.kind, entry.ours.id) for entry in objects if entry.base is None and entry.ours is not None}
    for (kind, number), places in sorted(tagged.items()):
        owner = ours.find(kind, number)
        if owner is not None and (kind, number) not in new:
            there = other.tags(kind, number) if other.find(kind, number) is not None else {}
            yield from _tags(kind, owner, there, ours.tags(kind, number), places)


def _tags(
    kind: Kind,
    owner: Object,
    before: dict[tuple[ColumnId | None, str], str],
    after: dict[tuple[ColumnId | None, str], str],
    places: set[str] | None,
) -> Iterator[NetTag]:
    for column, key in sorted(before.keys() | after.keys(), key=str):
        old, new = before.get((column, key)), after.get((column, key))
        place = f"{'' if column is None else column}:{key}"
        if old != new and (places is None or place in places):
            yield NetTag(kind, owner, column, key, old, new)


def _layouts(tables: Sequence[TableId], base: Side, ours: Side) -> Iterator[NetLayout]:
    for table in tables:
        if ours.table(table) is not None:
            before = base.layout(table) if base.table(table) is not None else (None, None)
            after = ours.layout(table)
            if before != after:
                yield NetLayout(table, before, after)


def _files(
    database: Database,
    ours: Side,
    other: Side,
    written: dict[int, list[Change]],
    done: Events,
    since: SnapshotId,
) -> Iterator[NetFiles]:
    live = [table for table in sorted(written) if ours.table(table) is not None]
    if not live:
        return
    at = ours.head.snapshot_id
    added = database.rows(
        "files_added_since", catalog=ours.head.catalog_id, tables=json.dumps(live), since=since, at=at
    )
    named = done.files
    numbers = named | {row[0] for row in added}
    here = file_states(database, ours.head.catalog_id, at, numbers)
    there = file_states(database, other.head.catalog_id, other.head.snapshot_id, numbers)
    strange = _strange(database, done, [state for number, state in here.items() if number not in there])
    here = {number: state for number, state in here.items() if number not in strange}
    for table in live:
        changed = _changed(TableId(table), there, here, named, written[table])
        if changed.added or changed.retired or changed.holed:
            yield changed


def _strange(database: Database, done: Events, states: Sequence[FileState]) -> set[int]:
    """Files that the other side knows and never had: their rows were elsewhere before they came to it."""
    if done.commits is None:
        return set()
    doubtful = sorted(state.file.id for state in states if state.file.begin not in done.commits)
    if not doubtful:
        return set()
    found = database.rows("origins_of_files", files=json.dumps(doubtful))
    return {number for number, began in found if began not in done.commits}


def _changed(
    table: TableId,
    there: dict[DataFileId, FileState],
    here: dict[DataFileId, FileState],
    named: frozenset[int],
    written: Sequence[Change],
) -> NetFiles:
    """A file that the other never had is new; one that rows were taken from here is as it is here.

    Where a file that lost rows is not known here, it came and went on the way to us.
    """
    added: list[FileState] = []
    retired: list[FileState] = []
    holed: list[tuple[FileState, FileState]] = []
    for number in sorted(there.keys() | here.keys()):
        old, new = there.get(number), here.get(number)
        if table not in (old and old.table, new and new.table):
            continue
        if new is not None and new.is_live and old is None:
            added.append(new)
        elif number in named and old is not None and old.is_live:
            if new is None or not new.is_live:
                retired.append(old)
            elif old.deletes != new.deletes:
                holed.append((old, new))
    inserts = [change for change in written if change.verb is Verb.INSERT]
    return NetFiles(
        table,
        tuple(added),
        tuple(retired),
        tuple(holed),
        any(change.detail == UNLESS_THERE for change in inserts),
        frozenset(path for change in inserts for path in change.paths),
    )
