"""Values of Arrow are cast if that keeps them, and refused if it would change them."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number

import pyarrow as pa
import pytest

from forklake.data.input.batches import rows_of
from forklake.errors import UnknownType
from tests.unit.input.given import one, read, refused, table_of

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
