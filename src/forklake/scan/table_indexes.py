"""The indexes of a table as a scan finds them: what they are of, and their segments by data file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from forklake.data.storage.storage import Storage
from forklake.errors import InvalidIndex, MissingDependency
from forklake.index.kind import Kind, Segment
from forklake.index.registry import kind_of
from forklake.index.segment_files import StoredSegment
from forklake.index.specs import spec_of
from forklake.model.entities import Column
from forklake.model.ids import ColumnId, DataFileId, IndexFileId
from forklake.model.index import Index, IndexFile, IndexSpec


@dataclass(frozen=True, slots=True)
class TableIndexes:
    """Definitions, and the files of all of them that may be used."""

    definitions: tuple[Index, ...] = ()
    files: tuple[IndexFile, ...] = ()


@dataclass(frozen=True, slots=True)
class UsableIndex:
    """An index whose kind is there."""

    index: Index
    kind: Kind
    spec: IndexSpec
    segments: tuple[tuple[IndexFile, Segment], ...]
    """Those that cover most data files first."""

    @property
    def held(self) -> frozenset[ColumnId]:
        """The columns whose values its segments hold, if it was told to include some."""
        return frozenset((*self.index.keys, *self.index.include)) if self.index.include else frozenset()

    def chosen(self, files: Collection[DataFileId]) -> ChosenSegments:
        """Segments that cover as many of some data files as there are segments for, each file by one."""
        segments: list[Segment] = []
        by_file: dict[DataFileId, tuple[int, int]] = {}
        for stored, segment in self.segments:
            new = [
                (file, (len(segments), ordinal))
                for ordinal, file in enumerate(stored.covers)
                if file in files and file not in by_file
            ]
            if new:
                segments.append(segment)
                by_file |= dict(new)
        return ChosenSegments(tuple(segments), by_file)


@dataclass(frozen=True, slots=True)
class ChosenSegments:
    """Segments, and the place of each data file in them: the number of a segment, and an ordinal in it."""

    segments: tuple[Segment, ...]
    by_file: Mapping[DataFileId, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Unusable:
    """An index that cannot be asked, and why: its data files are scanned."""

    index: Index
    problem: str


def usable_indexes(
    found: TableIndexes, columns: Sequence[Column], storage: Storage
) -> Iterator[UsableIndex | Unusable]:
    """The indexes that have segments, with the kinds that read them."""
    stored = {file.id: file for file in found.files}
    for index in found.definitions:
        files = [file for file in found.files if file.index_id == index.id and file.role == "segment"]
        if files:
            yield _usable(index, files, stored, columns, storage)


def _usable(
    index: Index,
    files: Sequence[IndexFile],
    stored: Mapping[IndexFileId, IndexFile],
    columns: Sequence[Column],
    storage: Storage,
) -> UsableIndex | Unusable:
    try:
        kind, spec = kind_of(index.kind), spec_of(index, columns)
    except (InvalidIndex, MissingDependency) as problem:
        return Unusable(index, str(problem))
    ordered = sorted(files, key=lambda file: (-len(file.covers), -file.level, file.id))

    def segment(file: IndexFile) -> Segment:
        model = None if file.model is None else stored.get(file.model)
        return Segment(
            StoredSegment.of(file, storage), None if model is None else StoredSegment.of(model, storage)
        )

    return UsableIndex(index, kind, spec, tuple((file, segment(file)) for file in ordered))
