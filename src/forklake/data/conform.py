"""Rows that were written for an older definition of their table, as the present one has them."""

from __future__ import annotations

from dataclasses import replace

from forklake.data.defaults import initial_of
from forklake.data.input.lossless import fit
from forklake.data.parquet.schema import FIELD_ID, arrow_schema, file_type
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN
from forklake.model.types.arrow import one_array


def conform(rows: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """The rows with these columns, and with the ids of rows and snapshots if they have them."""
    found = {id_of(field): place for place, field in enumerate(rows.schema)}
    row_ids, snapshot_ids = ROW_ID_COLUMN in found, SNAPSHOT_ID_COLUMN in found
    schema = arrow_schema(columns, row_ids=row_ids, snapshot_ids=snapshot_ids)
    if schema.equals(rows.schema, check_metadata=True):
        return rows
    rows = rows.combine_chunks()
    arrays = [_column(rows, found, column) for column in columns]
    arrays += [_flat(rows, found[key]) for key in (ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN) if key in found]
    return pa.table(arrays, schema=schema)


def misfit_of(before: tuple[Column, ...], now: tuple[Column, ...]) -> str | None:
    """Why rows that came in for some columns are not what they would be for others; None if they are.

    Other names, wider types and another order make no difference.
    """
    kept = {column.id for top in now for column in top.walk()}
    for column in (inner for top in before for inner in top.walk()):
        if column.id not in kept:
            return f'column "{column.name}" is gone'
    known = {column.id: _default(column) for column in before}
    for column in now:
        initial = None if column.initial_default is None else ("literal", column.initial_default)
        if known.get(column.id, initial) != _default(column):
            return f'column "{column.name}" has another default'
    return None


def _default(column: Column) -> tuple[str, str] | None:
    return None if column.default is None else (column.default.kind, column.default.value)


def id_of(field: pa.Field) -> int | None:
    """The column that a field is, by the id that it carries."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def _column(rows: pa.Table, found: dict[int | None, int], column: Column) -> pa.Array:
    if column.id not in found:
        return initial_of(column, rows.num_rows)
    place = found[column.id]
    return _evolved(_flat(rows, place), rows.schema.field(place).type, column)


def _flat(rows: pa.Table, place: int) -> pa.Array:
    return one_array(rows.column(place))


def _evolved(array: pa.Array, known: pa.DataType, column: Column) -> pa.Array:
    """The array as the column is now. Its schema knows the ids inside of it; the array itself may not."""
    if known.equals(file_type(column), check_metadata=True):
        return array
    match column.type:
        case "struct":
            return _struct(array, known, column)
        case "list":
            values = _evolved(array.values, known.value_type, column.children[0])
            return pa.ListArray.from_arrays(offsets_of(array), values, type=file_type(column))
        case "map":
            keys = _evolved(array.keys, known.key_type, column.children[0])
            items = _evolved(array.items, known.item_type, column.children[1])
            return pa.MapArray.from_arrays(offsets_of(array), keys, items, type=file_type(column))
        case "timestamptz" if pa.types.is_date(known) or (pa.types.is_timestamp(known) and known.tz is None):
            # The column had no zone before: what it held is taken for UTC.
            return fit(array, replace(column, type="timestamp")).cast(file_type(column))
        case _:
            return fit(array, column)


def offsets_of(array: pa.Array) -> pa.Array:
    """Offsets that are NULL where the whole value is, as Arrow takes them."""
    if not array.null_count:
        return array.offsets
    present = pa.concat_arrays([array.is_valid(), pa.array([True])])
    return pc.if_else(present, array.offsets, pa.scalar(None, array.offsets.type))


def _struct(array: pa.Array, known: pa.DataType, column: Column) -> pa.Array:
    found = {id_of(known.field(place)): place for place in range(known.num_fields)}
    children = [
        _evolved(array.field(found[child.id]), known.field(found[child.id]).type, child)
        if child.id in found
        else pa.nulls(len(array), file_type(child))
        for child in column.children
    ]
    fields = list(file_type(column))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
