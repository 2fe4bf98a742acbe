"""Rows that are given to a table, as they are read or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from forklake.data.input.batches import rows_of
from forklake.data.parquet.schema import arrow_schema
from forklake.errors import InvalidData
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build


def table_of(ddl: str):
    return build(columns_of(ddl))


def read(data: object, ddl: str, **options) -> list[dict]:
    columns = table_of(ddl)
    rows = rows_of(data, columns, **options).read_all()
    assert rows.schema.equals(arrow_schema(columns), check_metadata=True)
    rows.validate(full=True)
    return rows.to_pylist()


def one(value: object, type: str) -> object:
    """What an array of one value becomes in a column of a type."""
    return read(pa.table({"c": value}), f"c {type}")[0]["c"]


def refused(data: object, ddl: str, *words: str, **options) -> None:
    with pytest.raises(InvalidData) as caught:
        rows_of(data, table_of(ddl), **options).read_all()
    for word in words:
        assert word in str(caught.value)


AB = "a INTEGER, b VARCHAR"
ROWS = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
TABLE = pa.table({"b": ["x", "y"], "a": pa.array([1, None], pa.int64())})
