"""INSERT, UPDATE, DELETE, MERGE INTO and COPY: from their text to what they say."""

# ruff: noqa: E501 - a statement and what it says stand side by side.

from __future__ import annotations

import pytest

from forklake.sql.parser.parse import parse
from forklake.sql.statements import (
    Assignment,
    CopyFrom,
    CopyTo,
    Delete,
    Insert,
    Merge,
    Truncate,
    Update,
    When,
)
from tests.unit.sql.reading import F, T, of, read


def to(name: str, value: str | None) -> Assignment:
    return Assignment(tuple(name.split(".")), None if value is None else F(value))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", Insert(T, F("VALUES (1, 'a'), (2, 'b')"))),
        ("INSERT INTO t (a, \"B b\") VALUES (1, 2);", Insert(T, F("VALUES (1, 2)"), ("a", "B b"))),
        ("INSERT INTO s.t AS x (a) FROM u RETURNING x.a, rowid", Insert(of("s", "t"), F("FROM u"), ("a",), alias="x", returning=F("x.a, rowid"))),
        ("INSERT INTO t BY NAME SELECT 1 AS a", Insert(T, F("SELECT 1 AS a"), by_name=True)),
        ("INSERT INTO t BY POSITION (a) SELECT 1", Insert(T, F("SELECT 1"), ("a",))),
        ("INSERT INTO t DEFAULT VALUES RETURNING *", Insert(T, None, returning=F("*"))),
        ("INSERT INTO t (SELECT 1)", Insert(T, F("(SELECT 1)"))),
        ("INSERT INTO t (VALUES (1))", Insert(T, F("(VALUES (1))"))),
        ("INSERT INTO t (values) VALUES (1)", Insert(T, F("VALUES (1)"), ("values",))),
        ("INSERT INTO t (a) (FROM u)", Insert(T, F("(FROM u)"), ("a",))),
        ("INSERT INTO t ((SELECT 1) UNION ALL FROM u)", Insert(T, F("((SELECT 1) UNION ALL FROM u)"))),
        ("INSERT INTO t TABLE u", Insert(T, F("TABLE u"))),
        ("INSERT INTO t WITH a AS (SELECT 1) FROM a", Insert(T, F("WITH a AS (SELECT 1) FROM a"))),
        ("INSERT INTO t FROM a JOIN b ON conflict = 1", Insert(T, F("FROM a JOIN b ON conflict = 1"))),
        ("INSERT INTO t SELECT 1 AS returning, u.returning FROM u", Insert(T, F("SELECT 1 AS returning, u.returning FROM u"))),
        ("INSERT INTO t SELECT 1. RETURNING a", Insert(T, F("SELECT 1."), returning=F("a"))),
        ("WITH a AS (SELECT 1) INSERT INTO t FROM a", Insert(T, F("WITH a AS (SELECT 1)               FROM a"))),
        (
            "WITH a AS (SELECT 1) INSERT INTO t WITH b AS (FROM a) FROM b",
            Insert(T, F("WITH a AS (SELECT 1)               ,    b AS (FROM a) FROM b")),
        ),
        (
            "WITH a AS (SELECT 1) INSERT INTO t WITH RECURSIVE b AS (FROM a) FROM b",
            Insert(T, F("WITH RECURSIVE a AS (SELECT 1)               ,              b AS (FROM a) FROM b")),
        ),
        (
            "WITH RECURSIVE insert(x) AS NOT MATERIALIZED (SELECT 1), b AS (FROM insert) INSERT INTO t FROM b",
            Insert(T, F("WITH RECURSIVE insert(x) AS NOT MATERIALIZED (SELECT 1), b AS (FROM insert)               FROM b")),
        ),
    ],
)  # fmt: skip
def test_insert(text: str, statement: object) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("VALUES (1, DEFAULT), (default, 2)", [1, 0]),
        ("VALUES ((1), [2, 3], 'DEFAULT', /* DEFAULT, */ DEFAULT)", [3]),
        ("VALUES (t.default, 1), -- DEFAULT\n (1, Default)", [1]),
        ("VALUES ({'default': 1}, $$DEFAULT$$, E'\\', DEFAULT')", []),
        ("VALUES (/* a /* b */ , */ 1, DEFAULT)", [1]),
        ("SELECT 1 AS default", []),
        ("VALUES (1) UNION ALL SELECT x.default FROM x", []),
    ],
)
def test_default_is_found_in_rows_of_values(text: str, columns: list[int]) -> None:
    (parsed,) = parse(f"INSERT INTO t {text}")
    statement = parsed.statement
    assert isinstance(statement, Insert)
    assert statement.query is not None
    found = statement.default_places
    assert [column for _, _, column in found] == columns
    assert {statement.query.text[start:end].upper() for start, end, _ in found} <= {"DEFAULT"}


def test_default_is_found_after_a_with_before_insert() -> None:
    (parsed,) = parse("WITH a AS (SELECT 1) INSERT INTO t VALUES (1, DEFAULT)")
    statement = parsed.statement
    assert isinstance(statement, Insert)
    assert statement.query is not None
    ((start, end, column),) = statement.default_places
    assert (statement.query.text[start:end], column) == ("DEFAULT", 1)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("UPDATE t SET a = 1", Update(T, (to("a", "1"),))),
        ("UPDATE t SET a = 1, b = DEFAULT,", Update(T, (to("a", "1"), to("b", None)))),
        ("UPDATE t AS x SET a = b WHERE x.a > 1 RETURNING *", Update(T, (to("a", "b"),), "x", where=F("x.a > 1"), returning=F("*"))),
        ("UPDATE t x SET a = s.b FROM s, u JOIN v USING (a) WHERE x.a = s.a", Update(T, (to("a", "s.b"),), "x", F("s, u JOIN v USING (a)"), F("x.a = s.a"))),
        ("UPDATE set SET a = 1", Update(of("set"), (to("a", "1"),))),
        ("UPDATE t AS set SET a = 1", Update(T, (to("a", "1"),), "set")),
        ("UPDATE ONLY t SET a = 1", Update(T, (to("a", "1"),))),
        ("UPDATE t SET s.f = 1, t.a = 2", Update(T, (to("s.f", "1"), to("t.a", "2")))),
        ("UPDATE t SET (a, b) = (1, DEFAULT)", Update(T, (to("a", "1"), to("b", None)))),
        ("UPDATE t SET (a, b) = ROW(c, (2)), d = 3", Update(T, (to("a", "c"), to("b", "(2)"), to("d", "3")))),
        ("UPDATE t SET (a, b) = 7", Update(T, (to("a", "7"), to("b", "7")))),
        ("UPDATE t SET (a) = (7)", Update(T, (to("a", "7"),))),
        ("UPDATE t SET (a) = (1) + 2", Update(T, (to("a", "(1) + 2"),))),
        ("UPDATE t SET (a) = (SELECT max(x) FROM u)", Update(T, (to("a", "(SELECT max(x) FROM u)"),))),
        ("UPDATE t SET a = b IS DISTINCT FROM c FROM s", Update(T, (to("a", "b IS DISTINCT FROM c"),), source=F("s"))),
        ("UPDATE t SET a = (SELECT x FROM y WHERE z), b = s.where WHERE c", Update(T, (to("a", "(SELECT x FROM y WHERE z)"), to("b", "s.where")), where=F("c"))),
        ("UPDATE t SET a = default_value", Update(T, (to("a", "default_value"),))),
        ("UPDATE t SET a = CASE WHEN b THEN c ELSE d END, e = [x FOR x IN l IF x > 1]", Update(T, (to("a", "CASE WHEN b THEN c ELSE d END"), to("e", "[x FOR x IN l IF x > 1]")))),
        ("WITH q AS (SELECT 1) UPDATE t SET a = 1 FROM q", Update(T, (to("a", "1"),), source=F("q"), with_=F("WITH q AS (SELECT 1)"))),
        ("DELETE FROM t", Delete(T)),
        ("DELETE FROM t AS x USING s, u WHERE x.a = s.a RETURNING a", Delete(T, "x", F("s, u"), F("x.a = s.a"), returning=F("a"))),
        ("DELETE FROM t x WHERE a IN (FROM s)", Delete(T, "x", where=F("a IN (FROM s)"))),
        ("WITH q AS (SELECT 1) DELETE FROM t USING q", Delete(T, source=F("q"), with_=F("WITH q AS (SELECT 1)"))),
        ("TRUNCATE t", Truncate(T)),
        ("TRUNCATE TABLE shop.sales.t", Truncate(of("shop", "sales", "t"))),
    ],
)  # fmt: skip
def test_update_and_delete(text: str, statement: object) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("MATCHED THEN UPDATE", When("matched", "update")),
        ("MATCHED THEN UPDATE SET *", When("matched", "update")),
        ("MATCHED THEN UPDATE BY POSITION", When("matched", "update")),
        ("MATCHED THEN UPDATE BY NAME", When("matched", "update", by_name=True)),
        ("MATCHED THEN UPDATE SET a = s.a, b = DEFAULT", When("matched", "update", assignments=(to("a", "s.a"), to("b", None)))),
        ("MATCHED AND s.x THEN DELETE", When("matched", "delete", F("s.x"))),
        ("MATCHED AND CASE WHEN a THEN b END THEN DO NOTHING", When("matched", "nothing", F("CASE WHEN a THEN b END"))),
        ("MATCHED THEN ERROR", When("matched", "error")),
        ("MATCHED THEN ERROR 'no ' || t.id", When("matched", "error", message=F("'no ' || t.id"))),
        ("NOT MATCHED THEN INSERT", When("not matched", "insert")),
        ("NOT MATCHED BY TARGET THEN INSERT *", When("not matched", "insert")),
        ("NOT MATCHED THEN INSERT BY NAME *", When("not matched", "insert", by_name=True)),
        ("NOT MATCHED AND s.a > 1 THEN INSERT (a, b) VALUES (s.a, DEFAULT)", When("not matched", "insert", F("s.a > 1"), columns=("a", "b"), values=(F("s.a"), None))),
        ("NOT MATCHED THEN INSERT VALUES (s.a, (1, 2),)", When("not matched", "insert", values=(F("s.a"), F("(1, 2)")))),
        ("NOT MATCHED THEN INSERT DEFAULT VALUES", When("not matched", "insert", default_values=True)),
        ("NOT MATCHED BY SOURCE THEN DELETE", When("not matched by source", "delete")),
        ("NOT MATCHED BY SOURCE AND t.a THEN UPDATE SET a = CASE WHEN 1 THEN 2 END", When("not matched by source", "update", F("t.a"), (to("a", "CASE WHEN 1 THEN 2 END"),))),
    ],
)  # fmt: skip
def test_clauses_of_merge(text: str, clause: When) -> None:
    statement = Merge(T, F("s"), F("t.id = s.id"), (clause,))
    assert read(f"MERGE INTO t USING s ON t.id = s.id WHEN {text}") == statement
    more = When("matched", "delete", F("t.b"))
    twice = Merge(T, F("s"), F("t.id = s.id"), (clause, more), returning=F("*"))
    assert (
        read(f"MERGE INTO t USING s ON t.id = s.id WHEN {text} WHEN MATCHED AND t.b THEN DELETE RETURNING *")
        == twice
    )


DELETES = (When("matched", "delete"),)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("INTO t AS x USING s AS y USING (a, b)", Merge(T, F("s AS y"), None, DELETES, "x", ("a", "b"))),
        ("INTO t x USING (SELECT 1 AS a) AS s ON (x.a = s.a)", Merge(T, F("(SELECT 1 AS a) AS s"), F("(x.a = s.a)"), DELETES, "x")),
        ("INTO t USING s JOIN u USING (a) ON true", Merge(T, F("s JOIN u USING (a)"), F("true"), DELETES)),
        ("INTO t USING s LEFT JOIN u ON s.a = u.a USING (b,)", Merge(T, F("s LEFT JOIN u ON s.a = u.a"), None, DELETES, using=("b",))),
        ("INTO t USING 'x.parquet' AS s ON a = CASE WHEN b THEN c END", Merge(T, F("'x.parquet' AS s"), F("a = CASE WHEN b THEN c END"), DELETES)),
        ("INTO t USING s AT (VERSION => 3) USING (a)", Merge(T, F("s AT (VERSION => 3)"), None, DELETES, using=("a",))),
    ],
)  # fmt: skip
def test_what_merge_joins(text: str, statement: Merge) -> None:
    assert read(f"MERGE {text} WHEN MATCHED THEN DELETE") == statement


def test_merge_with_names_before_it() -> None:
    statement = read("WITH s AS (SELECT 1 AS a) MERGE INTO t USING s USING (a) WHEN MATCHED THEN DELETE")
    assert statement == Merge(T, F("s"), None, DELETES, using=("a",), with_=F("WITH s AS (SELECT 1 AS a)"))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("COPY t TO 'f.csv'", CopyTo(F("FROM t"), "f.csv")),
        ('COPY s."T" (a, "b") TO \'f\' (FORMAT csv, HEADER)', CopyTo(F('SELECT a, "b"\nFROM s."T"'), "f", F("FORMAT csv, HEADER"))),
        ("COPY (SELECT 1) TO 'f' WITH (FORMAT parquet);", CopyTo(F("SELECT 1"), "f", F("FORMAT parquet"))),
        ("COPY ((FROM t)) TO $$it's$$", CopyTo(F("(FROM t)"), "it's")),
        ("COPY t TO $1 (FORMAT $2)", CopyTo(F("FROM t"), F("$1"), F("FORMAT $2"))),
        ("COPY t TO ('a' || 'b')", CopyTo(F("FROM t"), F("('a' || 'b')"))),
        ("COPY t FROM 'f' (AUTO_DETECT true)", CopyFrom(T, "f", options=F("AUTO_DETECT true"))),
        ("COPY t (a, b) FROM 'f'", CopyFrom(T, "f", ("a", "b"))),
        ("COPY t TO out.csv", CopyTo(F("FROM t"), "out.csv")),
        (
            "COPY t FROM 'f' WITH CSV HEADER DELIMITER AS ';' NULL 'x' FORCE QUOTE (a)",
            CopyFrom(T, "f", options=F("FORMAT csv, HEADER true, DELIMITER ';', NULLSTR 'x', FORCE_QUOTE (a)")),
        ),
    ],
)  # fmt: skip
def test_copy(text: str, statement: object) -> None:
    assert read(text) == statement
