"""Rows as people hand them over: found by name, kept as they are, or refused by name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as Number

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.defaults import initial_of
from forklake.data.input import batches as intake
from forklake.data.input.batches import rows_of
from forklake.data.input.json_strings import first_invalid
from forklake.data.parquet.schema import arrow_schema
from forklake.errors import InvalidArgument, InvalidData, UnknownType
from forklake.model.sql.ddl import ColumnSpec, columns_of
from forklake.model.table.columns import add, build
from forklake.model.types.data_types import DataType, parse


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


# Defaults.


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


# Values of Arrow.

DAY = 86_400
SOME_UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
PAIRS = pa.map_(pa.string(), pa.int64())
ENTRIES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
WORDS = pa.list_(pa.list_(pa.dictionary(pa.int8(), pa.string())))


@pytest.mark.parametrize(
    ("array", "type", "value"),
    [
        (pa.array([127], pa.int64()), "TINYINT", 127),
        (pa.array([2**63], pa.uint64()), "UBIGINT", 2**63),
        (pa.array([5.0]), "INTEGER", 5),
        (pa.array([Number("5.00")]), "INTEGER", 5),
        (pa.array([2**64 - 1], pa.uint64()), "HUGEINT", Number(2**64 - 1)),
        (pa.array([7]), "DECIMAL(9,2)", Number("7.00")),
        (pa.array([Number("1.50")], pa.decimal128(20, 5)), "DECIMAL(9,2)", Number("1.50")),
        (pa.array([Number("1.50")], pa.decimal256(50, 5)), "DECIMAL(9,2)", Number("1.50")),
        (pa.array([0.5]), "FLOAT", 0.5),
        (pa.array([float("inf")]), "FLOAT", float("inf")),
        (pa.array([1.5], pa.float16()), "DOUBLE", 1.5),
        (pa.array([1.5], pa.float16()), "FLOAT", 1.5),
        (pa.array([2**53 + 2]), "DOUBLE", float(2**53 + 2)),
        (pa.array([2**60]), "FLOAT", float(2**60)),
        (pa.array([1_000], pa.timestamp("ns")), "TIMESTAMP", datetime(1970, 1, 1, 0, 0, 0, 1)),
        (pa.array([1_000], pa.timestamp("ms")), "TIMESTAMP_S", datetime(1970, 1, 1, 0, 0, 1)),
        (pa.array([0], pa.timestamp("s", "Europe/Berlin")), "TIMESTAMPTZ", datetime(1970, 1, 1, tzinfo=UTC)),
        (pa.array([date(2024, 1, 1)]), "TIMESTAMP", datetime(2024, 1, 1)),
        (pa.array([datetime(2024, 1, 1)]), "DATE", date(2024, 1, 1)),
        (pa.array([DAY * 1000], pa.date64()), "DATE", date(1970, 1, 2)),
        (pa.array([5], pa.time32("s")), "TIME", time(0, 0, 5)),
        (pa.array([5], pa.time32("s")), "TIMETZ", time(0, 0, 5)),
        (pa.array([5], pa.time64("ns")), "TIME_NS", "00:00:00.000000005"),
        (pa.array(["é"], pa.large_string()), "VARCHAR", "é"),
        (pa.array(["é"], pa.string_view()), "VARCHAR", "é"),
        (pa.array(["1"], pa.json_()), "VARCHAR", "1"),
        (pa.array(["x", "y", "x"]).dictionary_encode(), "VARCHAR", "x"),
        (pa.RunEndEncodedArray.from_arrays([2], ["x"]), "VARCHAR", "x"),
        (pa.array([b"ab"], pa.large_binary()), "BLOB", b"ab"),
        (pa.array([b"ab"], pa.binary(2)), "BLOB", b"ab"),
        (pa.array([b"ab"], pa.binary_view()), "BLOB", b"ab"),
        (pa.array(['{"a": [1]}']), "JSON", '{"a": [1]}'),
        (pa.array(["[1,\n2]"], pa.large_string()), "JSON", "[1,\n2]"),
        (pa.array([SOME_UUID]), "UUID", uuid.UUID(SOME_UUID)),
        (pa.array([b"a" * 16]), "UUID", uuid.UUID(bytes=b"a" * 16)),
        (pa.array([b"a" * 16], pa.binary(16)), "UUID", uuid.UUID(bytes=b"a" * 16)),
        (pa.nulls(1), "STRUCT(a UUID[])", None),
        (pa.array([None], pa.int32()), "VARCHAR", None),
        (pa.array([[1, None]], pa.large_list(pa.int64())), "TINYINT[]", [1, None]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "TINYINT[]", [1, 2]),
        (pa.array([[1, 2]], pa.list_view(pa.int64())), "TINYINT[]", [1, 2]),
        (pa.array([[1, 2]], pa.large_list_view(pa.int8())), "TINYINT[]", [1, 2]),
        (pa.array([[["x"]]], WORDS), "VARCHAR[][]", [["x"]]),
        (pa.array([[]], pa.list_(pa.null())), "UUID[]", []),
        (pa.array([{"B": 1, "a": "x"}]), "STRUCT(a TEXT, b TINYINT, c DATE)", {"a": "x", "b": 1, "c": None}),
        (pa.array([[{"b": 1}, None]]), "STRUCT(a VARCHAR, b TINYINT)[]", [{"a": None, "b": 1}, None]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, TINYINT)", [("k", 1)]),
        (pa.array([[{"key": "k", "value": 1}]]), "MAP(VARCHAR, TINYINT)", [("k", 1)]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)  # fmt: skip
def test_a_cast_that_keeps_every_value_is_made(array: pa.Array, type: str, value: object) -> None:
    assert one(array, type) == value


def test_nan_is_a_value() -> None:
    (row,) = read(pa.table({"f": [float("nan")], "d": [float("nan")]}), "f FLOAT, d DOUBLE")
    assert row["f"] != row["f"]
    assert row["d"] != row["d"]


@pytest.mark.parametrize(
    ("array", "type", "word"),
    [
        (pa.array([128]), "TINYINT", "128"),
        (pa.array([-1]), "UINTEGER", "-1"),
        (pa.array([1.5]), "INTEGER", "1.5"),
        (pa.array([float("nan")]), "INTEGER", "nan"),
        (pa.array(["1"]), "INTEGER", "string"),
        (pa.array([True]), "INTEGER", "bool"),
        (pa.array([1]), "BOOLEAN", "int64"),
        (pa.array([1]), "VARCHAR", "int64"),
        (pa.array([b"a"]), "VARCHAR", "binary"),
        (pa.array(["a"]), "BLOB", "string"),
        (pa.array([0.1]), "FLOAT", "0.1"),
        (pa.array([1e300]), "FLOAT", "1e+300"),
        (pa.array([2**53 + 1]), "DOUBLE", "9007199254740993"),
        (pa.array([2**24 + 1]), "FLOAT", "16777217"),
        (pa.array([1.5]), "DECIMAL(9,2)", "double"),
        (pa.array([Number("1.505")]), "DECIMAL(9,2)", "after the point"),
        (pa.array([10**8]), "DECIMAL(9,2)", "±9999999.99"),
        (pa.array([-1]), "UHUGEINT", "negative"),
        (pa.array([1], pa.timestamp("ns")), "TIMESTAMP", "lose data: 1"),
        (pa.array([1], pa.timestamp("us")), "TIMESTAMP_S", "lose data: 1"),
        (pa.array([2**62], pa.timestamp("us")), "TIMESTAMP_NS", "out of bounds"),
        (pa.array([1], pa.timestamp("us")), "TIMESTAMPTZ", "timestamp[us]"),
        (pa.array([1], pa.timestamp("us", "UTC")), "TIMESTAMP", "UTC"),
        (pa.array([1], pa.timestamp("us")), "DATE", "time of day"),
        (pa.array(["2024-01-01"]), "DATE", "string"),
        (pa.array([date(2024, 1, 1)]), "TIMESTAMPTZ", "date32"),
        (pa.array([1], pa.time64("ns")), "TIME", "lose data: 1"),
        (pa.array(["{", "1"]), "JSON", "'{'"),
        (pa.array(["1", None, "NaN"]), "JSON", "'NaN'"),
        (pa.array(['1,"a":2']), "JSON", "not JSON"),
        (pa.array(["{}"], pa.json_()).storage.cast(pa.binary()), "JSON", "binary"),
        (pa.array(["nope"]), "UUID", "nope"),
        (pa.array([b"short"]), "UUID", "16 bytes"),
        (pa.array([b"short"], pa.binary(5)), "UUID", "fixed_size_binary[5]"),
        (pa.array([[128]]), "TINYINT[]", '"c[]"'),
        (pa.array([{"a": 128}]), "STRUCT(a TINYINT)", '"c.a"'),
        (pa.array([{"z": 1}]), "STRUCT(a TINYINT)", '"z"'),
        (pa.array([[{"a": {"z": 1}}]]), "STRUCT(a STRUCT(b INTEGER))[]", '"c[].a"'),
        (pa.array([1]), "STRUCT(a TINYINT)", "int64"),
        (pa.array([[1]]), "MAP(VARCHAR, INTEGER)", "list"),
        (pa.array([[("k", 1), ("k", 2)]], PAIRS), "MAP(VARCHAR, INTEGER)", "twice"),
        (pa.array([[{"key": None, "value": 1}]], ENTRIES), "MAP(VARCHAR, INTEGER)", "NULL"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)  # fmt: skip
def test_a_cast_that_would_change_a_value_is_refused(array: pa.Array, type: str, word: str) -> None:
    refused(pa.table({"c": array}), f"c {type}", '"c', word)


def test_text_that_is_not_utf_8_is_refused() -> None:
    broken = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    refused(pa.table({"c": broken}), "c VARCHAR", '"c"', "UTF8")
    refused(
        pa.table({"c": pa.array([[b"\xff"]], pa.list_(pa.binary())).view(pa.list_(pa.string()))}),
        "c VARCHAR[]",
        '"c[]"',
    )


def test_one_key_may_be_in_many_maps() -> None:
    maps = pa.array([[("k", 1), ("l", 2)], None, [("k", 3), ("l", 1)]], pa.map_(pa.string(), pa.int64()))
    found = read(pa.table({"c": maps}), "c MAP(VARCHAR, BIGINT)")
    assert [row["c"] for row in found] == maps.to_pylist()
    assert [
        row["c"] for row in read(pa.table({"c": maps.slice(1)}), "c MAP(VARCHAR, TINYINT)")
    ] == maps.to_pylist()[1:]


def test_what_hides_behind_null_is_not_looked_at() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1000, 5])], ["a"], mask=pa.array([True, False]))
    assert read(pa.table({"c": hidden}), "c STRUCT(a TINYINT)") == [{"c": None}, {"c": {"a": 5}}]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([1000, 5]), mask=pa.array([True, False]))
    assert read(pa.table({"c": lists}), "c TINYINT[]") == [{"c": None}, {"c": [5]}]


def test_slices_are_read_where_they_are() -> None:
    whole = pa.array([[1], [2, 3], None, [4]], pa.list_(pa.int64()))
    texts = pa.array(["f79c3e09-677c-4bbd-a479-3f349cb785e7", None, "00000000-0000-0000-0000-000000000001"])
    assert [row["c"] for row in read(pa.table({"c": whole.slice(1)}), "c TINYINT[]")] == [[2, 3], None, [4]]
    found = read(pa.table({"c": texts.slice(1)}), "c UUID")
    assert [row["c"] for row in found] == [None, uuid.UUID(int=1)]


def test_a_type_that_files_cannot_hold_is_refused_at_once() -> None:
    with pytest.raises(UnknownType, match="VARIANT"):
        rows_of([{"c": 1}], table_of("c VARIANT"))


# Values of Python.

EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (5, "TINYINT", 5),
        (5.0, "TINYINT", 5),
        (Number("5.0"), "BIGINT", 5),
        (10**37, "HUGEINT", Number(10**37)),
        (5, "DOUBLE", 5.0),
        (0.1, "FLOAT", pytest.approx(0.1)),
        (5, "DECIMAL(9,2)", Number("5.00")),
        (Number("1.5"), "DECIMAL(9,2)", Number("1.50")),
        (True, "BOOLEAN", True),
        ("x", "VARCHAR", "x"),
        (bytearray(b"x"), "BLOB", b"x"),
        (memoryview(b"x"), "BLOB", b"x"),
        ({"a": [1, None]}, "JSON", '{"a": [1, null]}'),
        ("[1]", "JSON", "[1]"),
        (uuid.UUID(int=7), "UUID", uuid.UUID(int=7)),
        (str(uuid.UUID(int=7)), "UUID", uuid.UUID(int=7)),
        (date(2024, 1, 2), "DATE", date(2024, 1, 2)),
        (datetime(2024, 1, 2), "DATE", date(2024, 1, 2)),
        (datetime(2024, 1, 2, 3, 4, 5, 6), "TIMESTAMP", datetime(2024, 1, 2, 3, 4, 5, 6)),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), "TIMESTAMP", datetime.max),
        (date(2024, 1, 2), "TIMESTAMP_S", datetime(2024, 1, 2)),
        (datetime(2024, 1, 2, 2, tzinfo=EAST), "TIMESTAMPTZ", datetime(2024, 1, 2, tzinfo=UTC)),
        (time(1, 2, 3), "TIME", time(1, 2, 3)),
        (time(1, 2, 3), "TIME_NS", "01:02:03.000000000"),
        (time(1, 0, tzinfo=EAST), "TIMETZ", time(23, 0)),
        ((1, None), "INTEGER[]", [1, None]),
        ({"A": 1}, "STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "b": None}),
        ({"k": 1}, "MAP(VARCHAR, INTEGER)", [("k", 1)]),
        ([("k", 1)], "MAP(VARCHAR, INTEGER)", [("k", 1)]),
        ([{"u": [uuid.UUID(int=7)]}], "STRUCT(u UUID[])[]", [{"u": [uuid.UUID(int=7)]}]),
    ],
)  # fmt: skip
def test_a_python_value_is_taken(value: object, type: str, expected: object) -> None:
    assert read([{"c": None}, {"c": value}], f"c {type}") == [{"c": None}, {"c": expected}]


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (300, "TINYINT"), (2**64, "BIGINT"), (-1, "UINTEGER"), (1.5, "INTEGER"), (float("nan"), "INTEGER"),
        ("1", "INTEGER"), (True, "INTEGER"), (1, "BOOLEAN"), (10**38, "HUGEINT"), (-1, "UHUGEINT"),
        (1.5, "DECIMAL(9,2)"), (Number("1.505"), "DECIMAL(9,2)"), (10**8, "DECIMAL(9,2)"),
        (Number("NaN"), "DECIMAL(9,2)"), (Number("1.5"), "DOUBLE"), (2**53 + 1, "DOUBLE"), (1e300, "FLOAT"),
        (5, "VARCHAR"), (b"x", "VARCHAR"), ("\ud800", "VARCHAR"), ("x", "BLOB"), ("{", "JSON"), (5, "JSON"),
        ({"a": float("nan")}, "JSON"), ("x", "UUID"), (b"x", "UUID"), (5, "UUID"), ("2024-01-01", "DATE"),
        (datetime(2024, 1, 1, 1), "DATE"), (datetime(2024, 1, 1, tzinfo=UTC), "TIMESTAMP"),
        (datetime(2024, 1, 1), "TIMESTAMPTZ"), (date(2024, 1, 1), "TIMESTAMPTZ"),
        (datetime(2024, 1, 1, 0, 0, 0, 5), "TIMESTAMP_S"), (datetime(2500, 1, 1), "TIMESTAMP_NS"),
        (time(1, tzinfo=UTC), "TIME"), (5, "TIME"), (5, "INTEGER[]"),
        ("ab", "VARCHAR[]"), ([1, "x"], "INTEGER[]"),
        ({"z": 1}, "STRUCT(a INTEGER)"), ([1], "STRUCT(a INTEGER)"), ({"a": "x"}, "STRUCT(a INTEGER)"),
        (5, "MAP(VARCHAR, INTEGER)"), ([("k", 1), ("k", 2)], "MAP(VARCHAR, INTEGER)"),
        ([(None, 1)], "MAP(VARCHAR, INTEGER)"), ([("k",)], "MAP(VARCHAR, INTEGER)"),
    ],
)  # fmt: skip
def test_a_python_value_that_does_not_fit_is_refused(value: object, type: str) -> None:
    refused([{"c": None}, {"c": value}], f"c {type}", '"c')


def test_an_error_names_the_row_of_the_whole_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "ROWS_AT_ONCE", 3)
    rows = [{"a": at} for at in range(7)] + [{"a": "x"}]
    refused(rows, AB, "row 7", '"a"', "INTEGER", "'x'")
    refused([{"a": 1}] * 4 + [{"a": 2**40}], AB, "row 4", '"a"')


# JSON.

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda constant: constant.missing)
    except (ValueError, AttributeError):
        return False
    return True


@given(st.lists(_json.map(json.dumps) | st.text('{}[]",:\\ \n01ae', max_size=12) | st.none(), max_size=6))
def test_json_is_what_python_takes_for_json(texts: list[str | None]) -> None:
    expected = next((at for at, text in enumerate(texts) if text is not None and not is_json(text)), None)
    assert first_invalid(pa.array(texts, pa.string())) == expected


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a":-Inf }',
        '1} {"o":2',
        '1,"a":[2],"b":3',
        "1],[2",
        '1}\n{"o":1,"a":[1',
        "",
        " ",
    ],
)
def test_json_cannot_break_out_of_the_line_it_is_checked_in(text: str) -> None:
    assert first_invalid(pa.array(["1", text, "2"])) == 1


def test_deep_json_is_no_danger() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    assert first_invalid(pa.array([deep])) is None
    assert first_invalid(pa.array([deep[:-1]])) == 0
