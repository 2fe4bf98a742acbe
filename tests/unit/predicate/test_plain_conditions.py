"""Conditions of a query that are read from DuckDB's tree say what the same text says as a predicate."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.engine.query.plain_conditions import plain_condition
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.sql.predicate import parse_predicate

NAMES = ("id", "Total", "note", "t")
TYPES = ("int64", "uint8", "varchar", "int32")
COLUMNS = tuple(
    Column(ColumnId(place + 1), name, type)
    for place, (name, type) in enumerate(zip(NAMES, TYPES, strict=True))
)

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)


def written(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(NAMES))
    value = written(draw(texts if name == "note" else numbers))
    spelled = draw(st.sampled_from((name, name.upper(), f'"{name}"')))
    if draw(st.integers(0, 4)) == 0:
        return f"{spelled} BETWEEN {value} AND {written(draw(texts if name == 'note' else numbers))}"
    op = draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=")))
    return f"{spelled} {op} {value}" if draw(st.booleans()) else f"{value} {op} {spelled}"


@pytest.fixture(scope="module")
def condition_of() -> Any:
    connection = duckdb.connect()

    def condition(text: str) -> Any:
        sql = f"SELECT * FROM t WHERE {text}"
        (tree,) = connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchall()[0]
        return json.loads(tree)["statements"][0]["node"]["where_clause"]

    return condition


@given(parts=st.lists(comparisons(), min_size=1, max_size=3))
def test_comparisons_mean_what_they_mean_as_text(condition_of: Any, parts: list[str]) -> None:
    text = " AND ".join(parts)
    assert plain_condition(condition_of(text), "t", COLUMNS, None) == parse_predicate(text, COLUMNS).tree


@given(value=st.integers(-(2**63), 2**63 - 1), note=texts)
def test_parameters_are_their_values(condition_of: Any, value: int, note: str) -> None:
    expected = parse_predicate(f"id >= {value} AND note = {written(note)}", COLUMNS).tree
    for text, params in (
        ("id >= $1 AND $2 = note", [value, note]),
        ("id >= $n AND note = $s", {"n": value, "s": note}),
    ):
        assert plain_condition(condition_of(text), "t", COLUMNS, params) == expected


@pytest.mark.parametrize(
    "text",
    [
        "id = 1.5",  # Trees have a decimal as its digits.
        "id = '5'",
        "note = 5",
        "id = DATE '2024-01-01'",
        "id = true",
        "id = 10000000000000000000000",
        "id = NULL",
        "id = Total",
        "nothing = 5",
        "u.id = 5",
        "t.id = 5",  # Here t is a column.
        "id = 5 OR id = 6",
        "id = 5 AND lower(note) = 'x'",
        "note = 'a' COLLATE NOCASE",
        "id = $1",
    ],
)
def test_whatever_is_more_than_that_is_left_to_others(condition_of: Any, text: str) -> None:
    assert plain_condition(condition_of(text), "t", COLUMNS, None) is None


def test_columns_may_be_named_with_their_table(condition_of: Any) -> None:
    expected = parse_predicate("id = 5", COLUMNS).tree
    assert plain_condition(condition_of("o.id = 5"), "o", COLUMNS, None) == expected


@pytest.mark.parametrize("value", [None, True, 1.5, b"x"])
def test_parameters_of_other_types_are_left_to_others(condition_of: Any, value: Any) -> None:
    assert plain_condition(condition_of("id = $1"), "t", COLUMNS, [value]) is None
