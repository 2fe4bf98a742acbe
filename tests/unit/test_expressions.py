"""Expressions over a row, or over a source and a target: what they may say, and how they are written anew."""

from __future__ import annotations

import duckdb
import pytest

from forklake.errors import ColumnNotFound, ForklakeError, InvalidPredicate, InvalidSchemaChange
from forklake.model.sql.constants import check_expression
from forklake.model.sql.ddl import columns_of
from forklake.model.sql.functions import REFUSED
from forklake.model.sql.predicate import parse_expression, parse_predicate, parse_qualified
from forklake.model.table.columns import build
from tests.reaching import REACHING, SHADOWING

SOURCE = build(columns_of("id BIGINT, delta INTEGER, s STRUCT(a INTEGER, B STRUCT(c INTEGER)), l INTEGER[]"))
TARGET = build(columns_of("id BIGINT, n INTEGER, source STRUCT(delta INTEGER), target INTEGER, l INTEGER[]"))
SIDES = {"source": SOURCE, "target": TARGET}
TABLE = build(
    columns_of("id BIGINT, z VARCHAR, s STRUCT(z INTEGER, w INTEGER), t STRUCT(z INTEGER), l INTEGER[]")
)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("source.delta + target.n", '(source."delta" + target."n")'),
        ("SOURCE.Delta", '(source."delta")'),
        ('"source"."delta"', '(source."delta")'),
        ("1", "(1)"),
        ("upper('it''s') || source.id::VARCHAR", "(upper('it''s') || source.\"id\"::VARCHAR)"),
        ("source.s.A", '((source."s")."a")'),
        ("source.s.b.C + 1", '((source."s")."B"."c" + 1)'),
        ("target.source.delta", '((target."source")."delta")'),
        ("target.target", '(target."target")'),
        ("source.l[1]", '(source."l"[1])'),
        ("list_transform(source.l, lambda x: x + target.n)",
         '(list_transform(source."l", lambda x: x + target."n"))'),
        ("[x + target.n for x in source.l if x > 1]", '([x + target."n" for x in source."l" if x > 1])'),
        ("E'a\\nb'", "('a\nb')"),
    ],
)  # fmt: skip
def test_an_expression_names_its_sides_and_is_written_anew(text: str, sql: str) -> None:
    assert parse_qualified(text, SIDES) == sql


@pytest.mark.parametrize("text", ["delta", "other.delta", "id + 1", "s.a", "delta.source"])
def test_a_column_without_its_side_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"source\.\w+.* or target\.\w+"):
        parse_qualified(text, SIDES)


def test_a_column_that_its_side_does_not_have_is_refused() -> None:
    with pytest.raises(ColumnNotFound, match="target has no column"):
        parse_qualified("target.delta", SIDES)
    with pytest.raises(InvalidPredicate, match='no column "nope"'):
        parse_qualified("source.s.nope", SIDES)


@pytest.mark.parametrize(
    "text", [*REACHING, "", "source.id)", "source.id, target.id", "a b c", "\0", None, "source"]
)
def test_what_says_something_else_than_the_row_is_refused_everywhere(text: str) -> None:
    for read in (
        lambda: parse_qualified(text, SIDES),
        lambda: parse_expression(text, TABLE),
        lambda: parse_predicate(text, TABLE),
    ):
        with pytest.raises(ForklakeError):
            read()
    if text is not None:
        with pytest.raises(InvalidSchemaChange):
            check_expression(text)


@pytest.mark.parametrize("text", SHADOWING)
def test_a_variable_that_would_be_taken_for_a_column_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="another name"):
        parse_expression(text, TABLE)
    with pytest.raises(InvalidPredicate, match="another name"):
        parse_qualified(text, {"source": TABLE, "target": TABLE})
    with pytest.raises(InvalidPredicate, match="another name"):
        parse_qualified("list_transform([{'id': 1}], lambda source: source.id)", SIDES)


@pytest.mark.parametrize("text", ["list_transform(l, lambda id: id + 1)", "list_filter(l, lambda x: x > id)"])
def test_a_variable_alone_may_be_called_like_a_column(text: str) -> None:
    assert parse_expression(text, TABLE)


def test_every_function_of_duckdb_that_needs_more_than_a_row_is_known() -> None:
    connection = duckdb.connect()
    for extension in ("json", "icu", "parquet"):
        connection.execute(f"LOAD {extension}")
    listed = """
        SELECT DISTINCT lower(function_name) FROM duckdb_functions()
        WHERE function_type IN ('aggregate', 'table', 'table_macro', 'window')
          AND regexp_matches(function_name, '^[a-z]')
          AND function_name NOT IN (
              SELECT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro'))
    """
    # GLOB is an operator too; what is called like it is no scalar function.
    assert {name for (name,) in connection.execute(listed).fetchall()} - REFUSED.keys() == {"glob"}
    macros = "SELECT function_name, macro_definition FROM duckdb_functions() WHERE function_type = 'macro'"
    for name, definition in connection.execute(macros).fetchall():
        needs_more = any(f"{word}(" in definition.replace("list_aggr(", "") for word in REFUSED)
        if needs_more or "SELECT" in definition:
            assert name in REFUSED, definition
