"""Rows as text, CSV and JSON; what somebody types, as statements."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from uuid import UUID

import pytest

from forklake.cli.grid import Grid, block_lines, csv_lines, grid_lines, is_number
from forklake.cli.sql_output import changed_line, done_line
from forklake.cli.sql_script import parameter_value
from forklake.cli.statement_text import is_complete, placed
from forklake.cli.values import json_of, json_text, objects_of

GRID = Grid(
    ("id", "name", "漢字"),
    ("BIGINT", "VARCHAR", "DECIMAL(4,1)[]"),
    [("1", "a\nb\x1b[31m", "[1.5]"), ("100", None, "漢")],
)


def test_a_grid_has_numbers_to_the_right_and_shows_null_and_the_count() -> None:
    assert list(grid_lines(GRID)) == [
        " id     | name         | 漢字",
        " bigint | varchar      | decimal(4,1)[]",
        "--------+--------------+----------------",
        "      1 | a\\nb\\x1b[31m | [1.5]",
        "    100 | NULL         | 漢",
        "(2 rows)",
    ]
    assert list(grid_lines(Grid(("a",), ("VARCHAR",), [("x",)], more=True)))[-1] == (
        "(the first 1 rows; there are more)"
    )
    assert list(grid_lines(Grid(("a",), ("INTEGER",), [])))[-1] == "(0 rows)"


def test_a_block_shows_each_row_by_itself() -> None:
    assert list(block_lines(GRID)) == [
        "-- row 1 --",
        "id   | 1",
        "name | a\\nb\\x1b[31m",
        "漢字 | [1.5]",
        "-- row 2 --",
        "id   | 100",
        "name | NULL",
        "漢字 | 漢",
        "(2 rows)",
    ]


@pytest.mark.parametrize(
    ("kind", "number"),
    [("BIGINT", True), ("UTINYINT", True), ("DECIMAL(4,1)", True), ("HUGEINT", True), ("DOUBLE", True),
     ("INTEGER[]", False), ("INTERVAL", False), ("VARCHAR", False), ("STRUCT(a INTEGER)", False)],
)  # fmt: skip
def test_numbers_are_known_by_their_type(kind: str, number: bool) -> None:
    assert is_number(kind) is number


def test_csv_tells_null_from_empty_text() -> None:
    rows = [("1", None, ""), ('a"b', "c,d", "e\nf"), (" g", "h", "i")]
    assert list(csv_lines(("a", "b,", "c"), rows)) == [
        'a,"b,",c',
        '1,,""',
        '"a""b","c,d","e\nf"',
        '" g",h,i',
    ]


def test_json_keeps_digits_and_names_what_it_has_no_type_for() -> None:
    values = {
        "d": Decimal("1.50"), "nan": nan, "inf": -inf, "big": 2**70, "t": datetime(2026, 1, 31, tzinfo=UTC),
        "b": b"a\x00\\", "l": [Decimal("0.1"), None], "m": [("k", 1)], "s": {"a": {"b": 1}}, "u": UUID(int=1),
        "i": timedelta(days=1),
    }  # fmt: skip
    assert json.loads(json_text(json_of(values)), parse_float=Decimal) == {
        "d": Decimal("1.50"), "nan": "NaN", "inf": "-Infinity", "big": 2**70,
        "t": "2026-01-31T00:00:00+00:00",
        "b": "a\\x00\\x5C", "l": [Decimal("0.1"), None], "m": {"k": 1}, "s": {"a": {"b": 1}},
        "u": "00000000-0000-0000-0000-000000000001", "i": "1 day, 0:00:00",
    }  # fmt: skip
    text = json_text(objects_of(("ä", "x", "x"), [("漢😀", 1, 2)]))
    assert text.isascii()
    assert json.loads(text) == [{"ä": "漢😀", "x": 2}]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True), ("SELECT 1; -- done", True), ("SELECT 1;\n", True), ("SELECT 1; FROM t;", True),
        ("SELECT 1", False), ("SELECT ';'", False), ("SELECT 'a;", False), ("SELECT 1 -- ;", False),
        ("SELECT $$;", False), ("/* ; ", False), ('SELECT ";', False), ("", False), ("FROM t; FROM u", False),
    ],
)  # fmt: skip
def test_a_statement_is_complete_with_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_message_says_where_its_statement_begins() -> None:
    text = "SELECT 1;\n\n  -- the next\n  SELECT 2"
    assert placed(text, 9, "no") == "line 4, column 3: no"
    assert placed(text, 0, "no") == "line 1, column 1: no"


def test_a_statement_without_rows_says_what_it_was() -> None:
    assert done_line("create  TABLE t (id INTEGER)") == "CREATE TABLE"
    assert done_line("COMMIT") == "COMMIT"
    assert (changed_line(1), changed_line(1200)) == ("(1 row changed)", "(1,200 rows changed)")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-7", -7), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("NULL", None), ("'7'", "7"),
        ('"a b"', "a b"), ("2026-01-31", "2026-01-31"), ("7 days", "7 days"), ("", ""), ("nan", "nan"),
        ("x=y", "x=y"), (".5", 0.5), ("-", "-"),
    ],
)  # fmt: skip
def test_parameters_are_numbers_words_or_text(text: str, value: object) -> None:
    found = parameter_value(text)
    assert (found, type(found)) == (value, type(value))
