"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from forklake.store.statements import schema_script


def empty_lake(connection: psycopg.Connection, schema: str) -> None:
    """Make one in a schema, where the connection stands from then on."""
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
    connection.execute(schema_script("postgresql").encode())


@pytest.fixture
def postgres_connection(postgres_schema_url: str) -> Iterator[psycopg.Connection]:
    """A connection that stands in a schema with an empty lake."""
    server = urlsplit(postgres_schema_url)._replace(query="").geturl()
    with psycopg.connect(server, autocommit=True) as connection:
        empty_lake(connection, postgres_schema_url.rpartition("=")[2])
        yield connection
