"""What happened to the rows of a table between two snapshots: which files and positions came and went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from forklake.data.inlined import InlinedRows, decode
from forklake.data.parquet.delete_files import positions_of
from forklake.data.parquet.positions import joined, without
from forklake.data.storage.storage import Storage
from forklake.errors import SnapshotNotFound
from forklake.lazy.arrow import pa
from forklake.model.changes import Change, Verb, from_footprint
from forklake.model.ids import DataFileId, SnapshotId
from forklake.model.table.files import DataFile
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan, ScanRows, Source
from forklake.store.file_values import PastFile
from forklake.store.files import ChangedFiles
from forklake.store.retention import expired_between

Place = ScanFile | ScanRows


@dataclass(frozen=True, slots=True)
class Gone:
    """Rows that one file lost in one snapshot."""

    place: Place
    positions: Positions
    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """All that an engine has to read for a change feed. Files begin when what is told of them happened."""

    inserted: ScanPlan
    """Files with rows that came, without those that went in the same commit."""
    dropped: ScanPlan
    """Files whose last rows went."""
    deleted: tuple[Gone, ...]
    net: frozenset[SnapshotId] = frozenset()
    """Snapshots that took over what was done elsewhere, or restored what was: rows that are the same in
    another file then do not show."""


def plan_changes(source: Source, start: SnapshotId, end: SnapshotId, storage: Storage) -> ChangePlan:
    """What came after one snapshot and up to another, and what went."""
    gap = expired_between(source.reader.database, source.reader.catalog, start, end)
    if gap is not None:
        raise SnapshotNotFound(
            f"snapshot {gap} was expired, and with it what came and went there: ask for the changes up to "
            "the snapshot before it, or from it on"
        )
    found = source.reader.changed(start, end)
    commits = [
        (snapshot, change)
        for snapshot, text in found.footprints
        if text is not None
        for change in from_footprint(text)
    ]
    moved = _moved(commits, source.table.id)
    contents = source.reader.contents([past.file for past in found.files if past.file.inlined])
    inserted: list[Place] = []
    dropped: list[Place] = []
    deleted: list[Gone] = []
    for past in found.files:
        file = past.file
        place = place_of(file, contents)
        known, events = _events(past, found, start, end, storage)
        if file.newest_row is None:
            # Rows that came and went in one commit were never there, unless they came from another file.
            same = [gone for snapshot, gone in events if snapshot == file.begin]
            events = [(snapshot, gone) for snapshot, gone in events if snapshot != file.begin]
            if start < file.begin <= end:
                inserted.append(replace(place, deleted=_joined(same) if same else None))
        deleted += [Gone(place, gone, snapshot) for snapshot, gone in events]
        if past.end is not None and start < past.end <= end and file.id not in moved:
            left = replace(place, file=replace(file, begin=past.end), deleted=known)
            if left.live_rows:
                dropped.append(left)
    net = frozenset(snapshot for snapshot, change in commits if _is_net(change, source.table.id))
    return ChangePlan(plan_of(source, inserted), plan_of(source, dropped), tuple(deleted), net)


def plan_places(source: Source, gone: Iterable[Gone]) -> ScanPlan:
    """A plan of the files that lost rows, each once."""
    return plan_of(source, list({entry.place.file.id: entry.place for entry in gone}.values()))


def plan_of(source: Source, places: Sequence[Place]) -> ScanPlan:
    """A plan that reads some files and rows, and nothing else."""
    files = tuple(place for place in places if isinstance(place, ScanFile))
    rows = tuple(place for place in places if isinstance(place, ScanRows))
    mapped = any(file.file.mapping_id is not None for file in files)
    return ScanPlan(
        source.table,
        source.reader.at,
        files,
        rows,
        mappings=source.reader.mappings() if mapped else {},
        has_old_names=source.has_old_names,
    )


def place_of(file: DataFile, contents: Mapping[DataFileId, str]) -> Place:
    """A file for a plan, or the rows that it has in the database."""
    return ScanRows(file, InlinedRows.of(decode(contents[file.id]))) if file.inlined else ScanFile(file)


def _moved(commits: Iterable[tuple[SnapshotId, Change]], table: int) -> set[int]:
    """Files that a flush or a compaction replaced: their rows live on."""
    return {
        file
        for _, change in commits
        if change.object_id == table and change.verb in (Verb.FLUSH, Verb.COMPACT)
        for file in change.files
    }


def _is_net(change: Change, table: int) -> bool:
    """Whether rows may have come and gone in a commit that are the same in another file."""
    restored = change.verb == Verb.RESTORE_TABLE and change.object_id == table
    return restored or change.verb == Verb.MERGE_CATALOG


def _events(
    past: PastFile, found: ChangedFiles, start: SnapshotId, end: SnapshotId, storage: Storage
) -> tuple[Positions | None, list[tuple[SnapshotId, Positions]]]:
    """All positions that a file had lost by the end, and what it lost in each snapshot of the span."""
    versions = found.deletes.get(past.file.id, [])
    inlined = found.inlined.get(past.file.id, [])
    steps: list[tuple[SnapshotId, Positions]] = [
        (version.begin, positions_of(storage, version)) for version in versions
    ]
    steps += [(begin, pa.array(positions, pa.int64())) for begin, positions in _by_snapshot(inlined)]
    known: Positions | None = None
    events: list[tuple[SnapshotId, Positions]] = []
    for snapshot, positions in sorted(steps, key=lambda step: step[0]):
        fresh = without(positions, known)
        known = joined(known, fresh)
        if start < snapshot <= end and len(fresh):
            events.append((snapshot, fresh))
    return known, events


def _by_snapshot(inlined: Iterable[tuple[int, SnapshotId]]) -> list[tuple[SnapshotId, list[int]]]:
    found: dict[SnapshotId, list[int]] = {}
    for position, begin in inlined:
        found.setdefault(begin, []).append(position)
    return list(found.items())


def _joined(parts: Sequence[Positions]) -> Positions:
    return pa.concat_arrays(list(parts)).sort()
