"""The SQL of a predicate names columns as the table does, and finds the same rows in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from forklake.model.sql.ddl import columns_of as ddl
from forklake.model.sql.predicate import parse_predicate
from forklake.model.table.columns import build
from forklake.model.types import data_types as types
from tests.unit.predicate.columns import COLUMNS, DDL


@pytest.mark.parametrize(
    ("text", "sql", "columns"),
    [
        ("ID=7", '("id"=7)', {"id"}),
        ("name = 'x' OR\n\tflag", '("Name" = \'x\' OR "flag")', {"Name", "flag"}),
        ("S.a = 1", '(("s")."A" = 1)', {"s"}),
        ("s.IN.x = 1", '(("s")."in"."x" = 1)', {"s"}),
        ("name ~ '\U0001f986' and É = 1", '("Name" ~ \'\U0001f986\' and "é" = 1)', {"Name", "é"}),
        ("vacuum = 1", '("vacuum" = 1)', {"vacuum"}),
        ("list_filter(l, id -> id > i) = l", '(list_filter("l", id -> id > "i") = "l")', {"l", "i"}),
        ("name = $x$a'b$x$", "(\"Name\" = 'a''b')", {"Name"}),
        ("extract(year from ts) = 2024", '(extract(year from "ts") = 2024)', {"ts"}),
    ],
)
def test_sql_spells_columns_as_the_table_does(text, sql, columns):
    found = parse_predicate(text, COLUMNS)
    assert (found.sql, found.columns) == (sql, columns)


@pytest.fixture(scope="module")
def oracle():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({DDL})")
        connection.execute(
            """INSERT INTO t (id, i, "Name", flag, s, l, vacuum) VALUES
            (1, 1, 'a', true, {'A': 1, 'in': NULL}, [1, 2], 1), (2, 1, 'abc', false, NULL, [], 2),
            (NULL, 2, 'it''s', NULL, {'A': NULL, 'in': {'x': 'q', 'inside': []}}, NULL, NULL),
            (4, NULL, NULL, true, NULL, [3], 4)"""
        )
        yield connection


@pytest.mark.parametrize(
    "text",
    [
        "name ~ 'b'", "name ~ '.*b.*'", "not id = 1 and flag", "not flag or id = 2",
        "id = 1 or id = 2 and not flag",
        "not id between 1 and 2 or flag", "id in (1, 2) is not true", "flag is not false and id >= 1",
        "s.a = 1", "(s).a is null",
        "s.\"in\".x = 'q'", "len(l) = 2", "list_filter(l, lambda x: x > 1) = [2]", "id // 2 = 1",
        "id ** 2 = 4", "-id = -1",
        "id - -1 = 2", "name || 'x' = 'ax'", "l[1] = 1", "case when flag then id else i end = 1",
        "name like 'a%' = true",
        "not name like 'a%'", "not not flag", "id is not distinct from null", "flag = (id = 1)",
        "id::VARCHAR = '1'", "vacuum = 2",
        "name similar to 'a|b'", "name[1:1] = 'a'", "'a' || name = 'aa' and name = 'a'", "id = 1_0 - 9",
        "id & 1 = 1", "@id = 1",
        "name !~~ 'a%'", "name not ilike 'A%'", "id >= 1 is true", "t is null and not flag",
    ],
)  # fmt: skip
def test_duckdb_finds_the_same_rows_by_the_text_and_by_its_sql(oracle, text):
    query = "SELECT id, i FROM t WHERE {} ORDER BY ALL"
    expected = oracle.execute(query.format(f"({text})")).fetchall()
    assert oracle.execute(query.format(parse_predicate(text, COLUMNS).sql)).fetchall() == expected


def test_a_struct_may_be_called_like_the_table(oracle):
    columns = build(ddl("t STRUCT(a INTEGER), a INTEGER"))
    where = parse_predicate("t.a = 1", columns).sql
    rows = oracle.execute(f"SELECT a FROM (SELECT {{'a': 1}} AS t, 2 AS a) AS t WHERE {where}").fetchall()
    assert rows == [(2,)]


@pytest.mark.parametrize("spelling", [spelling for row in types.SCALARS for spelling in row.sql.split("|")])
def test_the_types_of_casts_are_read_as_columns_are(spelling):
    cast = sqlglot.parse_one(f"SELECT CAST(x AS {spelling})", dialect="duckdb").find(exp.Cast)
    assert types.parse(cast.to.sql(dialect="duckdb")) == types.parse(spelling)
