"""Keys sort as values do, and bounds never lie inside of them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as Number
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.model.types.data_types import parse
from forklake.model.types.sort_keys import (
    HIGHEST,
    LOWEST,
    PREFIX_BYTES,
    bounds,
    exact,
    key_of,
    max_key,
    min_key,
)


def key(value, sql: str) -> str:
    found = key_of(value, parse(sql))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sql", "ascending"),
    [
        (
            "HUGEINT",
            [-(2**127), -(10**20), -100, -11, -10, -9, -1, 0, 1, 9, 10, 11, 99, 100, 2**64, 2**127 - 1],
        ),
        (
            "DECIMAL(38,10)",
            [Number(n) for n in ("-100", "-15", "-1.5", "-1", "-0.15", "-0.1", "0", "0.01", "0.1", "1")],
        ),
        (
            "DOUBLE",
            [
                -math.inf,
                -1e308,
                -1.5,
                -1.0,
                -5e-324,
                0.0,
                5e-324,
                0.1,
                0.30000000000000004,
                1e308,
                math.inf,
                math.nan,
            ],
        ),
        ("VARCHAR", ["", "\0", "A", "a", "a\0", "aa", "b", "é", "日", "\U0001f986"]),
        ("BLOB", [b"", b"\0", b"\0\0", b"\x7f", b"\xff", b"\xff\xff"]),
        ("BOOLEAN", [False, True]),
        (
            "DATE",
            [
                -(2**31) + 1,
                -(2**31) + 2,
                date(1, 1, 1),
                date(1969, 12, 31),
                date(1970, 1, 1),
                2**31 - 2,
                2**31 - 1,
            ],
        ),
        (
            "TIMESTAMP",
            [
                1 - 2**63,
                2 - 2**63,
                datetime(1969, 12, 31),
                -1,
                0,
                1,
                datetime(2024, 1, 1),
                2**63 - 2,
                2**63 - 1,
            ],
        ),
        ("TIMESTAMP_NS", [1 - 2**63, -1, 0, 1, 1_000, 2**63 - 1]),
        ("TIME", [time(0), time(0, 0, 0, 1), time(10), time(23, 59, 59, 999999), 86_400_000_000]),
        ("TIME_NS", [0, 1, time(0, 0, 0, 1), 86_400 * 10**9]),
        ("UUID", [UUID(int=0), UUID(int=1), UUID(int=2**127), UUID(int=2**128 - 1)]),
    ],
)
def test_keys_ascend_with_their_values(sql, ascending):
    keys = [key(value, sql) for value in ascending]
    assert keys == sorted(set(keys))
    assert all(LOWEST <= one < HIGHEST and one.isascii() for one in keys)


@given(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False))
def test_an_integer_and_a_float_compare_as_floats(whole, broken):
    assert (key(whole, "INTEGER") < key(broken, "DOUBLE")) == (float(whole) < broken)
    assert (key(whole, "INTEGER") == key(broken, "DOUBLE")) == (float(whole) == broken)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_neighbouring_floats_have_keys_in_their_order(value):
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    assert key(below, "DOUBLE") < key(value, "DOUBLE") < key(above, "DOUBLE")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5), st.integers(-(2**127), 2**127 - 1))
def test_a_decimal_and_an_integer_compare_exactly(broken, whole):
    assert (key(broken, "DECIMAL(38,10)") < key(whole, "HUGEINT")) == (broken < whole)


def test_what_is_equal_has_one_key():
    assert (
        key(-0.0, "DOUBLE") == key(0.0, "DOUBLE") == key(0, "BIGINT") == key(Number("-0.00"), "DECIMAL(4,2)")
    )
    assert key(Number("7.50"), "DECIMAL(4,2)") == key(Number("7.5"), "DECIMAL(4,1)") == key(7.5, "DOUBLE")
    assert key(math.nan, "FLOAT") == key(-math.nan, "DOUBLE")
    midnight = datetime(2024, 1, 1)
    assert key(date(2024, 1, 1), "DATE") == key(midnight, "TIMESTAMP") == key(midnight, "TIMESTAMP_S")
    assert key(19723, "DATE") == key(1704067200, "TIMESTAMP_S") == key(1704067200 * 10**9, "TIMESTAMP_NS")
    zoned = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert key(zoned, "TIMESTAMPTZ") == key(midnight.replace(tzinfo=UTC), "TIMESTAMPTZ")


def test_infinite_dates_and_timestamps_of_every_unit_are_the_same():
    assert (
        len(
            {
                key(2**31 - 1, "DATE"),
                *(key(2**63 - 1, f"TIMESTAMP{unit}") for unit in ("", "_S", "_MS", "_NS")),
            }
        )
        == 1
    )
    assert (
        len(
            {
                key(1 - 2**31, "DATE"),
                *(key(1 - 2**63, f"TIMESTAMP{unit}") for unit in ("", "_S", "_MS", "_NS")),
            }
        )
        == 1
    )


def test_the_ends_of_pythons_calendar_may_be_infinities_of_duckdb():
    assert max_key(date.max, parse("DATE")) == key(2**31 - 1, "DATE") > key(date.max, "DATE")
    assert (
        min_key(datetime.min, parse("TIMESTAMP"))
        == key(1 - 2**63, "TIMESTAMP")
        < key(datetime.min, "TIMESTAMP")
    )
    assert not exact(date.max, parse("DATE"))


def test_long_text_is_cut_in_bounds_and_nowhere_else():
    type, start = parse("VARCHAR"), "p" * PREFIX_BYTES
    whole = start + "q"
    assert len(key(whole, "VARCHAR")) == 2 * (PREFIX_BYTES + 1)
    low, high = min_key(whole, type), max_key(whole, type)
    assert low == key(start, "VARCHAR") and high == low + "~"
    assert high > key(start + "\U0010ffff" * 50, "VARCHAR")
    assert exact(start, type) and not exact(whole, type)
    assert min_key(start, type) == max_key(start, type) == key(start, "VARCHAR")
    assert not exact("é" * PREFIX_BYTES, type), "bytes count, not characters"
    assert max_key(b"\xff" * 33, parse("BLOB")) == "ff" * PREFIX_BYTES + "~"


@given(st.text(min_size=28, max_size=40), st.text(max_size=4))
def test_bounds_hold_the_value_between_them(start, end):
    type, value = parse("VARCHAR"), start + end
    assert min_key(value, type) <= key(value, "VARCHAR") <= max_key(value, type)
    assert exact(value, type) == (min_key(value, type) == key(value, "VARCHAR") == max_key(value, type))


@pytest.mark.parametrize(
    "sql", ["INTERVAL", "JSON", "VARIANT", "GEOMETRY", "TIMETZ", "INTEGER[]", "STRUCT(a INTEGER)"]
)
def test_types_without_a_useful_order_have_no_keys(sql):
    assert key_of("x", parse(sql)) is min_key("x", parse(sql)) is max_key("x", parse(sql)) is None
    assert bounds("x", "x", parse(sql)) == (LOWEST, HIGHEST)


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        ("7", "INTEGER"), (True, "INTEGER"), (1, "BOOLEAN"), (b"a", "UUID"), ("a", "BLOB"), (1.5, "DATE"),
        (1, "VARCHAR"),
        (datetime(2024, 1, 1), "TIMESTAMPTZ"), (datetime(2024, 1, 1, tzinfo=UTC), "TIMESTAMP"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_a_mistake(value, sql):
    with pytest.raises(TypeError, match="no value of a column of type"):
        key_of(value, parse(sql))


def test_nan_is_the_upper_bound_unless_there_is_none():
    nan = key(math.nan, "DOUBLE")
    double = parse("DOUBLE")
    assert bounds(1.0, 2.0, double, contains_nan=False) == (key(1.0, "DOUBLE"), key(2.0, "DOUBLE"))
    assert (
        bounds(1.0, 2.0, double, contains_nan=True) == bounds(1.0, 2.0, double) == (key(1.0, "DOUBLE"), nan)
    )
    assert bounds(math.nan, math.nan, double) == (LOWEST, nan), (
        "a writer that lets NaN into its bounds says nothing"
    )
    assert bounds(None, None, double, contains_nan=False) == (LOWEST, HIGHEST)
    assert bounds(1, 2, parse("INTEGER")) == (key(1, "INTEGER"), key(2, "INTEGER"))
