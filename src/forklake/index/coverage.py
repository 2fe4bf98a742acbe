"""Which data files an index covers, which segments are to be built, and which are to be merged. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from forklake.model.ids import CatalogId, DataFileId
from forklake.model.index import IndexFile
from forklake.model.table.files import DataFile

FAN_IN = 8
"""How many segments of a level become one of the next: 1,000 files have 21 at most."""
MOST_ROWS = 64_000_000
"""How many rows a segment is built of at most, unless a data file has more; kinds mostly merge no more."""
_ROWS_OF_LEVEL = 10_000_000
"""A segment of so many rows is not merged with those of single commits."""


def covered(segments: Iterable[IndexFile]) -> set[DataFileId]:
    """The data files whose rows segments have."""
    return {file for segment in segments if segment.role == "segment" for file in segment.covers}


def uncovered(files: Iterable[DataFile], segments: Iterable[IndexFile]) -> list[DataFile]:
    """The data files whose rows no segment has."""
    known = covered(segments)
    return [file for file in files if file.id not in known]


def groups(files: Iterable[DataFile], most: int = MOST_ROWS) -> Iterator[tuple[DataFile, ...]]:
    """Data files for one segment each."""
    group: list[DataFile] = []
    rows = 0
    for file in files:
        if group and rows + file.record_count > most:
            yield tuple(group)
            group, rows = [], 0
        group.append(file)
        rows += file.record_count
    if group:
        yield tuple(group)


def level_of(rows: int) -> int:
    """The level of a segment that is built at once: as if it had been merged of smaller ones."""
    level = 0
    while rows >= _ROWS_OF_LEVEL * FAN_IN**level:
        level += 1
    return level


def merges(segments: Iterable[IndexFile], catalog: CatalogId, most: int) -> list[tuple[IndexFile, ...]]:
    """Segments of one index that are to become one: those of a level that a catalog wrote itself."""
    alike: dict[object, list[IndexFile]] = {}
    for segment in sorted(segments, key=lambda one: one.id):
        if segment.role == "segment" and segment.source == catalog:
            alike.setdefault((segment.level, segment.model), []).append(segment)
    groups = (
        tuple(found[first : first + FAN_IN])
        for found in alike.values()
        for first in range(0, len(found) - FAN_IN + 1, FAN_IN)
    )
    return [some for some in groups if sum(one.facts.entry_count for one in some) <= most]


def joint_ordinals(
    segments: Sequence[IndexFile], live: Collection[DataFileId]
) -> tuple[tuple[DataFileId, ...], tuple[dict[int, int], ...]]:
    """What one segment of several covers, and what ordinals of each become; files that ended have none."""
    files: dict[DataFileId, int] = {}
    ordinals: list[dict[int, int]] = []
    for segment in segments:
        # Of a file that two segments have, one brings the rows.
        own = {at: file for at, file in enumerate(segment.covers) if file in live and file not in files}
        ordinals.append({at: files.setdefault(file, len(files)) for at, file in own.items()})
    return tuple(files), tuple(ordinals)
