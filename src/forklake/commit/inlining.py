"""From staged rows to what a commit writes: small writes and deletes stay inline, others become files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from forklake.commit.staged import AddedFile, ReturnedFile, StagedRows
from forklake.data.conform import conform, id_of
from forklake.data.inlined import encode
from forklake.data.parquet.delete_files import next_positions, write_deletes
from forklake.data.parquet.table_writer import TableWriter
from forklake.data.statistics import summarise, summary_of_default
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column, Origin, Table
from forklake.model.ids import ROW_ID_COLUMN, DataFileId, DeleteFileId, MappingId, TableId
from forklake.model.names import is_absolute
from forklake.model.table.files import ColumnStats, DataFile, DeleteFile, WrittenDeletes
from forklake.model.table.name_mapping import Mapping as NameMapping
from forklake.model.table.write_target import WriteTarget
from forklake.scan.scan_plan import Positions, ScanFile, ScanRows
from forklake.store.entity_rows import RowKey

_THREADS = 8


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """Rows that the metadata database will hold."""

    content: str
    record_count: int
    stats: tuple[ColumnStats, ...]
    has_row_ids: bool


@dataclass(frozen=True, slots=True)
class AdoptedFiles:
    """Files of a table that a merge takes over as they are, with what was deleted from files."""

    files: tuple[DataFileId, ...] = ()
    delete_files: tuple[DeleteFileId, ...] = ()
    positions: tuple[tuple[DataFileId, int], ...] = ()
    """Rows that were deleted inline."""
    mappings: tuple[MappingId, ...] = ()
    rows: int = 0
    file_size_bytes: int = 0
    stats: tuple[ColumnStats, ...] = ()
    """What is known of the files."""
    defaults: tuple[ColumnStats, ...] = ()
    """What holds for those of them that are older than a column."""


@dataclass(frozen=True, slots=True)
class ReturnedRows:
    """A file of the past that counts again, under another id."""

    id: DataFileId
    """Provisional."""
    past: DataFileId
    """What it was."""
    deletes: DeleteFileId | None
    """The delete file that counts with it again."""
    positions: Positions | None
    """What it lost beside what that names."""
    live_rows: int
    file_size_bytes: int


@dataclass(frozen=True, slots=True)
class TableWrites:
    """What a commit does to the rows of one table. Numbers below zero are provisional."""

    table_id: TableId
    files: tuple[AddedFile, ...] = ()
    inlined: tuple[InlinedRows, ...] = ()
    """Rows that get ids, and those that come with theirs."""
    deletes: tuple[WrittenDeletes, ...] = ()
    inlined_deletes: tuple[tuple[DataFileId, Positions], ...] = ()
    ended: Mapping[RowKey, Origin] = field(default_factory=dict[RowKey, Origin])
    mappings: tuple[NameMapping, ...] = ()
    touched: frozenset[DataFileId] = frozenset()
    """Files of the base that lost rows."""
    moved: frozenset[DataFileId] = frozenset()
    """Files of the base whose rows live on in another."""
    flushed: frozenset[DataFileId] = frozenset()
    """Those of them that were inlined."""
    removed: int = 0
    removed_bytes: int = 0
    is_inherited: bool = False
    """Whether the catalog has the table from an ancestor and has never written to it."""
    imported: frozenset[str] = frozenset()
    looked: bool = False
    """Whether it matters that nobody else adds rows."""
    adopted: AdoptedFiles = AdoptedFiles()
    columns: tuple[Column, ...] = ()
    """Those of the table: rows that are older than one of them have its initial default."""
    returned: tuple[ReturnedRows, ...] = ()
    defaults: tuple[ColumnStats, ...] = ()
    """What holds for those of the returned files that lack a column."""
    was_dropped: bool = False
    """Whether the table itself comes back, so that none of its rows are counted before."""
    brings_back: bool = False
    """Whether rows that come with their ids were not there."""
    emptied: frozenset[bool] = frozenset()
    """Of files that lost their last rows: whether they were inlined."""
    compacted: frozenset[str] = frozenset()
    """What DuckLake calls the compactions."""

    @property
    def paths(self) -> list[str]:
        """The files that it refers to."""
        return [*(file.written.path for file in self.files), *(deletes.path for deletes in self.deletes)]

    @property
    def inserts(self) -> bool:
        """Whether rows were added, and not only moved."""
        written = any(file.newest_row is None for file in self.files)
        return bool(self.inlined) or written or bool(self.adopted.files or self.returned)

    @property
    def insert_words(self) -> tuple[str, ...]:
        """What DuckLake calls the inserts."""
        files = any(file.newest_row is None for file in self.files)
        files = files or bool(self.adopted.files or self.returned)
        words = {"inserted_into_table": files, "inlined_insert": bool(self.inlined)}
        return tuple(word for word, holds in words.items() if holds)

    @property
    def delete_words(self) -> tuple[str, ...]:
        """What DuckLake calls the deletes."""
        inline = bool(self.inlined_deletes) or True in self.emptied
        words = {"deleted_from_table": not inline or bool(self.deletes) or False in self.emptied}
        words["inlined_delete"] = inline
        return tuple(word for word, holds in words.items() if holds)

    @property
    def adds_rows(self) -> bool:
        """Whether there are rows among them that were not there before, with other values."""
        written = any(file.newest_row is None and not file.written.has_row_ids for file in self.files)
        inlined = any(not rows.has_row_ids for rows in self.inlined)
        return inlined or written or self.brings_back or bool(self.adopted.files or self.returned)


def write_staged(
    table: Table,
    staged: StagedRows,
    writer: TableWriter,
    *,
    is_inherited: bool,
) -> TableWrites:
    """Decide what stays inline and write the rest."""
    inlined = _inlined(table, staged, writer)
    ended: dict[RowKey, Origin] = {}
    for file in staged.retired.values():
        ended |= ends_of(file)
    inline: list[tuple[DataFileId, Positions]] = []
    many: dict[DataFileId, Positions] = {}
    for file, positions in staged.deleted.items():
        if _stays_inline(_place(staged, file), positions, writer.target):
            inline.append((file, positions))
        else:
            many[file] = positions
    deletes = _write_delete_files(staged, many, writer)
    for file in many:
        before = _place(staged, file).file.deletes
        if before is not None and file not in staged.returned:
            ended[RowKey("delete_file", before.id)] = origin_of(before)
    rewritten = {written.data_file_id for written in deletes}
    for file, written in staged.delete_files.items():
        deletes.append(written)
        before = staged.touched[file].file.deletes
        if before is not None:
            ended[RowKey("delete_file", before.id)] = origin_of(before)
    return TableWrites(
        table.id,
        tuple(_with_defaults(file, table) for file in staged.added.values()),
        inlined,
        tuple(deletes),
        tuple(inline),
        ended,
        tuple(mapping for key, mapping in staged.mappings.items() if _is_used(staged, key)),
        frozenset(file for file in (*staged.touched, *staged.retired) if file not in staged.moved),
        frozenset(staged.moved),
        frozenset(file for file in staged.moved if staged.retired[file].inlined),
        staged.removed,
        sum(file.file_size_bytes for file in staged.retired.values()),
        is_inherited,
        frozenset(staged.imported),
        staged.looked,
        columns=table.columns,
        returned=tuple(_returned(staged, file, rewritten) for file in staged.returned.values()),
        defaults=tuple(_defaults(table)) if staged.returned else (),
        was_dropped=staged.was_dropped,
        brings_back=staged.brings_back,
        emptied=frozenset(file.inlined for key, file in staged.retired.items() if key not in staged.moved),
        compacted=frozenset(staged.compacted),
    )


def _write_delete_files(
    staged: StagedRows, deleted: Mapping[DataFileId, Positions], writer: TableWriter
) -> list[WrittenDeletes]:
    """Write what files have lost, each with what it had lost before."""
    storage = writer.storage

    def write(file: DataFileId, path: str) -> WrittenDeletes:
        place = _place(staged, file)
        named = next_positions(storage, place.file.deletes, place.deleted, deleted[file])
        address = storage.address(place.file.path, place.file.path_is_relative)
        size, footer = write_deletes(storage, path, address, named, relative=not is_absolute(path))
        return WrittenDeletes(file, path, len(named), size, footer)

    paths = [writer.new_delete_path() for _ in deleted]
    if len(deleted) < 2:
        return list(map(write, deleted, paths))
    with ThreadPoolExecutor(_THREADS, "forklake-deletes") as pool:
        return list(pool.map(write, deleted, paths))


def _place(staged: StagedRows, file: DataFileId) -> ScanFile | ScanRows:
    """A file that loses rows, as it was before."""
    if file in staged.returned:
        return staged.returned[file].scanned(None)
    return staged.touched.get(file) or staged.added[file].scanned(None)


def _returned(staged: StagedRows, file: ReturnedFile, rewritten: set[DataFileId]) -> ReturnedRows:
    """A file that counts again; a new delete file names what the one that it had did, and nothing inlined."""
    live = file.scanned(staged.deleted.get(file.id)).live_rows
    deletes = None if file.file.deletes is None or file.id in rewritten else file.file.deletes.id
    return ReturnedRows(file.id, file.file.id, deletes, file.positions, live, file.file.file_size_bytes)


def _defaults(table: Table) -> Iterator[ColumnStats]:
    """What holds for a file that lacks a column with a default: it begins later than the column does now."""
    for column in table.columns:
        if column.initial_default is not None:
            yield summary_of_default(column, 1)


def _with_defaults(file: AddedFile, table: Table) -> AddedFile:
    """A file may be older than a column that begins with it: an index of keys has to know its default too."""
    filled = [column for column in table.columns if column.initial_default is not None]
    if not filled:
        return file
    known = {entry.column_id for entry in file.written.stats}
    missing = [
        summary_of_default(column, file.written.record_count) for column in filled if column.id not in known
    ]
    if not missing:
        return file
    return replace(file, written=replace(file.written, stats=(*file.written.stats, *missing)))


def _inlined(table: Table, staged: StagedRows, writer: TableWriter) -> tuple[InlinedRows, ...]:
    rows = staged.buffer
    if rows is None:
        return ()
    rows = conform(rows, table.columns)
    if not writer.target.stays_inline(rows.num_rows):
        for file in writer.write(rows):
            staged.add_file(file)
        staged.buffer = None
        return ()
    place = next((at for at, field in enumerate(rows.schema) if id_of(field) == ROW_ID_COLUMN), None)
    if place is None:
        return (_inlined_rows(rows, table, has_row_ids=False),)
    # New rows get ids one after the other, so those that come with theirs do not stand between them.
    is_new = pc.is_null(rows.column(place))
    new, known = rows.filter(is_new).remove_column(place), rows.filter(pc.invert(is_new))
    return tuple(
        _inlined_rows(part, table, has_row_ids=part is known) for part in (new, known) if part.num_rows
    )


def _inlined_rows(rows: pa.Table, table: Table, *, has_row_ids: bool) -> InlinedRows:
    return InlinedRows(encode(rows), rows.num_rows, summarise(rows, table.columns), has_row_ids)


def _stays_inline(place: ScanFile | ScanRows, positions: Positions, target: WriteTarget) -> bool:
    if place.file.inlined:
        return True
    known = 0 if place.deleted is None else len(place.deleted)
    # Else every small delete would write a delete file again, once a file has lost as many rows inline.
    before = 0 if place.file.deletes is None else place.file.deletes.inlined_before
    return target.stays_inline(known - before + len(positions))


def ends_of(file: DataFile) -> dict[RowKey, Origin]:
    """The rows that end when a data file goes: its own, and that of its delete file."""
    ended = {RowKey("data_file", file.id): origin_of(file)}
    if file.deletes is not None:
        ended[RowKey("delete_file", file.deletes.id)] = origin_of(file.deletes)
    return ended


def origin_of(file: DataFile | DeleteFile) -> Origin:
    """Where the row of a file lives."""
    return Origin(file.source, file.begin)


def _is_used(staged: StagedRows, mapping: MappingId) -> bool:
    return any(file.mapping_id == mapping for file in staged.added.values())
