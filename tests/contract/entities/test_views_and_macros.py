"""Views and macros: versioned, and refused when they cannot be parsed."""

from __future__ import annotations

import pytest

import forklake
from forklake.errors import InvalidArgument
from forklake.model.entities import MacroImpl, MacroParameter


def test_views_are_versioned(catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.create_view("v", "SELECT 1", columns=["a", 'b"c'])
    first = catalog.snapshot
    catalog.create_view("v", "SELECT 2", or_replace=True)
    catalog.rename_view("v", "s.w")
    (view,) = catalog.views()
    assert (view.schema, view.name, view.sql, view.column_aliases) == ("s", "w", "SELECT 2", ())
    (old,) = catalog.views(at=first)
    assert (old.schema, old.name, old.sql, old.column_aliases) == ("main", "v", "SELECT 1", ("a", 'b"c'))
    assert old.id == view.id
    catalog.drop_view("s.w")
    assert catalog.views() == []


def test_macros_have_overloads_and_versions(catalog: forklake.Catalog) -> None:
    overloads = (
        MacroImpl("a + 1", (MacroParameter("a"),)),
        MacroImpl("a + b", (MacroParameter("a", "int32"), MacroParameter("b", default="5"))),
        MacroImpl("SELECT a", (MacroParameter("a"),), "table"),
    )
    catalog.create_macro("m", overloads=overloads)
    first = catalog.snapshot
    catalog.create_macro("m", ["a"], "a - 1", or_replace=True)
    catalog.rename_macro("m", "n")
    (macro,) = catalog.macros()
    assert (macro.name, macro.implementations) == ("n", (MacroImpl("a - 1", (MacroParameter("a"),)),))
    (old,) = catalog.macros(at=first)
    assert (old.name, old.implementations) == ("m", overloads)
    assert old.id != macro.id


QUERIES = [
    "SELECT 1",
    "SELECT 1;",
    "  SELECT a -- of all\n  FROM later /* not there yet */",
    "VALUES (1), (2)",
    "FROM t",
    "FROM t SELECT a",
    "TABLE t",
    "(SELECT 1)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r",
    "SELECT 1 UNION ALL BY NAME SELECT 2",
    "SELECT ';' AS semicolon",
    "SELECT * EXCLUDE (a) FROM t ASOF JOIN u USING (b) QUALIFY row_number() OVER () = 1",
    "UNPIVOT t ON a, b",
]
NO_QUERIES = {
    "": "empty",
    "   \n": "empty",
    "-- only a comment": "empty",
    "/* a */ ;": "empty",
    "anything": r'not a query: syntax error at or near "anything" \(line 1, column 1\)',
    "SELECT a\nFROM t\n WHERE é = x y": r'near "y" \(line 3, column 14\)',
    "SELECT 1 +": r"(end of input|near \"\+\") \(line 1, column 1[01]\)",
    "SELECT 'open": r"unterminated.*\(line 1, column 8\)",
    "SELECT 1; SELECT 2": "2 statements",
    "SELECT 1; DROP TABLE t": "2 statements",
    "INSERT INTO t VALUES (1)": r'near "INSERT" \(line 1, column 1\)',
    "UPDATE t SET a = 1": "UPDATE",
    "DELETE FROM t": "DELETE",
    "CREATE TABLE t AS SELECT 1": "CREATE",
    "DROP TABLE t": "DROP",
    "COPY t TO 'file'": "COPY",
    "ATTACH 'file'": "ATTACH",
    "PRAGMA version": "PRAGMA",
    "DESCRIBE t": "DESCRIBE",
    "-- é\nDESCRIBE t": "DESCRIBE",
    "SHOW TABLES": "SHOW",
    "SUMMARIZE t": "SUMMARIZE",
    "EXPLAIN SELECT 1": "EXPLAIN",
    "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": "not a query",
    "SELECT (WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT 1 FROM a)": "not a query",
    "SELECT 1 UNION ALL (WITH a AS (UPDATE t SET a = 1 RETURNING *) FROM a)": "not a query",
    "WITH a AS (COPY t TO 'file') SELECT 1": "not a query",
    "SELECT $1": r"parameters \(\$1\)",
    "SELECT * FROM t WHERE a = ?": "parameters",
}


def test_a_view_is_a_query_that_can_be_parsed(catalog: forklake.Catalog) -> None:
    with catalog.transaction() as tx:
        for number, query in enumerate(QUERIES):
            tx.create_view(f"v{number:02}", query)
            tx.create_macro(f"m{number:02}", ["x"], query, table=True)
    assert [view.sql for view in catalog.views()] == QUERIES
    assert [macro.implementations[0].sql for macro in catalog.macros()] == QUERIES


@pytest.mark.parametrize(("text", "said"), NO_QUERIES.items(), ids=NO_QUERIES)
def test_what_is_no_query_is_refused_as_a_view_and_as_a_table_macro(
    catalog: forklake.Catalog, text: str, said: str
) -> None:
    with pytest.raises(InvalidArgument, match=rf'the SQL of view "main\.v" .*{said}') as refused:
        catalog.create_view("v", text)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidArgument, match=rf'the SQL of macro "main\.m" .*{said}'):
        catalog.create_macro("m", ["x"], text, table=True)
    with pytest.raises(InvalidArgument), catalog.transaction() as tx:
        tx.create_view("v", text, or_replace=True)
    assert (catalog.views(), catalog.macros(), catalog.snapshot) == ([], [], 1)


@pytest.mark.parametrize(
    "text", ["x", "x + 1 -- one more", "(x, 2)", "(SELECT max(a) FROM t)", "CASE WHEN x THEN 1 END"]
)
def test_a_macro_is_an_expression_that_can_be_parsed(catalog: forklake.Catalog, text: str) -> None:
    catalog.create_macro("m", ["x"], text)
    assert catalog.macros()[0].implementations[0].sql == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(WITH a AS (DELETE FROM t RETURNING *) SELECT 1 FROM a)",
        "-- x",
        "x +",
        "x; x",
        "SELECT x",
        "x) + (x",
        "1), () AS (2",
        "1, () AS 2",
        "x AS y",
        "1, 2",
        "TABLE SELECT 1",
        "$1",
    ],
)
def test_what_is_no_expression_is_refused_as_a_macro(catalog: forklake.Catalog, text: str) -> None:
    with pytest.raises(InvalidArgument, match=r'the SQL of macro "main\.m"'):
        catalog.create_macro("m", ["x"], text)
    with pytest.raises(InvalidArgument, match=r'the SQL of macro "main\.m"'):
        catalog.create_macro("m", overloads=[MacroImpl("1"), MacroImpl(text)])
    assert catalog.macros() == []


def test_sql_of_another_dialect_is_kept_as_it_is(catalog: forklake.Catalog) -> None:
    catalog.create_macro("m", overloads=[MacroImpl("a <=> b LATERAL", dialect="spark")])
    assert catalog.macros()[0].implementations[0].sql == "a <=> b LATERAL"


def test_views_that_were_stored_before_anybody_parsed_them_stay_readable(
    lake: forklake.Lake, catalog: forklake.Catalog, raw
) -> None:
    catalog.create_view("v", "SELECT 1")
    raw("UPDATE ducklake_view SET sql = 'any text; at all'")
    fork = lake.fork("main_catalog", "fork")
    fork.rename_view("v", "w")
    lake.merge("fork", "main_catalog")
    assert [(view.name, view.sql) for view in catalog.views()] == [("w", "any text; at all")]
    catalog.create_view("w", "SELECT 2", or_replace=True)
    assert [view.sql for view in catalog.views()] == ["SELECT 2"]
