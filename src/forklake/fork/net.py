"""What a catalog did since it was last like another: net, so that what was undone does not show.

Which objects and files may have changed, the footprints of its commits tell; so the cost is that of what was
touched, whatever the tables hold. How they were and how they are is then compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from forklake.errors import MergeConflict
from forklake.fork.side import KINDS, Kind, Object, Side
from forklake.model.changes import Change, Verb, from_footprint
from forklake.model.ids import ColumnId, DataFileId, SnapshotId, TableId
from forklake.model.layout import Partitioning, SortOrder
from forklake.store.backend import Database
from forklake.store.rows import rows_of
from forklake.store.states import FileState, file_states

DML = (Verb.INSERT, Verb.DELETE, Verb.FLUSH, Verb.COMPACT)


@dataclass(frozen=True, slots=True)
class NetObject:
    """A schema, table, view or macro that is not what it was."""

    kind: Kind
    base: Object | None
    ours: Object | None


@dataclass(frozen=True, slots=True)
class NetTag:
    """A tag that is not what it was."""

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
    """As they were."""
    holed: tuple[tuple[FileState, FileState], ...] = ()
    """As they were and as they are."""

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
    touched: frozenset[int] = frozenset()
    """Data files that rows were taken from."""
    gone: frozenset[DataFileId] = frozenset()
    """Files that came and went, here or where they came from: who holds them has rows too many."""
    has_merged: bool = False
    """Whether anything came from other catalogs."""
    last: dict[int, SnapshotId] = field(default_factory=dict[int, SnapshotId])
    """The last commit that touched each object."""

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it was."""
        return not (self.objects or self.tags or self.layouts or self.files)


def net_changes(database: Database, ours: Side, base: Side, since: SnapshotId) -> Net:
    """How one side differs from the other, looking at what it did after a snapshot."""
    at = ours.head.snapshot_id
    history = commits(database, ours, since, at)
    touched: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    with_rows: set[int] = set()
    files: set[int] = set()
    ended: set[int] = set()
    last: dict[int, SnapshotId] = {}
    reshaped: set[TableId] = set()
    for snapshot, change in history:
        kind = kind_of(change)
        if kind is None:
            # What a merge only told the end of, this catalog has never seen.
            ended |= change.files
            continue
        last[change.object_id] = snapshot
        touched[kind].add(change.object_id)
        if change.verb in DML and ours.table(change.object_id) is not None:
            with_rows.add(change.object_id)
            files |= change.files
        if change.verb in (Verb.ALTER_TABLE, Verb.CREATE_TABLE, Verb.REQUIRE_COLUMN):
            reshaped.add(TableId(change.object_id))
    objects = [
        NetObject(kind, base.find(kind, number), ours.find(kind, number))
        for kind in KINDS
        for number in sorted(touched[kind])
    ]
    changed, gone = _files(database, ours, base, with_rows, files | ended, since)
    kept: list[tuple[Kind, Object]] = [(e.kind, e.ours) for e in objects if e.ours is not None]
    return Net(
        tuple(entry for entry in objects if not same(entry.base, entry.ours)),
        tuple(tag for kind, owner in kept for tag in _tags(kind, owner, base, ours)),
        tuple(_layouts(sorted(reshaped), base, ours)),
        changed,
        frozenset(reshaped),
        frozenset(files),
        gone,
        any(change.verb is Verb.MERGE_CATALOG for _, change in history),
        last,
    )


def commits(
    database: Database, side: Side, since: SnapshotId, at: SnapshotId
) -> list[tuple[SnapshotId, Change]]:
    """What a catalog committed after one snapshot and up to another."""
    found: list[tuple[SnapshotId, Change]] = []
    for snapshot, footprint in database.rows(
        "footprints_between", catalog=side.head.catalog_id, start=since, end=at
    ):
        if footprint is None:
            raise MergeConflict(
                f"snapshot {snapshot} was written by another program that did not say what it changed: "
                "it cannot be merged"
            )
        found += [(SnapshotId(snapshot), change) for change in from_footprint(footprint)]
    return found


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


def _tags(kind: Kind, owner: Object, base: Side, ours: Side) -> Iterator[NetTag]:
    before = base.tags(kind, owner.id) if base.find(kind, owner.id) is not None else {}
    after = ours.tags(kind, owner.id)
    for column, key in sorted(before.keys() | after.keys(), key=str):
        old, new = before.get((column, key)), after.get((column, key))
        if old != new:
            yield NetTag(kind, owner, column, key, old, new)


def _layouts(tables: Sequence[TableId], base: Side, ours: Side) -> Iterator[NetLayout]:
    for table in tables:
        if ours.table(table) is not None:
            before = base.layout(table) if base.table(table) is not None else (None, None)
            after = ours.layout(table)
            if before != after:
                yield NetLayout(table, before, after)


def _files(
    database: Database, ours: Side, base: Side, tables: set[int], named: set[int], since: SnapshotId
) -> tuple[tuple[NetFiles, ...], frozenset[DataFileId]]:
    """What became of the files of each table, and which files nobody here has known before, and are gone."""
    at = ours.head.snapshot_id
    listed = json.dumps(sorted(tables))
    added = (
        database.rows("files_added_since", catalog=ours.head.catalog_id, tables=listed, since=since, at=at)
        if tables
        else []
    )
    numbers = named | {row[0] for row in added}
    now = file_states(database, ours.head.catalog_id, at, numbers)
    before = file_states(database, base.head.catalog_id, base.head.snapshot_id, numbers)
    tables = tables | {state.table for state in before.values()}
    live = [TableId(table) for table in sorted(tables) if ours.table(table) is not None]
    changed = (_changed(table, before, now) for table in live)
    gone = numbers - before.keys() - {number for number, state in now.items() if state.is_live}
    return (
        tuple(files for files in changed if files.added or files.retired or files.holed),
        frozenset(DataFileId(number) for number in gone),
    )


def _changed(
    table: TableId, before: Mapping[DataFileId, FileState], now: Mapping[DataFileId, FileState]
) -> NetFiles:
    added: list[FileState] = []
    retired: list[FileState] = []
    holed: list[tuple[FileState, FileState]] = []
    for number in sorted(before.keys() | now.keys()):
        old, new = before.get(number), now.get(number)
        if table not in (old and old.table, new and new.table):
            continue
        was, is_ = old is not None and old.is_live, new is not None and new.is_live
        if new is not None and is_ and not was:
            added.append(new)
        elif old is not None and was and not is_:
            retired.append(old)
        elif old is not None and new is not None and was and is_ and old.deletes != new.deletes:
            holed.append((old, new))
    return NetFiles(table, tuple(added), tuple(retired), tuple(holed))
