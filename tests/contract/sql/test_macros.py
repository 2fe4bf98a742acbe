"""Macros in SQL: expressions and queries, as DuckDB calls them and as DuckLake stores them."""

from __future__ import annotations

import threading

import pytest

import forklake
from forklake.errors import CommitConflict, MacroExists, MacroNotFound
from tests.contract.conftest import RunSql
from tests.contract.sql.conftest import Twins

PARAMETERS = """
SELECT parameter_name, parameter_type, default_value, default_value_type
  FROM ducklake_macro_parameters ORDER BY macro_id, column_id
"""


def test_an_expression_and_a_query_have_the_same_name(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE MACRO m(a) AS TABLE SELECT a AS x; CREATE MACRO m(a) AS a + 1")
    assert catalog.sql("SELECT x, m(x) FROM m(41)").to_rows() == [(41, 42)]
    for taken in ("CREATE MACRO M(a) AS 1", "CREATE MACRO m() AS TABLE SELECT 1"):
        with pytest.raises(MacroExists):
            catalog.sql(taken)
    catalog.sql("COMMENT ON MACRO TABLE m IS 'rows'; COMMENT ON MACRO m IS 'a value'")
    listed = "SELECT function_type, comment FROM duckdb_functions() ORDER BY ALL"
    assert catalog.sql(listed).to_rows() == [("macro", "a value"), ("table_macro", "rows")]
    assert (catalog.tags("macro", "m"), catalog.tags("macro table", "m")) == (
        {"comment": "a value"},
        {"comment": "rows"},
    )
    catalog.sql("DROP MACRO m")
    with pytest.raises(MacroNotFound, match="DROP MACRO TABLE"):
        catalog.sql("DROP MACRO m")
    assert catalog.sql("FROM m(1)").to_rows() == [(1,)]
    catalog.sql("DROP MACRO TABLE m; DROP MACRO TABLE IF EXISTS m")
    assert catalog.macros() == []


def test_handles_say_which_of_two_is_meant(catalog: forklake.Catalog) -> None:
    catalog.create_macro("m", ["a"], "a + 1")
    catalog.create_macro("m", ["a"], "SELECT a", table=True)
    catalog.rename_macro("m", "rows", table=True)
    catalog.rename_macro("rows", "m")
    catalog.create_macro("m", ["a"], "SELECT a, a", table=True, or_replace=True)
    assert [macro.implementations[0].sql for macro in catalog.macros()] == ["a + 1", "SELECT a, a"]
    catalog.drop_macro("m")
    assert [macro.implementations[0].kind for macro in catalog.macros()] == ["table"]
    catalog.drop_macro("m", table=False, if_exists=True)
    catalog.drop_macro("m")
    assert catalog.macros() == []


def test_two_transactions_make_both_kinds_of_one_name_and_not_one_kind_twice(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    other = lake.catalog(catalog.name)
    for mine, theirs, collides in (
        ("CREATE MACRO m() AS 1", "CREATE MACRO m() AS TABLE SELECT 2", False),
        ("CREATE MACRO n() AS TABLE SELECT 1", "CREATE MACRO n() AS TABLE SELECT 2", True),
        ("DROP MACRO m", "DROP MACRO TABLE m", False),
        ("DROP MACRO TABLE n", "DROP MACRO TABLE n", True),
    ):
        for handle, statement in ((catalog, mine), (other, theirs)):
            handle.sql("BEGIN")
            handle.sql(statement)
        catalog.sql("COMMIT")
        if collides:
            with pytest.raises(CommitConflict):
                other.sql("COMMIT")
        else:
            other.sql("COMMIT")
    assert catalog.macros() == []


def test_forks_merge_both_kinds_of_one_name(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    agent = lake.fork(catalog.name, "agent")
    catalog.sql("CREATE MACRO m() AS 1")
    agent.sql("CREATE MACRO m() AS TABLE SELECT 2")
    lake.merge("agent", into=catalog.name)
    assert catalog.sql("SELECT m(), (FROM m())").to_rows() == [(1, 2)]
    catalog.sql("DROP MACRO m")
    catalog.sql("CREATE MACRO m() AS 3")
    catalog.undo(catalog.snapshot)
    assert catalog.sql("FROM m()").to_rows() == [(2,)]


NESTED = (
    "CREATE MACRO plus(x, y := 1) AS x + y",
    "CREATE MACRO twice(x) AS plus(plus(x))",
    "CREATE MACRO thrice(x) AS plus(twice(x), y := 1)",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t AS SELECT i AS a FROM range(4) AS r(i)",
    "CREATE MACRO below(n) AS TABLE SELECT thrice(a) AS b FROM s.t WHERE a < n",
    "CREATE VIEW v AS SELECT twice(a) AS a FROM s.t",
)


def test_macros_call_other_macros(twins: Twins) -> None:
    for statement in NESTED:
        twins.do(statement)
    asked = (
        "SELECT twice(3), thrice(twice(1))",
        "SELECT a, thrice(a) AS b FROM s.t WHERE twice(a) > 3 ORDER BY a",
        "FROM below(2) AS x JOIN below(n := 4) AS y USING (b) ORDER BY b",
        "SELECT plus(a) AS a FROM v ORDER BY a",
    )
    for query in asked:
        twins.same(query)
    twins.do("USE s")
    twins.do("UPDATE t SET a = thrice(a) WHERE twice(a) > 3")
    for query in ("SELECT twice(a) AS a FROM t ORDER BY a", "SELECT main.twice(1) AS a"):
        twins.same(query)
    twins.do("USE main")
    twins.do("CREATE OR REPLACE MACRO plus(x, y := 1) AS x + y * 100")
    twins.same(asked[1])


def test_a_macro_calls_those_of_its_own_schema(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE SCHEMA s; USE s; CREATE MACRO one() AS 1; CREATE MACRO two() AS one() + one()")
    catalog.sql(
        "CREATE VIEW v AS SELECT two() AS a; CREATE MACRO rows() AS TABLE SELECT two() AS a; USE main"
    )
    expected = [(2, 2, 2)]
    query = "SELECT {0}s.two(), v.a, r.a FROM {0}s.v, {0}s.rows() AS r"
    assert catalog.sql(query.format("")).to_rows() == expected
    assert lake.sql(query.format(f"{catalog.name}.")).to_rows() == expected
    catalog.sql("CREATE MACRO endless(x) AS endless(x)")
    with pytest.raises(forklake.InvalidSql, match="endless"):
        catalog.sql("SELECT endless(1)")


def test_a_macro_that_is_gone_is_not_called(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE MACRO m(a) AS a + 1; CREATE MACRO abs(a) AS 'mine'")
    assert catalog.sql("SELECT m(1), abs(-1)").to_rows() == [(2, "mine")]
    catalog.sql("BEGIN; CREATE MACRO later(a) AS a")
    assert catalog.sql("SELECT later(1)").to_rows() == [(1,)]
    catalog.sql("ROLLBACK; DROP MACRO m; DROP MACRO abs")
    assert catalog.sql("SELECT abs(-1)").to_rows() == [(1,)]
    for text in ("SELECT m(1)", "SELECT later(1)"):
        with pytest.raises(forklake.InvalidSql, match="does not exist"):
            catalog.sql(text).to_rows()


def test_parameters_are_stored_as_ducklake_has_them(catalog: forklake.Catalog, raw: RunSql) -> None:
    catalog.sql(
        "CREATE MACRO m(a INTEGER, b BIGINT := 7, c := 'it''s', d := 1.50, e := true, "
        "f DOUBLE[] := [1, 2], g := 9999999999) AS a+b"
    )
    assert raw(PARAMETERS) == [
        ("a", "int32", None, "unknown"),
        ("b", "int64", "7", "int32"),
        ("c", "unknown", "it's", "varchar"),
        ("d", "unknown", "1.50", "decimal(3,2)"),
        ("e", "unknown", "true", "boolean"),
        ("f", "DOUBLE[]", "[1, 2]", "unknown"),
        ("g", "unknown", "9999999999", "int64"),
    ]
    assert raw("SELECT sql FROM ducklake_macro_impl") == [("(a + b)",)]
    assert catalog.sql("SELECT m(1), m(1, 2)").to_rows() == [(8, 3)]
    (types,) = catalog.sql("SELECT parameter_types FROM duckdb_functions()").to_rows()[0]
    assert types == ["INTEGER", "BIGINT", None, None, None, "DOUBLE[]", None]


def test_snapshots_quote_names_as_duckdb_does(catalog: forklake.Catalog) -> None:
    catalog.sql('CREATE MACRO "simple"(a) AS a; CREATE TABLE plain (i INTEGER); CREATE TABLE "T" (i INTEGER)')
    changes = [dict(row[0]) for row in catalog.sql("SELECT changes FROM snapshots()").to_rows()]
    made = [name for each in changes for names in each.values() for name in names]
    assert made[-3:] == ['main."simple"', "main.plain", 'main."T"']


def test_threads_call_their_own_macros(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE MACRO m(a) AS a + 1")
    fork = lake.fork(catalog.name, "agent")
    fork.sql("CREATE OR REPLACE MACRO m(a) AS a + 2")
    found: list[tuple[int, int]] = []

    def call() -> None:
        for _ in range(5):
            mine, theirs = (handle.sql("SELECT m(1)").to_rows()[0][0] for handle in (catalog, fork))
            found.append((mine, theirs))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(2, 3)] * 15
