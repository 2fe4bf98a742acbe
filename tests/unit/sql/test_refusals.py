"""What bad SQL is told: where it is wrong, and what to write instead."""

# ruff: noqa: E501 - a statement and what is said of it stand side by side.

from __future__ import annotations

import pickle
import re

import pytest

from forklake import InvalidArgument, InvalidSql
from forklake.sql.parser.parse import parse


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("SELEC 1", 1, 1, 'expected a statement, such as SELECT, found "SELEC"'),
        ("42", 1, 1, 'expected a statement, found "42"'),
        ("CREATE", 1, 7, "expected TABLE, VIEW, MACRO, SCHEMA or INDEX, found the end"),
        ("FROM t;\n\n CREATE TABLE (a INT)", 3, 15, 'expected the name of a table, found "("'),
        ("CREATE TABLE select (a INT)", 1, 14, 'found "select", which is a keyword: as a name it is written "select" with the quotes'),
        ("CREATE TABLE t (a)", 1, 18, 'expected a type, found ")"'),
        ("CREATE TABLE t (a INT NOT NULL", 1, 31, 'expected "," or ")", found the end'),
        ("CREATE TABLE t (a INT]", 1, 22, 'expected "," or ")", found "]"'),
        ("SELECT (a, [b)]", 1, 14, '")" does not close "["'),
        ("SELECT 1) FROM t", 1, 9, 'expected the end of the statement, found ")"'),
        ("CREATE TABLE t AS", 1, 18, "expected a query, found the end"),
        ("CREATE TABLE t AS DELETE FROM u", 1, 19, 'expected a query, found "DELETE"'),
        ("CREATE TABLE a.b.c.d (a INT)", 1, 14, '"a.b.c.d" has 4 parts, and a name has 2 parts or 3 parts here'),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", 1, 25, "OR REPLACE and IF NOT EXISTS exclude each other"),
        ("CREATE MACRO m(a := 1, b) AS a", 1, 24, "a parameter without a default follows one with a default"),
        ("CREATE MACRO m(a) AS a, (b) AS TABLE FROM t", 1, 23, "all expressions, or all queries"),
        ("ALTER TABLE t RENAME a TO b.c", 1, 28, "the new name is that of the field alone"),
        ("ALTER TABLE t MODIFY a INT", 1, 15, 'expected ADD, DROP, RENAME, ALTER, SET or RESET, found "MODIFY"'),
        ("INSERT INTO t (a, b)", 1, 21, "expected VALUES, a query or DEFAULT VALUES, found the end"),
        ("INSERT t VALUES (1)", 1, 8, 'expected INTO, found "t"'),
        ("INSERT INTO t VALUES (1) garbage)", 1, 33, 'expected the end of the statement, found ")"'),
        ("UPDATE t SET a = ", 1, 18, "expected an expression, found the end"),
        ("UPDATE t SET a = WHERE b", 1, 18, 'expected an expression, found "WHERE"'),
        ("UPDATE t SET (a, b) = (1, 2, 3)", 1, 14, "2 columns are set, and there are 3 values"),
        ("DELETE t WHERE a", 1, 8, 'expected FROM, found "t"'),
        ("MERGE INTO t USING s WHEN MATCHED THEN DELETE", 1, 22, 'expected ON or USING, found "WHEN"'),
        ("MERGE INTO t USING s, u ON a WHEN MATCHED THEN DELETE", 1, 21, 'expected ON or USING, found ","'),
        ("MERGE INTO t USING s ON a", 1, 26, "expected WHEN MATCHED or WHEN NOT MATCHED, found the end"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN INSERT", 1, 45, "WHEN MATCHED takes UPDATE, DELETE, DO NOTHING or ERROR, not INSERT"),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED BY SOURCE THEN INSERT", 1, 59, "WHEN NOT MATCHED BY SOURCE takes UPDATE, DELETE"),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", 1, 60, "1 columns are named, and there are 2 values"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", 1, 52, "there is a WHEN MATCHED without a condition already"),
        ("WITH a AS (SELECT 1) CREATE TABLE t AS FROM a", 1, 22, "expected a query, INSERT, UPDATE, DELETE or MERGE INTO"),
        ("COPY t 'f'", 1, 8, "expected TO or FROM, found \"'f'\""),
        ("COMMENT ON TABLE t IS 5", 1, 23, 'expected a string in single quotes or NULL, found "5"'),
        ("COMMENT ON COLUMN a IS 'x'", 1, 19, '"a" is no column: name it as table.column'),
        ("SET schema = 'a,b'", 1, 14, "one schema can be set"),
        ("SET schema = 'a b'", 1, 14, "one schema can be set"),
        ("SET schema = ''", 1, 14, "one schema can be set"),
        ("EXECUTE p()", 1, 10, "the brackets are empty"),
        ("PREPARE p AS CREATE TABLE t (a INT)", 1, 14, "only queries, INSERT, UPDATE, DELETE, MERGE INTO, TRUNCATE and COPY can be prepared"),
        ("FORK CATALOG a", 1, 15, "expected AS, found the end"),
        ("SELECT 'it''s", 1, 8, "this string has no end"),
        ("COMMENT ON TABLE t IS e'x\\'", 1, 23, "expected a string"),
        ('DROP TABLE "t', 1, 12, "this quoted name has no end"),
        ('DROP TABLE ""', 1, 12, "a quoted name is empty"),
        ("SELECT $a$ x", 1, 8, "this string between dollars has no end"),
        ("SELECT 1 /* a /* b */", 1, 10, "this comment has no end"),
        ("/* a", 1, 1, "this comment has no end"),
        ("SELECT 'é😀' )", 1, 13, 'expected the end of the statement, found ")"'),
        ("-- ü\r\nFROM t;\r\n  DROP t", 3, 8, 'expected TABLE, VIEW, MACRO, SCHEMA, INDEX or CATALOG, found "t"'),
        ("a\rb", 1, 1, "expected a statement"),
        ("DROP TABLE\rt u", 2, 3, 'expected the end of the statement, found "u"'),
    ],
)  # fmt: skip
def test_syntax_errors_say_where_and_what(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith(f"syntax error at line {line}, column {column}: ")
    assert said in message
    assert "\n" not in message
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "syntax", "instead"),
    [
        ("ATTACH 'x' AS y", "ATTACH", r"forklake\.connect"),
        ("DETACH x", "DETACH", r"forklake\.connect"),
        ("INSTALL httpfs", "INSTALL", "pip install"),
        ("LOAD httpfs", "LOAD", "pip install"),
        ("EXPORT DATABASE 'x'", "EXPORT DATABASE", "COPY"),
        ("IMPORT DATABASE 'x'", "IMPORT DATABASE", "COPY"),
        ("PRAGMA table_info('t')", "PRAGMA", "DESCRIBE t"),
        ("VACUUM", "VACUUM", "CHECKPOINT"),
        ("ANALYZE t", "ANALYZE", "statistics are kept"),
        ("GRANT SELECT ON t TO x", "GRANT", "database with the metadata"),
        ("SAVEPOINT a", "SAVEPOINT", "FORK CATALOG"),
        ("ROLLBACK TO a", "ROLLBACK TO", "no savepoints"),
        ("REPLACE INTO t VALUES (1)", "REPLACE INTO", "MERGE INTO"),
        ("SET threads = 4", "SET threads", "set_option"),
        ("SET GLOBAL threads TO 4", "SET threads", "set_option"),
        ("RESET threads", "RESET threads", "set_option"),
        ("CREATE TEMP TABLE t (a INT)", "CREATE TEMP", r"WITH … AS"),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS FROM t", "CREATE TEMPORARY", r"WITH … AS"),
        ("CREATE SECRET s (TYPE s3)", "CREATE SECRET", r"forklake\.connect"),
        ("CREATE PERSISTENT SECRET s (TYPE s3)", "CREATE PERSISTENT SECRET", r"forklake\.connect"),
        ("CREATE TYPE e AS ENUM ('a')", "CREATE TYPE", "write the type out"),
        ("CREATE SEQUENCE s", "CREATE SEQUENCE", "row_number"),
        ("CREATE TRIGGER x", "CREATE TRIGGER", "table_changes"),
        ("CREATE RECURSIVE VIEW v(a) AS FROM t", "CREATE RECURSIVE VIEW", "WITH RECURSIVE"),
        ("CREATE CATALOG c", "CREATE CATALOG", "CALL create_catalog"),
        ("DROP SEQUENCE s", "DROP SEQUENCE", "no sequences"),
        ("DROP TABLE a, b", "DROP of several at once", "a DROP for each"),
        ("CREATE TABLE t (a INT PRIMARY KEY)", "PRIMARY KEY", "MERGE INTO"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "PRIMARY KEY", "MERGE INTO"),
        ("CREATE TABLE t (a INT DEFAULT 5 UNIQUE)", "UNIQUE", "MERGE INTO"),
        ("CREATE TABLE t (a INT, UNIQUE (a))", "UNIQUE", "MERGE INTO"),
        ("CREATE TABLE t (a INT CHECK (a > 1))", "CHECK", "NOT NULL"),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b))", "FOREIGN KEY", "leave it out"),
        ("CREATE TABLE t (a INT REFERENCES u (b))", "REFERENCES", "leave it out"),
        ("CREATE TABLE t (a INT, CONSTRAINT x CHECK (a > 1))", "CONSTRAINT", "leave it out"),
        ("CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1))", "GENERATED", "CREATE VIEW"),
        ("CREATE TABLE t (a INT, b INT AS (a + 1))", "a generated column", "CREATE VIEW"),
        ("CREATE TABLE t (a INT, b AS (a + 1))", "a generated column", "CREATE VIEW"),
        ("CREATE TABLE t (a VARCHAR COLLATE nocase)", "COLLATE", "ORDER BY"),
        ("CREATE TABLE t (a INT USING COMPRESSION rle)", "USING COMPRESSION", "WITH"),
        ("CREATE TABLE t (LIKE s INCLUDING ALL)", "LIKE … INCLUDING", "LIKE takes columns"),
        ("ALTER TABLE t ADD COLUMN a INT UNIQUE", "UNIQUE", "MERGE INTO"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "PRIMARY KEY", "MERGE INTO"),
        ("ALTER TABLE t DROP CONSTRAINT x", "DROP CONSTRAINT", "NOT NULL"),
        ("ALTER TABLE t ADD a INT, DROP b", "ALTER TABLE with several changes", "in one transaction"),
        ("ALTER TABLE t ALTER a TYPE VARCHAR COLLATE nocase", "COLLATE", "ORDER BY"),
        ("ALTER TABLE t SET SCHEMA s", "SET SCHEMA", "CREATE TABLE"),
        ("ALTER INDEX i RENAME TO j", "ALTER INDEX", "create it anew"),
        ("COMMENT ON DATABASE d IS 'x'", "COMMENT ON DATABASE", "have comments"),
        ("CREATE INDEX i ON t ((a + 1))", "an index on an expression", "columns"),
        ("CREATE INDEX i ON t (lower(a))", "an index on an expression", "columns"),
        ("CREATE INDEX i ON t (a DESC)", "DESC in an index", "leave it out"),
        ("CREATE INDEX i ON t (a) WHERE a > 1", "CREATE INDEX … WHERE", "all rows"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "INSERT OR REPLACE", "MERGE INTO"),
        ("INSERT OR IGNORE INTO t VALUES (1)", "INSERT OR IGNORE", "MERGE INTO"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT", "MERGE INTO"),
        ("INSERT INTO t FROM u JOIN v ON u.a = v.a ON CONFLICT (a) DO UPDATE SET b = 1", "ON CONFLICT", "MERGE INTO"),
        ("INSERT INTO t (s.f) VALUES (1)", "a field of a column", "as a struct"),
        ("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1)", "OVERRIDING", "leave it out"),
        ("UPDATE t SET a[1] = 2", "SET of an element", "whole list"),
        ("UPDATE t SET (a, b) = (SELECT 1, 2)", "SET (a, b) = (SELECT …)", "FROM"),
        ("UPDATE t SET a = 1 WHERE b ORDER BY c LIMIT 1", "ORDER here", "rowid"),
        ("DELETE FROM t WHERE a LIMIT 5", "LIMIT here", "rowid"),
        ("DELETE FROM t LIMIT 5", "LIMIT here", "rowid"),
        ("TRUNCATE t, u", "TRUNCATE of several tables", "in one transaction"),
        ("COPY t TO STDOUT", "STDOUT", "name a file"),
        ("COPY FROM DATABASE a TO b", "COPY FROM DATABASE", "FORK CATALOG"),
        ("PREPARE p (INT) AS SELECT $1", "types of parameters", "casts"),
        ("EXPLAIN (VERBOSE) FROM t", "EXPLAIN (verbose)", "ANALYZE and FORMAT"),
        ("UPDATE EXTENSIONS", "UPDATE EXTENSIONS", "packages"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named_with_what_to_do_instead(text: str, syntax: str, instead: str) -> None:
    with pytest.raises(InvalidSql, match=instead) as caught:
        parse(f"FROM t;\n{text}")
    assert re.match(rf"{re.escape(syntax)} is not supported \(line 2, column \d+\): ", str(caught.value))
    assert caught.value.line == 2
    assert "\n" not in str(caught.value)


def test_a_long_token_is_cut() -> None:
    with pytest.raises(InvalidSql) as caught:
        parse("DROP TABLE '" + "x" * 10_000 + "' y")
    assert len(str(caught.value)) < 200
    with pytest.raises(InvalidSql) as caught:
        parse("x" * 10_000)
    assert len(str(caught.value)) < 200


def test_the_error_is_an_invalid_argument_and_travels_with_its_place() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse("\n DROP 5")
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert isinstance(error, InvalidSql)
    assert (error.line, error.column, error.token) == (2, 7, "5")
