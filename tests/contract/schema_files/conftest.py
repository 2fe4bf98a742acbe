"""What tests of the schema files share.

`structures`  what each schema file makes
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import duckdb
import psycopg
import pytest

from forklake.store.statements import schema_script
from tests.contract.schema_files.structures import (
    Structure,
    duckdb_structure,
    postgres_structure,
    schema_text,
    sqlite_structure,
)


@pytest.fixture(scope="session")
def structures(postgres_server: str) -> dict[str, Structure]:
    """Each schema file, run as a whole on its own database, and what stands there afterwards."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_text("sqlite"))
        on_sqlite = sqlite_structure(connection)
    with duckdb.connect() as connection:
        connection.execute(schema_text("duckdb"))
        on_duckdb = duckdb_structure(connection)
    # Rolled back at the end: several test processes may share a server.
    with psycopg.connect(postgres_server) as connection:
        connection.execute("CREATE SCHEMA structures")
        connection.execute("SET LOCAL search_path TO structures")
        connection.execute(schema_script("postgresql").encode())
        on_postgres = postgres_structure(connection)
        connection.rollback()
    return {"sqlite": on_sqlite, "duckdb": on_duckdb, "postgresql": on_postgres}
