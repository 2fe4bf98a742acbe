"""What a query on one table reads of it: all of it, where there is any doubt."""

from __future__ import annotations

import duckdb
import pytest

from forklake.engine.query.one_table import Reads, reads_of
from forklake.engine.query.tree import QueryTree
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.scan.first_rows import FirstRows

K, S, IN = ColumnId(1), ColumnId(2), ColumnId(3)
COLUMNS = (
    Column(K, "k", "int32"),
    Column(S, "s", "varchar"),
    Column(IN, "inside", "struct", children=(Column(ColumnId(4), "s", "int32"),)),
)


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def reads(connection: duckdb.DuckDBPyConnection, sql: str, params: list[object] | None = None) -> Reads:
    tree = QueryTree.read(connection, sql)
    assert tree is not None, sql
    return reads_of(tree, COLUMNS, params)


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("SELECT k FROM t ORDER BY k LIMIT 5", FirstRows((K,), 5)),
        ("SELECT * FROM t ORDER BY t.K LIMIT 5 OFFSET 2", FirstRows((K,), 7)),
        ("SELECT a.s AS x FROM t AS a ORDER BY a.k DESC, s DESC LIMIT 4", FirstRows((K, S), 4, True)),
        ("SELECT k AS k FROM t ORDER BY k ASC NULLS FIRST LIMIT 4", FirstRows((K,), 4, False, False)),
        ("SELECT s FROM t WHERE k > 3 AND s = 'a' ORDER BY s LIMIT 1", FirstRows((S,), 1)),
        ("SELECT s FROM t WHERE k BETWEEN 3 AND $1 ORDER BY s LIMIT $2", FirstRows((S,), 9)),
        ("SELECT s FROM t WHERE k % 2 = 0 ORDER BY s LIMIT 1", None),
        ("SELECT s FROM t WHERE k = 1 OR k = 2 ORDER BY s LIMIT 1", None),
        ("SELECT k FROM t ORDER BY k, s DESC LIMIT 5", None),
        ("SELECT k FROM t ORDER BY k", None),
        ("SELECT k FROM t LIMIT 5", None),
        ("SELECT k FROM t ORDER BY k LIMIT 5%", None),
        ("SELECT k FROM t ORDER BY k LIMIT 2 + 3", None),
        ("SELECT k FROM t ORDER BY k LIMIT 0", None),
        ("SELECT k FROM t ORDER BY k LIMIT 1000000", None),
        ("SELECT k FROM t ORDER BY k LIMIT (SELECT 3)", None),
        ("SELECT k FROM t ORDER BY 1 LIMIT 5", None),
        ("SELECT k FROM t ORDER BY ALL LIMIT 5", None),
        ("SELECT k FROM t ORDER BY k + 1 LIMIT 5", None),
        ("SELECT k FROM t ORDER BY inside LIMIT 5", None),
        ("SELECT k FROM t ORDER BY inside.s LIMIT 5", None),
        ("SELECT s AS k FROM t ORDER BY k LIMIT 5", None),
        ("SELECT -k AS k FROM t ORDER BY k LIMIT 5", None),
        ("SELECT * REPLACE (-k AS k) FROM t ORDER BY k LIMIT 5", None),
        ("SELECT COLUMNS('k') FROM t ORDER BY k LIMIT 5", None),
        ("SELECT max(k) FROM t ORDER BY k LIMIT 5", None),
        ("SELECT unnest([k, k]) FROM t ORDER BY k LIMIT 5", None),
        ("SELECT DISTINCT k FROM t ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t GROUP BY k ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t GROUP BY ALL ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t QUALIFY row_number() OVER () < 9 ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t USING SAMPLE 5 ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t TABLESAMPLE 10% ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t AS x (s, k) ORDER BY k LIMIT 5", None),
        ("SELECT k FROM t, u ORDER BY k LIMIT 5", None),
        ("SELECT k FROM (SELECT k FROM t ORDER BY k LIMIT 5)", None),
        ("SELECT k FROM t UNION ALL SELECT k FROM t ORDER BY k LIMIT 5", None),
    ],
)
def test_first_rows(connection: duckdb.DuckDBPyConnection, sql: str, first: FirstRows | None) -> None:
    assert reads(connection, sql, [5, 9]).first == first


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT k + 1 FROM t WHERE s = 'a'", {K, S}),
        ("SELECT count(*) FROM t AS x WHERE x.s = 'a'", {S}),
        ("SELECT inside.s FROM t ORDER BY t.k", {K, S, IN}),
        ("SELECT sum(k) OVER (ORDER BY s) FROM t", {K, S}),
        ("SELECT list_transform([1], x -> x + k) FROM t", {K}),
        ("SELECT 1 FROM t", set()),
        ("SELECT * FROM t", None),
        ("SELECT * EXCLUDE (s) FROM t", None),
        ("SELECT COLUMNS('k') FROM t", None),
        ("SELECT t FROM t", None),
        ("SELECT to_json(x) FROM t AS x", None),
        ("SELECT #1 FROM t", None),
        ("SELECT k FROM t GROUP BY ALL ORDER BY ALL", None),
        ("SELECT k FROM t AS x (s, k)", None),
        ("SELECT k FROM t WHERE s IN (SELECT s FROM t)", None),
        ("SELECT k, (SELECT 1) FROM t", None),
        ("FROM t", None),
    ],
)
def test_columns(connection: duckdb.DuckDBPyConnection, sql: str, columns: set[ColumnId] | None) -> None:
    assert reads(connection, sql).columns == columns
