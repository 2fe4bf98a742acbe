"""Partition keys and sort orders as people write them."""

from __future__ import annotations

import pytest

from forklake.errors import ColumnNotFound, InvalidArgument
from forklake.model.sql.ddl import columns_of
from forklake.model.table.columns import build
from forklake.model.table.partition_and_sort import (
    check_list,
    partition_fields,
    show_sort_key,
    show_transform,
    sort_keys,
)

COLUMNS = build(
    columns_of('id BIGINT, ts TIMESTAMP, "odd name" VARCHAR, "a desc" VARCHAR, s STRUCT(x INTEGER)')
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ts", "ts ASC NULLS LAST"),
        ("TS desc", "ts DESC NULLS LAST"),
        ("ts nulls first", "ts ASC NULLS FIRST"),
        ("  id  DESC   NULLS   FIRST ", "id DESC NULLS FIRST"),
        ("odd name", '"odd name" ASC NULLS LAST'),
        ('"odd name" desc', '"odd name" DESC NULLS LAST'),
        ('"a desc"', '"a desc" ASC NULLS LAST'),
    ],
)
def test_a_sort_key_is_a_column_with_its_direction(text: str, shown: str) -> None:
    (key,) = sort_keys([text], COLUMNS)
    assert show_sort_key(key) == shown
    assert sort_keys([shown], COLUMNS) == (key,)


@pytest.mark.parametrize(
    "text", ["", "nothing", "ts sideways", 7, None, "1", "(SELECT 1)", "sum(id)", "nothing + 1", "ts, id"]
)
def test_what_is_no_sort_key_is_refused(text: object) -> None:
    with pytest.raises((InvalidArgument, ColumnNotFound)):
        sort_keys([text], COLUMNS)  # type: ignore[list-item]


def test_a_column_sorts_once() -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        sort_keys(["ts", "ts DESC"], COLUMNS)


@pytest.mark.parametrize("text", ["id", "year(ts)", "month(ts)", "day(ts)", "hour(ts)", "bucket(16, id)"])
def test_a_partition_field_is_shown_as_it_was_given(text: str) -> None:
    (field,) = partition_fields([text], COLUMNS)
    name = next(column.name for column in COLUMNS if column.id == field.column_id)
    assert show_transform(field, name) == text


def test_a_partition_field_is_given_once() -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        partition_fields(["id", "ID"], COLUMNS)


def test_a_single_text_is_not_read_letter_by_letter() -> None:
    with pytest.raises(InvalidArgument, match="list"):
        check_list("ts", "sort keys")
