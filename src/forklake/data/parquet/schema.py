"""The Arrow schema of a table's files: names, types and field ids at every level."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from forklake.errors import UnknownType
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import to_sql

ROW_ID_NAME = "_ducklake_internal_row_id"
SNAPSHOT_ID_NAME = "_ducklake_internal_snapshot_id"
FIELD_ID = b"PARQUET:field_id"


class Geometry(pa.ExtensionType):  # pyright: ignore[reportUntypedBaseClass]
    """WKB, marked so that it lands in Parquet as a geometry: DuckDB reads no plain bytes as one.

    It is not registered, so it does not stand in the way of packages that bring their own.
    """

    def __init__(self) -> None:
        """Name the type as GeoArrow does."""
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        """No reference system is known."""
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Geometry:
        """Read the type back."""
        return cls()


# Where files hold a type in another way than Arrow does in memory. A TIMETZ is its time in UTC. A TIME_NS is
# text, as DuckDB writes it: DuckDB reads Parquet's nanoseconds as a TIME, and cuts them. Arrow writes no
# INTERVAL, so it is text too.
_IN_FILES: dict[str, pa.DataType] = {
    "timetz": pa.time64("us"),
    "time_ns": pa.string(),
    "interval": pa.string(),
    "geometry": Geometry(),
}
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
            return _IN_FILES.get(name) or to_arrow(column.data_type)


def _field(name: str, column: Column, nullable: bool = True) -> pa.Field:
    return pa.field(name, file_type(column), nullable, metadata={FIELD_ID: str(column.id).encode()})


def _internal(name: str, number: int) -> pa.Field:
    return pa.field(name, pa.int64(), metadata={FIELD_ID: str(number).encode()})
