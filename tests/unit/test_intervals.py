"""Intervals as text mean what they mean to DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.model.types.intervals import Interval, read_interval

UNITS = (
    "microsecond", "milliseconds", "Second", "MINUTES", "hour", "days", "week", "months", "quarter", "years",
    "decades", "century", "centuries", "millennium",
)  # fmt: skip
COUNTS = st.integers(-(10**10), 10**10) | st.integers(-5, 5) | st.sampled_from([2**31 - 1, 2**31, 10**15])
PARTS = st.builds("{}{}{}".format, COUNTS, st.sampled_from([" ", "  "]), st.sampled_from(UNITS))
CLOCKS = st.sampled_from(["", "04:05", "-0:00:01", "1:02:03.5", "-999999:59:59.999999", "999999999:00:00"])
TEXTS = st.builds(
    lambda parts, sign, clock: sign.join([*parts, *([clock] if clock else [])]),
    st.lists(PARTS, max_size=3),
    st.sampled_from([" ", "", "  "]),
    CLOCKS,
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET arrow_lossless_conversion = true")
    return connection


def as_duckdb_reads(duck: duckdb.DuckDBPyConnection, text: str) -> Interval | None:
    """None if it does not, or if Arrow cannot show the interval."""
    try:
        found = (
            duck.sql("SELECT CAST(? AS INTERVAL) AS v", params=[text]).to_arrow_table().column("v")[0].as_py()
        )
    except duckdb.Error:
        return None
    assert isinstance(found, pa.MonthDayNano)
    return Interval(found.months, found.days, found.nanoseconds // 1000)


@given(text=TEXTS)
def test_what_is_read_is_what_duckdb_reads(duck: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        value = read_interval(text)
    except ValueError:
        return
    assert value == as_duckdb_reads(duck, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 DAY", Interval(0, 1, 0)),
        ("-2 weeks 3 hours", Interval(0, -14, 3 * 3600 * 10**6)),
        ("1 year 2 months 3 days 04:05:06.5", Interval(14, 3, 14_706_500_000)),
        ("-1 month -00:00:01", Interval(-1, 0, -(10**6))),
        ("1 months 2 days 3 microseconds", Interval(1, 2, 3)),
        ("2147483647 days", Interval(0, 2**31 - 1, 0)),
    ],
)
def test_an_interval_is_read(duck: duckdb.DuckDBPyConnection, text: str, value: Interval) -> None:
    assert read_interval(text) == as_duckdb_reads(duck, text) == value


@pytest.mark.parametrize(
    "text",
    ["", "day", "1", "1 eon", "+1 day", "1:3", "1 centurys", "1:00 1 day", "999999999 years", "1.5 days",
     "99999999:00:00", "2147483648 days", "2147483647 days 1 day -1 day", "1 hour -0:30"],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write it as 1 year|it is too long"):
        read_interval(text)
