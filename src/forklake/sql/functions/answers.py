"""The rows that functions return, as Arrow tables with the types that DuckDB gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from forklake.lazy.arrow import pa

Columns = Mapping[str, str]
"""Names and types of DuckDB."""


@cache
def _types() -> dict[str, pa.DataType]:
    return {
        "BOOLEAN": pa.bool_(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "UBIGINT": pa.uint64(),
        "DOUBLE": pa.float64(),
        "VARCHAR": pa.string(),
        "BLOB": pa.binary(),
        "UUID": pa.uuid(),
        "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
        "VARCHAR[]": pa.list_(pa.string()),
        "BIGINT[]": pa.list_(pa.int64()),
        "MAP(VARCHAR, VARCHAR)": pa.map_(pa.string(), pa.string()),
        "MAP(VARCHAR, VARCHAR[])": pa.map_(pa.string(), pa.list_(pa.string())),
    }


def answer(columns: Columns, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A table of these columns."""
    listed = list(rows)
    schema = pa.schema([(name, _types()[kind]) for name, kind in columns.items()])
    arrays = [pa.array([row[place] for row in listed], field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


SUCCESS: Columns = {"Success": "BOOLEAN"}


def done() -> pa.Table:
    """What those return that only do something."""
    return answer(SUCCESS, [])
