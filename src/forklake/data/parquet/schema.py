"""The Arrow schema of a table's files: names, types and field ids at every level."""

from __future__ import annotations

from functools import cache, lru_cache

from forklake.errors import UnknownType
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import to_sql

ROW_ID_NAME = "_ducklake_internal_row_id"
SNAPSHOT_ID_NAME = "_ducklake_internal_snapshot_id"
FIELD_ID = b"PARQUET:field_id"


_NOT_IN_FILES = ("variant",)


@lru_cache(1024)
def arrow_schema(
    columns: tuple[Column, ...], *, row_ids: bool = False, snapshot_ids: bool = False
) -> pa.Schema:
    """What files of a table hold: its columns, and the ids of rows and their snapshots if asked for."""
    fields = [_field(column.name, column, column.nullable) for column in columns]
    if row_ids:
        fields.append(_internal(ROW_ID_NAME, ROW_ID_COLUMN))
    if snapshot_ids:
        fields.append(_internal(SNAPSHOT_ID_NAME, SNAPSHOT_ID_COLUMN))
    return pa.schema(fields)


def file_type(column: Column) -> pa.DataType:
    """The Arrow type of a column in files, or `UnknownType` if they cannot hold it."""
    match column.type:
        case "list":
            return pa.list_(_field("element", column.children[0]))
        case "map":
            key, value = column.children
            return pa.map_(_field("key", key, nullable=False), _field("value", value))
        case "struct":
            return pa.struct([_field(child.name, child) for child in column.children])
        case name if name in _NOT_IN_FILES:
            raise UnknownType(
                f'column "{column.name}" is {to_sql(column.data_type)}, which no Parquet file of ours holds: '
                "keep it as text"
            )
        case name:
            return _in_files().get(name) or to_arrow(column.data_type)


@cache
def _in_files() -> dict[str, pa.DataType]:
    """Where files hold a type in another way than Arrow does in memory.

    A TIMETZ is its time in UTC. A TIME_NS is text, as DuckDB writes it: DuckDB reads Parquet's nanoseconds as
    a TIME, and cuts them. Arrow writes no INTERVAL, so it is text too.
    """
    return {
        "timetz": pa.time64("us"),
        "time_ns": pa.string(),
        "interval": pa.string(),
        "geometry": geometry(),
    }


@cache
def geometry() -> pa.DataType:
    """The type of a geometry in files."""
    from forklake.data.parquet.geometry import Geometry

    return Geometry()


def _field(name: str, column: Column, nullable: bool = True) -> pa.Field:
    return pa.field(name, file_type(column), nullable, metadata={FIELD_ID: str(column.id).encode()})


def _internal(name: str, number: int) -> pa.Field:
    return pa.field(name, pa.int64(), metadata={FIELD_ID: str(number).encode()})
