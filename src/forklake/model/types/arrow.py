"""Types to Arrow and back. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from forklake.errors import UnknownType
from forklake.lazy.arrow import kind, pa
from forklake.model.types.data_types import (
    MAX_DEPTH,
    SCALARS,
    DataType,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    parse,
    to_sql,
)


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values of a column as one array, however many chunks it comes in."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # Where one array has no room for the values, they stay in several: joining them says so.
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


_ARROW = {row.name: row.arrow for row in SCALARS}
# Arrow shows these as something else, which is what comes back.
_ONE_WAY = ("int128", "uint128", "geometry")

_EXTENSIONS = {
    "arrow.uuid": Scalar("uuid"),
    "arrow.json": Scalar("json"),
    "arrow.bool8": Scalar("boolean"),
    "geoarrow.wkb": Scalar("geometry"),
}

TypeSource: TypeAlias = "str | DataType | pa.DataType"
"""`"DECIMAL(10, 2)"`, `pa.int32()`, or a type of the model itself."""

# What people mean who give a type of Python.
_OF_PYTHON = {"int": "BIGINT", "float": "DOUBLE", "str": "VARCHAR", "bytes": "BLOB", "bool": "BOOLEAN"}

_Rule: TypeAlias = "tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, int], DataType]]"


def to_arrow(type: DataType) -> pa.DataType:
    """The Arrow type that holds these values, or `UnknownType` where there is none."""
    match type:
        case Scalar(name):
            make = _ARROW[name]
            if make is None:
                raise UnknownType(f"Arrow has no type for {to_sql(type)}: cast the column first")
            return make()
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case List(element):
            return pa.list_(to_arrow(element))
        case Struct(fields):
            return pa.struct([pa.field(name, to_arrow(child)) for name, child in fields])
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))


def type_of(given: object) -> DataType:
    """A type as people give it: SQL, Arrow's, or one of ours; `UnknownType` for everything else."""
    match given:
        case str():
            return parse(given)
        case pa.DataType():
            return from_arrow(given)
        case Scalar() | Decimal():
            return given
        case List(element):
            return List(type_of(element))
        case Map(key, value):
            return Map(type_of(key), type_of(value))
        case Struct(fields):
            return Struct(tuple((name, type_of(field)) for name, field in fields))
        case _:
            name = given.__name__ if isinstance(given, type) else repr(given)[:80]
            meant = _OF_PYTHON.get(name, "BIGINT") if isinstance(given, type) else "BIGINT"
            raise UnknownType(f'a type is SQL text such as "{meant}", or an Arrow type, not {name}')


def from_arrow(type: pa.DataType) -> DataType:
    """The type of an Arrow column; how Arrow lays the values out makes no difference."""
    return _read(type, 0)


def from_arrow_field(field: pa.Field) -> DataType:
    """The type of an Arrow field; sees the extension types that pyarrow itself does not know."""
    return _read_field(field, 0)


def _read_field(field: pa.Field, depth: int) -> DataType:
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
    return _EXTENSIONS.get(name) or _read(field.type, depth)


def _read(type: pa.DataType, depth: int) -> DataType:
    if depth > MAX_DEPTH:
        raise UnknownType(f"an Arrow type is nested more than {MAX_DEPTH} deep")
    if isinstance(type, pa.BaseExtensionType):
        return _extension(type, depth + 1)
    known = _plain_types().get(type)
    if known is not None:
        return known
    for matches, convert in _rules():
        if matches(type):
            return convert(type, depth + 1)
    if kind.is_null(type):
        raise UnknownType("Arrow's null type says nothing about later values: cast the column first")
    raise UnknownType(f"forklake has no type for Arrow's {str(type)[:80]}: cast the column first")


@cache
def _plain_types() -> dict[pa.DataType, DataType]:
    """The Arrow types without parameters."""
    exact = {row.arrow(): Scalar(row.name) for row in SCALARS if row.arrow and row.name not in _ONE_WAY}
    # Other layouts of the same values. Writers cast them safely: a nanosecond that does not fit fails there.
    return {
        pa.large_string(): Scalar("varchar"),
        pa.string_view(): Scalar("varchar"),
        pa.large_binary(): Scalar("blob"),
        pa.binary_view(): Scalar("blob"),
        pa.float16(): Scalar("float32"),
        pa.date64(): Scalar("date"),
        pa.time32("s"): Scalar("time"),
        pa.time32("ms"): Scalar("time"),
        **exact,
    }


def _extension(type: pa.DataType, depth: int) -> DataType:
    if type.extension_name == "arrow.opaque":
        raise UnknownType(f"forklake has no type for {str(type)[:120]}: cast the column first")
    return _EXTENSIONS.get(type.extension_name) or _read(type.storage_type, depth)


def is_any_list(type: pa.DataType) -> bool:
    """Whether it is a list, in whichever layout."""
    return (
        kind.is_list(type)
        or kind.is_large_list(type)
        or kind.is_fixed_size_list(type)
        or kind.is_list_view(type)
        or kind.is_large_list_view(type)
    )


@cache
def _rules() -> tuple[_Rule, ...]:
    """Arrow types with parameters: what they are, what they become."""
    return (
        (kind.is_decimal, lambda type, _: Decimal(type.precision, type.scale)),
        # The zone is how a value is shown, not what it is; a zone-less timestamp was found in the table.
        (kind.is_timestamp, lambda type, _: Scalar("timestamptz")),
        (kind.is_duration, lambda type, _: Scalar("interval")),
        (kind.is_fixed_size_binary, lambda type, _: Scalar("blob")),
        (kind.is_dictionary, lambda type, depth: _read(type.value_type, depth)),
        (kind.is_run_end_encoded, lambda type, depth: _read(type.value_type, depth)),
        (is_any_list, lambda type, depth: List(_read_field(type.value_field, depth))),
        (kind.is_struct, lambda type, depth: Struct(tuple((f.name, _read_field(f, depth)) for f in type))),
        (
            kind.is_map,
            lambda type, depth: Map(_read_field(type.key_field, depth), _read_field(type.item_field, depth)),
        ),
    )
