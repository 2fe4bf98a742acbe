"""The Arrow types of rows that go to Spark and come from it."""

from __future__ import annotations

from functools import cache

from pyspark.sql import types as spark

from forklake.errors import UnknownType
from forklake.lazy.arrow import pa
from forklake.spark.features import HAS_TIME


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The columns of a DataFrame in Arrow; a TIMESTAMP has the zone UTC."""
    return pa.schema([_field(field.name, field.dataType, field.nullable) for field in schema.fields])


def _field(name: str, kind: spark.DataType, nullable: bool) -> pa.Field:
    return pa.field(name, _arrow(kind), nullable)


def _arrow(kind: spark.DataType) -> pa.DataType:
    match kind:
        case spark.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case spark.ArrayType():
            return pa.list_(_field("element", kind.elementType, kind.containsNull))
        case spark.MapType():
            key, value = (
                _field("key", kind.keyType, False),
                _field("value", kind.valueType, kind.valueContainsNull),
            )
            return pa.map_(key, value)
        case spark.StructType():
            return pa.struct([_field(one.name, one.dataType, one.nullable) for one in kind.fields])
        case spark.UserDefinedType():
            return _arrow(kind.sqlType())
        case _:
            found = next((arrow for one, arrow in _plain().items() if isinstance(kind, one)), None)
            if found is None:
                raise UnknownType(f"a table has no type for {kind.simpleString()}: cast the column first")
            return found


@cache
def _plain() -> dict[type[spark.DataType], pa.DataType]:
    return {
        spark.BooleanType: pa.bool_(), spark.ByteType: pa.int8(), spark.ShortType: pa.int16(),
        spark.IntegerType: pa.int32(), spark.LongType: pa.int64(), spark.FloatType: pa.float32(),
        spark.DoubleType: pa.float64(), spark.StringType: pa.string(), spark.CharType: pa.string(),
        spark.VarcharType: pa.string(), spark.BinaryType: pa.binary(), spark.DateType: pa.date32(),
        spark.TimestampType: pa.timestamp("us", "UTC"), spark.TimestampNTZType: pa.timestamp("us"),
        spark.DayTimeIntervalType: pa.duration("us"), spark.NullType: pa.null(),
        **({spark.TimeType: pa.time64("ns")} if HAS_TIME else {}),
    }  # fmt: skip
