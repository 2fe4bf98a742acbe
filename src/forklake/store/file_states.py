"""Single data files as a catalog sees them at a snapshot: whether they are there, and what they have lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from forklake.model.ids import CatalogId, DataFileId, SnapshotId, TableId
from forklake.model.table.files import DataFile, is_disjoint
from forklake.store.backend import Database
from forklake.store.file_values import delete_file, past_file


@dataclass(frozen=True, slots=True)
class FileState:
    """A data file with its delete file, and the positions that were deleted inline."""

    table: TableId
    file: DataFile
    is_live: bool
    positions: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()
    """Those of them that the delete file names too, if an earlier version wrote it."""

    @property
    def deletes(self) -> tuple[int | None, frozenset[int]]:
        """What says which rows are gone."""
        return (None if self.file.deletes is None else self.file.deletes.id), self.positions

    @property
    def deleted_count(self) -> int:
        """How many rows are gone."""
        named = 0 if self.file.deletes is None else self.file.deletes.own_count
        return named + len(self.positions)

    @property
    def without_repeats(self) -> FileState:
        """The same for a catalog that never had the file: what the delete file names is not inlined there."""
        deletes = self.file.deletes
        if deletes is None:
            return self
        file = replace(self.file, deletes=replace(deletes, inlined_before=0))
        return replace(self, file=file, positions=self.positions - self.repeated, repeated=frozenset())

    @property
    def live_rows(self) -> int:
        """The number of rows that are not deleted."""
        return self.file.record_count - self.deleted_count


def file_states(
    database: Database, catalog: CatalogId, at: SnapshotId, files: Collection[int]
) -> dict[DataFileId, FileState]:
    """Those of some files that a catalog had up to a snapshot, as they were then."""
    if not files:
        return {}
    listed = json.dumps(sorted(files))
    found: dict[DataFileId, FileState] = {}
    for table, *row in database.rows("file_states", catalog=catalog, files=listed):
        past = past_file(row)
        if past.file.begin <= at:
            found[past.file.id] = FileState(table, past.file, past.end is None or at < past.end)
    if not found:
        return {}
    tables = json.dumps(sorted({state.table for state in found.values()}))
    # What a file has lost may be there for longer than the file: it is collected on its own.
    for row in database.rows("delete_states", catalog=catalog, files=listed, tables=tables, at=at):
        deletes = delete_file(row)
        state = found.get(deletes.data_file_id)
        if state is not None:
            found[deletes.data_file_id] = replace(state, file=replace(state.file, deletes=deletes))
    positions: dict[DataFileId, dict[int, SnapshotId]] = {}
    for file, position, begin in database.rows("inlined_delete_states", catalog=catalog, files=listed, at=at):
        if file in found:
            positions.setdefault(file, {})[position] = begin
    return found | {file: _with_inlined(found[file], begins) for file, begins in positions.items()}


def _with_inlined(state: FileState, begins: Mapping[int, SnapshotId]) -> FileState:
    """A state with what was deleted inline, and when."""
    deletes = state.file.deletes
    if deletes is None:
        return replace(state, positions=frozenset(begins))
    before = frozenset(position for position, begin in begins.items() if deletes.is_younger(begin))
    return replace(
        state,
        file=replace(state.file, deletes=replace(deletes, inlined_before=len(before))),
        positions=frozenset(begins),
        repeated=frozenset() if is_disjoint(deletes.path) else before,
    )
