"""Every statement is valid on the real databases, and no value in it is read as SQL."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import duckdb
import psycopg
import pytest
from psycopg import pq

from forklake.store.duckdb import filled
from forklake.store.libpq import PreparedQuery
from forklake.store.statements import schema_script, statements
from tests.unit.conftest import empty_lake
from tests.unit.statements.named import parameters


def test_every_statement_is_valid_on_sqlite() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_script("sqlite"))
        for name, text in statements("sqlite").items():
            plan = connection.execute(f"EXPLAIN {text}", dict.fromkeys(parameters(text)))
            assert plan.fetchall(), name


def test_every_statement_is_valid_on_duckdb() -> None:
    with duckdb.connect() as connection:
        connection.execute(schema_script("duckdb"))
        for name, text in statements("duckdb").items():
            plan = connection.execute(f"EXPLAIN {text}", dict.fromkeys(parameters(text)) or None)
            assert plan.fetchall(), name


def test_every_statement_is_valid_on_postgresql(postgres_connection: psycopg.Connection) -> None:
    for name, text in statements("postgresql").items():
        places = {parameter: place for place, parameter in enumerate(sorted(parameters(text)), 1)}
        numbered = re.sub(r"\$(\w+)", lambda match, places=places: f"${places[match[1]]}", text)
        result = postgres_connection.pgconn.prepare(name.encode(), numbered.encode())
        assert result.status == pq.ExecStatus.COMMAND_OK, f"{name}: {result.error_message.decode()}"


@pytest.mark.parametrize("schema", ["lake", 'my $at lake\'s "data" \\ ducklake_table'])
def test_every_statement_finds_its_tables_whatever_the_search_path_is(
    postgres_database: str, schema: str
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        empty_lake(connection, schema)
        connection.execute("RESET search_path")
        for name, text in statements("postgresql").items():
            query = PreparedQuery(text, schema)
            result = connection.pgconn.prepare(name.encode(), query.text)
            assert result.status == pq.ExecStatus.COMMAND_OK, f"{name}: {result.error_message.decode()}"
            assert set(query.names) == parameters(text)
            assert b"current_schema" not in query.text


HOSTILE = ["it's", "$a", "'$b", "a\0b", "\0", "'\0'", "$a$b", "\\", "' || chr(0) || '", "--", "ids($a)"]


def test_values_in_statements_of_duckdb_are_never_read_as_sql() -> None:
    with duckdb.connect() as connection:
        for one in HOSTILE:
            for other in HOSTILE:
                text = filled("SELECT $a, $b, $a = $b, $a || $b, CAST($b AS VARCHAR)", {"a": one, "b": other})
                expected = (one, other, one == other, one + other, other)
                assert connection.execute(text).fetchone() == expected
    with pytest.raises(KeyError):
        filled("SELECT $a", {})
