"""What files call the columns of a table, where that is not what the table calls them."""

from __future__ import annotations

from functools import lru_cache

from forklake.data.conform import id_of
from forklake.data.storage.storage import Storage
from forklake.engine.sql_text import FileColumn
from forklake.errors import StorageError
from forklake.lazy.arrow import pa, pq
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.table.columns import Columns
from forklake.model.table.files import DataFile
from forklake.model.table.name_mapping import Mapping
from forklake.model.types.arrow import from_arrow


def by_field_id(storage: Storage, file: DataFile, columns: Columns) -> tuple[FileColumn, ...]:
    """The names inside structs that one file has, from its footer."""
    schema = footer_schema(storage, file.path, file.path_is_relative)
    found = {id_of(field): field for field in schema}
    return tuple(_by_id(column, found.get(column.id)) for column in columns)


@lru_cache(4096)
def footer_schema(storage: Storage, path: str, relative: bool) -> pa.Schema:
    """What the footer of a file says of its columns."""
    try:
        with storage.open_input(path, relative) as stream:
            return pq.read_schema(stream)
    except pa.ArrowException as error:
        raise StorageError(
            f"{storage.address(path, relative)} cannot be read: {error}; restore it"
        ) from error


def _by_id(column: Column, field: pa.Field | None) -> FileColumn:
    if field is None:
        # The whole column is missing: its default has the shape of the table.
        return FileColumn(column, column.name, tuple(_by_id(child, None) for child in column.children))
    type = field.type
    match column.type:
        case "struct":
            inside = {id_of(type.field(at)): type.field(at) for at in range(type.num_fields)}
            children = tuple(
                _by_id(child, inside[child.id]) if child.id in inside else FileColumn(child, None, ())
                for child in column.children
            )
            if not inside.keys() & {child.id for child in column.children}:
                spare = (type.field(0).name, from_arrow(type.field(0).type))
                return FileColumn(column, field.name, children, spare)
        case "list":
            children = (_by_id(column.children[0], type.value_field),)
        case "map":
            children = (
                _by_id(column.children[0], type.key_field),
                _by_id(column.children[1], type.item_field),
            )
        case _:
            children = ()
    return FileColumn(column, field.name, children)


def by_mapping(mapping: Mapping, columns: Columns) -> tuple[FileColumn, ...]:
    """The names that imported files have."""
    names = {entry.column_id: entry.source_name for entry in mapping.names}
    return tuple(_by_name(column, names) for column in columns)


def _by_name(column: Column, names: dict[ColumnId, str]) -> FileColumn:
    inside = tuple(_by_name(child, names) for child in column.children)
    return FileColumn(column, names.get(column.id), inside)
