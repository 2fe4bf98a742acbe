"""Tables, views and macros as DuckDB describes them: types, defaults, the SQL that creates them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from forklake.model.entities import Column, Table, View
from forklake.model.index import Index, Parameter
from forklake.model.sql.keywords import optionally_quoted
from forklake.model.types.data_types import DataType, Decimal, List, Map, Struct, to_sql

_TYPE_IDS = {
    "BOOLEAN": 10, "TINYINT": 11, "SMALLINT": 12, "INTEGER": 13, "BIGINT": 14, "DATE": 15, "TIME": 16,
    "TIMESTAMP_S": 17, "TIMESTAMP_MS": 18, "TIMESTAMP": 19, "TIMESTAMP_NS": 20, "FLOAT": 22, "DOUBLE": 23,
    "VARCHAR": 25, "JSON": 25, "BLOB": 26, "INTERVAL": 27, "UTINYINT": 28, "USMALLINT": 29, "UINTEGER": 30,
    "UBIGINT": 31, "TIMESTAMP WITH TIME ZONE": 32, "TIME WITH TIME ZONE": 34, "TIME_NS": 35, "UHUGEINT": 49,
    "HUGEINT": 50, "UUID": 54, "GEOMETRY": 60, "VARIANT": 109,
}  # fmt: skip
_BITS = {
    "TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128, "FLOAT": 24, "DOUBLE": 53,
}  # fmt: skip
_UNQUOTED = frozenset(
    "boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64".split()  # noqa: SIM905
)


class Numbers(NamedTuple):
    """What `duckdb_columns` says of a type in numbers."""

    type_id: int | None
    precision: int | None = None
    radix: int | None = None
    scale: int | None = None


def shown_type(type: DataType) -> str:
    """A type as DuckDB writes it, with quotes only where a name needs them."""
    match type:
        case List(element):
            return f"{shown_type(element)}[]"
        case Struct(fields):
            listed = (f"{optionally_quoted(name)} {shown_type(child)}" for name, child in fields)
            return f"STRUCT({', '.join(listed)})"
        case Map(key, value):
            return f"MAP({shown_type(key)}, {shown_type(value)})"
        case _:
            return to_sql(type)


def numbers_of(shown: str) -> Numbers:
    """What is said of a type, by how DuckDB writes it."""
    if shown.endswith("[]"):
        return Numbers(101)
    head, _, rest = shown.partition("(")
    match head:
        case "DECIMAL":
            precision, scale = rest.rstrip(")").split(",")
            return Numbers(21, int(precision), 10, int(scale))
        case "STRUCT":
            return Numbers(100)
        case "MAP":
            return Numbers(102)
        case _ if head in _BITS:
            return Numbers(_TYPE_IDS[head], _BITS[head], 2, 0)
        case _:
            return Numbers(_TYPE_IDS.get(head))


def default_of(column: Column) -> str | None:
    """The default of a column as an expression."""
    if column.default is None:
        return None
    value = column.default.value
    bare = isinstance(column.data_type, Decimal) or column.type in _UNQUOTED
    if column.default.kind == "expression" or bare:
        return value
    return "'" + value.replace("'", "''") + "'"


def create_table(schema: str, table: Table) -> str:
    """The statement that would create a table."""
    columns = ", ".join(_definition(column) for column in table.columns)
    return f"CREATE TABLE {_name(schema, table.name)}({columns});"


def create_index(schema: str, table: Table, index: Index) -> str:
    """The statement that would create an index."""
    names = {column.id: optionally_quoted(column.name) for column in table.columns}
    keys, include = (
        ", ".join(names[column] for column in columns) for columns in (index.keys, index.include)
    )
    given = {"maintain": index.maintain, **index.params}
    params = ", ".join(f"{name} = {_setting(value)}" for name, value in given.items() if value is not None)
    included = f" INCLUDE ({include})" if include else ""
    return (
        f"CREATE INDEX {optionally_quoted(index.name)} ON {_name(schema, table.name)} "
        f"USING {index.kind} ({keys}){included} WITH ({params});"
    )


def _setting(value: Parameter) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).lower()


def _definition(column: Column) -> str:
    parts = [optionally_quoted(column.name), shown_type(column.data_type)]
    default = default_of(column)
    parts += [] if default is None else [f"DEFAULT({default})"]
    parts += [] if column.nullable else ["NOT NULL"]
    return " ".join(parts)


def create_view(schema: str, view: View) -> str:
    """The statement that would create a view."""
    return (
        f"CREATE VIEW {_name(schema, view.name)}{_aliases(view.column_aliases)} AS {view.sql.rstrip('; ')};"
    )


def _aliases(names: Iterable[str]) -> str:
    listed = ", ".join(map(optionally_quoted, names))
    return f" ({listed})" if listed else ""


def _name(schema: str, name: str) -> str:
    own = optionally_quoted(name)
    return own if schema == "main" else f"{optionally_quoted(schema)}.{own}"
