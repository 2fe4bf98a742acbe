"""What a catalog did to definitions, compared with another state: net, so that what was undone does not show.

Which objects may have changed, the footprints of its commits tell; so the cost is that of what was touched,
whatever the tables hold. How they are there and here is then compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from forklake.commit.conflicts import (
    ALTERS,
    CREATES,
    CREATES_INDEX,
    DML,
    DROPS,
    DROPS_INDEX,
    RESHAPES,
    RESTORES,
    TAGS,
)
from forklake.fork.catalog_state import KINDS, Kind, Object, Side
from forklake.fork.version_vectors import Event, Events, read_footprint
from forklake.model.alike import fold
from forklake.model.changes import Change, Verb, tag_detail
from forklake.model.ids import ColumnId, SnapshotId, TableId
from forklake.model.index import Index
from forklake.model.snapshots import Head
from forklake.model.table.layout import Partitioning, SortOrder
from forklake.store.backend import Database
from forklake.store.entity_rows import entity_rows
from forklake.store.lineages import shared_histories
from forklake.store.snapshots import footprints_between

_DEFINES = CREATES | ALTERS | DROPS
_WHOLE = CREATES | DROPS | RESTORES
"""With these, anything about an object may have changed."""
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
class LayoutChange:
    """A table whose new files are laid out otherwise."""

    table: TableId
    base: tuple[Partitioning | None, SortOrder | None]
    ours: tuple[Partitioning | None, SortOrder | None]


@dataclass(frozen=True, slots=True)
class IndexChange:
    """An index that is there on one side alone."""

    index: Index
    is_new: bool
    """Whether ours has it; else ours has dropped it."""


@dataclass(frozen=True, slots=True)
class DefinitionChanges:
    """All that is different."""

    objects: tuple[NetObject, ...] = ()
    tags: tuple[NetTag, ...] = ()
    layouts: tuple[LayoutChange, ...] = ()
    indexes: tuple[IndexChange, ...] = ()
    reshaped: frozenset[TableId] = frozenset()
    """Tables that were altered on the way, whether that shows or not."""
    created: frozenset[int] = frozenset()
    """Objects that were created on the way."""
    last: dict[int, SnapshotId] = field(default_factory=dict[int, SnapshotId])
    """The last commit that touched each object."""


def net_changes(ours: Side, other: Side, done: Events) -> DefinitionChanges:
    """How one side differs from the other in what was done."""
    touched: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    tagged: dict[tuple[Kind, int], set[str]] = {}
    created: set[int] = set()
    last: dict[int, SnapshotId] = {}
    reshaped: set[TableId] = set()
    indexed: dict[int, set[str] | None] = {}
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
        if change.verb in _RESHAPES:
            reshaped.add(TableId(change.object_id))
        if change.verb is Verb.CREATE_TABLE:
            # It comes with its indexes.
            indexed[change.object_id] = None
        elif change.verb in CREATES_INDEX | DROPS_INDEX:
            names = indexed.setdefault(change.object_id, set())
            if names is not None:
                names.add(fold(change.detail or ""))
    objects = [
        NetObject(kind, other.find(kind, number), ours.find(kind, number))
        for kind in KINDS
        for number in sorted(touched[kind])
    ]
    return DefinitionChanges(
        tuple(entry for entry in objects if not same(entry.base, entry.ours)),
        tuple(_all_tags(objects, tagged, other, ours)),
        tuple(_layouts(sorted(reshaped), other, ours)),
        tuple(change for table in sorted(indexed) for change in _indexes(table, indexed[table], other, ours)),
        frozenset(reshaped),
        frozenset(created),
        last,
    )


class ChangedElsewhere:
    """What catalogs did from which one does not descend, and what merges into it brought.

    What was changed there may be as it was because that was taken back, there or here, and the other side may
    have seen only what was done.
    """

    def __init__(self, changes: Iterable[Change]) -> None:
        """Know what was done there."""
        self._of_object: dict[int, list[Change]] = {}
        for change in changes:
            self._of_object.setdefault(change.object_id, []).append(change)

    def changed(self, change: Change) -> bool:
        """Whether what a change is about may have been changed too."""
        number, detail = change.object_id, change.detail or ""
        if change.verb in TAGS:
            return self.tag(number, *change.tag)
        if change.verb in CREATES_INDEX | DROPS_INDEX:
            return self.index(number, detail)
        return self.rows_of(number) if change.verb in DML else self.object(number)

    def object(self, number: int) -> bool:
        """Whether an object itself was changed."""
        return self._has(number, _WHOLE | ALTERS)

    def rows_of(self, table: int) -> bool:
        """Whether rows of a table may have been."""
        return self._has(table, _WHOLE | DML)

    def tag(self, owner: int, column: ColumnId | None, key: str) -> bool:
        """Whether a tag may have been."""
        whole = _WHOLE if column is None else _WHOLE | RESHAPES
        return self._has(owner, whole) or self._has(owner, TAGS, tag_detail(column, key))

    def layout(self, table: int) -> bool:
        """Whether partitioning or sort order may have been."""
        return self._has(table, _WHOLE | RESHAPES)

    def index(self, table: int, name: str) -> bool:
        """Whether an index of that name may have been."""
        return self._has(table, _WHOLE) or self._has(table, CREATES_INDEX | DROPS_INDEX, name)

    def _has(self, number: int, verbs: frozenset[Verb], detail: str | None = None) -> bool:
        return any(
            change.verb in verbs and (detail is None or fold(change.detail or "") == fold(detail))
            for change in self._of_object.get(number, ())
        )


def without_undone(net: DefinitionChanges, before: Side, elsewhere: ChangedElsewhere) -> DefinitionChanges:
    """The same without tags, layouts and indexes that are as they were where the other side knew them last.

    It did that alone, then, and ours takes none of it back. What was changed `elsewhere` is left as it is.
    """

    def was_there(kind: Kind, number: int) -> bool:
        return before.find(kind, number) is not None

    def had(change: IndexChange) -> bool:
        return any(index.id == change.index.id for index in before.indexes(change.index.table_id))

    return replace(
        net,
        tags=tuple(
            tag
            for tag in net.tags
            if not was_there(tag.kind, tag.owner.id)
            or elsewhere.tag(tag.owner.id, tag.column, tag.key)
            or before.tags(tag.kind, tag.owner.id).get((tag.column, tag.key)) != tag.ours
        ),
        layouts=tuple(
            layout
            for layout in net.layouts
            if not was_there("table", layout.table)
            or elsewhere.layout(layout.table)
            or before.layout(layout.table) != layout.ours
        ),
        indexes=tuple(
            change
            for change in net.indexes
            if not was_there("table", change.index.table_id)
            or elsewhere.index(change.index.table_id, change.index.name)
            or had(change) != change.is_new
        ),
    )


def changed_elsewhere(database: Database, head: Head, done: Events) -> ChangedElsewhere:
    """What was done in catalogs which one does not descend from, and by merges of it."""
    (lineage,) = shared_histories(database, {head.catalog_id: head.snapshot_id}).values()
    found = [event.change for event in done.events if event.catalog not in lineage]
    return ChangedElsewhere([*found, *done.merged])


def own_events(database: Database, side: Side, since: SnapshotId) -> Events:
    """All that a catalog committed after a snapshot, merges with what they brought."""
    head = side.head
    found = tuple(
        Event(head.catalog_id, snapshot, change)
        for snapshot, footprint in footprints_between(database, head.catalog_id, since, head.snapshot_id)
        for change in read_footprint(snapshot, footprint)
    )
    return Events(found, is_everything=True)


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
    return entity_rows(one) == entity_rows(other)


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
        if old != new and (places is None or tag_detail(column, key) in places):
            yield NetTag(kind, owner, column, key, old, new)


def _indexes(table: int, names: set[str] | None, other: Side, ours: Side) -> Iterator[IndexChange]:
    """Indexes that ours made or dropped, by their names; of a table that it made, all that it has."""
    if ours.table(table) is None:
        return
    here, there = ours.indexes(table), other.indexes(table)
    known, mine = {index.id for index in there}, {index.id for index in here}
    new = [index for index in here if index.id not in known and (names is None or fold(index.name) in names)]
    # What the other side made for a table that ours made anew is its own.
    gone = {fold(index.name) for index in new} if names is None else names
    for index in there:
        if index.id not in mine and fold(index.name) in gone:
            yield IndexChange(index, is_new=False)
    for index in new:
        yield IndexChange(index, is_new=True)


def _layouts(tables: Sequence[TableId], base: Side, ours: Side) -> Iterator[LayoutChange]:
    for table in tables:
        if ours.table(table) is not None:
            before = base.layout(table) if base.table(table) is not None else (None, None)
            after = ours.layout(table)
            if before != after:
                yield LayoutChange(table, before, after)
