"""Queries, transactions, CALL and the like: from their text to what they say."""

# ruff: noqa: E501 - a statement and what it says stand side by side.

from __future__ import annotations

import pytest

from forklake.sql.parser.parse import parse
from forklake.sql.statements import (
    Call,
    Checkpoint,
    Delete,
    DropObject,
    Execute,
    Explain,
    ForkCatalog,
    MergeCatalog,
    Parsed,
    Prepare,
    Query,
    SetVariable,
    TransactionControl,
    Use,
)
from tests.unit.sql.reading import F, T, of, read


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "FROM t",
        "VALUES (1)",
        "TABLE t",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH a AS (SELECT 1) FROM a",
        "WITH a AS (SELECT 1) (SELECT 2)",
        "WITH update AS (SELECT 1) SELECT * FROM update",
        "DESCRIBE t",
        "desc t",
        "SUMMARIZE t",
        "SHOW ALL TABLES",
        "PIVOT t ON a",
        "UNPIVOT t ON a INTO NAME n VALUE v",
        "SELECT ';', \"a;b\", $$;$$, $x$ ; $x$ /* ; */ -- ;\n, E'\\';', [';']",
        "select * from t at (version => 3) where a = $1",
    ],
)
def test_queries_stay_as_they_are(text: str) -> None:
    assert read(text) == Query(F(text))
    assert read(f" \n{text} ; -- end") == Query(F(text))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("BEGIN", TransactionControl("begin")),
        ("BEGIN TRANSACTION", TransactionControl("begin")),
        ("START WORK READ WRITE", TransactionControl("begin")),
        ("BEGIN TRANSACTION READ ONLY", TransactionControl("begin", read_only=True)),
        ("COMMIT WORK", TransactionControl("commit")),
        ("END", TransactionControl("commit")),
        ("ROLLBACK", TransactionControl("rollback")),
        ("ABORT TRANSACTION", TransactionControl("rollback")),
        ("USE shop", Use(of("shop"))),
        ('USE shop."Sales 1"', Use(of("shop", "Sales 1"))),
        ("USE 'shop'", Use(of("shop"))),
        ("SET schema = 'shop.sales'", Use(of("shop", "sales"))),
        ("SET search_path TO '\"a.b\"'", Use(of("a.b"))),
        ("SET SCHEMA 'x'", Use(of("x"))),
        ("SET SESSION schema = x", Use(of("x"))),
        ("SET schema TO DEFAULT", Use(of("main"))),
        ("RESET search_path", Use(of("main"))),
        ("SET VARIABLE x = (SELECT max(a) FROM t)", SetVariable("x", F("(SELECT max(a) FROM t)"))),
        ("SET VARIABLE x TO 5", SetVariable("x", F("5"))),
        ("RESET VARIABLE x", SetVariable("x", None)),
        ("CALL snapshots()", Call(of("snapshots"), F(""))),
        ("CALL shop.set_option('a', 1, table_name => 't')", Call(of("shop", "set_option"), F("'a', 1, table_name => 't'"))),
        ("CALL left('a')", Call(of("left"), F("'a'"))),
        ("CHECKPOINT", Checkpoint()),
        ("FORCE CHECKPOINT shop", Checkpoint("shop")),
        ("EXECUTE p", Execute("p")),
        ("EXECUTE p(1, (2))", Execute("p", F("1, (2)"))),
        ("DEALLOCATE PREPARE p", Execute("p", deallocate=True)),
        ("EXPLAIN FROM t", Explain(Query(F("FROM t")))),
        ("EXPLAIN ANALYZE DELETE FROM t", Explain(Delete(T), True)),
        ("EXPLAIN (ANALYZE, FORMAT 'JSON') FROM t", Explain(Query(F("FROM t")), True, "json")),
        ("EXPLAIN (SELECT 1)", Explain(Query(F("(SELECT 1)")))),
        ("EXPLAIN DROP TABLE t", Explain(DropObject("table", T))),
    ],
)  # fmt: skip
def test_control(text: str, statement: object) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("FORK CATALOG a AS b", ForkCatalog("a", "b")),
        ("FORK CATALOG IF NOT EXISTS a AS 'agent-1'", ForkCatalog("a", "agent-1", if_not_exists=True)),
        ("FORK CATALOG a AS b IF NOT EXISTS", ForkCatalog("a", "b", if_not_exists=True)),
        (
            "fork catalog a as b at (version => 3) ttl '7 days'",
            ForkCatalog("a", "b", ("version", F("3")), "7 days"),
        ),
        (
            "FORK CATALOG a AS b TTL $1 AT (TIMESTAMP => now() - INTERVAL '1 day')",
            ForkCatalog("a", "b", ("timestamp", F("now() - INTERVAL '1 day'")), F("$1")),
        ),
        ("MERGE CATALOG b", MergeCatalog("b", None)),
        ("MERGE CATALOG b INTO a", MergeCatalog("b", "a")),
        (
            "MERGE CATALOG b INTO a DRY RUN PREFER SOURCE TABLES (t, s.u)",
            MergeCatalog("b", "a", "source", (T, of("s", "u")), True),
        ),
        ("MERGE CATALOG b INTO a PREFER TARGET", MergeCatalog("b", "a", "target")),
    ],
)
def test_catalogs(text: str, statement: object) -> None:
    assert read(text) == statement


def test_prepared_statements_keep_their_parameters_for_themselves() -> None:
    (parsed,) = parse("PREPARE p AS DELETE FROM t WHERE a = ? AND b = ?")
    assert parsed.parameters == frozenset()
    statement = parsed.statement
    assert isinstance(statement, Prepare)
    assert statement.name == "p"
    assert isinstance(statement.prepared, Parsed)
    assert statement.prepared.parameters == {"1", "2"}
    assert statement.prepared.text == "DELETE FROM t WHERE a = ? AND b = ?"
    assert statement.prepared.statement.where == F("a = $1 AND b = $2", 33)  # type: ignore
