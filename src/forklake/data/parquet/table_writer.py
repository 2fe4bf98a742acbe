"""Writing files of one table, and remembering them until they are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pa
from forklake.model.names import is_absolute
from forklake.model.table.files import WrittenFile, delete_file_name
from forklake.model.table.write_target import WriteTarget


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
        target, options = self.target, self.target.options
        codec = options.parquet_compression
        files = write_files(
            rows.to_reader() if isinstance(rows, pa.Table) else rows,
            columns=target.columns,
            folder=target.folder,
            storage=self.storage,
            options=WriteOptions(
                self.prefix,
                target_file_size=options.target_file_size,
                row_group_rows=options.parquet_row_group_size,
                compression=codec,
                compression_level=options.parquet_compression_level if codec == "zstd" else None,
                numbers=self.numbers,
            ),
            partitioning=target.partitioning,
            sort=target.sort,
            relative=not is_absolute(target.folder),
        )
        self.written.extend(file.path for file in files)
        return files

    def new_delete_path(self) -> str:
        """The path of one more delete file."""
        path = self.target.folder + delete_file_name(f"{self.prefix}-{next(self.numbers)}")
        self.written.append(path)
        return path
