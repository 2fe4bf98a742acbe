"""Values of Python as SQL literals of a column's type."""

from __future__ import annotations

from forklake.data.input.python_values import array_of
from forklake.errors import InvalidData
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.types.data_types import Scalar, to_sql
from forklake.model.types.text import Stored, text_of

_AS_TEXT = ("interval", "time_ns")
"""Types that files hold as text."""


def literal_of(value: object, column: Column) -> str:
    """A value as SQL, in the type of a column; refused if the column would not take it from an append."""
    return _sql(array_of([value], column, cast=True), column)


def _sql(array: pa.Array, column: Column) -> str:
    """The only value of an array as files hold it."""
    type = to_sql(column.data_type)
    if array.null_count:
        return f"CAST(NULL AS {type})"
    match column.type:
        case "struct":
            fields = [
                f"{quoted(child.name)} := {_sql(array.field(at), child)}"
                for at, child in enumerate(column.children)
            ]
            return f"CAST(struct_pack({', '.join(fields)}) AS {type})"
        case "list":
            return f"CAST([{', '.join(_each(array.flatten(), column.children[0]))}] AS {type})"
        case "map":
            keys = _each(array.keys, column.children[0])
            values = _each(array.items, column.children[1])
            return f"CAST(map([{', '.join(keys)}], [{', '.join(values)}]) AS {type})"
        case "geometry":
            return f"st_geomfromwkb({_text(_said(array, column), 'BLOB')})"
        case _:
            return _text(_said(array, column), type)


def _each(array: pa.Array, column: Column) -> list[str]:
    return [_sql(array.slice(at, 1), column) for at in range(len(array))]


def _said(array: pa.Array, column: Column) -> str:
    """The value in DuckDB's words."""
    plain = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    if pa.types.is_date32(plain.type) or pa.types.is_time32(plain.type):
        plain = plain.view(pa.int32())
    elif pa.types.is_time64(plain.type) or pa.types.is_timestamp(plain.type):
        plain = plain.view(pa.int64())
    value: Stored = plain[0].as_py()
    kind = Scalar("blob") if column.type == "geometry" else column.data_type
    text = str(value) if column.type in _AS_TEXT else text_of(value, kind)
    if text is None:
        raise InvalidData(f'{value!r} cannot be written as a literal for column "{column.name}"')
    return text


def _text(text: str, type: str) -> str:
    # SQL has no way to write NUL inside of a text.
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return f"CAST({parts[0] if len(parts) == 1 else '(' + ' || chr(0) || '.join(parts) + ')'} AS {type})"
