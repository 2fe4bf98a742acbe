"""Comparing catalogs with what a model of merges says, and with what must hold in the store in any case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import forklake
from forklake.data.parquet.delete_files import positions_of
from forklake.errors import MergeConflict
from forklake.fork.merge import MergeResult
from forklake.store.file_states import file_states
from tests.property.merge_model import DefinitionChanges

Rows = dict[int, int]
"""Versions by row id."""
Told = Counter[tuple[str, int, int]]
"""How often a kind of change is told of a key and a value."""


def rows_of(table: forklake.Table) -> Rows:
    found = table.scan(columns=["ver"], row_ids=True).to_pylist()
    rows = {row["row_id"]: row["ver"] for row in found}
    assert len(rows) == len(found), "a row id twice"
    return rows


def merged(
    lake: forklake.Lake, source: str, target: forklake.Catalog, **options: Any
) -> MergeResult | MergeConflict:
    """Merge, or be refused and leave no trace; a dry run says the same before."""
    before = target.snapshot
    dry = lake.merge(source, target, dry_run=True, **options)
    assert target.snapshot == before
    try:
        result = lake.merge(source, target, **options)
    except MergeConflict as conflict:
        assert dry.conflicts == conflict.conflicts != ()
        assert target.snapshot == before
        return conflict
    assert (dry.conflicts, dry.changes, dry.tables) == ((), result.changes, result.tables)
    return result


def check_feed(table: forklake.Table, rows: Rows, start: int, expected: Rows) -> None:
    """Told forward from the old rows, the feed leads to the new ones."""
    rows = dict(rows)
    changes = table.changes(start).to_pylist()
    for change in changes:
        if change["change_type"] in ("delete", "update_preimage"):
            assert rows.pop(change["row_id"]) == change["ver"]
    for change in changes:
        if change["change_type"] in ("insert", "update_postimage"):
            assert change["row_id"] not in rows
            rows[change["row_id"]] = change["ver"]
    assert rows == expected


def check_positions(lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table) -> None:
    """Of every data file each deleted position is named once: by its one delete file, or in the metadata."""
    plan = table.scan().plan()
    head, storage = catalog._scope.head(), lake._context.storage
    numbers = [place.file.id for place in (*plan.files, *plan.rows)]
    states = file_states(lake._database, head.catalog_id, head.snapshot_id, numbers)
    for state in states.values():
        deletes = state.file.deletes
        named: list[int] = [] if deletes is None else positions_of(storage, deletes).to_pylist()
        assert len(named) == len(set(named)), f"{deletes} names a position twice"
        assert state.positions.isdisjoint(named), f"positions of {state.file} are deleted again"
        assert all(0 <= place < state.file.record_count for place in (*named, *state.positions))
    assert sum(state.live_rows for state in states.values()) == table.count()


def expected_feed(net: Sequence[DefinitionChanges]) -> Told:
    told: Told = Counter()
    for key, old, new in net:
        if old is not None:
            told["delete" if new is None else "update_preimage", key, old] += 1
        if new is not None:
            told["insert" if old is None else "update_postimage", key, new] += 1
    return told


def check_difference(found: Any, net: Sequence[DefinitionChanges], *, counts: bool) -> None:
    """The difference of a table tells what became of rows; counts only where none was just moved."""
    told = Counter[tuple[str, int, int]]()
    if found is not None:
        told.update((row["change_type"], row["k"], row["ver"]) for row in found.rows().to_pylist())
    assert told == expected_feed(net)
    if counts:
        added, removed = (0, 0) if found is None else (found.rows_added, found.rows_removed)
        assert (added, removed) == counted(net)


def counted(net: Sequence[DefinitionChanges]) -> tuple[int, int]:
    """How many rows come and go; one that is updated does both."""
    return sum(entry.new is not None for entry in net), sum(entry.old is not None for entry in net)
