"""Data types of Arrow, and what they are here."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from forklake.errors import DuplicateColumn, InvalidName, UnknownType
from forklake.model.types.arrow import from_arrow, from_arrow_field, to_arrow
from forklake.model.types.data_types import DataType, Decimal, List, Map, Scalar, Struct, parse
from tests.unit.data_types.drawn import INT, NAMES, NOT_IN_ARROW, ONE_WAY, TEXT, arrow_types


@given(arrow_types)
def test_every_type_that_arrow_holds_comes_back(type: DataType) -> None:
    assert from_arrow(to_arrow(type)) == type
    assert from_arrow_field(pa.field("c", to_arrow(type))) == type


@pytest.mark.parametrize("name", NAMES)
def test_arrow_shows_a_scalar_as_itself_or_as_the_table_of_exceptions_says(name: str) -> None:
    if name in NOT_IN_ARROW:
        with pytest.raises(UnknownType, match="Arrow has no type"):
            to_arrow(List(Scalar(name)))
    else:
        assert from_arrow(to_arrow(Scalar(name))) == ONE_WAY.get(name, Scalar(name))


@settings(deadline=None)
@given(type=arrow_types)
def test_duckdb_scans_an_empty_arrow_table_of_any_type(
    type: DataType, duck: duckdb.DuckDBPyConnection
) -> None:
    # pyarrow builds no arrays of extensions inside lists, but DuckDB reads them.
    empty = pa.Table.from_batches([], pa.schema([("c", to_arrow(type))]))
    assert duck.from_arrow(empty).columns == ["c"]
    assert parse(str(duck.from_arrow(empty).types[0])) == type


def test_an_extension_is_recognised_by_the_metadata_of_its_field() -> None:
    wkb = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    assert from_arrow_field(wkb) == Scalar("geometry")
    assert from_arrow(pa.list_(wkb)) == List(Scalar("geometry"))
    assert from_arrow(pa.struct([wkb])) == Struct((("g", Scalar("geometry")),))


class Celsius(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.float32(), "test.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("arrow", "type"),
    [
        (pa.large_string(), TEXT),
        (pa.string_view(), TEXT),
        (pa.dictionary(pa.int8(), pa.large_string()), TEXT),
        (pa.run_end_encoded(pa.int32(), pa.string()), TEXT),
        (pa.large_binary(), Scalar("blob")),
        (pa.binary_view(), Scalar("blob")),
        (pa.binary(16), Scalar("blob")),
        (pa.uuid(), Scalar("uuid")),
        (pa.json_(), Scalar("json")),
        (pa.json_(pa.large_string()), Scalar("json")),
        (pa.bool8(), Scalar("boolean")),
        (Celsius(), Scalar("float32")),
        (pa.float16(), Scalar("float32")),
        (pa.date64(), Scalar("date")),
        (pa.time32("s"), Scalar("time")),
        (pa.time32("ms"), Scalar("time")),
        (pa.time64("ns"), Scalar("time_ns")),
        (pa.timestamp("s"), Scalar("timestamp_s")),
        (pa.timestamp("ns"), Scalar("timestamp_ns")),
        (pa.timestamp("s", "Europe/Berlin"), Scalar("timestamptz")),
        (pa.timestamp("ns", "+05:30"), Scalar("timestamptz")),
        (pa.duration("ns"), Scalar("interval")),
        (pa.decimal32(5, 2), Decimal(5, 2)),
        (pa.decimal64(10, 2), Decimal(10, 2)),
        (pa.decimal256(30, 4), Decimal(30, 4)),
        (pa.large_list(pa.int32()), List(INT)),
        (pa.list_(pa.int32(), 3), List(INT)),
        (pa.list_view(pa.int32()), List(INT)),
        (pa.large_list_view(pa.int32()), List(INT)),
        (pa.map_(pa.string_view(), pa.list_(pa.int32(), 2)), Map(TEXT, List(INT))),
        (pa.struct([pa.field("a", pa.dictionary(pa.int8(), pa.int32()))]), Struct((("a", INT),))),
    ],
)
def test_the_layout_of_arrow_values_makes_no_difference(arrow: pa.DataType, type: DataType) -> None:
    assert from_arrow(arrow) == type


@pytest.mark.parametrize(
    ("arrow", "reason"),
    [
        (pa.null(), "null type says nothing"),
        (pa.list_(pa.null()), "null type says nothing"),
        (pa.decimal256(40, 2), "precision"),
        (pa.decimal128(5, -2), "scale"),
        (pa.struct([]), "at least one field"),
        (pa.dense_union([pa.field("a", pa.int32())]), "union"),
        (pa.opaque(pa.binary(16), "hugeint", "DuckDB"), "hugeint"),
    ],
)
def test_an_arrow_type_that_says_too_little_or_too_much_is_refused(arrow: pa.DataType, reason: str) -> None:
    with pytest.raises(UnknownType, match=reason):
        from_arrow(arrow)


def test_arrow_fields_follow_the_same_naming_rules() -> None:
    with pytest.raises(InvalidName):
        from_arrow(pa.struct([pa.field("", pa.int32())]))
    with pytest.raises(DuplicateColumn):
        from_arrow(pa.struct([pa.field("a", pa.int32()), pa.field("A", pa.int32())]))
