"""Types of columns: those of forklake as SQLAlchemy has them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types as sa
from sqlalchemy.dialects.postgresql import INTERVAL

from forklake.errors import UnknownType
from forklake.model.types.data_types import DataType, Decimal, List, Scalar, parse, to_sql


class WholeNumber(sa.Integer):
    """A whole number that SQLAlchemy has no type for; its name is that of the class."""

    __visit_name__ = "whole_number"


class TINYINT(WholeNumber):
    """8 bits."""


class UTINYINT(WholeNumber):
    """8 bits, no sign."""


class USMALLINT(WholeNumber):
    """16 bits, no sign."""


class UINTEGER(WholeNumber):
    """32 bits, no sign."""


class UBIGINT(WholeNumber):
    """64 bits, no sign."""


class HUGEINT(WholeNumber):
    """Up to 38 digits."""


class UHUGEINT(WholeNumber):
    """Up to 38 digits, no sign."""


class NESTED(sa.UserDefinedType[Any]):
    """A STRUCT, a MAP, or another type that SQLAlchemy has no word for; values are dicts and lists."""

    cache_ok = True

    def __init__(self, sql: str) -> None:
        """As DuckDB writes the type: `STRUCT(name VARCHAR)`."""
        self.sql = sql

    def get_col_spec(self, **kw: Any) -> str:
        """The type in a definition."""
        return self.sql


_SCALARS: dict[str, sa.TypeEngine[Any]] = {
    "boolean": sa.BOOLEAN(),
    "int8": TINYINT(),
    "int16": sa.SMALLINT(),
    "int32": sa.INTEGER(),
    "int64": sa.BIGINT(),
    "int128": HUGEINT(),
    "uint8": UTINYINT(),
    "uint16": USMALLINT(),
    "uint32": UINTEGER(),
    "uint64": UBIGINT(),
    "uint128": UHUGEINT(),
    "float32": sa.REAL(),
    "float64": sa.DOUBLE(),
    "date": sa.DATE(),
    "time": sa.TIME(),
    "timetz": sa.TIME(timezone=True),
    "timestamp": sa.TIMESTAMP(),
    "timestamptz": sa.TIMESTAMP(timezone=True),
    "interval": INTERVAL(),
    "varchar": sa.VARCHAR(),
    "blob": sa.BLOB(),
    "json": sa.JSON(),
    "uuid": sa.UUID(),
}


def type_of(data_type: DataType) -> sa.TypeEngine[Any]:
    """The type of a column."""
    match data_type:
        case Scalar(name) if name in _SCALARS:
            return _SCALARS[name]
        case Decimal(precision, scale):
            return sa.DECIMAL(precision, scale)
        case List(element):
            inner, dimensions = element, 1
            while isinstance(inner, List):
                inner, dimensions = inner.element, dimensions + 1
            return sa.ARRAY(type_of(inner), dimensions=dimensions)
        case _:
            return NESTED(to_sql(data_type))


def type_named(sql: str) -> sa.TypeEngine[Any]:
    """The type of a column by DuckDB's name, as a result has it."""
    try:
        return type_of(parse(sql))
    except UnknownType:
        return NESTED(sql)
