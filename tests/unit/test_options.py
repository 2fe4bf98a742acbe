"""Settings: what they are called, what they may be."""

from __future__ import annotations

import pytest

from forklake.errors import InvalidArgument
from forklake.model.options import NAMES, Options, parse_option


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
