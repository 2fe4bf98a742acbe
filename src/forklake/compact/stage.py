"""Letting files that were rewritten take the place of the old ones, where these are still what they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forklake.commit.draft import Draft
from forklake.compact.inputs import inputs_of, rewrite_target
from forklake.compact.plan import Input, Rewrite, Target
from forklake.compact.run import Rewritten
from forklake.model.entities import Table
from forklake.model.ids import DataFileId
from forklake.scan.scan_plan import ScanFile


def stage(
    draft: Draft, table: Table, done: Sequence[Rewritten], *, elsewhere: bool = False
) -> tuple[list[Rewritten], list[Rewritten]]:
    """Retire old files and add new ones; returns what was staged, and what came too late.

    A rewrite is too late if somebody has taken rows from one of its files since, or has altered the table.
    """
    kept: list[Rewritten] = []
    late: list[Rewritten] = []
    if not done:
        return kept, late
    target = rewrite_target(draft, table, done[0].rewrite.target.write.options)
    known = {one.file.id: one for one in inputs_of(draft.source(table), target)}
    staged = draft.staged(table)
    for one in done:
        if not _holds(one.rewrite, target, known):
            late.append(one)
            continue
        kept.append(one)
        all_deleted = all(old.deleted_rows for old in one.rewrite.inputs)
        staged.compacted.add("rewrite_delete" if all_deleted else "merge_adjacent")
        for old in one.rewrite.inputs:
            # It goes once: another rewrite of the same file is too late.
            staged.retire(ScanFile(known.pop(old.file.id).file), moved=True)
        for file in one.files:
            staged.add_file(file, newest_row=one.rewrite.newest_row, elsewhere=elsewhere)
    return kept, late


def _holds(rewrite: Rewrite, now: Target, known: Mapping[DataFileId, Input]) -> bool:
    was = rewrite.target
    layout = (was.write.columns, was.write.partitioning, was.write.sort)
    same = layout == (now.write.columns, now.write.partitioning, now.write.sort)
    return same and all(_is_same(one, known.get(one.file.id)) for one in rewrite.inputs)


def _is_same(was: Input, now: Input | None) -> bool:
    return now is not None and _deletes(was) == _deletes(now)


def _deletes(one: Input) -> tuple[int | None, tuple[int, ...]]:
    return None if one.file.deletes is None else one.file.deletes.id, one.deleted
