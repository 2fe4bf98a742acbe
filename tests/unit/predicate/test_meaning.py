"""What a predicate means, and what it may not hold."""

from __future__ import annotations

import math
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from uuid import UUID

import pytest

from forklake.errors import InvalidPredicate
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
    parse_expression,
    parse_predicate,
    ranges,
    starts_with,
)
from tests.unit.predicate.columns import BY_NAME, COLUMNS, key, tree


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
    with pytest.raises(InvalidPredicate, match="is a string"):
        parse_predicate(7, COLUMNS)  # pyright: ignore[reportArgumentType]


def test_a_predicate_that_is_nested_too_deep_is_refused():
    depth = sys.getrecursionlimit()
    with pytest.raises(InvalidPredicate, match="nested too deep"):
        parse_predicate("NOT (" * depth + "flag" + ")" * depth, COLUMNS)


def test_a_long_chain_of_conditions_is_not_deep():
    found = tree(" OR ".join(f"id = {n}" for n in range(3000)))
    assert isinstance(found, Or) and len(found.nodes) == 3000


def test_nodes_can_be_built_without_text():
    id, name, payload = BY_NAME["id"], BY_NAME["Name"], BY_NAME["j"]
    assert all_of((compare(id, "=", 1), starts_with(name, "a"))) == tree("id = 1 and name like 'a%'")
    assert any_of((is_in(id, [2, 1, None]), compare(id, ">", 5))) == tree("id in (1, 2, null) or id > 5")
    assert compare(payload, "=", "1") == is_in(payload, ["1"]) == starts_with(id, "a") == Opaque()
    assert (is_in(id, []), all_of(()), any_of(())) == (Always(False), Always(True), Always(False))
    assert conjuncts(tree("id = 1 and (i = 2 and flag)")) == (tree("id = 1"), tree("i = 2"), tree("flag"))
    assert columns_of(tree("id = 1 and abs(f) = 2 or not s.a = 1")) == {id.id, BY_NAME["A"].id}


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
    with pytest.raises(InvalidPredicate, match=r"given as a string: .* not as int"):
        parse_expression(7, COLUMNS)  # pyright: ignore[reportArgumentType]
