"""Data files and delete files as values: what was written, what is stored, what is known of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forklake.model.ids import CatalogId, ColumnId, DataFileId, DeleteFileId, MappingId, SnapshotId


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What is known of one column, or nested field, in one file.

    Every file has one for every column that its table had when the file was written. A bound that is not
    known has the key that is outside of all others, so that comparing keys never excludes what may be there.
    Keys are None if, and only if, no value other than NULL is there.
    """

    column_id: ColumnId
    value_count: int
    """Values with NULLs, as Parquet counts them."""
    null_count: int | None
    min_value: str | None = None
    """The bounds as DuckDB would write them, exact or None."""
    max_value: str | None = None
    min_key: str | None = None
    """The bounds as order-preserving text, which may lie further out than the values do."""
    max_key: str | None = None
    contains_nan: bool | None = None
    """None for types that have no NaN, and where it is not known."""
    distinct_count: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A Parquet file that stands in storage and belongs to nobody yet."""

    path: str
    """Relative to the data path of the lake, unless `path_is_relative` says otherwise."""
    record_count: int
    file_size_bytes: int
    footer_size: int
    stats: Sequence[ColumnStats] = ()
    path_is_relative: bool = True
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    has_row_ids: bool = False
    """Whether every row carries its id with it. Other rows are numbered by the commit."""


@dataclass(frozen=True, slots=True)
class WrittenDeletes:
    """A delete file that stands in storage: all rows that a data file has lost then, but for inlined ones."""

    data_file_id: DataFileId
    path: str
    """Relative to the data path of the lake, unless it is absolute."""
    delete_count: int
    file_size_bytes: int
    footer_size: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table as one catalog sees it, with the delete file that applies to it."""

    id: DataFileId
    source: CatalogId
    """The catalog that wrote the row: this one or an ancestor."""
    begin: SnapshotId
    path: str
    """Relative to the data path of the lake, unless `path_is_relative` says otherwise; empty if inlined."""
    path_is_relative: bool
    record_count: int
    file_size_bytes: int
    footer_size: int | None = None
    row_id_start: int | None = None
    """The id of the first row, the others follow; None if every row carries its own."""
    partition_id: int | None = None
    mapping_id: MappingId | None = None
    newest_row: SnapshotId | None = None
    """The last of the snapshots that inserted the rows, if they carry those: after a flush or compaction."""
    deletes: DeleteFile | None = None
    inlined: bool = False
    """Whether the rows live in the metadata database."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """The positions of all rows that a data file had lost by some snapshot, apart from inlined ones.

    Those of earlier versions name positions again that had been deleted inline before; their names tell.
    """

    id: DeleteFileId
    source: CatalogId
    begin: SnapshotId
    data_file_id: DataFileId
    path: str
    path_is_relative: bool
    delete_count: int
    """How many positions it names."""
    file_size_bytes: int
    footer_size: int | None = None
    inlined_before: int = 0
    """How many rows of the data file had been deleted inline before it was written."""

    def is_younger(self, inlined: SnapshotId) -> bool:
        """Whether it came after an inlined delete; a merge brings it and what came after it at once."""
        return inlined < self.begin

    @property
    def repeated(self) -> int:
        """How many positions it names that are inlined too."""
        return 0 if is_disjoint(self.path) else self.inlined_before

    @property
    def own_count(self) -> int:
        """How many rows are gone because of it, and would be there but for it."""
        return self.delete_count - self.repeated


_DISJOINT = "-deletes.parquet"
"""How the names of delete files end that name no inlined position. SQL statements know it too."""


def delete_file_name(stem: str) -> str:
    """What a new delete file is called."""
    return f"delete-{stem}{_DISJOINT}"


def is_disjoint(path: str) -> bool:
    """Whether a delete file names no position that had been deleted inline before."""
    return path.endswith(_DISJOINT)


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """All that pruning may look at for one file."""

    record_count: int
    stats: Mapping[ColumnId, ColumnStats] = field(default_factory=dict[ColumnId, ColumnStats])
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
