"""Cursors: what they say of a result, the values that they give, and what is wrong with a statement."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from forklake import dbapi


def test_values_come_as_pythons_own_and_columns_have_the_types_of_duckdb(cursor: dbapi.Cursor) -> None:
    cursor.execute(
        "SELECT 1 AS i, 5::HUGEINT AS h, 1.50::DECIMAL(10, 2) AS d, 0.5::DOUBLE AS f, 'x' AS s, true AS b, "
        "'\\x00\\xFF'::BLOB AS y, DATE '2026-01-31' AS da, TIME '12:30:00' AS t, "
        "TIMESTAMP '2026-01-31 12:30:00' AS ts, TIMESTAMPTZ '2026-01-31 12:30:00+00' AS tz, "
        "INTERVAL 36 HOURS AS iv, '12345678-1234-5678-1234-567812345678'::UUID AS u, "
        "'{\"a\": 1}'::JSON AS j, "
        "[1, NULL] AS l, {'a': 1} AS st, MAP {'k': 1} AS m, NULL AS n"
    )
    assert cursor.fetchone() == (
        1, 5, Decimal("1.50"), 0.5, "x", True, b"\x00\xff", date(2026, 1, 31), time(12, 30),
        datetime(2026, 1, 31, 12, 30), datetime(2026, 1, 31, 12, 30, tzinfo=UTC), timedelta(hours=36),
        UUID("12345678-1234-5678-1234-567812345678"), '{"a": 1}', [1, None], {"a": 1}, {"k": 1}, None,
    )  # fmt: skip
    assert cursor.fetchone() is None
    assert cursor.description is not None
    kinds = {name: kind for name, kind, *_ in cursor.description}
    groups = {
        dbapi.NUMBER: "i h d f b",
        dbapi.STRING: "s u j",
        dbapi.BINARY: "y",
        dbapi.DATETIME: "da t ts tz iv",
        dbapi.ROWID: "",
    }
    for group, names in groups.items():
        assert {name for name, kind in kinds.items() if kind == group} >= set(names.split())
    assert (kinds["d"], cursor.description[2][4:6]) == ("DECIMAL(10,2)", (10, 2))
    assert (kinds["l"], kinds["st"], kinds["h"]) == ("INTEGER[]", "STRUCT(a INTEGER)", "HUGEINT")


def test_parameters_are_bound_by_place_and_by_name(cursor: dbapi.Cursor) -> None:
    assert cursor.execute("SELECT ?, ? || 'x'", (1, "?")).fetchall() == [(1, "?x")]
    assert cursor.execute("SELECT $2, $1", ("a", "b")).fetchall() == [("b", "a")]
    values = {"a": 1, "b": "it's"}
    assert cursor.execute("SELECT $a, $b", values).fetchall() == [(1, "it's")]
    text = "SELECT :a::VARCHAR, ':b', :b /* :a */, [1, 2, 3][1:2] -- :b"
    assert cursor.execute(text, values).fetchall() == [("1", ":b", "it's", [1, 2])]
    assert cursor.execute("SELECT ?", [None]).fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("statement", "values"),
    [("SELECT ?", ()), ("SELECT ?", (1, 2)), ("SELECT :a", {"b": 1}), ("SELECT $a", (1,))],
)
def test_too_many_or_too_few_parameters_are_a_mistake(
    statement: str, values: Any, cursor: dbapi.Cursor
) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute(statement, values).fetchall()


def test_rows_are_fetched_in_parts(cursor: dbapi.Cursor) -> None:
    cursor.execute("FROM range(10)")
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(2,), (3,), (4,)]
    assert cursor.fetchmany(2) == [(5,), (6,)]
    assert next(cursor) == (7,)
    assert list(cursor) == [(8,), (9,)]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])


def test_rows_of_a_cursor_are_those_of_its_statement_whatever_others_do(
    connection: dbapi.Connection, cursor: dbapi.Cursor
) -> None:
    cursor.execute("CREATE TABLE t AS FROM range(5) AS r(id)")
    cursor.execute("FROM t ORDER BY id")
    other = connection.cursor()
    other.execute("DELETE FROM t")
    assert other.rowcount == 5
    connection.commit()
    assert cursor.fetchall() == [(number,) for number in range(5)]


def test_changes_have_no_rows_unless_they_return_them(cursor: dbapi.Cursor) -> None:
    cursor.execute("CREATE TABLE t (id INTEGER, note VARCHAR)")
    assert (cursor.description, cursor.rowcount, cursor.lastrowid) == (None, -1, None)
    cursor.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    with pytest.raises(dbapi.ProgrammingError, match="no rows"):
        cursor.fetchall()
    cursor.execute("UPDATE t SET note = 'c' WHERE id = 2")
    assert cursor.rowcount == 1
    cursor.execute("DELETE FROM t WHERE id = 1 RETURNING id, note")
    assert (cursor.rowcount, cursor.fetchall()) == (1, [(1, "a")])
    cursor.execute('SELECT id AS "Count" FROM t')
    assert (cursor.rowcount, cursor.fetchall()) == (-1, [(2,)])


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELEC 1", "ProgrammingError"),
        ("FROM nothing", "ProgrammingError"),
        ("SELECT nothing FROM t", "ProgrammingError"),
        ("CREATE TABLE t (id INTEGER)", "ProgrammingError"),
        ("", "ProgrammingError"),
        ("INSERT INTO t VALUES (NULL, 1)", "IntegrityError"),
        ("INSERT INTO t VALUES (1, 'x')", "DataError"),
        ("SELECT 'x'::INTEGER", "DataError"),
        ("FROM read_csv('/etc/passwd')", "ProgrammingError"),
    ],
)
def test_errors_are_of_the_kind_that_the_standard_has_for_them(
    statement: str, kind: str, cursor: dbapi.Cursor
) -> None:
    cursor.execute("CREATE TABLE t (id INTEGER NOT NULL, number INTEGER)")
    cursor.connection.commit()
    with pytest.raises(dbapi.Error) as refused:
        cursor.execute(statement).fetchall()
    cursor.connection.rollback()
    assert type(refused.value) is getattr(dbapi, kind)
    assert refused.value.__cause__ is not None
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_numbers_that_are_none_come_through(cursor: dbapi.Cursor) -> None:
    cursor.execute("CREATE TABLE t (f DOUBLE)")
    cursor.executemany("INSERT INTO t VALUES (?)", [(math.nan,), (math.inf,), (None,)])
    rows = cursor.execute("SELECT f FROM t ORDER BY f NULLS FIRST").fetchall()
    assert rows[0] == (None,)
    assert rows[1] == (math.inf,)
    assert math.isnan(rows[2][0])
