"""Data files that Arrow reads as a query would, and faster: columns of plain types, as they are now."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from forklake.data.conform import id_of
from forklake.data.parquet.schema import ROW_ID_NAME
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pq
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN
from forklake.model.table.columns import Columns
from forklake.model.table.files import DataFile
from forklake.model.types.arrow import to_arrow
from forklake.scan.index_answers import is_whole


@dataclass(frozen=True, slots=True)
class PlainFile:
    """An open file, and what it calls columns, which are named by their ids."""

    parquet: pq.ParquetFile
    names: Mapping[str, str]
    """The ids of rows are among them if they are asked for and the file has some."""

    def read(self, group: int) -> pa.Table:
        """A row group, with columns in the order of `names`."""
        columns = list(self.names.values())
        return self.parquet.read_row_group(group, columns=columns, use_threads=False).select(columns)


@contextmanager
def plain_file(
    storage: Storage, file: DataFile, columns: Columns, *, row_ids: bool = False
) -> Generator[PlainFile | None]:
    """Open a file; None if only a query reads all of these columns as those of the table."""
    if file.mapping_id is not None or not columns or not all(map(is_whole, columns)):
        yield None
        return
    try:
        with storage.open_input(file.path, file.path_is_relative) as stream:
            yield _opened(stream, columns, row_ids)
    except pa.ArrowException as error:
        address = storage.address(file.path, file.path_is_relative)
        raise StorageError(f"{address} cannot be read: {error}; restore it") from error


def _opened(stream: pa.NativeFile, columns: Columns, row_ids: bool) -> PlainFile | None:
    parquet = pq.ParquetFile(stream, pre_buffer=True)
    fields = {id_of(field): field for field in parquet.schema_arrow}
    if not all(_is_alike(fields.get(column.id), column) for column in columns):
        return None
    names = {str(column.id): fields[column.id].name for column in columns}
    if row_ids and ROW_ID_COLUMN in fields:
        names[ROW_ID_NAME] = fields[ROW_ID_COLUMN].name
    return PlainFile(parquet, names)


def _is_alike(field: pa.Field | None, column: Column) -> bool:
    return field is not None and field.type == to_arrow(column.data_type)
