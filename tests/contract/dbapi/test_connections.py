"""Connections: when a transaction begins and ends, and what is left of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import forklake
from forklake import dbapi


def test_a_transaction_begins_with_the_first_statement_and_is_one_snapshot(
    lake: forklake.Lake, connection: dbapi.Connection, rows_of: Any
) -> None:
    before = len(lake.snapshots())
    cursor = connection.cursor()
    assert not connection.in_transaction
    cursor.execute("CREATE TABLE t (id INTEGER)")
    cursor.execute("INSERT INTO t VALUES (1), (2)")
    assert (connection.in_transaction, cursor.rowcount) == (True, 2)
    assert connection.cursor().execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert rows_of("SELECT table_name FROM information_schema.tables") == []
    connection.commit()
    assert not connection.in_transaction
    assert rows_of("FROM t ORDER BY id") == [(1,), (2,)]
    assert len(lake.snapshots()) == before + 1


def test_rollback_and_close_leave_nothing(connection: dbapi.Connection, rows_of: Any) -> None:
    connection.cursor().execute("CREATE TABLE t (id INTEGER)")
    connection.rollback()
    connection.cursor().execute("CREATE TABLE u (id INTEGER)")
    connection.close()
    assert rows_of("SELECT table_name FROM information_schema.tables") == []


def test_with_commits_or_rolls_back_and_closes(lake: forklake.Lake, connection: Any, rows_of: Any) -> None:
    with dbapi.connect(lake, "shop") as inside:
        inside.cursor().execute("CREATE TABLE kept (id INTEGER)")
    assert inside.closed
    with pytest.raises(ZeroDivisionError), dbapi.connect(lake, "shop") as inside:
        inside.cursor().execute("CREATE TABLE lost (id INTEGER)")
        raise ZeroDivisionError
    assert inside.closed
    assert rows_of("SELECT table_name FROM information_schema.tables") == [("kept",)]


def test_with_autocommit_each_statement_is_committed(
    lake: forklake.Lake, connection: dbapi.Connection, rows_of: Any
) -> None:
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (id INTEGER)")
    cursor.execute("INSERT INTO t VALUES (1)")
    assert rows_of("FROM t") == [(1,)]
    connection.rollback()
    assert rows_of("FROM t") == [(1,)]
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(dbapi.ProgrammingError, match="transaction is open"):
        connection.autocommit = False
    connection.rollback()
    assert rows_of("FROM t") == [(1,)]


def test_begin_and_commit_as_text_mean_the_transaction_of_the_connection(
    connection: dbapi.Connection, rows_of: Any
) -> None:
    cursor = connection.cursor()
    cursor.execute("BEGIN; CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1); COMMIT")
    assert not connection.in_transaction
    cursor.execute("INSERT INTO t VALUES (2)").execute("ROLLBACK")
    assert not connection.in_transaction
    cursor.execute("COMMIT")
    assert rows_of("FROM t") == [(1,)]


def test_begin_read_only_as_text_refuses_changes_until_it_ends(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (id INTEGER)")
    connection.commit()
    for before in ("BEGIN READ ONLY", "FROM t; BEGIN READ ONLY"):
        cursor.execute(before)
        with pytest.raises(dbapi.ProgrammingError, match="only reading"):
            cursor.execute("INSERT INTO t VALUES (1)")
        connection.rollback()
        cursor.execute("INSERT INTO t VALUES (1)")
        connection.rollback()


def test_a_conflict_is_operational_and_ends_the_transaction(
    lake: forklake.Lake, connection: dbapi.Connection
) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (id INTEGER)")
    connection.commit()
    cursor.execute("ALTER TABLE t ADD COLUMN a INTEGER")
    lake.catalog("shop").table("t").add_column("b", "INTEGER")
    with pytest.raises(dbapi.OperationalError) as refused:
        connection.commit()
    assert isinstance(refused.value.__cause__, forklake.CommitConflict)
    assert not connection.in_transaction
    assert [row[0] for row in cursor.execute("DESCRIBE t").fetchall()] == ["id", "b"]


def test_what_is_closed_says_so(connection: dbapi.Connection) -> None:
    cursor, other = connection.cursor(), connection.cursor()
    other.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        other.execute("SELECT 1")
    connection.close()
    for use in (
        connection.commit,
        connection.rollback,
        connection.close,
        connection.cursor,
        connection.__enter__,
        lambda: cursor.execute("SELECT 1"),
        cursor.fetchone,
    ):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            use()


def test_connect_makes_a_lake_and_a_catalog_only_if_it_is_asked_to(lake_url: str, tmp_path: Path) -> None:
    with pytest.raises(dbapi.OperationalError, match=r"init|create"):
        dbapi.connect(lake_url, "shop")
    files = tmp_path / "files"
    dbapi.connect(lake_url, "shop", create=True, data_path=files).close()
    dbapi.connect(lake_url, "shop", create=True).close()
    with pytest.raises(dbapi.ProgrammingError, match='"other"'):
        dbapi.connect(lake_url, "other")
    with forklake.connect(lake_url) as lake:
        assert list(lake) == ["shop"]
        dbapi.connect(lake, "shop").close()
        assert list(lake) == ["shop"]


def test_a_connection_to_the_whole_lake_joins_catalogs(lake: forklake.Lake) -> None:
    for name in ("a", "b"):
        lake.create_catalog(name).create_table("t", {"id": [1], "of": [name]}, append=True)
    with dbapi.connect(lake) as connection:
        query = "SELECT x.of, y.of FROM a.main.t AS x JOIN b.main.t AS y USING (id)"
        assert connection.cursor().execute(query).fetchall() == [("a", "b")]
        assert not connection.in_transaction


def test_limits_and_what_is_allowed_hold_for_each_statement(lake: forklake.Lake, tmp_path: Path) -> None:
    lake.create_catalog("shop").create_table("t", {"id": range(10)}, append=True)
    with dbapi.connect(lake, "shop", read_only=True, max_rows=5) as connection:
        cursor = connection.cursor()
        with pytest.raises(dbapi.ProgrammingError, match="only reading"):
            cursor.execute("DELETE FROM t")
        with pytest.raises(dbapi.OperationalError, match="more than 5 rows"):
            cursor.execute("FROM t").fetchall()
        assert len(cursor.execute("FROM t LIMIT 5").fetchall()) == 5
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text("a\n7\n")
    query = f"FROM '{tmp_path}/in/x.csv'"
    with dbapi.connect(lake, "shop", allow=[str(tmp_path / "in")]) as connection:
        assert connection.cursor().execute(query).fetchall() == [(7,)]
    with (
        dbapi.connect(lake, "shop", allow=[str(tmp_path / "other")]) as connection,
        pytest.raises(dbapi.ProgrammingError, match="outside of the lake"),
    ):
        connection.cursor().execute(query)


def test_handles_stay_in_their_process_and_errors_travel(connection: dbapi.Connection) -> None:
    for handle in (connection, connection.cursor()):
        with pytest.raises(forklake.NotPicklable):
            pickle.dumps(handle)
    with pytest.raises(dbapi.ProgrammingError) as refused:
        connection.cursor().execute("FROM nothing")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)  # noqa: S301
