"""Rows → files: data files, delete files, and what is known of columns in them, as frozen values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from forklake.model.ids import CatalogId, ColumnId, DataFileId, DeleteFileId, SnapshotId
from forklake.model.table.files import ColumnStats, DataFile, DeleteFile


@dataclass(frozen=True, slots=True)
class PastFile:
    """A file with its end, if it has come to one."""

    file: DataFile
    end: SnapshotId | None


@dataclass(frozen=True, slots=True)
class InlinedFiles:
    """Files whose rows live in the database, as it returned them, the content last.

    Every small write is such a file, and making a thousand values takes longer than the rest of a scan.
    """

    records: Sequence[Sequence[Any]] = ()

    def __len__(self) -> int:
        """How many files there are."""
        return len(self.records)

    @property
    def ids(self) -> list[DataFileId]:
        """The id of each file."""
        return [record[0] for record in self.records]

    @property
    def begins(self) -> list[SnapshotId]:
        """Since when each file is there."""
        return [record[2] for record in self.records]

    @property
    def row_id_starts(self) -> list[int | None]:
        """The id of the first row of each file."""
        return [record[8] for record in self.records]

    @property
    def contents(self) -> list[str]:
        """The rows of each file, as text."""
        return [record[-1] for record in self.records]

    def without(self, gone: Collection[DataFileId]) -> InlinedFiles:
        """All but some of the files."""
        return InlinedFiles([record for record in self.records if record[0] not in gone]) if gone else self

    def files(self) -> list[DataFile]:
        """The files as values."""
        return [data_file(record[:12], inlined=True) for record in self.records]


def data_file(row: Sequence[Any], *, inlined: bool = False) -> DataFile:
    """A data file."""
    file, source, begin, path, relative, records, size, footer, row_ids, partition, mapping, newest = row
    # A plan may have 100,000 of them, and `DataFileId(file)` and the like would take a tenth of its time.
    return DataFile(
        file,
        source,
        begin,
        path,
        bool(relative),
        records,
        size,
        footer,
        row_ids,
        partition,
        mapping,
        newest,
        None,
        inlined,
    )


def past_file(row: Sequence[Any]) -> PastFile:
    """A data file with its format and end."""
    *about, file_format, end = row
    return PastFile(data_file(about, inlined=file_format == "inlined"), end)


def delete_file(row: Sequence[Any]) -> DeleteFile:
    """A delete file, after the data file that it belongs to."""
    data_file, file, source, begin, path, relative, count, size, footer = row[:9]
    return DeleteFile(
        DeleteFileId(file),
        CatalogId(source),
        SnapshotId(begin),
        DataFileId(data_file),
        path,
        bool(relative),
        count,
        size,
        footer,
    )


def column_stats(values: Sequence[Any]) -> ColumnStats:
    """What is known of a column in a file."""
    column, count, nulls, low, high, low_key, high_key, nan, distinct, size = values
    known_nan = None if nan is None else bool(nan)
    return ColumnStats(
        ColumnId(column), count, nulls, low, high, low_key, high_key, known_nan, distinct, size
    )
