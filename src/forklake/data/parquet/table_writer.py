"""Writing files of one table, and remembering them until they are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

from forklake.data.parquet.parallel import write_in_threads
from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pa
from forklake.model.names import is_absolute
from forklake.model.table.files import WrittenFile, delete_file_name
from forklake.model.table.write_target import WriteTarget

_ARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes into the folder of a target; all file names begin alike, and are numbered."""

    storage: Storage
    target: WriteTarget
    written: list[str]
    """The paths of new files: whoever gives up removes them."""
    prefix: str = field(default_factory=lambda: uuid4().hex)
    numbers: count[int] = field(default_factory=count)

    def write(self, rows: pa.RecordBatchReader | pa.Table) -> list[WrittenFile]:
        """Write rows into as many files as they need."""
        options = self.target.options
        in_threads = options.per_thread_output
        if isinstance(rows, pa.Table):
            in_threads = in_threads and rows.num_rows > options.parquet_row_group_size
            rows = rows.to_reader(options.parquet_row_group_size if in_threads else None)
        files = write_in_threads(rows, self._write, self._discard) if in_threads else self._write(rows)
        self.written.extend(file.path for file in files)
        return files

    def _write(self, rows: pa.RecordBatchReader) -> list[WrittenFile]:
        target, options = self.target, self.target.options
        codec = options.parquet_compression
        return write_files(
            rows,
            columns=target.columns,
            folder=target.folder,
            storage=self.storage,
            options=WriteOptions(
                self.prefix,
                target_file_size=options.target_file_size,
                row_group_rows=options.parquet_row_group_size,
                row_group_bytes=options.parquet_row_group_size_bytes,
                compression=_ARROW_CODECS.get(codec, codec),
                compression_level=options.parquet_compression_level if codec == "zstd" else None,
                plain_encodings=options.parquet_version == 1,
                partition_folders=options.hive_file_pattern,
                numbers=self.numbers,
            ),
            partitioning=target.partitioning,
            sort=target.sort,
            macros=target.macros,
            relative=not is_absolute(target.folder),
        )

    def _discard(self, files: list[WrittenFile]) -> None:
        self.storage.delete([file.path for file in files], not is_absolute(self.target.folder))

    def new_delete_path(self) -> str:
        """The path of one more delete file."""
        path = self.target.folder + delete_file_name(f"{self.prefix}-{next(self.numbers)}")
        self.written.append(path)
        return path
