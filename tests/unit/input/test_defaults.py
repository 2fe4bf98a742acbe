"""Columns that are left out get their defaults, and NOT NULL needs a value."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number

import duckdb
import pyarrow as pa
import pytest

from forklake.data.defaults import initial_of
from forklake.data.input.batches import rows_of
from forklake.errors import InvalidArgument, InvalidData
from forklake.model.sql.ddl import ColumnSpec
from forklake.model.table.columns import add
from forklake.model.types.data_types import DataType, parse
from tests.unit.input.given import read, refused, table_of


def test_an_omitted_column_gets_its_literal_default() -> None:
    ddl = (
        "a INTEGER, i BIGINT DEFAULT -5, s VARCHAR DEFAULT 'it''s', f FLOAT DEFAULT 0.1, "
        "d DECIMAL(9,2) DEFAULT 1.5, "
        "day DATE DEFAULT '2024-02-29', t TIME DEFAULT '01:02:03.5', "
        "ts TIMESTAMP DEFAULT '2024-01-01 00:00:00.25', "
        "tz TIMESTAMPTZ DEFAULT '2024-01-01 02:00:00+02', flag BOOLEAN DEFAULT true, "
        "u UUID DEFAULT 'F79C3E09-677C-4bbd-a479-3f349cb785e7', "
        "b BLOB DEFAULT '\\x00a\\xFF', j JSON DEFAULT '{\"a\": 1}', "
        "ttz TIMETZ DEFAULT '01:00:00+02', h HUGEINT DEFAULT 170141183460469231731687303715, "
        "n TIMESTAMP_NS DEFAULT '2024-01-01 00:00:00.123456789'"
    )
    columns = table_of(ddl)
    rows = rows_of(pa.table({"a": [1, 2]}), columns).read_all()
    stamps = rows["n"].cast(pa.int64()).to_pylist()
    first, second = rows.drop_columns(["n"]).to_pylist()
    assert stamps == [1704067200123456789] * 2
    assert {**first, "a": 2} == second
    assert first == {
        "a": 1,
        "i": -5,
        "s": "it's",
        "f": pytest.approx(0.1),
        "d": Number("1.50"),
        "day": date(2024, 2, 29),
        "t": time(1, 2, 3, 500000),
        "ts": datetime(2024, 1, 1, 0, 0, 0, 250000),
        "tz": datetime(2024, 1, 1, tzinfo=UTC),
        "flag": True,
        "u": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        "b": b"\x00a\xff",
        "j": '{"a": 1}',
        "ttz": time(23, 0),
        "h": Number(170141183460469231731687303715),
    }


def compute(expression: str, type: DataType, rows: int) -> pa.Array:
    with duckdb.connect() as connection:
        return (
            connection.sql(f"SELECT {expression} AS v FROM range({rows})")
            .to_arrow_table()["v"]
            .combine_chunks()
        )


def test_an_omitted_column_gets_its_computed_default() -> None:
    rows = read(
        pa.table({"a": [1, 2]}),
        "a INTEGER, u UUID DEFAULT uuid(), l INTEGER[] DEFAULT [1, 2], t VARCHAR NOT NULL DEFAULT lower('X')",
        evaluate=compute,
    )
    assert rows[0]["u"] != rows[1]["u"]
    assert isinstance(rows[0]["u"], uuid.UUID)
    assert [(row["l"], row["t"]) for row in rows] == [([1, 2], "x")] * 2


def test_a_computed_default_has_to_fit() -> None:
    ddl = "a INTEGER, n TINYINT DEFAULT 1 + 1"
    refused(pa.table({"a": [1]}), ddl, '"n"', evaluate=lambda e, t, rows: pa.array([1000] * rows))
    refused(pa.table({"a": [1]}), ddl, '"n"', "2 values", evaluate=lambda e, t, rows: pa.array([1, 1]))
    with pytest.raises(InvalidArgument, match='"n"'):
        rows_of(pa.table({"a": [1]}), table_of(ddl)).read_all()


def test_a_row_gets_defaults_for_what_it_alone_omits() -> None:
    ddl = "a INTEGER, b VARCHAR DEFAULT 'none', u UUID DEFAULT uuid()"
    rows = read([{"a": 1, "b": None}, {"b": "x"}, {"a": 3}], ddl, evaluate=compute)
    assert [(row["a"], row["b"]) for row in rows] == [(1, None), (None, "x"), (3, "none")]
    assert len({row["u"] for row in rows}) == 3


def test_not_null_needs_a_value() -> None:
    refused(pa.table({"b": ["x"]}), "a INTEGER NOT NULL, b VARCHAR", '"a"', "default")
    refused({"b": ["x"]}, "a INTEGER NOT NULL, b VARCHAR", '"a"', "default")
    refused([{"b": "x"}], "a INTEGER NOT NULL, b VARCHAR", '"a"', "default")
    refused(pa.table({"a": [1, None, None]}), "a INTEGER NOT NULL", '"a"', "2 of 3")
    refused([{"a": 1}, {"a": None}], "a INTEGER NOT NULL", '"a"', "1 of 2")
    refused(pa.table({"a": pa.nulls(2)}), "a INTEGER NOT NULL", '"a"', "2 of 2")
    assert read(pa.table({"b": ["x"]}), "a INTEGER NOT NULL DEFAULT 7, b VARCHAR") == [{"a": 7, "b": "x"}]


def test_a_missing_required_column_is_refused_before_anything_is_read() -> None:
    reader = pa.RecordBatchReader.from_batches(pa.schema([("b", pa.string())]), iter([]))
    with pytest.raises(InvalidData, match='"a"'):
        rows_of(reader, table_of("a INTEGER NOT NULL, b VARCHAR"))


def test_older_files_read_initial_defaults() -> None:
    columns = add(table_of("a INTEGER"), "b", ColumnSpec("b", parse("DATE"), default="'2024-01-01'"), 1)
    assert initial_of(columns[1], 2).to_pylist() == [date(2024, 1, 1)] * 2
    assert initial_of(columns[0], 2).to_pylist() == [None, None]
