"""Statistics of written files: bounds, nulls and NaN of every type."""

from __future__ import annotations

import math
import uuid
from datetime import date, time
from decimal import Decimal as Number

import pyarrow as pa
import pytest

from forklake.data.storage.storage import Storage
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, bounds, key_of
from tests.unit.writer.written import stats_of, table_of, write

EPOCH, EVE = "1970-01-01 00:00:00", "1969-12-31 23:59:59"
LOW, HIGH = uuid.UUID(int=1), uuid.UUID(int=2**127)
MANY = [
    ("BOOLEAN", pa.array([True, False, None]), "false", "true"),
    ("TINYINT", pa.array([5, -7, None], pa.int8()), "-7", "5"),
    ("UTINYINT", pa.array([200, 7, None], pa.uint8()), "7", "200"),
    ("UINTEGER", pa.array([2**32 - 1, 7, None], pa.uint32()), "7", "4294967295"),
    ("UBIGINT", pa.array([2**64 - 1, 7, None], pa.uint64()), "7", "18446744073709551615"),
    ("BIGINT", pa.array([-(2**63), 7, None]), "-9223372036854775808", "7"),
    ("HUGEINT", pa.array([Number(-5), Number(10**37), None], pa.decimal128(38, 0)), "-5", str(10**37)),
    ("DECIMAL(4,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("DECIMAL(18,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("DECIMAL(38,2)", pa.array([Number("-1.50"), Number("20.00"), None]), "-1.50", "20.00"),
    ("FLOAT", pa.array([0.1, -1.5, None], pa.float32()), "-1.5", "0.1"),
    ("DOUBLE", pa.array([0.1, -math.inf, None]), "-inf", "0.1"),
    ("DATE", pa.array([date(2024, 2, 29), date(1, 1, 2), None]), "0001-01-02", "2024-02-29"),
    ("TIME", pa.array([time(1), time(23, 59, 59, 999999), None]), "01:00:00", "23:59:59.999999"),
    ("TIME_NS", pa.array([1, 10**9, None], pa.time64("ns")), "00:00:00.000000001", "00:00:01"),
    ("TIMETZ", pa.array([time(1), time(2), None]), "01:00:00+00", "02:00:00+00"),
    ("TIMESTAMP", pa.array([-1, 5, None], pa.timestamp("us")), f"{EVE}.999999", f"{EPOCH}.000005"),
    ("TIMESTAMP_S", pa.array([-1, 5, None], pa.timestamp("s")), EVE, "1970-01-01 00:00:05"),
    ("TIMESTAMP_MS", pa.array([-1, 5, None], pa.timestamp("ms")), f"{EVE}.999", f"{EPOCH}.005"),
    ("TIMESTAMP_NS", pa.array([-1, 5, None], pa.timestamp("ns")), f"{EVE}.999999999", f"{EPOCH}.000000005"),
    ("TIMESTAMPTZ", pa.array([0, 5, None], pa.timestamp("us", "UTC")), f"{EPOCH}+00", f"{EPOCH}.000005+00"),
    ("VARCHAR", pa.array(["é", "a'b", None]), "a'b", "é"),
    ("BLOB", pa.array([b"\x00a", b"\xff", None]), "\\x00a", "\\xFF"),
    ("UUID", pa.array([HIGH.bytes, LOW.bytes, None], pa.uuid()), str(LOW), str(HIGH)),
]  # fmt: skip


@pytest.mark.parametrize(("type", "array", "low", "high"), MANY, ids=[row[0] for row in MANY])
def test_bounds_come_from_the_footer(
    storage: Storage, type: str, array: pa.Array, low: str, high: str
) -> None:
    stats = stats_of(storage, array, type, row_group_rows=1)
    assert (stats.min_value, stats.max_value) == (low, high)
    assert (stats.value_count, stats.null_count) == (3, 1)
    assert (stats.size_bytes or 0) > 0
    assert stats.contains_nan == (False if type in ("FLOAT", "DOUBLE") else None)
    if type == "TIMETZ":
        assert (stats.min_key, stats.max_key) == (LOWEST, HIGHEST)
    else:
        assert LOWEST < (stats.min_key or "") <= (stats.max_key or "") < HIGHEST


def test_keys_are_those_of_the_values(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([7, -3]), "BIGINT")
    assert (stats.min_key, stats.max_key) == (key_of(-3, Scalar("int64")), key_of(7, Scalar("int64")))


@pytest.mark.parametrize("type", ["INTEGER", "VARCHAR", "DOUBLE", "UUID"])
def test_only_nulls_have_no_bounds(storage: Storage, type: str) -> None:
    stats = stats_of(storage, pa.nulls(3), type)
    assert (stats.min_key, stats.max_key, stats.min_value, stats.max_value) == (None, None, None, None)
    assert (stats.value_count, stats.null_count) == (3, 3)
    assert not stats.contains_nan


def test_a_row_group_of_nulls_does_not_hide_the_others(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([None, None, 5, 3]), "INTEGER", row_group_rows=2)
    assert (stats.min_value, stats.max_value) == ("3", "5")


@pytest.mark.parametrize("type", ["FLOAT", "DOUBLE"])
def test_nan_is_seen_and_lies_outside_the_bounds(storage: Storage, type: str) -> None:
    stats = stats_of(storage, pa.array([1.5, math.nan, None]), type)
    assert stats.contains_nan
    assert (stats.min_value, stats.max_value) == ("1.5", "1.5")
    assert (stats.min_key, stats.max_key) == bounds(1.5, 1.5, Scalar("float64"), contains_nan=True)


def test_only_nan_has_bounds_that_nothing_known_excludes(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([math.nan, math.nan]), "DOUBLE")
    assert stats.contains_nan
    assert (stats.min_value, stats.max_value, stats.min_key) == (None, None, LOWEST)
    assert stats.max_key == key_of(math.nan, Scalar("float64"))


def test_nan_is_seen_inside_nested_columns(storage: Storage) -> None:
    ddl = "l DOUBLE[], m MAP(VARCHAR, FLOAT), s STRUCT(a DOUBLE, b DOUBLE)"
    rows = [{"l": [1.0, math.nan], "m": {"k": math.nan}, "s": {"a": 1.0, "b": math.nan}}, {"l": None}]
    (file,) = write(storage, rows, ddl)
    names = {field.id: f"{top.name}.{field.name}" for top in table_of(ddl) for field in top.walk()}
    found = {
        names[stats.column_id]: stats.contains_nan for stats in file.stats if stats.contains_nan is not None
    }
    assert found == {"l.element": True, "m.value": True, "s.a": False, "s.b": True}


def test_long_texts_have_no_text_and_longer_ones_no_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a" * 1025, "b"]), "VARCHAR")
    assert (stats.min_value, stats.max_value) == (None, "b")
    assert stats.min_key == (b"a" * 32).hex()


def test_texts_over_the_limit_of_footers_have_unknown_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a" * 5000, "b"]), "VARCHAR")
    assert (stats.min_value, stats.max_value, stats.min_key, stats.max_key) == (None, None, LOWEST, HIGHEST)


def test_text_that_databases_do_not_take_is_left_out(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["a\0b", "z"]), "VARCHAR")
    assert (stats.min_value, stats.max_value) == (None, "z")
    assert stats.min_key == b"a\0b".hex()


def test_moments_beyond_python_have_keys_and_no_text(storage: Storage) -> None:
    stats = stats_of(storage, pa.array([0, 2**62], pa.timestamp("us")), "TIMESTAMP")
    assert (stats.min_value, stats.max_value) == ("1970-01-01 00:00:00", None)
    assert (stats.min_key or "") < (stats.max_key or "") < HIGHEST


def test_json_has_no_bounds(storage: Storage) -> None:
    stats = stats_of(storage, pa.array(["1", "2"]), "JSON")
    assert (stats.min_value, stats.max_value, stats.min_key, stats.max_key) == (None, None, LOWEST, HIGHEST)


def test_nested_columns_are_described_at_every_level(storage: Storage) -> None:
    ddl = "id INTEGER, l INTEGER[], s STRUCT(a INTEGER, b STRUCT(c VARCHAR))"
    rows = [
        {"id": 1, "l": [5, None], "s": {"a": 1, "b": {"c": "x"}}},
        {"id": 2, "l": [], "s": None},
        {"id": 3, "l": None, "s": {"a": None, "b": None}},
    ]
    (file,) = write(storage, rows, ddl)
    columns = [field for top in table_of(ddl) for field in top.walk()]
    assert [stats.column_id for stats in file.stats] == [column.id for column in columns]
    found = {column.name: stats for column, stats in zip(columns, file.stats, strict=True)}
    assert [(found[name].value_count, found[name].null_count) for name in "ls"] == [(3, 1), (3, 1)]
    assert (found["l"].min_key, found["l"].max_key) == (LOWEST, HIGHEST)
    assert found["b"].null_count is None
    assert (found["element"].min_value, found["c"].max_value, found["a"].null_count) == ("5", "x", 2)
    assert found["s"].size_bytes == (found["a"].size_bytes or 0) + (found["c"].size_bytes or 0)


def test_a_nested_column_of_nulls_holds_no_value(storage: Storage) -> None:
    (file,) = write(storage, [{"a": 1}], "a INTEGER, l INTEGER[]")
    assert [(stats.min_key, stats.max_key) for stats in file.stats[1:]] == [(None, None)] * 2
