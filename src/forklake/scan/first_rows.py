"""The first rows in an order, as indexes have them: others that they cover need not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from forklake.data.parquet.delete_files import lost_positions
from forklake.data.storage.storage import Storage
from forklake.errors import MissingDependency, StorageError
from forklake.index.found_rows import by_segment
from forklake.index.kind import OrderedKind
from forklake.lazy.arrow import pa, pc
from forklake.model.ids import ColumnId, DataFileId
from forklake.model.index import Support
from forklake.model.sql.predicate_tree import Always, IsNull, Node, Not, Operand, all_of
from forklake.scan.index_answers import MOST_FILES, IndexUse
from forklake.scan.scan_plan import Positions, Pruned, ScanFile, ScanPlan
from forklake.scan.table_indexes import ChosenSegments, TableIndexes, UsableIndex, usable_indexes

_SHARE = 8
"""One of so many rows at most: reading all of them is not slower else."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """ORDER BY with LIMIT."""

    keys: tuple[ColumnId, ...]
    count: int
    descending: bool = False
    nulls_last: bool = True


def with_first_rows(
    plan: ScanPlan, indexes: TableIndexes, storage: Storage, wanted: FirstRows, node: Node | None
) -> ScanPlan:
    """A plan that leaves out what an index knows not to be among the first rows that meet a condition.

    The condition is all that is asked of rows, told by a tree; None asks for nothing.
    """
    rows = sum(file.live_rows for file in plan.files)
    if plan.wanted or plan.held or wanted.count * _SHARE > rows:
        return plan
    uses: list[IndexUse] = []
    for each in usable_indexes(indexes, plan.table.columns, storage):
        if (
            not isinstance(each, UsableIndex)
            or not hasattr(each.kind, "first")
            or each.index.keys[: len(wanted.keys)] != wanted.keys
        ):
            continue
        chosen = each.chosen([file.file.id for file in plan.files])
        if not chosen.by_file:
            continue
        try:
            found = _first(each, chosen, plan, storage, wanted, node)
        except (StorageError, MissingDependency) as problem:
            uses.append(IndexUse(each.index.name, each.index.kind, problem=str(problem)))
            continue
        if found is not None:
            return _narrowed(plan, each, chosen, found, uses)
    return replace(plan, indexes=(*plan.indexes, *uses))


def _first(
    each: UsableIndex,
    chosen: ChosenSegments,
    plan: ScanPlan,
    storage: Storage,
    wanted: FirstRows,
    node: Node | None,
) -> Mapping[DataFileId, Positions] | None:
    """Where the first rows are; None if the index cannot tell."""
    kind = cast("OrderedKind", each.kind)
    node = Always(True) if node is None else node
    key, *others = wanted.keys
    may_be_null = any(column.nullable for column in plan.table.columns if column.id == key)
    # The index has NULL above everything.
    is_alike = wanted.nulls_last is not wanted.descending
    if not is_alike and (others or (may_be_null and not wanted.nulls_last)):
        return None
    is_whole = is_alike or not may_be_null
    if not is_whole:
        node = all_of((node, Not(IsNull(Operand(key)))))
    if not isinstance(node, Always) and kind.supports(each.spec, node) is not Support.EXACT:
        return None
    files = {place: file for file, place in chosen.by_file.items()}
    scanned = {file.file.id: file for file in plan.files}
    lost: dict[DataFileId, Positions] = {}

    def alive(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
        file = files.get((segment, ordinal))
        if file is None:
            return pa.repeat(pa.scalar(False), len(positions))
        if file not in lost:
            lost[file] = _lost(storage, scanned[file])
        return pc.invert(pc.is_in(positions, value_set=lost[file]))

    rows = kind.first(
        each.spec, chosen.segments, wanted.count, alive, node=node, descending=wanted.descending
    )
    if not is_whole and rows.num_rows < wanted.count:
        # Rows with NULL follow.
        return None
    return {files[place]: positions for place, positions in by_segment(rows).items()}


def _lost(storage: Storage, file: ScanFile) -> Positions:
    return lost_positions(storage, file.file.deletes, file.deleted)


def _narrowed(
    plan: ScanPlan,
    each: UsableIndex,
    chosen: ChosenSegments,
    found: Mapping[DataFileId, Positions],
    uses: list[IndexUse],
) -> ScanPlan:
    covered = chosen.by_file.keys()
    gone = [file for file in plan.files if file.file.id in covered and file.file.id not in found]
    read = {file.file.id: file.file.record_count for file in plan.files if file.file.id in found}
    wanted = dict(found) if len(found) <= MOST_FILES else {}
    saved = sum(file.file.record_count for file in gone)
    saved += sum(read[file] - len(positions) for file, positions in wanted.items())
    use = IndexUse(each.index.name, each.index.kind, len(covered), len(gone), saved)
    reason = f"none of the first rows is in it, by index {each.index.name}"
    pruned = tuple(Pruned(file.path, file.file.record_count, reason) for file in gone)
    dropped = {file.file.id for file in gone}
    return replace(
        plan,
        files=tuple(file for file in plan.files if file.file.id not in dropped),
        wanted=wanted,
        indexes=(*plan.indexes, *uses, use),
        find_pruned=lambda: (*plan.pruned, *pruned),
    )
