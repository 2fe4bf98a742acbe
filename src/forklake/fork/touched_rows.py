"""Which rows of which files some commits deleted or moved, by their positions.

A catalog stores what a file has lost in all: what one commit took is what was lost after it and not before.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

from forklake.data.parquet.delete_files import positions_of, united, without
from forklake.data.storage.storage import Storage
from forklake.fork.version_vectors import Events
from forklake.lazy.arrow import pa
from forklake.model.ids import CatalogId, DataFileId, DeleteFileId, SnapshotId
from forklake.model.table.files import DeleteFile
from forklake.scan.scan_plan import Positions
from forklake.store.backend import Database
from forklake.store.file_states import FileState
from forklake.store.files import delete_file


@cache
def no_positions() -> Positions:
    """An empty list of positions."""
    # `pa.array([])` would load pandas, to see whether its argument is something of it.
    return pa.nulls(0, pa.int64())


def common(one: Positions, other: Positions) -> Positions:
    """Positions that are in both lists."""
    return without(one, without(one, other)) if len(one) and len(other) else no_positions()


class LostPositions:
    """Reads what files have lost; each delete file once."""

    def __init__(self, storage: Storage) -> None:
        """Read nothing yet."""
        self._storage = storage
        self._read: dict[DeleteFileId, Positions] = {}

    def named(self, file: DeleteFile) -> Positions:
        """What a delete file names."""
        if file.id not in self._read:
            self._read[file.id] = positions_of(self._storage, file)
        return self._read[file.id]

    def of(self, state: FileState) -> Positions:
        """All that a file has lost."""
        parts = [pa.array(sorted(state.positions), pa.int64())]
        if state.file.deletes is not None:
            parts.append(self.named(state.file.deletes))
        return united(parts)

    def more(self, state: FileState, than: FileState) -> Positions:
        """What a file has lost in one state and not in another."""
        if state.file.deletes is None or state.deletes[0] == than.deletes[0]:
            # What one delete file names need not be read to tell two states apart.
            fresh = pa.array(sorted(state.positions - than.positions), pa.int64())
            if than.file.deletes is None or state.file.deletes is not None or not len(fresh):
                return fresh
            return without(fresh, self.named(than.file.deletes))
        return without(self.of(state), self.of(than))


@dataclass(frozen=True, slots=True)
class Touched:
    """What some commits did to the rows of one file."""

    positions: Positions
    """Rows that they deleted or moved."""
    retired: Positions
    """Those of them that were left when the file was retired."""


@dataclass(slots=True)
class _History:
    """A file in one catalog: when it ended there, and what it lost when."""

    record_count: int = 0
    end: SnapshotId | None = None
    deletes: list[DeleteFile] = field(default_factory=list[DeleteFile])
    inlined: dict[SnapshotId, list[int]] = field(default_factory=dict[SnapshotId, list[int]])

    def before(self, snapshot: SnapshotId, lost: LostPositions) -> Positions:
        """What it had lost before a commit."""
        inlined = [place for begin, found in self.inlined.items() if begin < snapshot for place in found]
        parts = [pa.array(sorted(inlined), pa.int64())]
        earlier = [file for file in self.deletes if file.begin < snapshot]
        if earlier:
            parts.append(lost.named(max(earlier, key=lambda file: file.begin)))
        return united(parts)

    def by(self, snapshot: SnapshotId, lost: LostPositions) -> Positions:
        """What it lost in a commit."""
        parts = [pa.array(sorted(self.inlined.get(snapshot, ())), pa.int64())]
        parts += [lost.named(file) for file in self.deletes if file.begin == snapshot]
        return without(united(parts), self.before(snapshot, lost))


def touched_rows(
    database: Database, lost: LostPositions, done: Events, files: Collection[int]
) -> dict[DataFileId, Touched]:
    """What some commits did to rows of some files."""
    named = [
        (event.catalog, event.snapshot, DataFileId(file))
        for event in done.events
        for file in sorted(event.change.files & frozenset(files))
    ]
    if not named:
        return {}
    histories = _histories(database, {catalog for catalog, _, _ in named}, {file for *_, file in named})
    found: dict[DataFileId, list[Positions]] = {}
    retired: dict[DataFileId, list[Positions]] = {}
    for catalog, snapshot, file in dict.fromkeys(named):
        history = histories.get((catalog, file))
        if history is None:
            continue
        if history.end == snapshot:
            every = pa.array(range(history.record_count), pa.int64())
            left = without(every, history.before(snapshot, lost))
            found.setdefault(file, []).append(left)
            retired.setdefault(file, []).append(without(left, history.by(snapshot, lost)))
        else:
            found.setdefault(file, []).append(history.by(snapshot, lost))
    return {
        file: Touched(united(parts), united(retired.get(file, [no_positions()])))
        for file, parts in found.items()
    }


def _histories(
    database: Database, catalogs: Collection[CatalogId], files: Collection[DataFileId]
) -> dict[tuple[CatalogId, DataFileId], _History]:
    listed = json.dumps([(catalog, 0, 0) for catalog in sorted(catalogs)])
    wanted = json.dumps(sorted(files))
    found: dict[tuple[CatalogId, DataFileId], _History] = {}
    for catalog, file, records, _, end in database.rows("file_histories", catalogs=listed, files=wanted):
        found[catalog, file] = _History(records, end)
    for catalog, *row in database.rows("delete_histories", catalogs=listed, files=wanted):
        deletes = delete_file(row)
        found[catalog, deletes.data_file_id].deletes.append(deletes)
    for catalog, file, position, begin in database.rows(
        "inlined_delete_histories", catalogs=listed, files=wanted
    ):
        found[catalog, file].inlined.setdefault(begin, []).append(position)
    return found
