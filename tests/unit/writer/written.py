"""Writing rows to files, and what lies there afterwards."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from forklake.data.input.batches import rows_of
from forklake.data.parquet.writer import WriteOptions, write_files
from forklake.data.storage.storage import Storage
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, WrittenFile
from forklake.model.table.layout import Partitioning
from forklake.model.table.transforms import parse_transform

COMMIT = "0f8fad5b-d9cb-469f-a165-70867728950e"


def table_of(ddl: str):
    return build(columns_of(ddl))


def write(
    storage: Storage, rows: object, ddl: str, *, partition: str = "", sort=(), **options
) -> list[WrittenFile]:
    columns = table_of(ddl)
    fields = tuple(parse_transform(text, columns) for text in partition.split("; ") if text)
    return write_files(
        rows_of(rows, columns),
        columns=columns,
        folder="lake/main/orders/",
        storage=storage,
        options=WriteOptions(COMMIT, **options),
        partitioning=Partitioning(7, 1, fields) if fields else None,
        sort=sort,
    )


def read(storage: Storage, files: list[WrittenFile]) -> list[dict]:
    return [row for file in files for row in pq.ParquetFile(storage.address(file.path)).read().to_pylist()]


def left(storage: Storage) -> list[str]:
    return [file.path for file in storage.files()]


def stats_of(storage: Storage, values: object, type: str, **options) -> ColumnStats:
    """The statistics of the only column of the only file."""
    (file,) = write(storage, pa.table({"c": values}), f"c {type}", **options)
    return next(stats for stats in file.stats if stats.column_id == 1)
