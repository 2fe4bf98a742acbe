"""Tables as DuckDB describes them, and commits as DuckLake does."""

from __future__ import annotations

import duckdb
import pytest

from forklake.model.sql.keywords import KEYWORDS, optionally_quoted
from forklake.model.types.data_types import SCALARS, parse
from forklake.sql.functions.changes_made import changes_made
from forklake.sql.functions.described import numbers_of, shown_type


def test_keywords_are_those_of_duckdb() -> None:
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        ).fetchall()
    assert {name for (name,) in found} == KEYWORDS


def test_types_are_described_as_duckdb_does() -> None:
    types = [row.sql.split("|")[0] for row in SCALARS]
    types += ["DECIMAL(10,2)", "INTEGER[][]", 'STRUCT(a INTEGER, "B b" VARCHAR, "left" DATE[])']
    types += ["MAP(VARCHAR, DECIMAL(38,0))"]
    with duckdb.connect() as connection:
        listed = ", ".join(f"c{at} {name}" for at, name in enumerate(types))
        connection.execute(f"CREATE TABLE t ({listed})")
        expected = connection.execute(
            "SELECT data_type, data_type_id, numeric_precision, numeric_precision_radix, numeric_scale "
            "FROM duckdb_columns() WHERE table_name = 't'"
        ).fetchall()
    shown = [shown_type(parse(name)) for name in types]
    assert [(name, *numbers_of(name)) for name in shown] == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a", "a"), ("A_1", "A_1"), ("1a", '"1a"'), ("é", '"é"'), ("select", '"select"'), ('a"b', '"a""b"')],
)
def test_names_are_quoted_where_they_need_it(name: str, shown: str) -> None:
    assert optionally_quoted(name) == shown


@pytest.mark.parametrize(
    ("notation", "found"),
    [
        ("", {}),
        ('created_catalog:"c",created_schema:"main"', {"schemas_created": ["main"]}),
        ('created_table:"main"."t",created_table:"main"."a,b"', {"tables_created": ["main.t", 'main."a,b"']}),
        ('created_view:"Odd ""one"""."v:1"', {"views_created": ['"Odd ""one"""."v:1"']}),
        ("inserted_into_table:3,inserted_into_table:3,dropped_view:4", {
            "tables_inserted_into": ["3"], "dropped": ["4"]}),
        ("inlined_insert:3,altered_table:3,forked_from:0,unheard_of:5", {
            "tables_altered": ["3"], "inlined_insert": ["3"], "forked_from": ["0"], "unheard_of": ["5"]}),
    ],
)  # fmt: skip
def test_changes_are_listed_by_kind(notation: str, found: dict[str, list[str]]) -> None:
    found = {"views_dropped" if key == "dropped" else key: value for key, value in found.items()}
    assert changes_made(notation) == found
    assert list(changes_made(notation)) == list(found)
