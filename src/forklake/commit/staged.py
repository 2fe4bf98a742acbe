"""What a transaction has done to the rows of one table, before any of it is committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from forklake.data.inlined import InlinedRows, decode
from forklake.data.parquet.positions import joined, without
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Table
from forklake.model.ids import CatalogId, ColumnId, DataFileId, MappingId, SnapshotId
from forklake.model.table.files import DataFile, WrittenDeletes, WrittenFile
from forklake.model.table.name_mapping import MappedName
from forklake.model.table.name_mapping import Mapping as NameMapping
from forklake.scan.scan_plan import Positions, ScanFile, ScanRows, Uncommitted

BUFFER = DataFileId(-1)
"""The provisional id of rows that are still in memory; files that were written count on from there."""
_NOWHERE = CatalogId(-1)
NOT_YET = SnapshotId(2**62)
"""When that happens which this transaction is about to do."""
ROWS_OF_A_FILE = 2**40
"""How far provisional row ids of two files are apart."""
FIRST_ROW_ID = 10**18
"""As which SQL shows the first provisional row id: as DuckLake does."""


FindMapping: TypeAlias = Callable[[tuple[MappedName, ...], object], "MappingId | None"]
"""Finds the mapping of files that have the same names and types."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that waits to become part of the table."""

    id: DataFileId
    written: WrittenFile
    mapping_id: MappingId | None = None
    newest_row: SnapshotId | None = None
    elsewhere: bool = False
    """Whether its rows were written by other processes: then the one that commits it reads none of them."""

    def scanned(self, deleted: Positions | None) -> ScanFile:
        """The file as the transaction reads it. Its rows have ids below zero until they get real ones."""
        written = self.written
        file = DataFile(
            self.id,
            _NOWHERE,
            NOT_YET,
            written.path,
            written.path_is_relative,
            written.record_count,
            written.file_size_bytes,
            written.footer_size,
            None if written.has_row_ids else self.id * ROWS_OF_A_FILE,
            written.partition_id,
            self.mapping_id,
            self.newest_row,
        )
        return ScanFile(file, deleted)


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A file of the past that counts again, under another id: no file is written, and none is copied."""

    id: DataFileId
    file: DataFile
    """As it was then, with the delete file that it had."""
    positions: Positions | None = None
    """What it had lost then beside what the delete file names."""
    content: str | None = None
    """Its rows, if they are inlined."""

    def scanned(self, deleted: Positions | None) -> ScanFile | ScanRows:
        """The file as the transaction reads it, without rows that it has deleted since."""
        file = replace(self.file, id=self.id, source=_NOWHERE, begin=NOT_YET, newest_row=None)
        gone = self.positions if deleted is None else joined(self.positions, deleted)
        if self.content is None:
            return ScanFile(file, gone)
        return ScanRows(file, InlinedRows.of(decode(self.content)), gone)


@dataclass(slots=True)
class StagedRows:
    """Rows that were added, and rows that were taken away."""

    added: dict[DataFileId, AddedFile] = field(default_factory=dict[DataFileId, AddedFile])
    returned: dict[DataFileId, ReturnedFile] = field(default_factory=dict[DataFileId, ReturnedFile])
    """Files of the past that count again."""
    was_dropped: bool = False
    """Whether the table itself comes back: then none of its rows are counted."""
    buffer: pa.Table | None = None
    """Small writes, by field id; the commit decides whether they become a file."""
    deleted: dict[DataFileId, Positions] = field(default_factory=dict[DataFileId, Positions])
    """By file of the base, or that was added here."""
    delete_files: dict[DataFileId, WrittenDeletes] = field(default_factory=dict[DataFileId, WrittenDeletes])
    """By file of the base: those that were written elsewhere, and name all that is gone and not inlined."""
    touched: dict[DataFileId, ScanFile | ScanRows] = field(
        default_factory=dict[DataFileId, "ScanFile | ScanRows"]
    )
    """Files of the base that lost rows, as they were."""
    retired: dict[DataFileId, DataFile] = field(default_factory=dict[DataFileId, DataFile])
    """Files of the base that are gone."""
    moved: set[DataFileId] = field(default_factory=set[DataFileId])
    """Those of them whose rows live on in a file that was added: a flush or a compaction."""
    compacted: set[str] = field(default_factory=set[str])
    """What DuckLake calls the compactions."""
    mappings: dict[MappingId, NameMapping] = field(default_factory=dict[MappingId, NameMapping])
    mapping_ids: dict[object, MappingId] = field(default_factory=dict[object, MappingId])
    """Mappings that files of this transaction have, new and stored ones, by names and types."""
    removed: int = 0
    """How many rows of the base were taken away."""
    imported: set[str] = field(default_factory=set[str])
    """Paths of files that existed before: a table has each of them once."""
    looked: bool = False
    """Whether rows were added because none with their keys was there."""
    brings_back: bool = False
    """Whether rows that come with their ids were not there."""
    names: set[tuple[ColumnId, str]] = field(default_factory=set[tuple[ColumnId, str]])
    """Under which names files have columns that were added up to `last_named`."""
    last_id: int = BUFFER
    last_named: int = BUFFER

    def names_with(self, table: Table) -> set[tuple[ColumnId, str]]:
        """Under which names files that were added have columns, now that the table is about to change."""
        if any(file < self.last_named for file in self.added):
            self.names |= {(column.id, column.name) for column in table.walk()}
        self.last_named = self.last_id
        return self.names

    def new_id(self) -> int:
        """A provisional number for a file or a mapping."""
        self.last_id -= 1
        return self.last_id

    def add_rows(self, rows: pa.Table) -> None:
        """Keep a small write."""
        kept = (
            rows if self.buffer is None else pa.concat_tables([self.buffer, rows], promote_options="default")
        )
        self.buffer = kept if kept.num_rows else None

    def add_file(
        self,
        written: WrittenFile,
        *,
        mapping_id: MappingId | None = None,
        newest_row: SnapshotId | None = None,
        elsewhere: bool = False,
    ) -> None:
        """Keep a file that stands in storage."""
        file = AddedFile(DataFileId(self.new_id()), written, mapping_id, newest_row, elsewhere)
        self.added[file.id] = file

    def bring_back(self, file: DataFile, positions: Positions | None, content: str | None) -> None:
        """Let a file count again as it was."""
        returned = ReturnedFile(DataFileId(self.new_id()), file, positions, content)
        self.returned[returned.id] = returned

    def delete(self, found: Mapping[DataFileId, tuple[ScanFile | ScanRows, Positions]]) -> int:
        """Take rows away by their positions; returns how many."""
        for file, (place, positions) in found.items():
            if file == BUFFER:
                self._delete_from_buffer(positions)
                continue
            known = self.deleted.get(file)
            merged = joined(known, positions)
            if place.live_rows == len(positions) and not self._has_moved_rows(file):
                self._retire(place)
            else:
                self.deleted[file] = merged
                if file >= 0:
                    self.touched.setdefault(file, place)
            self.removed += len(positions) if file >= 0 else 0
        return sum(len(positions) for _, positions in found.values())

    def adopt_deletes(self, place: ScanFile, written: WrittenDeletes) -> None:
        """Let a delete file take effect that somebody else has written for a file of the base."""
        inlined = 0 if place.deleted is None else len(place.deleted)
        kept = place.file.record_count - inlined - written.delete_count
        self.removed += place.live_rows - kept
        if kept:
            self.delete_files[place.file.id] = written
            self.touched[place.file.id] = place
        else:
            self._retire(place)

    def retire(self, place: ScanFile | ScanRows, *, moved: bool = False) -> None:
        """Take a whole file away; `moved` if its rows live on elsewhere."""
        if place.file.id == BUFFER:
            self.buffer = None
            return
        if moved:
            # What the transaction deleted before stays on record: it was not moved.
            self.retired[place.file.id] = place.file
            self.moved.add(place.file.id)
        elif self._has_moved_rows(place.file.id):
            self.delete({place.file.id: (place, _live(place))})
        else:
            self.removed += place.live_rows if place.file.id >= 0 else 0
            self._retire(place)

    def _has_moved_rows(self, file: DataFileId) -> bool:
        """Whether a file was added for rows of the base: then it stays to tell which of them were deleted."""
        return file in self.added and self.added[file].newest_row is not None

    def _retire(self, place: ScanFile | ScanRows) -> None:
        file = place.file
        self.deleted.pop(file.id, None)
        self.touched.pop(file.id, None)
        if file.id >= 0:
            self.retired[file.id] = file
        elif file.id in self.returned:
            del self.returned[file.id]
        else:
            del self.added[file.id]

    def _delete_from_buffer(self, positions: Positions) -> None:
        if self.buffer is not None:
            places = pa.array(range(self.buffer.num_rows), pa.int64())
            kept = self.buffer.filter(pc.invert(pc.is_in(places, value_set=positions)))
            self.buffer = kept if kept.num_rows else None

    @property
    def is_empty(self) -> bool:
        """Whether everything was undone."""
        added = self.added or self.returned or self.buffer is not None
        return not (added or self.deleted or self.delete_files or self.retired or self.was_dropped)

    def seen(self) -> Uncommitted:
        """The changes as a scan inside the transaction sees them."""
        returned = [file.scanned(self.deleted.get(file.id)) for file in self.returned.values()]
        rows = tuple(place for place in returned if isinstance(place, ScanRows))
        if self.buffer is not None:
            count = self.buffer.num_rows
            file = DataFile(
                BUFFER, _NOWHERE, NOT_YET, "", True, count, 0, row_id_start=-ROWS_OF_A_FILE, inlined=True
            )
            rows = (*rows, ScanRows(file, InlinedRows.of(self.buffer)))
        return Uncommitted(
            (
                *(place for place in returned if isinstance(place, ScanFile)),
                *(file.scanned(self.deleted.get(file.id)) for file in self.added.values()),
            ),
            rows,
            frozenset(self.retired),
            {file: positions for file, positions in self.deleted.items() if file >= 0},
            dict(self.mappings),
        )


class NewMappings:
    """Name mappings of files that are added together: those with the same names and types share one.

    One call of DuckDB's reader takes the types of its first file for those of all.
    """

    def __init__(self, staged: StagedRows, stored: FindMapping | None = None) -> None:
        """None is needed yet; one that is `stored` with the same names and types need not be made again."""
        self._staged = staged
        self._stored = stored

    def of(self, names: tuple[MappedName, ...], signature: object) -> MappingId | None:
        """The mapping of a file; None if it needs no names."""
        if not names:
            return None
        key, known = (names, signature), self._staged.mapping_ids
        if key not in known:
            found = None if self._stored is None else self._stored(names, signature)
            if found is None:
                found = MappingId(self._staged.new_id())
                self._staged.mappings[found] = NameMapping(found, names)
            known[key] = found
        return known[key]


def _live(place: ScanFile | ScanRows) -> Positions:
    return without(pa.array(range(place.file.record_count), pa.int64()), place.deleted)
