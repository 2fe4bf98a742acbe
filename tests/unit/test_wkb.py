"""Which bytes are geometries, compared with what DuckDB takes for one."""

from __future__ import annotations

import struct

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forklake.data.input.wkb import first_invalid

SRID = 0x20000000


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def is_valid(value: bytes) -> bool:
    return first_invalid(pa.array([None, value], pa.binary())) is None


def duckdb_takes(duck: duckdb.DuckDBPyConnection, value: bytes) -> bool:
    try:
        duck.execute("SELECT st_geomfromwkb(?::BLOB)", [value]).fetchall()
    except duckdb.Error:
        return False
    return True


ORDERS = st.sampled_from("<>")
NUMBERS = st.floats(allow_nan=False)


@st.composite
def geometries(draw: st.DrawFn, dimensions: int | None = None, kind: int | None = None) -> bytes:
    flags = draw(st.integers(0, 3)) if dimensions is None else dimensions
    shape = draw(st.integers(1, 7)) if kind is None else kind
    order = draw(ORDERS)
    code = flags * 1000 + shape
    if draw(st.booleans()):
        code = shape | (0x80000000 if flags & 1 else 0) | (0x40000000 if flags & 2 else 0)
    head = struct.pack(f"{order}BI", order == "<", code)
    width = 2 + flags.bit_count()

    def points(count: int) -> bytes:
        values = draw(st.lists(NUMBERS, min_size=count * width, max_size=count * width))
        return struct.pack(f"{order}{count * width}d", *values)

    def counted(parts: list[bytes]) -> bytes:
        return struct.pack(f"{order}I", len(parts)) + b"".join(parts)

    count = draw(st.integers(0, 3))
    if shape == 1:
        return head + points(1)
    if shape == 2:
        return head + struct.pack(f"{order}I", count) + points(count)
    if shape == 3:
        rings = [(size, points(size)) for size in draw(st.lists(st.integers(0, 4), max_size=count))]
        return head + counted([struct.pack(f"{order}I", size) + ring for size, ring in rings])
    part = None if shape == 7 else shape - 3
    if part is None:
        part = draw(st.integers(1, 6))
    return head + counted([draw(geometries(flags, part)) for _ in range(count)])


@given(geometries())
def test_geometries_are_taken(duck: duckdb.DuckDBPyConnection, value: bytes) -> None:
    assert is_valid(value)
    assert duckdb_takes(duck, value)


@given(geometries(), st.data())
def test_what_duckdb_does_not_read_is_refused(
    duck: duckdb.DuckDBPyConnection, value: bytes, data: st.DataObject
) -> None:
    broken = bytearray(value)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, min(len(broken) - 1, 20)))] = data.draw(st.integers(0, 255))
    cut = bytes(broken)[: data.draw(st.integers(0, len(broken)))]
    for one in (bytes(broken), cut, value + b"x"):
        assert not is_valid(one) or duckdb_takes(duck, one)


@given(st.binary(max_size=40))
@example(b"")
@example(b"\1")
@example(struct.pack("<BII", 1, 7, 0xFFFFFFFF))
@example(struct.pack("<BII", 1, 4, 1) + struct.pack("<BII", 1, 2, 0))
def test_bytes_that_duckdb_does_not_read_are_refused(duck: duckdb.DuckDBPyConnection, value: bytes) -> None:
    assert not is_valid(value) or duckdb_takes(duck, value)


def test_a_reference_system_that_would_be_lost_is_refused() -> None:
    value = struct.pack("<BIIdd", 1, 1 | SRID, 4326, 1.0, 2.0)
    found = first_invalid(pa.array([None, value], pa.binary()))
    assert found is not None
    assert (found[0], "SRID" in found[1]) == (1, True)
