"""What a predicate means, what it may not hold, and how it decides about files."""

from __future__ import annotations

import math
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from itertools import combinations, combinations_with_replacement, product
from operator import eq, ge, gt, le, lt, ne
from uuid import UUID

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from forklake.errors import InvalidPredicate
from forklake.model.sql.ddl import columns_of as ddl
from forklake.model.sql.predicate import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Opaque,
    Or,
    StartsWith,
    all_of,
    any_of,
    columns_of,
    compare,
    conjuncts,
    is_in,
    is_one_range,
    parse_expression,
    parse_predicate,
    ranges,
    starts_with,
)
from forklake.model.table.columns import build
from forklake.model.table.files import ColumnStats, FileFacts
from forklake.model.types import data_types as types
from forklake.model.types.sort_keys import HIGHEST, LOWEST, key_of
from forklake.scan.prune import skip_reason

DDL = """
    id BIGINT, i INTEGER, small UTINYINT, huge HUGEINT, f DOUBLE, g FLOAT, price DECIMAL(10,2), Name VARCHAR,
    flag BOOLEAN, d DATE, t TIME, tn TIME_NS, ts TIMESTAMP, sec TIMESTAMP_S, ns TIMESTAMP_NS, tz TIMESTAMPTZ,
    u UUID, b BLOB, j JSON, iv INTERVAL,
    s STRUCT("A" INTEGER, "in" STRUCT(x VARCHAR, inside STRUCT(y INTEGER)[])),
    l INTEGER[], m MAP(VARCHAR, INTEGER), "odd ""name" INTEGER, é INTEGER, vacuum INTEGER,
    deep STRUCT(d1 STRUCT(d2 STRUCT(d3 STRUCT(d4 STRUCT(e INTEGER)))))
"""
COLUMNS = build(ddl(DDL))
BY_NAME = {column.name: column for top in COLUMNS for column in top.walk()}


def tree(text):
    return parse_predicate(text, COLUMNS).tree


def key(name, value):
    return key_of(value, BY_NAME[name].data_type)


@pytest.mark.parametrize(
    ("text", "column", "op", "value"),
    [
        ("id = 7", "id", "=", 7),
        ("ID == 7", "id", "=", 7),
        ("id = '7'", "id", "=", 7),
        ("id = '-7'", "id", "=", -7),
        ("id <> -7", "id", "!=", -7),
        ("7 < id", "id", ">", 7),
        ("7 >= id", "id", "<=", 7),
        ("(id) >= (7)", "id", ">=", 7),
        ("id = 7::TINYINT", "id", "=", 7),
        ("id = 9223372036854775808", "id", "=", 2**63),
        ("id < 7.5", "id", "<", Number("7.5")),
        ("small = -1", "small", "=", -1),
        ("i = 1e3", "i", "=", 1000),
        ("price < 10.5", "price", "<", Number("10.5")),
        ("price = '10.50'", "price", "=", Number("10.5")),
        ("price = 10.555", "price", "=", Number("10.555")),
        ("f = 0.1", "f", "=", 0.1),
        ("f = 'nan'", "f", "=", math.nan),
        ("f > '-Infinity'", "f", ">", -math.inf),
        ("g = 0.1", "g", "=", 0.10000000149011612),
        ("g = 1e-1", "g", "=", 0.1),
        ("name = 'it''s'", "Name", "=", "it's"),
        ("name = $$it's$$", "Name", "=", "it's"),
        ("name like 'abc'", "Name", "=", "abc"),
        ("flag", "flag", "=", True),
        ("flag = false", "flag", "=", False),
        ("flag = 'FALSE'", "flag", "=", False),
        ("d = '2024-02-29'", "d", "=", date(2024, 2, 29)),
        ("d = DATE '2024-02-29'", "d", "=", date(2024, 2, 29)),
        ("d < TIMESTAMP '2024-02-29 10:00:00'", "d", "<", datetime(2024, 2, 29, 10)),
        ("t = '10:00:00.5'", "t", "=", time(10, 0, 0, 500000)),
        ("tn = '00:00:00.000000001'", "tn", "=", 1),
        ("ts > '2024-01-01'", "ts", ">", datetime(2024, 1, 1)),
        ("ts > '2024-01-01T10:00:00.000001'", "ts", ">", datetime(2024, 1, 1, 10, 0, 0, 1)),
        ("ts >= TIMESTAMP '2024-01-01 10:00:00'", "ts", ">=", datetime(2024, 1, 1, 10)),
        ("ts >= DATE '2024-01-01'", "ts", ">=", date(2024, 1, 1)),
        ("ns = '1970-01-01 00:00:00.000000001'", "ns", "=", 1),
        ("tz = '2024-01-01 02:00:00+02'", "tz", "=", datetime(2024, 1, 1, tzinfo=UTC)),
        ("tz = TIMESTAMPTZ '2024-01-01T00:00:00Z'", "tz", "=", datetime(2024, 1, 1, tzinfo=UTC)),
        ("u = '00000000-0000-0000-0000-00000000000A'", "u", "=", UUID(int=10)),
        (r"b = '\xABz'::BLOB", "b", "=", b"\xabz"),
        ("s.a = 1", "A", "=", 1),
        ("(S).A = 1", "A", "=", 1),
        ("deep.d1.d2.d3.d4.e = 4", "e", "=", 4),
        ('"odd ""name" = 1', 'odd "name', "=", 1),
    ],
)  # fmt: skip
def test_a_comparison_knows_its_column_and_value(text, column, op, value):
    found = tree(text)
    assert isinstance(found, Compare)
    assert (found.operand.column_id, found.op, found.key) == (BY_NAME[column].id, op, key(column, value))


@pytest.mark.parametrize(
    "text",
    [
        "id = 1e3", "id = 7::DOUBLE", "i = 7::FLOAT", "id = '7.5'", "id = ' 7'", "id = 'x'", "id = true",
        "price = '10.555'",
        "price = 1e1", "price = 10.555::DECIMAL(10,2)", "f = 9007199254740993", "f = 0.1::DECIMAL(38,37)",
        "g = 16777217",
        "f = 0.12345678901234567", "g = '0.123456789'", "name = 7", "name = 'a'::BLOB", "flag = 1",
        "d = '2024-1-1'",
        "d = '2024-02-30'", "d = '2024-01-01 10:00:00'", "d = 'infinity'", "tz > '2024-01-01'",
        "ts > '2024-01-01 00:00:00+02'",
        "tz > TIMESTAMP '2024-01-01'", "ts > TIMESTAMPTZ '2024-01-01 00:00:00+00'",
        "ts = '2024-01-01 00:00:00.1234567'",
        "sec = '2024-01-01 00:00:00.5'", "ns = TIMESTAMP '2024-01-01'", "j = '1'", "iv = INTERVAL 1 DAY",
        "l = [1]",
        "s = {'a': 1}", "l[1] = 1", "m['a'] = 1", "s['a'] = 1", "abs(id) = 1", "id + 1 = 2", "-id = 1",
        "id = i", "id = 1 + 1",
        "id::INTEGER = 1", "name collate nocase = 'a'", "name ilike 'a%'", "name like '%a'",
        r"name like 'a\%%'", "name ~ 'a'",
        "name like 'a!%' escape '!'", "name glob 'a*'", "id in (1, '2')",
        "id in (1, 2e0)",
        "id between 1 and 2e0", "id between symmetric 2 and 1", "id = any([1, 2])", "id in (i)", "1 = 1",
        "case when flag then true end",
        "id = 1 = flag", "flag = (id = 1)", "id is null = true", "coalesce(id, 1) = 1",
        "try_cast('1' as bigint) = id",
        "id = 99999999999999999999999999999999999999999", "(id, i) = (1, 2)",
        "list_filter(l, x -> x > id) = l", "id = '7'::VARCHAR",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_opaque(text):
    found = tree(text)
    leaves = found.nodes if isinstance(found, And | Or) else (found,)
    assert Opaque() in leaves and not ranges(found)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("id = NULL", "unknown"),
        ("id is null", "null"),
        ("id is not null", "not null"),
        ("id is distinct from null", "not null"),
        ("id is not distinct from null", "null"),
        ("id is not distinct from 1", "= & not null"),
        ("id is distinct from 1", "not (= & not null)"),
        ("flag is true", "= & not null"),
        ("flag is not true", "not (= & not null)"),
        ("id in (2, 1, 1)", "in"),
        ("id in (1, null)", "in | unknown"),
        ("id in (null)", "unknown"),
        ("id not in (1, null)", "not (in | unknown)"),
        ("id between 1 and 2", ">= & <="),
        ("id not between 1 and null", "not (>= & unknown)"),
        ("name like 'ab%'", "starts"),
        ("name not like 'ab%'", "not starts"),
        ("name ^@ 'ab'", "starts"),
        ("starts_with(name, 'ab')", "starts"),
        ("prefix(name, 'ab')", "starts"),
        ("name like 'ab_%'", "starts & opaque"),
        ("not flag", "not ="),
        ("id = 1 and (i = 2 and f = 3)", "= & = & ="),
        ("id = 1 or i = 2 and f = 3", "= | (= & =)"),
        ("not id = 1 and flag", "not = & ="),
        ("true", "true"),
        ("not null", "not unknown"),
    ],
)
def test_a_tree_has_the_logic_of_its_text(text, shape):
    def shown(node, inside=False):
        match node:
            case And(nodes) | Or(nodes):
                sign = " & " if isinstance(node, And) else " | "
                joined = sign.join(shown(child, True) for child in nodes)
                return f"({joined})" if inside else joined
            case Not(child):
                return f"not {shown(child, True)}"
            case Always(value):
                return "unknown" if value is None else str(value).lower()
            case Compare():
                return node.op
            case In():
                return "in"
            case IsNull():
                return "null"
            case StartsWith():
                return "starts"
            case Opaque():
                return "opaque"

    assert shown(tree(text)) == shape


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"), ("  ", "is empty"), ("id =", "cannot be read"), ("id = 1;", "cannot be read"),
        ("id = 1; drop table t", "cannot be read"), ("id = 1) or (1 = 1", "not one condition"),
        ("id = 1) union select (1", "not one condition"), ("id = 1), (id = 2", "not one condition"),
        ("id = 1, id = 2", "not one condition"),
        ("(id = 1", "cannot be read"), ("id = 1)", "cannot be read"), ("id = 1 -- x", "a comment"),
        ("id = 1 /* x */", "a comment"),
        ("id = 1 /* x", "cannot be read"), ("/* x */ id = 1", "a comment"), ("id = /* x */ 1", "a comment"),
        ("-- x\nid = 1", "a comment"),
        ("id in (select 1)", "a query"), ("exists (select 1)", "a query"), ("id = (select 1)", "a query"),
        ("count(*) > 1", "an aggregate|a star"),
        ("sum(id) > 1", "an aggregate"), ("row_number() over () = 1", "a window"), ("id = ?", "a parameter"),
        ("id = $1", "a parameter"),
        ("id = $name", "a parameter"), ("*", "a star"), ("columns(*) = 1", "COLUMNS"),
        ("#1 = 1", "position"), ("unnest(l) = 1", "returns rows"),
        ("id = 1 as x", "an alias"), ("nope = 1", 'no column "nope".*"id"'),
        ("s.nope = 1", 'no column "nope" in "s".*"A"'),
        ("deep.d1.d2.d3.d4.nope = 1", "no column \"nope\""), ("name.upper() = 'A'", r"write upper\(x\)"),
        (r"name = E'\x41'", "plain single quotes"),
        ("name = 'a\0b'", "NUL"), ("name = '\ud800'", "surrogates"), ("tt.id = 1", 'no column "tt"'),
    ],
)  # fmt: skip
def test_what_is_no_condition_on_a_row_is_refused(text, why):
    with pytest.raises(InvalidPredicate, match=why):
        parse_predicate(text, COLUMNS)


def test_a_predicate_is_text():
    with pytest.raises(InvalidPredicate, match="is text"):
        parse_predicate(7, COLUMNS)  # pyright: ignore[reportArgumentType]


def test_a_predicate_that_is_nested_too_deep_is_refused():
    depth = sys.getrecursionlimit()
    with pytest.raises(InvalidPredicate, match="nested too deep"):
        parse_predicate("NOT (" * depth + "flag" + ")" * depth, COLUMNS)


def test_a_long_chain_of_conditions_is_not_deep():
    found = tree(" OR ".join(f"id = {n}" for n in range(3000)))
    assert isinstance(found, Or) and len(found.nodes) == 3000


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


def hull(text, **options):
    return [(low, high, nulls) for _, low, high, nulls in ranges(tree(text), **options)]


def test_a_range_covers_what_a_column_may_be():
    one, five, nine = (key("id", n) for n in (1, 5, 9))
    assert hull("id = 5") == [(five, five, False)]
    assert hull("id in (9, 1, 5)") == hull("id = 1 or id = 9") == [(one, nine, False)]
    assert hull("id between 1 and 9") == hull("not (id < 1 or id > 9)") == [(one, nine, False)]
    assert hull("id > 1 and id < 9 and id >= 5") == [(five, nine, False)]
    assert hull("id < 5") == [(LOWEST, five, False)]
    assert hull("not id <= 5") == [(five, HIGHEST, False)]
    assert hull("name like 'a%'") == [("61", "61~", False)]
    assert hull("(id = 1 and flag) or (id = 9 and i = 2)") == [(one, nine, False)]
    assert hull("id = 1 or false or null") == [(one, one, False)]


NO_RANGE = ["id is null", "id is not null", "id <> 1", "id not in (1)", "id = 1 or i = 2", "false", "true"]
NO_RANGE += ["name not like 'a%'", "name like '%'", "id < 5 or id > 3", "id = 1 or abs(id) = 2"]


@pytest.mark.parametrize("text", NO_RANGE)
def test_what_excludes_no_range_has_none(text):
    assert hull(text) == hull(text, with_nulls=True) == []


def test_ranges_that_want_null_have_to_be_asked_for():
    one = key("id", 1)
    assert hull("id = 1 or id is null") == []
    assert hull("id = 1 or id is null", with_nulls=True) == [(one, one, True)]
    assert hull("(id = 1 or id is null) and id is not null and id < 5") == [(one, one, False)]


def test_the_most_selective_range_comes_first():
    text = "f >= 1 and price between 1 and 2 and name like 'a%' and i = 1 and id in (1, 2)"
    order = [found.column_id for found in ranges(tree(text))]
    assert order[0] == BY_NAME["i"].id
    assert set(order[1:3]) == {BY_NAME["Name"].id, BY_NAME["id"].id}
    assert order[3:] == [BY_NAME["price"].id, BY_NAME["f"].id]


def test_one_closed_range_is_told_from_everything_else():
    assert all(is_one_range(tree(text)) for text in ("id = 1", "id >= 1 and id <= 5", "name ^@ 'a'"))
    others = (
        "id < 1",
        "id in (1, 5)",
        "id = 1 and i = 1",
        "id = 1 or id = 2",
        "id is null",
        "abs(id) = 1",
        "not id = 1",
        "true",
    )
    assert not any(is_one_range(tree(text)) for text in others)


def test_nodes_can_be_built_without_text():
    id, name, payload = BY_NAME["id"], BY_NAME["Name"], BY_NAME["j"]
    assert all_of((compare(id, "=", 1), starts_with(name, "a"))) == tree("id = 1 and name like 'a%'")
    assert any_of((is_in(id, [2, 1, None]), compare(id, ">", 5))) == tree("id in (1, 2, null) or id > 5")
    assert compare(payload, "=", "1") == is_in(payload, ["1"]) == starts_with(id, "a") == Opaque()
    assert (is_in(id, []), all_of(()), any_of(())) == (Always(False), Always(True), Always(False))
    assert conjuncts(tree("id = 1 and (i = 2 and flag)")) == (tree("id = 1"), tree("i = 2"), tree("flag"))
    assert columns_of(tree("id = 1 and abs(f) = 2 or not s.a = 1")) == {id.id, BY_NAME["A"].id}


def facts(rows=10, **stats):
    return FileFacts(
        rows, {BY_NAME[name].id: ColumnStats(BY_NAME[name].id, rows, *known) for name, known in stats.items()}
    )


def known(name, low, high, nulls=0, nan=None):
    return (nulls, None, None, key(name, low), key(name, high), nan)


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ("id = 0", True), ("id = 1", False), ("id = 9", False), ("id = 10", True), ("id < 1", True),
        ("id <= 1", False),
        ("id > 9", True), ("id >= 9", False), ("id in (0, 10)", True), ("id in (0, 5)", False),
        ("id is null", True),
        ("id is not null", False), ("id <> 5", False), ("not id <= 9", True),
        ("not (id >= 1 and id <= 9)", True),
        ("id = 0 or id = 10", True), ("id = 0 or abs(id) = 0", False), ("abs(id) = 0 and id = 0", True),
        ("id = null", True),
        ("not id = null", True), ("id is distinct from 5", False), ("id is not distinct from null", True),
        ("id not in (1, null)", True),
        ("i = 5", True), ("i = 7", False), ("i <> 7", True), ("i not in (1, 7)", True),
        ("i is distinct from 7", False), ("i is null", False),
        ("not (i = 7)", True), ("i = 7 and i is not null", False), ("not (i = 7 or i is null)", True),
        ("f > 9", False), ("f < 1", True), ("g > 9", True), ("g = 'nan'", True), ("f = 'nan'", False),
        ("name like 'b%'", True), ("name like 'ab%'", False), ("name not like 'a%'", True),
        ("name not like 'ab%'", False),
        ("name like 'b_%'", True), ("d = '2024-01-01'", True), ("d is null", False), ("d is not null", True),
        ("price = 1", True), ("price is null", False), ("price is not null", True),
        ("ts = '2024-01-01'", False), ("u is null", False),
        ("false", True), ("true", False), ("null", True), ("flag", True), ("not flag", False),
        ("flag is not true", False),
        ("s.a = 1", True), ("s.a is null", False), ("s.a <> 5", True),
    ],
)  # fmt: skip
def test_a_file_is_skipped_if_its_bounds_and_counts_allow_it(text, skipped):
    file = facts(
        id=known("id", 1, 9),
        i=(3, None, None, key("i", 7), key("i", 7)),
        f=known("f", 1.0, 9.0),
        g=known("g", 1.0, 9.0, nan=False),
        Name=known("Name", "aa", "ac", nulls=2),
        d=(10,),
        price=(None,),
        ts=(3,),
        u=(None, None, None, LOWEST, HIGHEST),
        flag=known("flag", False, False),
        A=known("A", 5, 5, nulls=1),
    )
    assert (skip_reason(tree(text), file) is not None) == skipped


SMALL = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
SMALL_FILES = [rows for size in (1, 2, 3) for rows in combinations_with_replacement((0, 1, 2, None), size)]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("op", SMALL)
def test_comparisons_decide_about_every_small_file_as_its_rows_do(op, negated):
    for asked, rows in product((-1, 0, 1, 2, 3), SMALL_FILES):
        values = [row for row in rows if row is not None]
        found = any(SMALL[op](value, asked) != negated for value in values)
        nulls = len(rows) - len(values)
        bounds = (key("id", min(values)), key("id", max(values))) if values else (None, None)
        file = facts(len(rows), id=(nulls, None, None, *bounds))
        skipped = skip_reason(tree(f"{'not ' * negated}id {op} {asked}"), file) is not None
        assert not (found and skipped), (rows, asked)
        # Only a gap between the bounds is not seen: there, and nowhere else, a file is read in vain.
        in_gap = bool(values) and min(values) < asked < max(values)
        assert found or skipped or in_gap, (rows, asked)


@pytest.mark.parametrize("negated", [False, True])
def test_lists_decide_about_every_small_file_as_its_rows_do(negated):
    for size, rows in product((1, 2, 3), SMALL_FILES):
        for asked in combinations((-1, 0, 1, 2, 3), size):
            values = [row for row in rows if row is not None]
            found = any((value in asked) != negated for value in values)
            bounds = (key("id", min(values)), key("id", max(values))) if values else (None, None)
            file = facts(len(rows), id=(len(rows) - len(values), None, None, *bounds))
            word = "not in" if negated else "in"
            skipped = skip_reason(tree(f"id {word} ({', '.join(map(str, asked))})"), file) is not None
            assert not (found and skipped), (rows, asked)
            assert found or skipped or min(values) < max(values), (rows, asked)


@pytest.mark.parametrize("negated", [False, True])
def test_prefixes_decide_about_every_small_file_as_its_rows_do(negated):
    texts = ("", "a", "aa", "ab", "b", "ba")
    for prefix, low, high in product(texts, texts, texts):
        if low <= high:
            found = any(text.startswith(prefix) != negated for text in (low, high))
            word = "not like" if negated else "like"
            skipped = (
                skip_reason(tree(f"name {word} '{prefix}%'"), facts(Name=known("Name", low, high)))
                is not None
            )
            assert not (found and skipped), (prefix, low, high)
            assert found or skipped or low < prefix < high, (prefix, low, high)


def test_what_a_file_does_not_say_excludes_nothing():
    for text in ("id = 1", "id is null", "id is not null", "not id = 1"):
        assert skip_reason(tree(text), facts()) is None
        assert (
            skip_reason(tree(text), FileFacts(10, {BY_NAME["id"].id: ColumnStats(BY_NAME["id"].id, 0, 0)}))
            is None
        )
    assert skip_reason(tree("true"), facts(rows=0)) == "it holds no rows"


def test_the_reason_names_the_column_and_its_bounds():
    column = BY_NAME["A"].id
    file = FileFacts(1, {column: ColumnStats(column, 1, 0, "10", "20", key("A", 10), key("A", 20))})
    assert skip_reason(tree("s.a = 5"), file) == '"s.A" lies between 10 and 20'
    assert (
        skip_reason(tree("s.a = 5 or s.a is null"), file)
        == '"s.A" lies between 10 and 20 and "s.A" is never NULL'
    )


@pytest.mark.parametrize(
    "text", ["id", "(id)", "s.a", "name", "7", "'x'", "NOT id", "flag AND id", "d OR flag"]
)
def test_what_is_neither_true_nor_false_is_refused(text):
    with pytest.raises(InvalidPredicate, match="no condition"):
        parse_predicate(text, COLUMNS)


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("flag", True), ("NOT (flag)", True), ("TRUE", True), ("NULL", True), ("id = 1", True),
        ("s IS NULL", True), ("name LIKE 'a'", True), ("name ~ 'a'", True), ("contains(name, 'a')", False),
        ("id + 1", False), ("flag::BOOLEAN", False), ("CASE WHEN flag THEN 1 END", False),
    ],
)  # fmt: skip
def test_whether_a_text_is_a_condition_is_known_or_left_to_duckdb(text, certain):
    assert parse_predicate(text, COLUMNS).is_truth == certain


def test_an_expression_is_refused_as_one():
    assert parse_expression("ID + 1", COLUMNS) == '("id" + 1)'
    for text in ("hello", "hello world", "", "id, id", "sum(id)", "(" * 2000 + "id" + ")" * 2000):
        with pytest.raises(InvalidPredicate) as caught:
            parse_expression(text, COLUMNS)
        assert "expression" in str(caught.value)
        assert "predicate" not in str(caught.value)
    with pytest.raises(InvalidPredicate, match="\"'it''s'\""):
        parse_expression("it's", COLUMNS)
    with pytest.raises(InvalidPredicate, match=r"given as text: .* not as int"):
        parse_expression(7, COLUMNS)  # pyright: ignore[reportArgumentType]
