"""Columns in Spark: the types that files are read as, and what is shown instead where that is not the same.

Spark has no unsigned integers, UUIDs, intervals or nanoseconds. An unsigned integer is shown as the next
larger type, a UUID, an INTERVAL and a TIME_NS as text, and a TIMESTAMP_NS is cut to microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import time
from itertools import accumulate
from uuid import UUID

from pyspark.sql import types as spark

from forklake.data.conform import offsets_of
from forklake.data.defaults import initial_of
from forklake.engine.sql_text import FileColumn
from forklake.errors import UnknownType
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct, can_widen, to_sql
from forklake.spark.arrow_types import arrow_schema
from forklake.spark.features import HAS_TIME
from forklake.spark.sql_text import field_of, name, text

FIELD_ID = "parquet.field.id"
NOBODYS = "forklake-9c3e1f7a-{}"
"""A name that no column of a file has."""
ALIKE = frozenset(
    {"boolean", "int8", "int16", "int32", "int64", "float32", "float64", "date", "time", "timestamp"}
    | {"timestamptz", "varchar", "blob"}
)
"""Types that Spark has too: it compares their values as we do, and lays them down alike."""
_LONG_DIGITS = 18
_DIGITS = spark.DecimalType(38, 0)
_READ: dict[str, spark.DataType] = {
    "boolean": spark.BooleanType(),
    "int8": spark.ByteType(),
    "int16": spark.ShortType(),
    "int32": spark.IntegerType(),
    "int64": spark.LongType(),
    "int128": _DIGITS,
    "uint8": spark.ShortType(),
    "uint16": spark.IntegerType(),
    "uint32": spark.LongType(),
    "uint64": spark.DecimalType(20, 0),
    "uint128": _DIGITS,
    "float32": spark.FloatType(),
    "float64": spark.DoubleType(),
    "date": spark.DateType(),
    "time_ns": spark.StringType(),
    "timestamp": spark.TimestampNTZType(),
    "timestamp_s": spark.TimestampNTZType(),
    "timestamp_ms": spark.TimestampNTZType(),
    "timestamp_ns": spark.LongType(),
    "timestamptz": spark.TimestampType(),
    "interval": spark.StringType(),
    "varchar": spark.StringType(),
    "blob": spark.BinaryType(),
    "json": spark.StringType(),
    "uuid": spark.BinaryType(),
    "geometry": spark.BinaryType(),
    # Before Spark 4.1 there is no type for these.
    **({"time": spark.TimeType(6), "timetz": spark.TimeType(6)} if HAS_TIME else {}),
}
_SHOWN: dict[str, spark.DataType] = {
    **_READ,
    "uuid": spark.StringType(),
    "timestamp_ns": spark.TimestampNTZType(),
}
_GIVEN: dict[type[spark.DataType], str] = {
    spark.BooleanType: "boolean",
    spark.ByteType: "int8",
    spark.ShortType: "int16",
    spark.IntegerType: "int32",
    spark.LongType: "int64",
    spark.FloatType: "float32",
    spark.DoubleType: "float64",
    spark.DateType: "date",
    spark.TimestampNTZType: "timestamp",
    spark.TimestampType: "timestamptz",
    spark.StringType: "varchar",
    spark.BinaryType: "blob",
    **({spark.TimeType: "time"} if HAS_TIME else {}),
}
_CASTS: dict[str, pa.DataType] = {
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("us"),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
}
_MICROS = {"timestamp_s": 10**6, "timestamp_ms": 10**3, "timestamp": 1}
_FIRST_TIMESTAMP = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_TEXT_OF_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def read_type(column: Column, *, disguised: bool = False) -> spark.DataType:
    """The type that Spark's reader takes for a column; fields of structs carry their ids.

    In disguise, they have names that no file has.
    """
    children = [read_type(child, disguised=disguised) for child in column.children]
    match column.type:
        case "list":
            return spark.ArrayType(children[0])
        case "map":
            return spark.MapType(children[0], children[1])
        case "struct":
            names = [NOBODYS.format(child.id) if disguised else child.name for child in column.children]
            fields = zip(names, children, column.children, strict=True)
            return spark.StructType([_numbered(name, type, child) for name, type, child in fields])
        case _:
            return _of(column.data_type, _READ)


def read_field(
    column: Column, name: str, default: str | None = None, *, disguised: bool = False
) -> spark.StructField:
    """A column for Spark's reader; where a file lacks it, the default stands in, a literal of SQL."""
    # The second is never used for reading, and Spark wants both.
    defaults = {} if default is None else {"EXISTS_DEFAULT": default, "CURRENT_DEFAULT": default}
    return _numbered(name, read_type(column, disguised=disguised), column, **defaults)


def _numbered(name: str, type: spark.DataType, column: Column, **more: str) -> spark.StructField:
    return spark.StructField(name, type, True, {**numbered(column), **more})


def numbered(column: Column) -> dict[str, int]:
    """How Spark is told the id of a column in files."""
    return {FIELD_ID: int(column.id)}


def read_type_by_name(shape: FileColumn) -> spark.DataType:
    """The same for files that know columns by names; what has none there is a name that no file has."""
    children = shape.children
    match shape.column.type:
        case "list":
            return spark.ArrayType(read_type_by_name(children[0]))
        case "map":
            return spark.MapType(read_type_by_name(children[0]), read_type_by_name(children[1]))
        case "struct":
            fields = [(child.name or NOBODYS.format(child.column.id), child) for child in children]
            return spark.StructType(
                [spark.StructField(name, read_type_by_name(child)) for name, child in fields]
            )
        case _:
            return _of(shape.column.data_type, _READ)


def ddl(type: spark.DataType) -> str:
    """A type as Spark's SQL spells it; names inside are quoted, which Spark itself leaves out."""
    match type:
        case spark.ArrayType():
            return f"ARRAY<{ddl(type.elementType)}>"
        case spark.MapType():
            return f"MAP<{ddl(type.keyType)}, {ddl(type.valueType)}>"
        case spark.StructType():
            inner = ", ".join(f"{name(field.name)}: {ddl(field.dataType)}" for field in type.fields)
            return f"STRUCT<{inner}>"
        case spark.TimestampType():
            # A session may be set to understand the plain word as the other type.
            return "TIMESTAMP_LTZ"
        case _:
            return type.simpleString()


def shown_type(type: DataType) -> spark.DataType:
    """The type that a column has in DataFrames."""
    return _of(type, _SHOWN)


def shown_schema(columns: Columns) -> spark.StructType:
    """What a DataFrame of these columns looks like."""
    return spark.StructType([spark.StructField(c.name, shown_type(c.data_type)) for c in columns])


def _of(type: DataType, scalars: dict[str, spark.DataType]) -> spark.DataType:
    match type:
        case Scalar(name):
            if name not in scalars:
                raise UnknownType(f"Spark has no type for {to_sql(type)}: choose other columns")
            return scalars[name]
        case Decimal(precision, scale):
            return spark.DecimalType(precision, scale)
        case List(element):
            return spark.ArrayType(_of(element, scalars))
        case Map(key, value):
            return spark.MapType(_of(key, scalars), _of(value, scalars))
        case Struct(fields):
            return spark.StructType([spark.StructField(name, _of(child, scalars)) for name, child in fields])


def given_schema(schema: spark.StructType) -> pa.Schema:
    """The columns that a table gets from those of a DataFrame."""
    for field in schema.fields:
        # Arrow would make a struct of bytes of it.
        if "variant" in field.dataType.simpleString():
            raise UnknownType(f'column "{field.name}" is {field.dataType.simpleString()}: make it text first')
    return arrow_schema(schema)


def takes(column: Column, given: spark.DataType) -> bool:
    """Whether every value of a type of Spark is one of a column; fields are found by their names."""
    if isinstance(given, spark.StructType) and column.type == "struct":
        inside = {child.name: child for child in column.children}
        fields = {field.name: field.dataType for field in given.fields}
        known = len(fields) == len(given.fields) and inside.keys() == fields.keys()
        return known and all(takes(inside[field], type) for field, type in fields.items())
    if isinstance(given, spark.DecimalType):
        return can_widen(Decimal(given.precision, given.scale), column.data_type)
    found = _GIVEN.get(type(given))
    return found is not None and can_widen(Scalar(found), column.data_type)


def shown(expression: str, type: DataType, depth: int = 0) -> str:
    """What was read of a column, as it is shown."""
    if not _has_other_form(type):
        return expression
    variable = f"x{depth}"
    match type:
        case List(element):
            return f"transform({expression}, {variable} -> {shown(variable, element, depth + 1)})"
        case Map(key, value):
            first = shown(f"{variable}.key", key, depth + 1)
            second = shown(f"{variable}.value", value, depth + 1)
            pairs = f"transform(map_entries({expression}), {variable} -> struct({first}, {second}))"
            return f"map_from_entries({pairs})"
        case Struct(fields):
            inner = ", ".join(
                f"{text(field)}, {shown(field_of(expression, field), child, depth)}"
                for field, child in fields
            )
            return f"if({expression} IS NULL, NULL, named_struct({inner}))"
        case Scalar("uuid"):
            digits = f"lower(hex({expression}))"
            return "concat(" + ", '-', ".join(f"substr({digits}, {a}, {n})" for a, n in _TEXT_OF_UUID) + ")"
        case _:
            micros = f"({expression} - pmod({expression}, 1000L)) div 1000L"
            return f"timestampadd(MICROSECOND, {micros}, {_FIRST_TIMESTAMP})"


def _has_other_form(type: DataType) -> bool:
    return _any(type, lambda leaf: leaf in (Scalar("uuid"), Scalar("timestamp_ns")))


def may_be_nan(type: DataType) -> bool:
    """Whether Parquet can be asked for NaN: it knows nothing of what is in lists and maps."""
    match type:
        case Struct(fields):
            return any(may_be_nan(field) for _, field in fields)
        case _:
            return type in (Scalar("float32"), Scalar("float64"))


def takes_default(column: Column) -> bool:
    """Whether Spark's reader puts defaults in where a file lacks a column.

    It fails at bytes, and at decimals that 64 bits do not hold.
    """
    read = None if column.children else _of(column.data_type, _READ)
    large = isinstance(read, spark.DecimalType) and read.precision > _LONG_DIGITS
    return not large and not isinstance(read, spark.BinaryType)


def _any(type: DataType, holds: Callable[[DataType], bool]) -> bool:
    match type:
        case List(element):
            return _any(element, holds)
        case Map(key, value):
            return _any(key, holds) or _any(value, holds)
        case Struct(fields):
            return any(_any(field, holds) for _, field in fields)
        case _:
            return holds(type)


def initial(column: Column) -> str | None:
    """What files without a column read as: a literal of the type that is read, None for NULL."""
    if column.initial_default is None:
        return None
    value = initial_of(column, 1)
    plain = value.storage if isinstance(value, pa.ExtensionArray) else value
    if pa.types.is_date(plain.type) or pa.types.is_timestamp(plain.type):
        # Python has neither nanoseconds nor years after 9999.
        plain = plain.cast(pa.int32() if pa.types.is_date(plain.type) else pa.int64())
    return _literal(plain[0].as_py(), column.data_type)


def _literal(value: object, type: DataType) -> str:
    """A value in Spark's SQL, of the type that is read; dates and timestamps are whole numbers."""
    match type, value:
        case Scalar("varchar" | "json" | "interval" | "time_ns"), str():
            return text(value)
        case _, bytes():
            return f"X'{value.hex()}'"
        case Scalar("date"), int():
            return f"date_from_unix_date({value})"
        case Scalar("timestamptz"), int():
            return f"timestamp_micros({value}L)"
        case Scalar(name), int() if name in _MICROS:
            return f"timestampadd(MICROSECOND, {value * _MICROS[name]}L, {_FIRST_TIMESTAMP})"
        case _, time():
            return f"TIME'{value.replace(tzinfo=None).isoformat('microseconds')}'"
        case _, bool():
            return str(value).lower()
        case _:
            return f"CAST('{value}' AS {_of(type, _READ).simpleString()})"


def lists_of(arrays: Sequence[pa.Array]) -> pa.ListArray:
    """Arrays of whole numbers as the values of one column."""
    ends = accumulate((len(array) for array in arrays), initial=0)
    flat = pa.concat_arrays([pa.array([], pa.int64()), *arrays])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)


def to_arrow(values: pa.Array, type: DataType) -> pa.Array:
    """Rows that are at hand, in the type that Spark shows."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    match type:
        case List(element):
            inner = to_arrow(values.values, element)
            return pa.ListArray.from_arrays(offsets_of(values), inner)
        case Map(key, value):
            keys, items = to_arrow(values.keys, key), to_arrow(values.items, value)
            return pa.MapArray.from_arrays(offsets_of(values), keys, items)
        case Struct(fields):
            inner = [to_arrow(values.field(at), child) for at, (_, child) in enumerate(fields)]
            names = [field for field, _ in fields]
            mask = values.is_null() if values.null_count else None
            return pa.StructArray.from_arrays(inner, names, mask=mask)
        case Scalar("uuid"):
            texts = [None if one is None else str(UUID(bytes=one)) for one in values.to_pylist()]
            return pa.array(texts, pa.string())
        case Scalar("timestamp_ns"):
            return pc.floor_temporal(values, 1, unit="microsecond").cast(pa.timestamp("us"))
        case Scalar(kind) if kind in _CASTS:
            return values.cast(_CASTS[kind])
        case _:
            return values
