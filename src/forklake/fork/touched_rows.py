"""Which rows of which files some commits deleted or moved, by their positions.

A catalog stores what a file has lost in all: what one commit took is what was lost after it and not before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from forklake.data.parquet.delete_files import positions_of
from forklake.data.parquet.positions import ascending, common, united, without
from forklake.data.storage.storage import Storage
from forklake.fork.version_vectors import Events
from forklake.lazy.arrow import pa
from forklake.model.ids import CatalogId, DataFileId, DeleteFileId, SnapshotId
from forklake.model.table.files import DeleteFile
from forklake.scan.scan_plan import Positions
from forklake.store.backend import Database
from forklake.store.file_histories import FileHistory, file_histories
from forklake.store.file_states import FileState


@cache
def no_positions() -> Positions:
    """An empty list of positions."""
    # `pa.array([])` would load pandas, to see whether its argument is something of it.
    return pa.nulls(0, pa.int64())


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
        return self.all(state.positions, [] if state.file.deletes is None else [state.file.deletes])

    def all(self, inlined: Iterable[int], files: Iterable[DeleteFile]) -> Positions:
        """What was deleted inline, and what delete files name: ascending, each once."""
        return united([ascending(inlined), *map(self.named, files)])

    def more(self, state: FileState, than: FileState) -> Positions:
        """What a file has lost in one state and not in another."""
        if state.file.deletes is None or state.deletes[0] == than.deletes[0]:
            # What one delete file names need not be read to tell two states apart.
            fresh = ascending(state.positions - than.positions)
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


def _lost_before(history: FileHistory, snapshot: SnapshotId, lost: LostPositions) -> Positions:
    """What a file had lost before a commit."""
    inlined = [place for begin, found in history.inlined.items() if begin < snapshot for place in found]
    earlier = [file for file in history.deletes if file.begin < snapshot]
    return lost.all(inlined, [max(earlier, key=lambda file: file.begin)] if earlier else [])


def _lost_by(history: FileHistory, snapshot: SnapshotId, lost: LostPositions) -> Positions:
    """What a file lost in a commit."""
    files = [file for file in history.deletes if file.begin == snapshot]
    found = lost.all(history.inlined.get(snapshot, ()), files)
    return without(found, _lost_before(history, snapshot, lost))


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
    histories = file_histories(database, {catalog for catalog, _, _ in named}, {file for *_, file in named})
    found: dict[DataFileId, list[Positions]] = {}
    retired: dict[DataFileId, list[Positions]] = {}
    for catalog, snapshot, file in dict.fromkeys(named):
        history = histories.get((catalog, file))
        if history is None:
            continue
        if history.end == snapshot:
            every = pa.array(range(history.record_count), pa.int64())
            left = without(every, _lost_before(history, snapshot, lost))
            found.setdefault(file, []).append(left)
            retired.setdefault(file, []).append(without(left, _lost_by(history, snapshot, lost)))
        else:
            found.setdefault(file, []).append(_lost_by(history, snapshot, lost))
    return {
        file: Touched(united(parts), united(retired.get(file, [no_positions()])))
        for file, parts in found.items()
    }


def are_told(database: Database, done: Events) -> bool:
    """Whether what some commits took from files can still be told."""
    named = {(event.catalog, DataFileId(file)) for event in done.events for file in event.change.files}
    if not named:
        return True
    histories = file_histories(database, {catalog for catalog, _ in named}, {file for _, file in named})
    return all(
        history is not None
        and (
            event.snapshot == history.end
            or event.snapshot in history.inlined
            or any(deletes.begin == event.snapshot for deletes in history.deletes)
        )
        for event in done.events
        for history in (histories.get((event.catalog, DataFileId(file))) for file in event.change.files)
    )


def lost_rows(
    database: Database,
    lost: LostPositions,
    seen: Mapping[CatalogId, SnapshotId],
    files: Collection[DataFileId],
) -> dict[DataFileId, Positions]:
    """What some files lost in any of some catalogs, each up to a snapshot."""
    found: dict[DataFileId, list[Positions]] = {}
    for (catalog, file), history in file_histories(database, seen.keys(), files).items():
        if history.end is not None and history.end <= seen[catalog]:
            positions = pa.array(range(history.record_count), pa.int64())
        else:
            positions = _lost_before(history, SnapshotId(seen[catalog] + 1), lost)
        if len(positions):
            found.setdefault(file, []).append(positions)
    return {file: united(parts) for file, parts in found.items()}


def told(lost: Positions, touched: Touched | None) -> tuple[Positions, Positions]:
    """Rows that a file has lost: those that commits took, and others.

    Of these, a merge kept another copy, since others had moved the row to two places. Who has not got that
    copy keeps the one in the file.
    """
    if touched is None:
        return lost, no_positions()
    return common(lost, touched.positions), without(lost, touched.positions)


def untold(old: FileState, lost: Positions, touched: Touched) -> Positions:
    """Rows that are left in a file, and that no commit took."""
    taken = united([touched.positions, lost])
    if len(taken) == old.file.record_count:
        return no_positions()
    return without(pa.array(range(old.file.record_count), pa.int64()), taken)
