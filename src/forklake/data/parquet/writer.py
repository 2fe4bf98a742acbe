"""Batches of rows into Parquet files, with bounded memory, and what is known of each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from forklake.data.input.lossless import flattened
from forklake.data.parquet.encoding import Encodings, encodings
from forklake.data.parquet.footer import ROW_ID, Seen, footer_stats
from forklake.data.parquet.partition import Values, folder_of, split
from forklake.data.parquet.row_order import row_order
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME, arrow_schema
from forklake.errors import InvalidArgument, InvalidData
from forklake.lazy.arrow import pa, pc, pq
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.table.files import WrittenFile
from forklake.model.table.layout import Partitioning, SortKey

Columns = tuple[Column, ...]

_SIZES = ("target_file_size", "row_group_rows", "row_group_bytes", "page_rows", "page_bytes", "buffer_bytes")
_OPEN_FILES = 64
"""How many partitions are written at once: an upload to a bucket keeps some megabytes in memory."""
_SMALL_CHUNK = 8_192
"""Chunks of fewer rows are joined first: Arrow's writer has work to do for each."""


class FileOutput(Protocol):
    """Where files are written to."""

    def open_output(self, path: str, relative: bool = True) -> AbstractContextManager[pa.NativeFile]:
        """Write a new file, which stays only if the block ends well."""
        ...

    def delete(self, paths: Iterable[str], relative: bool = True) -> None:
        """Delete files."""
        ...


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How files are named, cut and packed."""

    commit_uuid: str
    target_file_size: int = 512 << 20
    """A file that has grown to this is closed, and the next one begins."""
    row_group_rows: int = 245_760
    """What one thread of DuckDB reads at a time; with half of it, files were a seventh larger."""
    row_group_bytes: int = 64 << 20
    """A row group ends here at the latest, as rows lie in memory."""
    page_rows: int = 61_440
    """How many rows a page has. With Arrow's 20,000, DuckDB took a quarter longer to read numbers."""
    page_bytes: int = 4 << 20
    """Or how many bytes, where rows are wide."""
    buffer_bytes: int = 192 << 20
    """How much may wait in memory, over all partitions; and how much is sorted at once."""
    compression: str = "zstd"
    compression_level: int | None = 3
    plain_encodings: bool = False
    """Whether values are plain or in a dictionary, as in the first version of Parquet."""
    partition_folders: bool = True
    """Whether files of a partition are in a folder that is named by it."""
    page_index: bool = True
    """Lets Spark skip pages; it costs next to nothing."""
    numbers: Iterator[int] = field(default_factory=count, compare=False)
    """Numbers the files. Options that are used again count on."""

    def __post_init__(self) -> None:
        """Sizes are positive."""
        for name in _SIZES:
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name} must be at least 1, not {getattr(self, name)}")


def write_files(
    batches: pa.RecordBatchReader,
    *,
    columns: Columns,
    folder: str,
    storage: FileOutput,
    options: WriteOptions,
    partitioning: Partitioning | None = None,
    sort: Sequence[SortKey] = (),
    macros: Sequence[str] = (),
    relative: bool = True,
) -> list[WrittenFile]:
    """Write all rows into new files below a folder; no rows, no file. If it fails, no file stays.

    Batches have the schema of the table, in its order, and may carry the ids of rows and snapshots behind it.
    Rows without an id go into files of their own, without a column for it: others read a file that has the
    column as one in which every row has an id.
    With a sort order, as many rows as `buffer_bytes` hold are sorted and become one file, so that every file
    is sorted from end to end: to have larger ones, sort before, or compact them later.
    """
    order = tuple(sort), tuple(macros)
    writing = _Writing(batches.schema, columns, folder, storage, options, partitioning, *order, relative)
    try:
        for batch in batches:
            writing.add(batch)
        return writing.finish()
    except pa.ArrowException as problem:
        writing.abandon()
        # Arrow's own errors of input and output are those of the operating system.
        raise InvalidData(f"rows cannot be written: {problem}") from problem
    except BaseException:
        writing.abandon()
        raise


class _Writing:
    """One call: the partitions that have rows waiting or a file open, and the files that are done."""

    def __init__(
        self,
        given: pa.Schema,
        columns: Columns,
        folder: str,
        storage: FileOutput,
        options: WriteOptions,
        partitioning: Partitioning | None,
        sort: tuple[SortKey, ...],
        macros: tuple[str, ...],
        relative: bool,
    ) -> None:
        self._has_ids = ROW_ID_NAME in given.names
        self.schema = arrow_schema(
            columns, row_ids=self._has_ids, snapshot_ids=SNAPSHOT_ID_NAME in given.names
        )
        self.bare_schema = arrow_schema(columns)
        if not given.equals(self.schema, check_metadata=False):
            raise InvalidData("the batches do not have the schema of the table: bring them into it first")
        self.columns = columns
        self.folder = folder if not folder or folder.endswith("/") else f"{folder}/"
        self.storage = storage
        self.options = options
        self.partitioning = partitioning
        self.sort = sort
        self.macros = macros
        self.relative = relative
        self.done: list[WrittenFile] = []
        self._partitions: dict[tuple[bool, Values], _Partition] = {}
        self._waiting = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch; whatever fills a row group is written."""
        for has_ids, rows in self._by_ids(batch):
            if self.partitioning is None:
                parts: Iterable[tuple[Values, pa.RecordBatch]] = [((), rows)]
            else:
                parts = split(rows, self.partitioning.fields, self.columns)
            for values, part in parts:
                partition = self._partitions.setdefault((has_ids, values), _Partition(self, values, has_ids))
                self._waiting -= partition.waiting_bytes
                partition.add(part)
                self._waiting += partition.waiting_bytes
                self._make_room()

    def _by_ids(self, batch: pa.RecordBatch) -> Iterator[tuple[bool, pa.RecordBatch]]:
        """Rows that carry an id, and those that the commit will number."""
        width = len(self.columns)
        if not self._has_ids or not batch.column(width).null_count:
            parts = [(self._has_ids, batch)]
        else:
            has_id = batch.column(width).is_valid()
            bare = batch.filter(pc.invert(has_id)).select(list(range(width)))
            parts = [(True, batch.filter(has_id)), (False, bare)]
        return ((has_ids, rows) for has_ids, rows in parts if rows.num_rows)

    def _make_room(self) -> None:
        while self._waiting > self.options.buffer_bytes:
            largest = max(self._partitions.values(), key=lambda partition: partition.waiting_bytes)
            self._waiting -= largest.waiting_bytes
            largest.flush()
        opened = [partition for partition in self._partitions.values() if partition.file is not None]
        if len(opened) > _OPEN_FILES:
            # Not the one that waited longest: partitions that take turns would all become many small files.
            max(opened, key=lambda partition: partition.file_size).close_file()

    def finish(self) -> list[WrittenFile]:
        """Write what waits, and close every file."""
        for partition in self._partitions.values():
            partition.flush()
            partition.close_file()
        return sorted(self.done, key=lambda file: file.path) if self.partitioning else self.done

    def abandon(self) -> None:
        """Remove every file of this call, as far as that is possible."""
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abandon()
        with suppress(Exception):
            self.storage.delete([file.path for file in self.done], self.relative)

    def new_file(self, values: Values, has_ids: bool) -> _File:
        """Open the next file of a partition."""
        inner = ""
        if self.partitioning is not None and self.options.partition_folders:
            inner = folder_of(values, self.partitioning.fields, self.columns)
        name = f"{self.options.commit_uuid}-{next(self.options.numbers)}.parquet"
        return _File(self, f"{self.folder}{inner}{name}", values, has_ids)


class _Partition:
    """Rows of one partition that wait for their row group, and the file that it goes to."""

    def __init__(self, writing: _Writing, values: Values, has_ids: bool) -> None:
        self.writing = writing
        self.values = values
        self.has_ids = has_ids
        self.file: _File | None = None
        self.waiting_bytes = 0
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        options = self.writing.options
        while batch.num_rows:
            size = batch.nbytes
            room = options.row_group_rows - self._rows
            if self.writing.sort:
                room = batch.num_rows
            elif size > options.row_group_bytes - self.waiting_bytes:
                left = max(options.row_group_bytes - self.waiting_bytes, 1)
                room = min(room, -(-batch.num_rows * left // size))
            part, batch = batch.slice(0, room), batch.slice(room)
            self._waiting.append(part)
            self._rows += part.num_rows
            self.waiting_bytes += size if not batch.num_rows else part.nbytes
            if not self.writing.sort and (
                self._rows >= options.row_group_rows or self.waiting_bytes >= options.row_group_bytes
            ):
                self.flush()

    def flush(self) -> None:
        """Write what waits: a row group, or everything in order as a file of its own."""
        if not self._waiting:
            return
        schema = self.writing.schema if self.has_ids else self.writing.bare_schema
        table = pa.Table.from_batches(self._waiting, schema)
        self._waiting, self._rows, self.waiting_bytes = [], 0, 0
        if self.writing.sort:
            for group in _sorted(table, self.writing):
                self._write(group)
            self.close_file()
        else:
            self._write(_joined(table))

    def _write(self, table: pa.Table) -> None:
        if self.file is None:
            self.file = self.writing.new_file(self.values, self.has_ids)
        self.file.write(table)
        if self.file.size >= self.writing.options.target_file_size:
            self.close_file()

    @property
    def file_size(self) -> int:
        return 0 if self.file is None else self.file.size

    def close_file(self) -> None:
        if self.file is not None:
            self.writing.done.append(self.file.close())
            self.file = None


def _joined(table: pa.Table) -> pa.Table:
    chunks = table.column(0).num_chunks
    return table.combine_chunks() if chunks > 1 and table.num_rows < chunks * _SMALL_CHUNK else table


def _sorted(table: pa.Table, writing: _Writing) -> Iterator[pa.Table]:
    """The rows in order, a row group at a time."""
    table = table.combine_chunks()
    order = row_order(table, writing.columns, writing.sort, writing.macros)
    options = writing.options
    rows = min(options.row_group_rows, max(1, options.row_group_bytes * len(order) // max(table.nbytes, 1)))
    for start in range(0, len(order), rows):
        yield table.take(order.slice(start, rows))


class _File:
    """A Parquet file that is being written."""

    def __init__(self, writing: _Writing, path: str, values: Values, has_ids: bool) -> None:
        self.path = path
        self._writing = writing
        self._values = values
        self._has_ids = has_ids
        self._rows = 0
        self._nan = dict.fromkeys(_float_ids(writing.columns), False)
        self._nulls = {column.id: 0 for column in writing.columns}
        self._footer: list[pq.FileMetaData] = []
        self._parquet: pq.ParquetWriter | None = None
        self._stack = ExitStack()
        self._sink = self._stack.enter_context(writing.storage.open_output(path, writing.relative))

    @property
    def size(self) -> int:
        """What is written so far."""
        return self._sink.tell()

    def write(self, table: pa.Table) -> None:
        """Add a row group."""
        for at, column in enumerate(self._writing.columns):
            values = table.column(at)
            self._nulls[column.id] += values.null_count
            for chunk in values.chunks:
                _look_for_nan(chunk, column, self._nan)
        self._rows += table.num_rows
        try:
            if self._parquet is None:
                options, chosen = self._writing.options, encodings(table)
                if options.plain_encodings:
                    chosen = replace(chosen, others=())
                self._parquet = parquet_writer(self._sink, table.schema, options, self._footer, chosen)
            self._parquet.write_table(table, row_group_size=table.num_rows)
        except BaseException as problem:
            self._fail(problem)
            raise

    def close(self) -> WrittenFile:
        """Write the footer and make the file stay."""
        try:
            if self._parquet is not None:
                self._parquet.close()
            written = self._described()
        except BaseException as problem:
            self._fail(problem)
            raise
        self._stack.close()
        return written

    def _described(self) -> WrittenFile:
        (metadata,) = self._footer
        writing = self._writing
        columns = (*writing.columns, ROW_ID) if self._has_ids else writing.columns
        stats = footer_stats(metadata, columns, seen=Seen(self._nan, self._nulls))
        return WrittenFile(
            self.path,
            self._rows,
            self.size,
            footer_size(metadata),
            stats,
            writing.relative,
            writing.partitioning and writing.partitioning.id,
            self._values,
            # Other rows are numbered by the commit.
            self._has_ids,
        )

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(Exception):
            self._fail(_Abandoned())

    def _fail(self, problem: BaseException) -> None:
        """Let the storage remove the file, and raise its own words for the problem if it has any."""
        # Arrow's writer would write its footer when it is collected, into a file that is closed.
        if self._parquet is not None:
            self._parquet.is_open = False
        self._stack.__exit__(type(problem), problem, problem.__traceback__)


class _Abandoned(Exception):
    """Another file of the same call failed."""


def parquet_writer(
    sink: pa.NativeFile,
    schema: pa.Schema,
    options: WriteOptions,
    footers: list[pq.FileMetaData],
    encodings: Encodings,
) -> pq.ParquetWriter:
    """Arrow's writer with our settings. Arrow's schema is left out: the types of Parquet say it all."""
    return pq.ParquetWriter(
        sink,
        schema,
        compression=options.compression,
        compression_level=options.compression_level,
        use_dictionary=list(encodings.dictionary),  # pyright: ignore[reportArgumentType]
        column_encoding=dict(encodings.others),
        write_statistics=True if encodings.statistics is None else list(encodings.statistics),  # pyright: ignore[reportArgumentType]
        store_decimal_as_integer=True,
        max_rows_per_page=options.page_rows,
        data_page_size=options.page_bytes,
        store_schema=False,
        write_page_index=options.page_index,
        metadata_collector=footers,
    )


def footer_size(metadata: pq.FileMetaData) -> int:
    """How long the footer is without its marks, as the file itself says; Arrow does not tell."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    # The mark at the start and the end, and the length.
    return sink.tell() - 12


def _float_ids(columns: Columns) -> list[ColumnId]:
    return [field.id for column in columns for field in column.walk() if field.type in ("float32", "float64")]


def _look_for_nan(array: pa.Array, column: Column, found: dict[ColumnId, bool]) -> None:
    """Note which columns and fields of floats hold NaN; footers do not say."""
    if column.id in found:
        found[column.id] = found[column.id] or bool(pc.any(pc.is_nan(array)).as_py())
    elif column.children and any(not found[number] for number in _float_ids(column.children)):
        for child, values in zip(column.children, _inside(array, column), strict=True):
            _look_for_nan(values, child, found)


def _inside(array: pa.Array, column: Column) -> list[pa.Array]:
    match column.type:
        case "list":
            return [flattened(array)]
        case "map":
            # Keys and values of NULL and of other slices may be among these; at worst NaN is suspected.
            return [array.keys, array.items]
        case _:
            return [array.field(at) for at in range(array.type.num_fields)]
