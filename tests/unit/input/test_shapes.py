"""Rows come in many shapes, in portions, and their columns are found by name."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from forklake.data.input import batches as intake
from forklake.data.input.batches import rows_of
from tests.unit.input.given import AB, ROWS, TABLE, read, refused, table_of


class Stream:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        Stream(TABLE),
        Array(TABLE.to_batches()[0]),
        TABLE.to_batches(),
        iter(TABLE.to_batches(max_chunksize=1)),
        [TABLE.slice(0, 1), TABLE.slice(1)],
        ROWS,
        iter(ROWS),
        tuple(ROWS),
        {"a": [1, None], "b": ["x", "y"]},
        {"B": pa.array(["x", "y"]), "A": TABLE["a"]},
        {"b": iter(["x", "y"]), "a": pa.chunked_array([[1], [None]], pa.int64())},
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_come_in_many_shapes(data: object) -> None:
    assert read(data, AB) == ROWS


def test_a_duckdb_relation_is_read() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT 'x' AS b, 1 AS a UNION ALL SELECT 'y', NULL ORDER BY b")
        assert read(relation, AB) == ROWS


def test_polars_and_pandas_frames_are_read() -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    assert read(polars.DataFrame(ROWS), AB) == ROWS
    assert read(pandas.DataFrame({"b": ["x", "y"], "a": pandas.array([1, None], "Int64")}), AB) == ROWS


def test_rows_of_pandas_keep_their_gaps_and_their_nanoseconds() -> None:
    pandas = pytest.importorskip("pandas")
    ddl = "t TIMESTAMP_NS, n BIGINT"
    assert read([{"t": pandas.NaT, "n": pandas.NA}], ddl) == [{"t": None, "n": None}]
    exact = pandas.Timestamp("2024-01-01 00:00:00.000000001")
    refused([{"t": exact}], ddl, "row 0", '"t"', "microseconds")
    stored = rows_of(pandas.DataFrame({"t": [exact]}), table_of(ddl)).read_all()["t"]
    assert stored.cast(pa.int64()).to_pylist() == [exact.value]


@pytest.mark.parametrize("data", ["a,b", b"a", 5, None, [1, 2], ["a"], [ROWS[0], 5], [[1, "x"]]])
def test_what_has_no_rows_is_refused(data: object) -> None:
    refused(data, AB, "dict")


@pytest.mark.parametrize("data", [[], iter([]), {}, TABLE.slice(0, 0), {"a": []}])
def test_no_rows_are_no_batches(data: object) -> None:
    assert list(rows_of(data, table_of(AB))) == []


def test_a_stream_is_never_held() -> None:
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield TABLE.to_batches()[0]

    reader = rows_of(pa.RecordBatchReader.from_batches(TABLE.schema, batches()), table_of(AB))
    assert taken == 0
    reader.read_next_batch()
    assert taken <= 2


def test_python_rows_are_taken_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "ROWS_AT_ONCE", 3)
    batches = list(rows_of(({"a": at} for at in range(8)), table_of(AB)))
    assert [batch.num_rows for batch in batches] == [3, 3, 2]


def test_a_large_batch_is_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BYTES_AT_ONCE", 1000)
    data = pa.table({"b": ["x" * 100] * 64})
    batches = list(rows_of(data, table_of(AB)))
    assert len(batches) > 4
    assert pa.Table.from_batches(batches)["b"].to_pylist() == ["x" * 100] * 64


def test_what_fits_already_is_not_copied() -> None:
    columns = table_of("a INTEGER, b VARCHAR, l INTEGER[], s STRUCT(x DOUBLE)")
    batch = rows_of(
        [{"a": 1, "b": "x", "l": [1, 2], "s": {"x": 1.5}}, {"a": 2, "b": "y", "l": None, "s": None}], columns
    ).read_next_batch()
    again = rows_of(batch, columns).read_next_batch()
    for before, after in zip(batch.columns, again.columns, strict=True):
        assert [b and b.address for b in after.buffers()] == [b and b.address for b in before.buffers()]


def test_names_match_in_any_case_but_exactly_first() -> None:
    assert read(pa.table({"A": [1], "B": ["x"]}), AB) == [ROWS[0]]
    assert read([{"A": 1}, {"a": 2}], "a INTEGER") == [{"a": 1}, {"a": 2}]


def test_unknown_and_repeated_columns_are_named() -> None:
    refused(pa.table({"a": [1], "c": [1]}), AB, '"c"', '"a", "b"')
    refused([{"a": 1}, {"c": 1}], AB, "row 1", '"c"')
    refused({"c": [1]}, AB, '"c"')
    refused(pa.table([[1], [2]], names=["a", "A"]), AB, '"a"', "twice")
    refused(pa.table([[1], [2]], names=["a", "a"]), AB, "twice")
    refused([{"a": 1, "A": 2}], AB, "twice")
    refused([{"a": 1}, {"A": 2}, {"a": 1, "A": 2}], AB, "row 2", "twice")


def test_columns_of_different_lengths_are_refused() -> None:
    refused({"a": [1, 2], "b": ["x"]}, AB, '"a" has 2', '"b" has 1')
