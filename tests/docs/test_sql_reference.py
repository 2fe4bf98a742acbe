"""docs/sql-reference.md is what the parser takes, and leaves no statement out."""

from __future__ import annotations

import typing
from pathlib import Path
from random import Random

import duckdb
import pytest

from forklake.errors import InvalidSql
from forklake.sql import statements as st
from forklake.sql.functions.registry import FUNCTIONS
from forklake.sql.parser import parse
from forklake.sql.parser.synopsis import SYNOPSES, found
from scripts.sql_reference import reference
from tests.docs.synopses import Statements

ROOT = Path(__file__).parents[2]
OURS = {"FORK CATALOG", "MERGE CATALOG", "DROP CATALOG", "CREATE INDEX", "DROP INDEX", "SHOW", "ALTER SCHEMA"}
OURS |= {"COMMENT", "UPDATE"}
"""What DuckDB does not parse: schemas have no other names and comments there, fields are not updated, and
indexes are not of a table."""
NOT_ALL = {"EXECUTE", "SET SCHEMA", "RESET SCHEMA", "CREATE TABLE", "ALTER TABLE"}
"""Of these, DuckDB takes less: no expressions as arguments, no LIKE, sort orders or fields of structs."""
MADE = 120


def made(name: str) -> list[str]:
    statements = Statements(SYNOPSES[name], Random(name))
    return [statements.one() for _ in range(MADE)]


def test_the_reference_is_fresh() -> None:
    page = (ROOT / "docs" / "sql-reference.md").read_text(encoding="utf-8")
    assert page == reference() + "\n", "run: python -m scripts.sql_reference > docs/sql-reference.md"


@pytest.mark.parametrize("name", SYNOPSES)
def test_whatever_a_synopsis_allows_is_parsed(name: str) -> None:
    for text in made(name):
        (parsed,) = parse.parse(text)
        assert parsed.text == text


@pytest.mark.parametrize("name", [name for name in SYNOPSES if name not in OURS | NOT_ALL])
def test_what_is_written_as_in_duckdb_is_parsed_by_duckdb(name: str) -> None:
    with duckdb.connect(":memory:") as connection:
        for text in made(name):
            assert len(connection.extract_statements(text)) >= 1


def test_every_kind_of_statement_is_in_the_reference() -> None:
    kinds = {type(parse.parse(text)[0].statement) for name in SYNOPSES for text in made(name)}
    assert kinds == set(typing.get_args(st.Statement))


def test_every_first_word_of_a_statement_is_in_the_reference() -> None:
    words = {text.split()[0] for name in SYNOPSES for text in made(name)}
    known = {*parse._QUERIES, *parse._CHANGES, *parse._OTHERS, "WITH", "FORK", "EXPLAIN", "PREPARE", "FORCE"}
    # A bracket begins a query, and these are other words for what is there.
    assert known - words == {"(", "DESC", "PIVOT_WIDER", "PIVOT_LONGER"}


def test_every_function_is_in_the_reference() -> None:
    page = reference()
    assert [name for name in FUNCTIONS if f"### `{name}`" not in page] == []


def test_a_statement_that_is_not_in_the_reference_is_not_parsed() -> None:
    for text in ("MERGE CATALOG a FROM b", "ALTER TABLE t SET COLOUR BLUE", "COPY t INTO 'x'", "FORK a AS b"):
        with pytest.raises(InvalidSql):
            parse.parse(text)


def test_synopses_are_found_by_their_first_words() -> None:
    assert list(found("merge")) == ["MERGE INTO", "MERGE CATALOG"]
    assert list(found("create  table")) == ["CREATE TABLE"]
    assert found("nothing") == {}
    assert len(found("")) == len(SYNOPSES)
