"""Encodings are chosen by what rows are like; whatever is chosen, files give back what was written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.parquet.encoding import encodings


def chosen(values: pa.Array) -> str:
    found = encodings(pa.table({"c": values}))
    if "c" in found.dictionary:
        assert "c" not in dict(found.others)
        return "dictionary"
    return dict(found.others).get("c", "plain")


def test_values_that_repeat_get_a_dictionary() -> None:
    assert chosen(pa.array(["north", "south"] * 500)) == "dictionary"
    assert chosen(pa.array([10**9, 7, 10**12, -5] * 500)) == "dictionary"
    assert chosen(pa.array([0.5, 1.5] * 500)) == "dictionary"
    assert chosen(pa.nulls(1000, pa.int64())) != "plain"


def test_other_numbers_are_kept_as_differences() -> None:
    for type in (pa.int16(), pa.uint32(), pa.int64(), pa.date32(), pa.timestamp("us")):
        assert chosen(pa.array(range(1000), type)) == "DELTA_BINARY_PACKED", type
    assert chosen(pa.array(map(Decimal, range(1000)), pa.decimal128(18, 2))) == "DELTA_BINARY_PACKED"


def test_integers_that_lie_close_need_no_dictionary() -> None:
    assert chosen(pa.array([*range(100)] * 50)) == "DELTA_BINARY_PACKED"


def test_other_texts_are_kept_with_their_lengths() -> None:
    assert chosen(pa.array([f"customer {number}" for number in range(1000)])) == "DELTA_LENGTH_BYTE_ARRAY"


def test_what_spark_cannot_read_otherwise_stays_plain() -> None:
    assert chosen(pa.array([number / 7 for number in range(1000)])) == "plain"
    assert chosen(pa.array(map(Decimal, range(1000)), pa.decimal128(30, 2))) == "plain"
    assert chosen(pa.array([True, False] * 500)) == "plain"


def test_paths_lead_into_nested_values() -> None:
    many = [f"k{number}" for number in range(1000)]
    table = pa.table(
        {
            "s": pa.array([{"a": number, "b": "x"} for number in range(1000)]),
            "l": pa.array([[number, number + 1] for number in range(1000)]),
            "m": pa.array([[(key, 1)] for key in many], pa.map_(pa.string(), pa.int32())),
        }
    )
    found = encodings(table)
    assert found.dictionary == ("s.b",)
    assert dict(found.others) == {
        "s.a": "DELTA_BINARY_PACKED",
        "l.list.element": "DELTA_BINARY_PACKED",
        "m.key_value.key": "DELTA_LENGTH_BYTE_ARRAY",
        "m.key_value.value": "DELTA_BINARY_PACKED",
    }


def test_a_name_with_a_dot_is_not_taken_for_a_field(tmp_path: Path) -> None:
    table = pa.table(
        {"a.b": pa.array(range(100)), "a": pa.array([{"b": f"text {number}"} for number in range(100)])}
    )
    written_and_read(table, tmp_path)


def written_and_read(table: pa.Table, folder: Path) -> None:
    found = encodings(table)
    file = folder / "f.parquet"
    pq.write_table(table, file, use_dictionary=list(found.dictionary), column_encoding=dict(found.others))
    assert pq.ParquetFile(file).read().equals(table)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from([1, 50]))
def test_integers_come_back(values: list[int | None], times: int) -> None:
    array = pa.array(values * times, pa.int64())
    found = encodings(pa.table({"c": array}))
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"c": array}),
        sink,
        use_dictionary=list(found.dictionary),
        column_encoding=dict(found.others),
    )
    assert pq.read_table(pa.BufferReader(sink.getvalue())).column("c").combine_chunks().equals(array)
