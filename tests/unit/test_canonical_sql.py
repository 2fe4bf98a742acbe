"""SQL as DuckDB writes it back."""

from __future__ import annotations

import pytest

from forklake.engine.canonical_sql import canonical_expression, canonical_query, written_name
from forklake.model.sql.macro_sql import default_sql, parameter_sql, parameter_type, stored_default


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("a+b", "(a + b)"),
        ("a -- all of it", "a"),
        ("x::INT", "CAST(x AS INTEGER)"),
        ("'it''s'", "'it''s'"),
        # DuckDB would write what it does not read for ever, or what means another function.
        ("list_transform(a, lambda x: x+1)", "list_transform(a, lambda x: x+1)"),
        ("row(1,2)", "row(1,2)"),
    ],
)
def test_an_expression_is_written_as_duckdb_writes_it(sql: str, written: str) -> None:
    assert canonical_expression(sql) == written


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("FROM t", "SELECT * FROM t"),
        ("SELECT * FROM t WHERE(id>=a or name=b)", 'SELECT * FROM t WHERE ((id >= a) OR ("name" = b))'),
        ("PIVOT t ON a USING sum(b)", "PIVOT t ON a USING sum(b)"),
    ],
)
def test_a_query_is_written_as_duckdb_writes_it(sql: str, written: str) -> None:
    assert canonical_query(sql) == written


@pytest.mark.parametrize(
    ("name", "written"),
    [("t", "t"), ("T", '"T"'), ("select", '"select"'), ("name", '"name"'), ("a b", '"a b"')],
)
def test_names_have_quotes_where_they_need_them(name: str, written: str) -> None:
    assert written_name(name) == written


@pytest.mark.parametrize(
    ("sql", "stored"),
    [
        (None, (None, "unknown")),
        ("5", ("5", "int32")),
        ("-2147483649", ("-2147483649", "int64")),
        ("1" * 30, ("1" * 30, "int128")),
        ("1" * 50, ("1" * 50, "unknown")),
        ("1.5", ("1.5", "decimal(2,1)")),
        ("'a''b'", ("a'b", "varchar")),
        ("TRUE", ("true", "boolean")),
        ("[1]", ("[1]", "unknown")),
    ],
)
def test_a_default_is_a_value_of_a_type(sql: str | None, stored: tuple[str | None, str]) -> None:
    assert stored_default(sql) == stored
    assert default_sql(*stored) == (None if sql is None else sql.lower())


def test_a_default_of_another_client_is_cast_to_its_type() -> None:
    assert default_sql("2026-01-02", "date") == "CAST('2026-01-02' AS DATE)"
    assert default_sql("5", "varchar") == "'5'"
    assert default_sql("5", "int64") == "CAST('5' AS BIGINT)"


def test_a_type_of_a_parameter_has_the_name_that_ducklake_gives_it() -> None:
    names = {"INTEGER": "int32", "DECIMAL(4, 1)": "decimal(4,1)", "INTEGER[]": "INTEGER[]", "what": "what"}
    assert {sql: parameter_type(sql) for sql in names} == names
    assert [parameter_sql(name) for name in names.values()] == [
        "INTEGER",
        "DECIMAL(4,1)",
        "INTEGER[]",
        "what",
    ]
    assert parameter_type(None) == "unknown"
