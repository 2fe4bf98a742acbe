"""Partition transforms: how they are read, what they give, and that buckets are Iceberg's."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.parquet.partition import folder_of, partition_values, split
from forklake.errors import ColumnNotFound, CorruptMetadata, InvalidArgument
from forklake.model.ids import ColumnId
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build
from forklake.model.table.layout import PartitionField
from forklake.model.table.transforms import encoded, murmur3, parse_transform, transform_of, value_of
from forklake.model.types.data_types import Decimal, Scalar, parse
from forklake.model.types.text import stored, text_of

COLUMNS = build(
    columns_of(
        "id BIGINT, region VARCHAR, ts TIMESTAMP, moment TIMESTAMPTZ, day DATE, price DECIMAL(9,2), "
        'f DOUBLE, "year(ts)" INTEGER, tags VARCHAR[], doc JSON, s STRUCT(a INTEGER), flag BOOLEAN'
    )
)
ID = {column.name: column.id for column in COLUMNS}


def field(transform: str = "identity", column: int = 1) -> PartitionField:
    return PartitionField(ColumnId(column), transform)


@pytest.mark.parametrize(
    ("text", "column", "transform"),
    [
        ("region", "region", "identity"),
        (" REGION ", "region", "identity"),
        ("identity(region)", "region", "identity"),
        ("year(ts)", "ts", "year"),
        ("MONTH( ts )", "ts", "month"),
        ("day(day)", "day", "day"),
        ("hour(moment)", "moment", "hour"),
        ("bucket(16, id)", "id", "bucket(16)"),
        ("bucket(016,price)", "price", "bucket(16)"),
        ('"year(ts)"', "year(ts)", "identity"),
        ('bucket(4, "year(ts)")', "year(ts)", "bucket(4)"),
    ],
)
def test_a_transform_is_read(text: str, column: str, transform: str) -> None:
    assert parse_transform(text, COLUMNS) == PartitionField(ID[column], transform)


@pytest.mark.parametrize(
    "text",
    ["year(region)", "hour(day)", "bucket(16, f)", "bucket(16, flag)", "bucket(0, id)", "bucket(id)",
     "bucket(id, 16)", "bucket(99999999999, id)", "truncate(id)", "tags", "doc", "s", "s.a", "year(id)"],
)  # fmt: skip
def test_a_transform_that_the_column_does_not_take_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_transform(text, COLUMNS)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(ColumnNotFound, match="nope"):
        parse_transform("year(nope)", COLUMNS)


def test_a_stored_transform_of_another_version_is_no_guess() -> None:
    assert transform_of(field("bucket(7)")) == ("bucket", 7)
    with pytest.raises(CorruptMetadata, match="truncate"):
        transform_of(field("truncate(3)"))


def signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


# From the table in appendix B of Iceberg's specification.
@pytest.mark.parametrize(
    ("value", "type", "hashed"),
    [
        (34, "INTEGER", 2017239379),
        (34, "BIGINT", 2017239379),
        (Number("14.20"), "DECIMAL(9,2)", -500754589),
        (date(2017, 11, 16), "DATE", -653330422),
        (time(22, 31, 8), "TIME", -662762989),
        (datetime(2017, 11, 16, 22, 31, 8), "TIMESTAMP", -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), "TIMESTAMP", -1207196810),
        (datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC), "TIMESTAMPTZ", -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8), "TIMESTAMP_NS", -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8), "TIMESTAMP_S", -2047944441),
        ("iceberg", "VARCHAR", 1210000089),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "UUID", 1488055340),
        (b"\x00\x01\x02\x03", "BLOB", -188683207),
    ],
)
def test_buckets_are_those_of_iceberg(value: object, type: str, hashed: int) -> None:
    for buckets in (16, 100, 2**31 - 1):
        expected = str((hashed & 0x7FFFFFFF) % buckets)
        assert value_of(field(f"bucket({buckets})"), value, parse(type)) == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_many_integers_are_hashed_as_their_eight_bytes_are(number: int) -> None:
    expected = (murmur3(number.to_bytes(8, "little", signed=True)) & 0x7FFFFFFF) % 1000
    codes = encoded(pa.array([None, number, 5]), field("bucket(1000)"), Scalar("int64"))
    assert codes.to_pylist()[:2] == [None, str(expected)]


@given(
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    st.sampled_from(["year", "month", "day", "hour"]),
)
def test_calendar_parts_are_the_same_in_every_unit(timestamp: datetime, part: str) -> None:
    expected = str(getattr(timestamp, part))
    for name in ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"):
        assert value_of(field(part), timestamp, Scalar(name)) == expected
    assert value_of(field(part), timestamp.replace(tzinfo=UTC), Scalar("timestamptz")) == expected


def test_null_stays_null() -> None:
    for transform in ("identity", "bucket(3)", "year"):
        assert value_of(field(transform), None, Scalar("timestamp")) is None


def test_zeros_and_nans_of_both_signs_are_one_partition() -> None:
    codes = encoded(pa.array([0.0, -0.0, float("nan"), -float("nan"), None]), field(), Scalar("float64"))
    assert codes.to_pylist() == ["0.0", "0.0", "nan", "nan", None]


# DuckDB shows the sign of NaN, and takes Python's first and last day for infinity.
SAMPLES = [
    ("BOOLEAN", st.booleans()),
    ("BIGINT", st.integers(-(2**63), 2**63 - 1)),
    ("DOUBLE", st.floats(allow_nan=False)),
    ("FLOAT", st.floats(width=32, allow_nan=False)),
    ("DECIMAL(9,2)", st.decimals(-9999999, 9999999, places=2)),
    ("DECIMAL(3,3)", st.decimals("-0.999", "0.999", places=3)),
    ("DATE", st.dates(date(1, 1, 2), date(9999, 1, 1))),
    ("TIME", st.times()),
    ("TIMESTAMP", st.datetimes(datetime(1, 1, 2), datetime(9999, 1, 1))),
    ("TIMESTAMP_NS", st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))),
    ("TIMESTAMPTZ", st.datetimes(datetime(1, 1, 2), datetime(9999, 1, 1), timezones=st.just(UTC))),
    ("UUID", st.uuids()),
    ("BLOB", st.binary(max_size=20)),
    ("VARCHAR", st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)),
]


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


@pytest.mark.parametrize(("type", "values"), SAMPLES, ids=[name for name, _ in SAMPLES])
@given(data=st.data())
def test_texts_are_what_duckdb_writes(duck: duckdb.DuckDBPyConnection, type, values, data) -> None:
    value = data.draw(values)
    if type == "DECIMAL(3,3)" and value == 0:
        value = abs(value)
    text = text_of(stored(value, parse(type)), parse(type))
    (shown,) = duck.execute(f"SELECT CAST(CAST($1 AS {type}) AS VARCHAR)", [value]).fetchone()
    assert text == shown or (value == 0 and type.startswith("DECIMAL"))


def batch_of(rows: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": pa.array(range(rows), pa.int64()),
            "region": pa.array([("eu", "us", None)[at % 3] for at in range(rows)]),
            "day": pa.array([date(2024, 1 + at % 2, 3) for at in range(rows)]),
        }
    )


NARROW = build(columns_of("id BIGINT, region VARCHAR, day DATE"))


def test_every_row_goes_to_its_partition_and_keeps_its_order() -> None:
    fields = (parse_transform("region", NARROW), parse_transform("month(day)", NARROW))
    parts = dict(split(batch_of(100), fields, NARROW))
    assert set(parts) == {(region, month) for region in ("eu", "us", None) for month in ("1", "2")}
    assert sum(part.num_rows for part in parts.values()) == 100
    for (region, month), part in parts.items():
        assert set(part["region"].to_pylist()) == {region}
        assert {str(day.month) for day in part["day"].to_pylist()} == {month}
        assert part["id"].to_pylist() == sorted(part["id"].to_pylist())


def test_a_batch_of_one_partition_is_not_copied() -> None:
    batch = batch_of(30).filter(pa.array([at % 3 == 0 for at in range(30)]))
    ((values, part),) = split(batch, (parse_transform("region", NARROW),), NARROW)
    assert values == ("eu",)
    assert part is batch


def test_partition_values_are_texts_of_every_row() -> None:
    (regions,) = partition_values(batch_of(4), (parse_transform("region", NARROW),), NARROW)
    assert regions.to_pylist() == ["eu", "us", None, "eu"]


def test_folders_read_like_those_of_hive() -> None:
    fields = tuple(
        parse_transform(text, COLUMNS)
        for text in ("year(ts)", "month(ts)", "region", "year(day)", "bucket(4, id)", '"year(ts)"')
    )
    folder = folder_of(("2024", "1", "a/b=c é", None, "3", "7"), fields, COLUMNS)
    assert folder == (
        "year=2024/month=1/region=a%2Fb%3Dc%20%C3%A9/year_day=__HIVE_DEFAULT_PARTITION__/bucket=3/year%28ts%29=7/"
    )


def test_a_folder_fits_into_a_file_system_however_long_the_value() -> None:
    region = (parse_transform("region", COLUMNS),)
    one, other = (folder_of(("é" * 300 + end,), region, COLUMNS) for end in "ab")
    assert len(one) <= 255
    assert one != other


def test_a_value_that_no_database_takes_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="characters"):
        value_of(field(), "a\0b", Scalar("varchar"))


def test_decimals_hash_their_shortest_bytes() -> None:
    for number in (-32769, -32768, -129, -128, -1, 0, 127, 128, 255, 32767, 32768, 10**37):
        size = next(n for n in range(1, 20) if -(2 ** (8 * n - 1)) <= number < 2 ** (8 * n - 1))
        expected = (murmur3(number.to_bytes(size, "big", signed=True)) & 0x7FFFFFFF) % 97
        assert value_of(field("bucket(97)"), Number(number), Decimal(38, 0)) == str(expected)
