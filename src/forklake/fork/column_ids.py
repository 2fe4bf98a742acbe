"""Ids of columns that two catalogs gave to different columns: files of one must not be read as the other's.

A column that was added and taken back leaves its id in files that were written meanwhile. As long as none of
those is there, nobody can tell, and the id may be another column's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from forklake.data.inlined import decode
from forklake.data.parquet.schema import FIELD_ID
from forklake.fork.catalog_state import Side
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.ids import ColumnId, TableId
from forklake.model.table.files import DataFile
from forklake.store.backend import Database
from forklake.store.files import FileReader


def dropped_columns_in_files(
    database: Database,
    side: Side,
    table: TableId,
    used: Collection[ColumnId],
    files: Sequence[DataFile] | None = None,
) -> bool:
    """Whether files of a table hold columns that it has no more, under ids that another definition uses.

    They are all files of the table, unless some are given.
    """
    found = side.table(table)
    if found is None:
        return False
    gone = _once(side, found) & set(used)
    if not gone:
        return False
    head = side.head
    reader = FileReader(database, head.catalog_id, table, head.snapshot_id)
    there = [*reader.files(), *(file for file, _ in reader.inlined_files())] if files is None else files
    written = [file for file in there if not file.inlined]
    if written and any(reader.stats(written, gone).get(file.id) for file in written):
        return True
    contents = reader.contents([file for file in there if file.inlined])
    return any(gone & set(_ids(decode(text).schema)) for text in contents.values())


def _once(side: Side, table: Table) -> set[ColumnId]:
    """Columns that a table had, and has no more."""
    history = {entry.column_id for entry in side.state.column_history(table.id)}
    return history - {column.id for column in table.walk()}


def _ids(fields: Iterable[pa.Field]) -> Iterator[ColumnId]:
    for field in fields:
        number = (field.metadata or {}).get(FIELD_ID)
        if number is not None:
            yield ColumnId(int(number))
        if pa.types.is_nested(field.type):
            yield from _ids(field.type.field(at) for at in range(field.type.num_fields))
