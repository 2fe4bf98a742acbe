"""Empty lakes for tests: making one anew takes ten times as long as copying or emptying one.

Such a lake has neither a data path nor a home, as if its tables had been made by psql: it is at home where
it lies, and learns its data path from the first connection.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

import forklake

SCHEMA = "lake"
"""The metadata schema of a lake in a database of its own."""


class LakeTemplates:
    """An empty file for each embedded backend, made when it is needed first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Not a method with a cache: that would keep templates for ever.
        self._file = cache(self._make_file)

    def copy(self, backend: str, path: Path) -> None:
        """An empty lake as a file of SQLite or DuckDB."""
        shutil.copyfile(self._file(backend), path)

    def _make_file(self, backend: str) -> Path:
        path = self._folder / f"template.{backend}"
        make_template(f"{backend}:///{path}", self._folder / "files")
        return path


class EmptyDatabase:
    """A lake in a PostgreSQL database of its own, emptied after each use: that takes 10 ms, and a copy 300.

    If a test has changed more than rows, or has let tables grow, the next one gets a new database.
    """

    def __init__(self, server: str, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._name: str | None = None
        self._connection: psycopg.Connection[tuple[str, ...]] | None = None
        """Kept from one test to the next: what it knows of tables takes longer to find out than to use."""
        self._fingerprint = ""
        self._rows: dict[str, bytes] = {}

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of the lake while a test uses it."""
        if self._name is None:
            self._name = self._make()
        yield _lake_url(self._server, self._name)
        try:
            emptied = self._empty()
        except psycopg.OperationalError:
            # The test has ended all connections.
            self._disconnect()
            emptied = self._empty()
        if not emptied:
            self._drop()

    def close(self) -> None:
        """Leave the database to the server, which goes too."""
        self._disconnect()

    def _make(self) -> str:
        name = f"t_{uuid.uuid4().hex}"
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        make_template(_lake_url(self._server, name), self._folder / "files")
        with self._transaction(name) as connection:
            self._fingerprint = _fingerprint(connection)
            self._rows = {
                table: content for table in _tables(connection) if (content := _read(connection, table))
            }
        return name

    @contextmanager
    def _transaction(self, name: str) -> Iterator[psycopg.Connection[tuple[str, ...]]]:
        if self._connection is None:
            url = urlsplit(self._server)._replace(path=f"/{name}").geturl()
            self._connection = psycopg.connect(url, autocommit=True)
            self._connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(SCHEMA)))
        with self._connection.transaction():
            yield self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _empty(self) -> bool:
        """Make the lake what it was; False if it has become another."""
        assert self._name is not None
        with self._transaction(self._name) as connection:
            connection.execute(_END_OTHERS)
            if _fingerprint(connection) != self._fingerprint:
                return False
            removals = [
                sql.SQL("DELETE FROM {}").format(sql.Identifier(table)) for table in _tables(connection)
            ]
            connection.execute(sql.SQL("; ").join(removals))
            for table, content in self._rows.items():
                with connection.cursor().copy(
                    sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
                ) as copy:
                    copy.write(content)
            connection.execute(_RESTART_SEQUENCES)
        return True

    def _drop(self) -> None:
        assert self._name is not None
        self._disconnect()
        with psycopg.connect(self._server, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(self._name)))
        self._name = None


_END_OTHERS = """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"""
_RESTART_SEQUENCES = """SELECT setval(c.oid::regclass, s.seqstart, false)
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
    WHERE c.relnamespace = current_schema()::regnamespace"""
# Whatever alters, guards or grants an object writes a row of these anew. PostgreSQL's own ids end at 16384.
_FINGERPRINT = """SELECT concat_ws(' ',
    (SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_namespace
      WHERE nspname !~ '^pg_'),
    (SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_class WHERE oid >= 16384),
    (SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_attribute WHERE attrelid >= 16384),
    (SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_trigger),
    (SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class
      WHERE oid >= 16384 AND relkind = 'r' AND pg_relation_size(oid) > 1000000),
    (SELECT string_agg(concat_ws(' ', setrole, setconfig), ',' ORDER BY setrole) FROM pg_db_role_setting
      WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))))"""


def _fingerprint(connection: psycopg.Connection[tuple[str, ...]]) -> str:
    """What tells a database whose tables were altered, guarded or granted, or have grown."""
    (found,) = connection.execute(_FINGERPRINT).fetchall()
    return found[0]


def _tables(connection: psycopg.Connection[tuple[str, ...]]) -> list[str]:
    """Tables to be emptied. None has a foreign key, so that any order will do."""
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    return sorted(row[0] for row in found)


def _read(connection: psycopg.Connection[tuple[str, ...]], table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy:
        return b"".join(map(bytes, copy))


def make_template(url: str, data_path: Path) -> None:
    """Make an empty lake that knows neither where its files nor where its metadata are."""
    with (
        forklake.connect(url, data_path=data_path, create=True) as lake,
        lake._database.transaction() as session,
    ):
        for key in ("data_path", "home"):
            session.execute("remove_setting", key=key)
        session.commit()


def _lake_url(server: str, database: str) -> str:
    address = urlsplit(server)
    query = "&".join(filter(None, (address.query, f"metadata_schema={SCHEMA}")))
    return address._replace(path=f"/{database}", query=query).geturl()
