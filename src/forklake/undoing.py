"""The verb `undo`: what one commit did is taken back, as one more commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from forklake.commit.draft import Draft
from forklake.commit.output import output_for
from forklake.commit.undo import Undoing, refusal, undo_definitions, undo_files, undoing
from forklake.data.schema import arrow_schema
from forklake.engine.by_id import changed_ids, find_ids, first_met, rows_with_ids
from forklake.engine.changes import KIND, ROW_COLUMN
from forklake.errors import CommitConflict, InvalidArgument, SnapshotNotFound
from forklake.feed import check_names
from forklake.model.changes import UNDONE, Change, Conflict, Verb
from forklake.model.entities import Table
from forklake.model.ids import SnapshotId, TableId
from forklake.model.kernels import pc
from forklake.rows import take_in
from forklake.scan.changes import plan_changes, plan_places
from forklake.scan.plan import Source, plan_scan
from forklake.workbench import Workbench

_NEW = ("insert", "update_postimage")
_OLD = ("delete", "update_preimage")


def undo_commit(draft: Draft, snapshot: int, at: Callable[[int], Draft], workbench: Workbench) -> None:
    """Stage the opposite of a commit, or raise `CommitConflict` with what stands in the way."""
    if not isinstance(snapshot, int) or isinstance(snapshot, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"what is undone is a snapshot by its number, not {snapshot!r}")
    after = at(snapshot)
    if after.head.snapshot_id != snapshot or snapshot > draft.head.snapshot_id:
        raise SnapshotNotFound(
            f"snapshot {snapshot} is none of this catalog: its history lists those that are"
        )
    try:
        before = at(snapshot - 1)
    except SnapshotNotFound as error:
        raise InvalidArgument(f"snapshot {snapshot} made the catalog, and cannot be undone") from error
    work = undoing(draft, before, after)
    whole = undo_definitions(work)
    work.refuse()
    mixed = undo_files(work, whole)
    for table in sorted(mixed):
        _undo_rows(work, table, workbench)


def _undo_rows(work: Undoing, number: TableId, workbench: Workbench) -> None:
    """Take rows out, and bring others back, by their ids: they may be in other files by now."""
    draft, engine = work.draft, workbench.engine
    table = draft.table(number)
    source = draft.source(table)
    check_names(source)
    start, end = work.before.head.snapshot_id, work.snapshot
    done = _changes(source, start, end, workbench)
    later = _changes(source, end, draft.head.snapshot_id, workbench)
    met = first_met(engine, done, later)
    if met is not None:
        raise _met(work, table, **met)
    found = find_ids(engine, plan_scan(source), _ids(done, _NEW))
    staged = draft.staged(table)
    returning = _ids(done, _OLD)
    if len(returning):
        past = replace(source, reader=replace(source.reader, at=start))
        batches = rows_with_ids(engine, plan_scan(past), returning)
        output = output_for(draft, table, workbench.storage, workbench.options, draft.written)
        schema = arrow_schema(table.columns, row_ids=True)
        take_in(batches, schema, output).stage(draft, table)
        staged.brings_back = True
    staged.delete(found)
    draft.restored[table.id] = UNDONE


def _changes(source: Source, start: SnapshotId, end: SnapshotId, workbench: Workbench) -> pa.Table:
    """Which rows changed in a span, and how."""
    plan = plan_changes(source, start, end, workbench.storage)
    return changed_ids(workbench.engine, plan, plan_places(source, plan.deleted))


def _ids(changes: pa.Table, kinds: tuple[str, ...]) -> pa.Array:
    wanted = changes.filter(pc.is_in(changes.column(KIND), value_set=pa.array(kinds)))
    return wanted.column(ROW_COLUMN).combine_chunks()


def _met(work: Undoing, table: Table, *, change_type: str, snapshot_id: int, row_id: int) -> CommitConflict:
    """The error for a row that somebody has changed since."""
    ours = next(change for change in work.done if change.object_id == table.id)
    theirs = next(
        (c for s, c in work.later if (s, c.object_id) == (snapshot_id, table.id)),
        Change(Verb.DELETE, table.id, table.schema_id, name=table.name),
    )
    how = {"insert": "came back", "delete": "was deleted"}.get(change_type, "was updated")
    rule = f"row {row_id} {how} there"
    conflict = Conflict(rule, ours, theirs, SnapshotId(snapshot_id))
    return refusal(work.snapshot, work.before.head.snapshot_id, [conflict])
