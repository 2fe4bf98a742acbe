"""Merges: the commits of one catalog that another has not seen become one commit of the other.

The rules are those of any commit, and two more: what the target did and the source has not seen must not
collide with what comes. Data files are taken over as they are; where both took rows from one file, what the
target has lost is united in a new delete file. No row is read, unless both may have changed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from forklake.commit.conflicts import (
    ALTERED,
    COMMENTED,
    CREATES,
    DML,
    DROPS,
    INDEXED,
    MERGE_RULES,
    RENAMES,
    RETIRES,
    TAKEN,
    YIELDING,
    conflicts,
)
from forklake.context.committer import Committer
from forklake.context.lake_context import LakeContext
from forklake.display import Shown
from forklake.errors import (
    CommitConflict,
    InvalidArgument,
    MergeConflict,
    StoreBusy,
    TableNotFound,
)
from forklake.fork.catalog_state import Side
from forklake.fork.definition_changes import (
    DefinitionChanges,
    changed_elsewhere,
    net_changes,
    own_events,
    without_undone,
)
from forklake.fork.merge_plan import MergeBuilder
from forklake.fork.net_rows import RowChanges
from forklake.fork.row_changes import Prefer, RowComparison
from forklake.fork.taken_back import TakenBack
from forklake.fork.version_vectors import Divergence, Event, Events, UnseenEvents, brought, events, relation
from forklake.model.alike import alike
from forklake.model.changes import UNLESS_THERE, Change, Conflict, Verb
from forklake.model.ids import SnapshotId, TableId
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress
from forklake.model.snapshots import Author, Head
from forklake.store.backend import Database
from forklake.store.catalogs import catalog_named
from forklake.store.files import totals_of
from forklake.store.merges import Span

ATTEMPTS = 1000
SAME_ROWS = "both changed the same rows"


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """What is merged, and what becomes of rows that both changed."""

    prefer: Prefer | None = None
    """Whose version of such a row counts; without it, a merge is refused."""
    tables: tuple[str, ...] | None = None
    """The tables that are merged; None for everything."""
    table_ids: tuple[TableId, ...] = ()
    """The same by their ids."""
    dry_run: bool = False
    progress: OnProgress | None = None

    @property
    def of_some_tables(self) -> bool:
        """Whether only some tables are merged."""
        return self.tables is not None or bool(self.table_ids)

    def check(self) -> None:
        """Refuse what can be refused without looking."""
        if self.prefer not in (None, "source", "target"):
            raise InvalidArgument(f'a merge prefers "source" or "target", not {self.prefer!r}')
        if self.tables is not None and not self.tables:
            raise InvalidArgument("a merge of chosen tables names at least one: leave it out to merge all")


@dataclass(frozen=True, slots=True)
class MergedTable(Shown):
    """The result of a merge for one table."""

    name: str
    files_added: int
    files_retired: int
    rows_added: int
    """Rows added, updated rows included."""
    rows_removed: int


@dataclass(frozen=True, slots=True)
class MergeResult(Shown):
    """The result of a merge; with `dry_run`, what it would do."""

    source: str
    into: str
    source_snapshot: SnapshotId
    """The snapshot id up to which the source was merged."""
    base_snapshot: SnapshotId
    """The snapshot id of the source up to which the target had seen everything before."""
    snapshot: SnapshotId | None
    """The new snapshot id of the target; None if there was nothing to merge, or with `dry_run`."""
    changes: tuple[Change, ...] = ()
    tables: tuple[MergedTable, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    """The conflicts; only with `dry_run`, otherwise `MergeConflict` carries them."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a source did that a target has not seen."""

    ours: Side
    theirs: Side
    relation: Divergence
    done: Events
    met: UnseenEvents
    net: DefinitionChanges
    rows: tuple[RowChanges, ...]
    seen: tuple[Span, ...]
    """What a merge adds to the version vector of the target."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A merge that was worked out, and not written yet."""

    compared: Compared
    builder: MergeBuilder
    changes: tuple[Change, ...]
    conflicts: list[Conflict]


class Merger:
    """Merges one catalog into another, with what a lake has at hand for that."""

    def __init__(self, context: LakeContext) -> None:
        """Do nothing yet."""
        self._context = context
        self._database = context.database
        self._engine = context.engine

    def merge(self, source: str, into: str, author: Author, options: MergeOptions) -> MergeResult:
        """Merge, or say what would happen; raise `MergeConflict` if it cannot be done."""
        options.check()
        for _ in range(ATTEMPTS):
            found = self.prepare(source, into, options)
            if found.conflicts and not options.dry_run:
                raise _refusal(source, into, found)
            if options.dry_run or not found.changes:
                return _result(self._database, source, into, found, None)
            snapshot = self._publish(found, author)
            if snapshot is not None:
                return _result(self._database, source, into, found, snapshot)
        raise StoreBusy(f'"{into}" changed {ATTEMPTS} times while "{source}" was merged: try again')

    def prepare(self, source: str, into: str, options: MergeOptions) -> Prepared:
        """Work out what a merge would write, and what stands in its way."""
        ours, theirs = (catalog_named(self._database, name).head for name in (source, into))
        if ours.catalog_id == theirs.catalog_id:
            raise InvalidArgument(f'"{source}" cannot be merged into itself')
        compared = self.compare(source, ours, into, theirs, options)
        builder = MergeBuilder(
            self._database,
            compared.relation,
            compared.done,
            compared.ours,
            compared.theirs,
            compared.net,
            compared.rows,
            compared.seen,
        )
        changes = builder.planned.changes
        found = [
            *self._conflicts(builder, changes, compared),
            *(_names_taken(builder, changes) if options.of_some_tables else ()),
            *_row_conflicts(builder, compared.rows, compared.met),
        ]
        last = compared.net.last
        reported = [
            replace(conflict, ours_snapshot=last.get(conflict.ours.object_id))
            for conflict in dict.fromkeys(found)
        ]
        return Prepared(compared, builder, changes, reported)

    def compare(
        self, source: str, ours_head: Head, into: str, theirs_head: Head, options: MergeOptions
    ) -> Compared:
        """What a source did that a target has not seen, at some snapshots of both."""
        known = relation(self._database, ours_head, theirs_head)
        if known is None:
            raise InvalidArgument(
                f'"{source}" and "{into}" have no ancestor in common: only forks and their parents are merged'
            )
        ours = Side(self._context.states.get(ours_head), ours_head)
        theirs = Side(self._context.states.get(theirs_head), theirs_head)
        done, chosen = events(self._database, known.ours), None
        if options.of_some_tables:
            tables = [_table_named(name, ours, theirs) for name in options.tables or ()]
            chosen = frozenset(_with_schemas([*tables, *options.table_ids], ours, theirs))
            done = done.of_objects(chosen)
        met = UnseenEvents(self._database, known.theirs)
        compared = RowComparison(
            self._database,
            self._engine,
            ours,
            theirs,
            done,
            known.since,
            met.everything,
            options.prefer,
            known,
        )
        net = self._net_changes(ours, theirs, done, known)
        rows = tuple(compared.changes(options.progress))
        rows = self._without_undone_rows(rows, ours, net, done, known.since)
        return Compared(ours, theirs, known, done, met, net, rows, tuple(brought(known.ours, chosen)))

    def _without_undone_rows(
        self,
        rows: tuple[RowChanges, ...],
        ours: Side,
        net: DefinitionChanges,
        done: Events,
        since: SnapshotId,
    ) -> tuple[RowChanges, ...]:
        """The same without tables that the target has dropped, if they have the rows that it knew last."""
        gone = {each.table for each in rows if each.is_back and not each.shown.is_empty} - net.created
        if gone:
            elsewhere = changed_elsewhere(self._database, ours.head, done)
            gone = {table for table in gone if not elsewhere.rows_of(table)}
        if not gone:
            return rows
        before, own = Side.at(self._database, ours.head, since), own_events(self._database, ours, since)
        own = own.of_objects(frozenset(gone))
        compared = RowComparison(self._database, self._engine, ours, before, own, since)
        changed = {each.table for each in compared.changes() if not each.shown.is_empty}
        return tuple(each for each in rows if each.table not in gone or each.table in changed)

    def _net_changes(self, ours: Side, theirs: Side, done: Events, known: Divergence) -> DefinitionChanges:
        net = net_changes(ours, theirs, done)
        if not (net.tags or net.layouts or net.indexes):
            return net
        before = Side.at(self._database, ours.head, known.since)
        return without_undone(net, before, changed_elsewhere(self._database, ours.head, done))

    def _conflicts(
        self, builder: MergeBuilder, changes: Sequence[Change], compared: Compared
    ) -> Iterator[Conflict]:
        """What the target did to definitions, or to rows that ours depends on."""
        met = compared.met
        needed = met.everything if any(map(_depends_on_rows, changes)) else met.definitions
        theirs = needed().changes
        taken_back = TakenBack(
            self._database, self._engine, compared.ours, compared.theirs, met, compared.relation.theirs_since
        )
        same = {rows.table for rows in compared.rows if rows.shown.is_empty and not rows.conflicts}
        # Rows are compared by themselves, and those that are as they were stand in nobody's way.
        alone = [
            replace(change, files=frozenset())
            for change in changes
            if change.verb not in DML or change.object_id not in same
        ]
        reported: set[int] = set()
        for conflict in conflicts(theirs, alone, MERGE_RULES):
            is_free = conflict.rule == TAKEN and builder.is_free(conflict.ours)
            if not is_free and not taken_back.covers(conflict) and not _leaves_columns(conflict, compared):
                reported.add(conflict.ours.object_id)
                yield conflict
        for gone in builder.gone:
            if gone.object_id not in reported:
                yield from conflicts(theirs, [gone]) or [
                    Conflict("it is gone", gone, gone, builder.draft.head.snapshot_id)
                ]

    def _publish(self, found: Prepared, author: Author) -> SnapshotId | None:
        """Write a merge; None if somebody committed to the target meanwhile, in its way."""
        draft, committer = found.builder.draft, Committer(self._context)
        try:
            plan = found.builder.with_rows_written(self._context.storage, self._context.options)
            return committer.commit_plan(draft, plan, author).head.snapshot_id
        except CommitConflict:
            # What stands in the way shows the next time.
            committer.discard(draft)
            return None
        except BaseException:
            committer.discard(draft)
            raise


def _leaves_columns(conflict: Conflict, compared: Compared) -> bool:
    """Whether a table was altered, but for the columns that the other side commented or built an index on."""
    if conflict.rule not in (ALTERED, COMMENTED, INDEXED):
        return False
    change, side = conflict.ours, compared.ours
    if conflict.rule != ALTERED:
        change, side = conflict.theirs, compared.theirs
    tables = [each.table(change.object_id) for each in (compared.ours, compared.theirs)]
    one, other = ({c.id: c.data_type for c in table.walk()} if table else {} for table in tables)
    if change.verb is Verb.TAG_COLUMN:
        columns = [column for column in change.tag[:1] if column is not None]
    else:
        found = alike(change.detail or "", side.indexes(change.object_id))
        columns = [column for index in found for column in (*index.keys, *index.include)]
    return bool(columns) and all(c in one and c in other and one[c] == other[c] for c in columns)


def _depends_on_rows(change: Change) -> bool:
    """Whether a change of ours may collide with rows that were only added or deleted."""
    rows = change.verb in DROPS or change.verb is Verb.REQUIRE_COLUMN
    return rows or change.detail == UNLESS_THERE or bool(change.paths)


def _names_taken(builder: MergeBuilder, changes: Iterable[Change]) -> Iterator[Conflict]:
    """Names that the target would have twice: if some tables are merged, others make no room for them."""
    for change in changes:
        if change.verb in CREATES | RENAMES:
            for holder in builder.other_holders(change):
                verb = Verb(f"create_{type(holder).__name__.lower()}")
                created = replace(change, verb=verb, object_id=holder.id, name=holder.name)
                begin = builder.draft.head.snapshot_id if holder.origin is None else holder.origin.begin
                yield Conflict(TAKEN, change, created, begin)


def _row_conflicts(
    builder: MergeBuilder, rows: Iterable[RowChanges], met: UnseenEvents
) -> Iterator[Conflict]:
    for changes in rows:
        table = builder.ours.table(changes.table)
        if not changes.conflicts or changes.examined is None or table is None:
            continue
        files = builder.conflicting_files(changes)
        takes = [
            event
            for event in met.everything().events
            if event.change.object_id == table.id and event.change.verb in RETIRES
        ]
        ours = builder.row_change(table.id, files)
        if not takes:
            # The source has seen all that the target took, and holds another version all the same.
            head = builder.draft.head
            takes = [Event(head.catalog_id, head.snapshot_id, ours)]
        last = next((event for event in reversed(takes) if event.change.files & files), takes[-1])
        yield Conflict(
            SAME_ROWS,
            ours,
            last.change,
            last.snapshot,
            files=tuple(builder.paths(files)),
            row_count=changes.conflicts,
            read_rows=changes.examined.conflicts,
        )


def _table_named(name: str, ours: Side, theirs: Side) -> TableId:
    """The table that has a name in the source, or in the target if the source dropped it."""
    parsed = QualifiedName.parse(name)
    for side in (ours, theirs):
        found = side.table_named(parsed)
        if found is not None:
            return found.id
    raise TableNotFound(f'no table is named "{parsed}" on either side')


def _with_schemas(tables: Sequence[TableId], ours: Side, theirs: Side) -> Iterator[int]:
    """Tables, and schemas that the target has not got and that they are in."""
    for number in tables:
        yield number
        table = ours.table(number)
        if table is not None and theirs.find("schema", table.schema_id) is None:
            yield table.schema_id


def _result(
    database: Database, source: str, into: str, found: Prepared, snapshot: SnapshotId | None
) -> MergeResult:
    return MergeResult(
        source,
        into,
        found.compared.ours.head.snapshot_id,
        found.compared.relation.since,
        snapshot,
        found.changes,
        tuple(_tables(database, found)),
        tuple(found.conflicts),
    )


def _tables(database: Database, found: Prepared) -> Iterator[MergedTable]:
    ours, theirs = found.compared.ours, found.compared.theirs
    for changes in found.compared.rows:
        table, shown = ours.table(changes.table), changes.shown
        if table is not None and not (shown.is_empty and changes.restored):
            yield MergedTable(
                ours.name_of(table),
                len(shown.added),
                len(shown.retired),
                shown.rows_added,
                shown.rows_removed,
            )
    for number in found.builder.planned.dropped_tables:
        table = theirs.table(number)
        if table is not None:
            totals = totals_of(database, theirs.head.catalog_id, table.id, theirs.head.snapshot_id)
            yield MergedTable(theirs.name_of(table), 0, totals.files, 0, totals.record_count)


def _refusal(source: str, into: str, found: Prepared) -> MergeConflict:
    reasons = list(dict.fromkeys(str(conflict) for conflict in found.conflicts))
    more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    rules = {conflict.rule for conflict in found.conflicts}
    if rules <= YIELDING:
        advice = f'Merge "{into}" into "{source}" first, then this can be merged'
    elif rules == {SAME_ROWS}:
        advice = (
            "Look at the rows (conflict.rows(), or merge --json), then merge with prefer source or target "
            f'(--prefer), or replay "{source}" onto "{into}"'
        )
    else:
        advice = (
            f'Replay "{source}" onto "{into}", which keeps what it can and lists the rest, '
            "or undo it on one side"
        )
    return MergeConflict(
        f'"{source}" cannot be merged into "{into}": there, {"; ".join(reasons[:3])}{more}. {advice}',
        found.conflicts,
    )
