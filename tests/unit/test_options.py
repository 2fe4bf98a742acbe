"""Settings: what they are called, what they may be."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forklake.errors import InvalidArgument
from forklake.model.options import NAMES, OF_LAKE, Options, option_text, parse_option, parse_table_option


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MiB", 512 * 2**20), ("1 GB", 10**9), ("7", 7), (4096, 4096), ("2kib", 2048), ("3b", 3)],
)
def test_file_sizes_are_numbers_or_text_with_a_unit(text: object, size: int) -> None:
    assert parse_option("target_file_size", text) == size


@pytest.mark.parametrize("value", ["", "many", "-1", "1.5 GB", "12 parsecs", True, None, 0])
def test_what_is_no_file_size_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument):
        parse_option("target_file_size", value)


def test_zero_rows_may_be_inlined_and_no_fewer() -> None:
    assert parse_option("data_inlining_row_limit", 0) == 0
    with pytest.raises(InvalidArgument, match="at least 0"):
        parse_option("data_inlining_row_limit", -1)


@pytest.mark.parametrize("value", ["a few", 1.5, True, None, 2**70])
def test_a_limit_is_a_whole_number(value: object) -> None:
    with pytest.raises(InvalidArgument, match="data_inlining_row_limit"):
        parse_option("data_inlining_row_limit", value)


def test_compression_is_one_that_parquet_has() -> None:
    assert parse_option("parquet_compression", "SNAPPY") == "snappy"
    with pytest.raises(InvalidArgument, match="zstd, snappy"):
        parse_option("parquet_compression", "rar")


def test_an_unknown_option_names_those_that_are() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_option("colour", "red")
    assert all(name in str(refused.value) for name in NAMES)


def test_settings_of_others_are_left_alone() -> None:
    stored = {"version": "1", "data_path": "/x/", "data_inlining_row_limit": "7"}
    assert Options().with_settings(stored) == Options(data_inlining_row_limit=7)


@pytest.mark.parametrize(
    ("value", "age", "text"),
    [
        ("7 days", timedelta(days=7), "1 weeks"),
        ("12h", timedelta(hours=12), "12 hours"),
        ("30m", timedelta(minutes=30), "30 minutes"),
        ("1 week", timedelta(weeks=1), "1 weeks"),
        ("1 month", timedelta(days=30), "30 days"),
        (" 1 Year 1 month ", timedelta(days=395.25), "9486 hours"),
        ("1 day 2 hours", timedelta(hours=26), "26 hours"),
        ("2 days 03:00:30", timedelta(days=2, hours=3, seconds=30), "183630 seconds"),
        ("90 Seconds", timedelta(seconds=90), "90 seconds"),
        (timedelta(milliseconds=5), timedelta(milliseconds=5), "5 milliseconds"),
        (timedelta(0), timedelta(0), "0 weeks"),
        (timedelta.max, timedelta.max, "86399999999999999999 microseconds"),
    ],
)
def test_ages_are_stored_as_text_that_reads_back(value: object, age: timedelta, text: str) -> None:
    parsed = parse_option("expire_older_than", value)
    assert (parsed, option_text(parsed)) == (age, text)
    assert parse_option("delete_older_than", text) == age


@pytest.mark.parametrize(
    "value", ["-1 day", "1 month -31 days", "1 fortnight", "1 day 2", "99999999999 years", 7]
)
def test_what_is_no_age_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match="delete_older_than is an age"):
        parse_option("delete_older_than", value)


@pytest.mark.parametrize("name", NAMES)
def test_every_default_reads_back_as_it_is_stored(name: str) -> None:
    default = getattr(Options(), name)
    assert parse_option(name, option_text(default)) == default
    assert Options().with_settings({name: option_text(default)}) == Options()


def test_nothing_expires_if_it_never_does() -> None:
    assert parse_option("expire_older_than", "never") is parse_option("expire_older_than", None) is None
    assert option_text(None) == "never"


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("FALSE", False), ("true", True)])
def test_a_flag_is_true_or_false(value: object, flag: bool) -> None:
    assert parse_option("auto_compact", value) is flag
    with pytest.raises(InvalidArgument, match="auto_compact"):
        parse_option("auto_compact", 1)


def test_what_is_the_lakes_is_no_option_of_a_table() -> None:
    assert parse_table_option("rewrite_delete_threshold", "0.5") == 0.5
    for name in OF_LAKE:
        with pytest.raises(InvalidArgument, match="option of the lake"):
            parse_table_option(name, option_text(getattr(Options(), name)))
