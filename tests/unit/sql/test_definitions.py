"""CREATE, DROP, ALTER and COMMENT: from their text to what they say."""

# ruff: noqa: E501 - a statement and what it says stand side by side.

from __future__ import annotations

import pytest

from forklake.sql.statements import (
    AddColumn,
    Alter,
    AlterColumnType,
    Comment,
    CreateIndex,
    CreateMacro,
    CreateSchema,
    CreateTable,
    CreateView,
    DropCatalog,
    DropColumn,
    DropObject,
    MacroOverload,
    RenameColumn,
    RenameObject,
    SetDefault,
    SetNullable,
    SetOptions,
    SetPartitioning,
    SetSortOrder,
)
from tests.unit.sql.reading import F, T, of, read


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE TABLE t (id BIGINT, n INT)", CreateTable(T, columns=F("id BIGINT, n INT"))),
        ("CREATE TABLE t (id BIGINT,)", CreateTable(T, columns=F("id BIGINT"))),
        ('create table "T T"."a""b" (id int)', CreateTable(of("T T", 'a"b'), columns=F("id int"))),
        ("CREATE TABLE shop.sales.t (id INT)", CreateTable(of("shop", "sales", "t"), columns=F("id INT"))),
        ("CREATE OR REPLACE TABLE t (a INT)", CreateTable(T, columns=F("a INT"), or_replace=True)),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", CreateTable(T, columns=F("a INT"), if_not_exists=True)),
        (
            "CREATE TABLE t (a STRUCT(b INT, c DECIMAL(10, 2)) NOT NULL DEFAULT {'b': 1, 'c': 2}, l INT[])",
            CreateTable(
                T, columns=F("a STRUCT(b INT, c DECIMAL(10, 2)) NOT NULL DEFAULT {'b': 1, 'c': 2}, l INT[]")
            ),
        ),
        (
            "CREATE TABLE t (a INT, ts TIMESTAMP) PARTITIONED BY (year(ts), bucket(3, a)) SORTED BY (a DESC, ts)",
            CreateTable(
                T,
                columns=F("a INT, ts TIMESTAMP"),
                partitioned_by=("year(ts)", "bucket(3, a)"),
                sorted_by=("a DESC", "ts"),
            ),
        ),
        (
            "CREATE TABLE t (a INT) SORTED BY (lower(a) NULLS LAST) PARTITIONED BY (a)",
            CreateTable(T, columns=F("a INT"), partitioned_by=("a",), sorted_by=("lower(a) NULLS LAST",)),
        ),
        (
            "CREATE TABLE t (a INT) WITH (compression = 'zstd', rows = 10, fast, x.y = true)",
            CreateTable(
                T,
                columns=F("a INT"),
                options=(("compression", "zstd"), ("rows", 10), ("fast", True), ("x.y", True)),
            ),
        ),
        ("CREATE TABLE t AS SELECT 1 AS a", CreateTable(T, query=F("SELECT 1 AS a"))),
        ("CREATE TABLE t AS FROM s", CreateTable(T, query=F("FROM s"))),
        ("CREATE TABLE t AS (SELECT 1) UNION SELECT 2", CreateTable(T, query=F("(SELECT 1) UNION SELECT 2"))),
        ("CREATE TABLE t AS VALUES (1)", CreateTable(T, query=F("VALUES (1)"))),
        ("CREATE TABLE t AS WITH data AS (FROM s) FROM data", CreateTable(T, query=F("WITH data AS (FROM s) FROM data"))),
        ("CREATE TABLE t AS FROM s WITH DATA", CreateTable(T, query=F("FROM s"))),
        ("CREATE TABLE t AS FROM s\nwith /* no */ no -- data\ndata", CreateTable(T, query=F("FROM s"), with_data=False)),
        ("CREATE TABLE t AS SELECT s.with data FROM s", CreateTable(T, query=F("SELECT s.with data FROM s"))),
        ("CREATE TABLE t AS SELECT s.with data", CreateTable(T, query=F("SELECT s.with data"))),
        ("CREATE TABLE t (a, b) AS VALUES (1, 2)", CreateTable(T, names=("a", "b"), query=F("VALUES (1, 2)"))),
        (
            "CREATE TABLE t (a) PARTITIONED BY (a) AS SELECT 1",
            CreateTable(T, names=("a",), query=F("SELECT 1"), partitioned_by=("a",)),
        ),
        (
            "CREATE TABLE t PARTITIONED BY (a) SORTED BY (b) WITH (x = 1.5) AS FROM s",
            CreateTable(T, query=F("FROM s"), partitioned_by=("a",), sorted_by=("b",), options=(("x", 1.5),)),
        ),
        ("CREATE TABLE t (LIKE s)", CreateTable(T, like=of("s"))),
        ("CREATE TABLE t LIKE sales.s PARTITIONED BY (a)", CreateTable(T, like=of("sales", "s"), partitioned_by=("a",))),
        ("CREATE SCHEMA s", CreateSchema(of("s"))),
        ("CREATE SCHEMA IF NOT EXISTS shop.s", CreateSchema(of("shop", "s"), True)),
        ("CREATE VIEW v AS FROM t", CreateView(of("v"), F("FROM t"))),
        ("CREATE OR REPLACE VIEW v (a, b) AS FROM t", CreateView(of("v"), F("FROM t"), ("a", "b"), True)),
        ("CREATE VIEW IF NOT EXISTS v AS (FROM t)", CreateView(of("v"), F("(FROM t)"), if_not_exists=True)),
    ],
)  # fmt: skip
def test_what_create_says(text: str, statement: object) -> None:
    assert read(text) == statement


def overload(
    body: str, *parameters: tuple[str, str | None, str | None], table: bool = False
) -> MacroOverload:
    return MacroOverload(parameters, F(body), table)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE MACRO m() AS 1", CreateMacro(of("m"), (overload("1"),))),
        (
            "CREATE OR REPLACE FUNCTION s.m(a, b := 5) AS a + b",
            CreateMacro(of("s", "m"), (overload("a + b", ("a", None, None), ("b", None, "5")),), True),
        ),
        (
            "CREATE MACRO IF NOT EXISTS m(a DECIMAL(10, 2), b INT[] := [1, 2], c TIMESTAMP WITH TIME ZONE := now()) AS a",
            CreateMacro(
                of("m"),
                (
                    overload(
                        "a",
                        ("a", "DECIMAL(10, 2)", None),
                        ("b", "INT[]", "[1, 2]"),
                        ("c", "TIMESTAMP WITH TIME ZONE", "now()"),
                    ),
                ),
                if_not_exists=True,
            ),
        ),
        (
            "CREATE MACRO m(a) AS (SELECT max(x), 1 FROM a), (a, b) AS a -- two\n + b",
            CreateMacro(
                of("m"),
                (
                    overload("(SELECT max(x), 1 FROM a)", ("a", None, None)),
                    overload("a -- two\n + b", ("a", None, None), ("b", None, None)),
                ),
            ),
        ),
        (
            "CREATE MACRO m(a) AS TABLE SELECT a AS x, 2 FROM t, u",
            CreateMacro(of("m"), (overload("SELECT a AS x, 2 FROM t, u", ("a", None, None), table=True),)),
        ),
        (
            "CREATE MACRO m() AS TABLE (SELECT 1, 2), (a,) AS TABLE FROM t, (SELECT 1) AS u",
            CreateMacro(
                of("m"),
                (
                    overload("(SELECT 1, 2)", table=True),
                    overload("FROM t, (SELECT 1) AS u", ("a", None, None), table=True),
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_macros(text: str, statement: object) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP TABLE t", DropObject("table", T)),
        ("DROP TABLE IF EXISTS a.b.t CASCADE", DropObject("table", of("a", "b", "t"), True, True)),
        ("DROP VIEW v RESTRICT", DropObject("view", of("v"))),
        ("DROP SCHEMA s CASCADE", DropObject("schema", of("s"), cascade=True)),
        ("DROP MACRO m", DropObject("macro", of("m"))),
        ("DROP FUNCTION m", DropObject("macro", of("m"))),
        ("DROP MACRO TABLE IF EXISTS m", DropObject("macro table", of("m"), True)),
        ("DROP INDEX s.i", DropObject("index", of("s", "i"))),
        ("DROP INDEX IF EXISTS i ON s.t", DropObject("index", of("i"), True, table=of("s", "t"))),
        ("DROP CATALOG a", DropCatalog("a")),
        ("DROP CATALOG IF EXISTS 'agent-1'", DropCatalog("agent-1", True)),
        ('DROP TABLE "if"', DropObject("table", of("if"))),
        ("DROP TABLE if", DropObject("table", of("if"))),
        (
            "CREATE UNIQUE INDEX IF NOT EXISTS i ON s.t USING Hash (a, s.f) INCLUDE (b) WITH (m = 16)",
            CreateIndex("i", of("s", "t"), "hash", (("a",), ("s", "f")), (("b",),), (("m", 16),), True, True),
        ),
        ("CREATE INDEX i ON t (a)", CreateIndex("i", T, None, (("a",),))),
    ],
)
def test_drop_and_indexes(text: str, statement: object) -> None:
    assert read(text) == statement


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("ADD COLUMN a INT", AddColumn(("a",), F("INT"))),
        ("ADD a INT DEFAULT 1 + 2", AddColumn(("a",), F("INT DEFAULT 1 + 2"))),
        ("ADD COLUMN IF NOT EXISTS s.f INT", AddColumn(("s", "f"), F("INT"), True)),
        ("ADD if INT", AddColumn(("if",), F("INT"))),
        ("ADD COLUMN l.element.x STRUCT(a INT, b INT)", AddColumn(("l", "element", "x"), F("STRUCT(a INT, b INT)"))),
        ("DROP COLUMN a", DropColumn(("a",))),
        ("DROP a CASCADE", DropColumn(("a",), cascade=True)),
        ("DROP COLUMN IF EXISTS s.f", DropColumn(("s", "f"), True)),
        ("RENAME COLUMN a TO b", RenameColumn(("a",), "b")),
        ("RENAME s.f TO g", RenameColumn(("s", "f"), "g")),
        ("RENAME TO u", RenameObject(of("u"))),
        ("ALTER a TYPE BIGINT", AlterColumnType(("a",), F("BIGINT"))),
        ("ALTER COLUMN s.f SET DATA TYPE DECIMAL(10, 2)", AlterColumnType(("s", "f"), F("DECIMAL(10, 2)"))),
        ("ALTER type SET TYPE INT USING type + 1", AlterColumnType(("type",), F("INT"), F("type + 1"))),
        ("ALTER a SET DEFAULT now()", SetDefault(("a",), F("now()"))),
        ("ALTER a DROP DEFAULT", SetDefault(("a",), None)),
        ("ALTER a SET NOT NULL", SetNullable(("a",), False)),
        ("ALTER a DROP NOT NULL", SetNullable(("a",), True)),
        ("SET PARTITIONED BY (a, year(b) /* yes */)", SetPartitioning(("a", "year(b)"))),
        ("RESET PARTITIONED BY", SetPartitioning(())),
        ("SET SORTED BY (a DESC NULLS FIRST, b + 1)", SetSortOrder(("a DESC NULLS FIRST", "b + 1"))),
        ("RESET SORTED BY", SetSortOrder(())),
        ("SET (a = -1, b = 'x', c = NULL)", SetOptions((("a", -1), ("b", "x"), ("c", None)))),
        ("RESET (a, b)", SetOptions((("a", None), ("b", None)))),
    ],
)  # fmt: skip
def test_alter_table(text: str, action: object) -> None:
    assert read(f"ALTER TABLE t {text}") == Alter("table", T, action)  # pyright: ignore
    assert read(f"alter table if exists x.t {text};") == Alter("table", of("x", "t"), action, True)  # pyright: ignore


def test_alter_view_and_schema() -> None:
    assert read("ALTER VIEW v RENAME TO w") == Alter("view", of("v"), RenameObject(of("w")))
    assert read("ALTER VIEW IF EXISTS s.v RENAME TO w") == Alter(
        "view", of("s", "v"), RenameObject(of("w")), True
    )
    assert read("ALTER SCHEMA s RENAME TO x") == Alter("schema", of("s"), RenameObject(of("x")))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("COMMENT ON TABLE s.t IS 'it''s'", Comment("table", of("s", "t"), "it's")),
        ("COMMENT ON VIEW v IS NULL", Comment("view", of("v"), None)),
        ("COMMENT ON COLUMN t.a IS $$x$$", Comment("column", T, "x", ("a",))),
        ('COMMENT ON COLUMN c.s.t."A B" IS $tag$ $$ $tag$', Comment("column", of("c", "s", "t"), " $$ ", ("A B",))),
        ("COMMENT ON SCHEMA s IS e'tab\\tnew\\nline\\x41\\u00e9\\101'", Comment("schema", of("s"), "tab\tnew\nlineAéA")),
        ("COMMENT ON MACRO m IS ''", Comment("macro", of("m"), "")),
        ("COMMENT ON FUNCTION m IS 'x'", Comment("macro", of("m"), "x")),
        ("COMMENT ON MACRO TABLE m IS 'x'", Comment("macro table", of("m"), "x")),
    ],
)  # fmt: skip
def test_comments(text: str, statement: object) -> None:
    assert read(text) == statement
