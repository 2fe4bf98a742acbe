"""One statement for many parameters: one change of the table, and one commit."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import forklake
from forklake import dbapi


@pytest.fixture(autouse=True)
def table(connection: dbapi.Connection) -> None:
    connection.cursor().execute(
        "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR DEFAULT 'none', price DECIMAL(20, 2), "
        "day DATE, made TIMESTAMPTZ)"
    )
    connection.commit()


@pytest.mark.parametrize("autocommit", [False, True])
def test_many_rows_are_one_snapshot(
    autocommit: bool, lake: forklake.Lake, connection: dbapi.Connection, rows_of: Any
) -> None:
    connection.autocommit = autocommit
    before = len(lake.snapshots())
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO t (id, name) VALUES (?, upper(?))", [(at, f"n{at}") for at in range(1000)]
    )
    assert cursor.rowcount == 1000
    connection.commit()
    assert len(lake.snapshots()) == before + 1
    assert rows_of("SELECT count(*), min(name), max(id) FROM t") == [(1000, "N0", 999)]


def test_each_value_is_what_it_would_be_alone(cursor: dbapi.Cursor) -> None:
    rows: list[tuple[Any, ...]] = [
        (1, "a", Decimal("1.50"), date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (2, None, None, None, None),
        # A double beside it would take digits from the first number.
        (2**53 + 1, "b", 2**53 + 1, "2026-02-01", "2026-02-01 00:00:00+00"),
        (4, 7, 0.25, datetime(2026, 2, 2), None),
    ]
    cursor.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    assert cursor.rowcount == 4
    together = cursor.execute("FROM t ORDER BY id").fetchall()
    cursor.execute("DELETE FROM t")
    for row in rows:
        cursor.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", row)
    assert cursor.execute("FROM t ORDER BY id").fetchall() == together
    assert together[-1][0] == 2**53 + 1
    assert together[-1][2] == Decimal(2**53 + 1)


def test_names_constants_and_omitted_columns_work(cursor: dbapi.Cursor) -> None:
    rows = [{"id": 1, "p": Decimal("2.00")}, {"id": 2, "p": None}]
    cursor.executemany("INSERT INTO t (price, id, day) VALUES (:p * 2, :id, DATE '2026-01-31')", rows)
    cursor.executemany("INSERT INTO t (id, name) VALUES ($1 + 10, $1)", [(1,), (2,)])
    assert cursor.execute("SELECT id, name, price, day FROM t ORDER BY id").fetchall() == [
        (1, "none", Decimal("4.00"), date(2026, 1, 31)),
        (2, "none", None, date(2026, 1, 31)),
        (11, "1", None, None),
        (12, "2", None, None),
    ]


def test_what_is_no_plain_insert_is_run_for_each_row(cursor: dbapi.Cursor) -> None:
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, DEFAULT)", [(1,), (2,), (3,)])
    cursor.executemany("INSERT INTO t (id) SELECT ? + 10", [(1,), (2,)])
    cursor.executemany("UPDATE t SET name = ? WHERE id = ?", [("a", 1), ("b", 2), ("c", 99)])
    assert cursor.rowcount == 2
    cursor.executemany("DELETE FROM t WHERE id = ?", [(11,), (12,)])
    assert cursor.rowcount == 2
    assert cursor.execute("SELECT id, name FROM t ORDER BY id").fetchall() == [
        (1, "a"),
        (2, "b"),
        (3, "none"),
    ]
    cursor.executemany("INSERT INTO t (id) VALUES (?)", [])
    assert cursor.rowcount == 0


@pytest.mark.parametrize("autocommit", [False, True])
def test_one_row_that_does_not_fit_refuses_all(
    autocommit: bool, connection: dbapi.Connection, rows_of: Any
) -> None:
    connection.autocommit = autocommit
    cursor = connection.cursor()
    for last, kind in ((None, dbapi.IntegrityError), ("x", dbapi.DataError)):
        with pytest.raises(kind):
            cursor.executemany("INSERT INTO t (id) VALUES (?)", [(1,), (last,)])
        connection.rollback()
    assert rows_of("FROM t") == []
    with pytest.raises(dbapi.ProgrammingError, match="one statement"):
        cursor.executemany("SELECT ?", [(1,)])
    with pytest.raises(dbapi.ProgrammingError, match="one statement"):
        cursor.executemany("DELETE FROM t; DELETE FROM t", [()])
