"""Inlined rows as text: many writes are read together as they would be one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.inlined import decode, decode_all, encode
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
