"""The verb `undo`: what one commit did is taken back, as one more commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from forklake.api.arrived_rows import take_in
from forklake.api.change_feed import check_names
from forklake.commit.draft import Draft
from forklake.commit.undo import Undoing, refusal, undo_definitions, undo_files, undoing
from forklake.commit.write_target import writer_for
from forklake.context.lake_context import LakeContext
from forklake.data.parquet.schema import arrow_schema
from forklake.engine.change_feed import KIND, ROW_COLUMN, SNAPSHOT_COLUMN
from forklake.engine.rows_by_id import changed_ids, changed_since, find_ids, rows_with_ids
from forklake.errors import CommitConflict, InvalidArgument, SnapshotNotFound
from forklake.lazy.arrow import pa, pc
from forklake.model.changes import UNDONE, Change, Conflict, Verb
from forklake.model.ids import SnapshotId, TableId
from forklake.model.progress import OnProgress, Steps
from forklake.model.types.arrow import one_array
from forklake.scan.change_plan import plan_changes, plan_places
from forklake.scan.scan_plan import Source, plan_scan
from forklake.store.catalogs import stood_at_snapshot
from forklake.store.retention import check_retained, expired_between

_NEW = ("insert", "update_postimage")
_OLD = ("delete", "update_preimage")


def undo_commit(
    draft: Draft,
    snapshot: int,
    at: Callable[[int], Draft],
    context: LakeContext,
    progress: OnProgress | None = None,
) -> None:
    """Stage the opposite of a commit, or raise `CommitConflict` with what stands in the way."""
    if not isinstance(snapshot, int) or isinstance(snapshot, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"what is undone is a snapshot by its number, not {snapshot!r}")
    after = at(snapshot)
    if after.head.snapshot_id != snapshot or snapshot > draft.head.snapshot_id:
        raise SnapshotNotFound(
            f"snapshot {snapshot} is none of this catalog: its history lists those that are"
        )
    work = undoing(draft, at(_predecessor(draft, after.head.snapshot_id, context)), after)
    whole = undo_definitions(work)
    work.refuse()
    mixed = undo_files(work, whole)
    steps = Steps(progress, f"undo the rows of snapshot {snapshot}", "tables", len(mixed))
    for table in steps.over(sorted(mixed)):
        _undo_rows(work, table, context)


def _predecessor(draft: Draft, snapshot: SnapshotId, context: LakeContext) -> SnapshotId:
    """The snapshot of the catalog before one; those of catalogs that are gone may have been in between."""
    database, catalog = context.database, draft.head.catalog_id
    found = stood_at_snapshot(database, catalog, snapshot - 1)
    if found is None:
        check_retained(database, catalog, None)
        raise InvalidArgument(f"snapshot {snapshot} made the catalog, and cannot be undone")
    # Of a single snapshot that was expired, no row may be left.
    expired = expired_between(database, catalog, found.snapshot_id, snapshot)
    check_retained(database, catalog, expired or found.snapshot_id)
    return found.snapshot_id


def _undo_rows(work: Undoing, number: TableId, context: LakeContext) -> None:
    """Take rows out, and bring others back, by their ids: they may be in other files by now."""
    draft, engine = work.draft, context.engine
    table = draft.table(number)
    source = draft.source(table)
    check_names(source)
    start, end = work.before.head.snapshot_id, work.snapshot
    done = _changes(source, start, end, context)
    made, now = plan_scan(_at(source, end)), plan_scan(source)
    changed = changed_since(engine, done, made, now)
    if changed:
        raise _changed(work, source, changed, context)
    found = find_ids(engine, now, _ids(done, _NEW))
    staged = draft.staged(table)
    returning = _ids(done, _OLD)
    if len(returning):
        batches = rows_with_ids(engine, plan_scan(_at(source, start)), returning)
        writer = writer_for(draft, table, context.storage, context.options, draft.written)
        schema = arrow_schema(table.columns, row_ids=True)
        take_in(batches, schema, writer).stage(draft, table)
        staged.brings_back = True
    staged.delete(found)
    draft.restored[table.id] = UNDONE


def _changes(source: Source, start: SnapshotId, end: SnapshotId, context: LakeContext) -> pa.Table:
    """Which rows changed in a span, and how."""
    plan = plan_changes(source, start, end, context.storage)
    return changed_ids(context.engine, plan, plan_places(source, plan.deleted))


def _ids(changes: pa.Table, kinds: tuple[str, ...]) -> pa.Array:
    wanted = changes.filter(pc.is_in(changes.column(KIND), value_set=pa.array(kinds)))
    return one_array(wanted.column(ROW_COLUMN))


def _at(source: Source, snapshot: SnapshotId) -> Source:
    """The rows that a table had, with the columns that it has."""
    return replace(source, reader=replace(source.reader, at=snapshot))


def _changed(work: Undoing, source: Source, rows: list[int], context: LakeContext) -> CommitConflict:
    """The error for rows that somebody has changed since."""
    later = _changes(source, work.snapshot, work.draft.head.snapshot_id, context).to_pylist()
    table = source.table
    ours = next(change for change in work.done if change.object_id == table.id)
    found: list[Conflict] = []
    for row in rows:
        event = max((e for e in later if e[ROW_COLUMN] == row), key=lambda e: e[SNAPSHOT_COLUMN])
        snapshot = SnapshotId(event[SNAPSHOT_COLUMN])
        theirs = next(
            (c for s, c in work.later if (s, c.object_id) == (snapshot, table.id)),
            Change(Verb.DELETE, table.id, table.schema_id, name=table.name),
        )
        how = {"insert": "came back", "delete": "was deleted"}.get(event[KIND], "was updated")
        found.append(Conflict(f"row {row} {how} there", ours, theirs, snapshot))
    return refusal(work.snapshot, work.before.head.snapshot_id, found)
