"""Inlined rows as text: many writes are read together as they would be one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.inlined import DecodedRows, InlinedRows, decode, decode_all, encode
from forklake.errors import CorruptMetadata

SCHEMAS = (
    pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"}), pa.field("b", pa.string())]),
    pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "2"}), pa.field("b", pa.string())]),
    pa.schema([pa.field("l", pa.list_(pa.struct([("x", pa.float64())])))]),
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    schema = draw(st.sampled_from(SCHEMAS))
    count = draw(st.integers(0, 3))
    if schema is SCHEMAS[2]:
        values = [[{"x": float(at)}] * at for at in range(count)]
        return pa.table([pa.array(values, schema.field(0).type)], schema=schema)
    texts = draw(st.lists(st.none() | st.text(), min_size=count, max_size=count))
    return pa.table([pa.array(range(count), pa.int64()), pa.array(texts, pa.string())], schema=schema)


@given(st.lists(tables(), max_size=6))
def test_writes_are_read_together_as_one_by_one(written: list[pa.Table]) -> None:
    read = decode_all([encode(table) for table in written])
    assert len(read) == len(written)
    for found, table in zip((rows.table() for rows in read), written, strict=True):
        assert found.equals(table)
        assert found.schema.equals(table.schema, check_metadata=True)


ROWS = pa.table({"a": pa.array([1, 2])})


@pytest.mark.parametrize(
    "text",
    ["", "no text of base64!", encode(ROWS)[:40], encode(ROWS)[:-16], encode(ROWS)[16:], "AAAA"],
    ids=["empty", "no base64", "cut early", "cut at the end", "cut at the start", "no stream"],
)
def test_what_is_no_stream_is_refused(text: str) -> None:
    with pytest.raises(CorruptMetadata, match="inlined rows cannot be read"):
        decode(text)
    with pytest.raises(CorruptMetadata, match="inlined rows cannot be read"):
        decode_all([encode(ROWS), text])


def test_what_was_decoded_is_not_decoded_again() -> None:
    texts = [encode(pa.table({"a": [number]})) for number in range(30)]
    first = decode_all(texts)
    assert [part.table().to_pylist() for part in first] == [[{"a": number}] for number in range(30)]
    assert [part.whole is first[0].whole for part in decode_all(texts)] == [True] * 30


def test_rows_that_arrive_one_by_one_are_put_together() -> None:
    texts = [encode(pa.table({"b": [number, None]})) for number in range(50)]
    for end in range(1, len(texts) + 1):
        parts = decode_all(texts[:end])
        assert [part.table().to_pylist() for part in parts] == [[{"b": n}, {"b": None}] for n in range(end)]
        assert len({id(part.whole) for part in parts}) <= 9
    # Others may ask for some of them, in another order.
    some = [texts[40], texts[3], encode(pa.table({"other": ["x"]})), texts[3]]
    assert [part.table().to_pylist()[0] for part in decode_all(some)] == [
        {"b": 40},
        {"b": 3},
        {"other": "x"},
        {"b": 3},
    ]


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    rows = DecodedRows(size=6)
    tables = [InlinedRows.of(pa.table({"a": [number]})) for number in range(3)]
    rows.put(["aaa", "bbb"], tables[:2])
    assert rows.get(["aaa"]) == [tables[0]]
    rows.put(["ccc"], tables[2:])
    assert rows.get(["aaa", "bbb", "ccc"]) == [tables[0], None, tables[2]]
