"""Lakes of earlier versions, unpacked, and what can be asked of their databases."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import duckdb
import psycopg
import pytest

import forklake

LAKES = Path(__file__).parent / "lakes"
VERSIONS = sorted(path.name for path in LAKES.iterdir())
BACKENDS = ("sqlite", "duckdb", "postgresql")

Rows = list[tuple[Any, ...]]
RunSql = Callable[[str], Rows]


@dataclass(frozen=True)
class OldLake:
    """A lake of an earlier version in a folder of its own, and what was written down when it was made."""

    version: str
    url: str
    folder: Path
    expected: dict[str, Any]

    @property
    def backend(self) -> str:
        return self.url.partition(":")[0]

    def made_by_the_first(self) -> None:
        """Skip what is about version 0.5-dev1 alone."""
        if self.version != "0.5-dev1":
            pytest.skip("this is about what the first version stored")

    def open(self, **options: Any) -> forklake.Lake:
        """Open it where it is now."""
        return forklake.connect(self.url, data_path=self.folder / "files", moved=True, **options)

    @contextmanager
    def sql(self) -> Iterator[RunSql]:
        """Run statements on its database, beside forklake."""
        with sql_on(self.url) as run:
            yield run


def unpack(version: str, backend: str, folder: Path, schema_url: str | None) -> OldLake:
    """Unpack a lake into a folder, or its metadata into a schema of PostgreSQL."""
    with tarfile.open(LAKES / version / f"{backend}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    url = f"{backend}:///{folder}/lake.db"
    if backend == "postgresql":
        assert schema_url is not None
        url = schema_url
        load(url, (folder / "lake.sql").read_text(encoding="utf-8"))
    return OldLake(version, url, folder, json.loads((folder / "expected.json").read_text(encoding="utf-8")))


def load(url: str, script: str) -> None:
    """Run a dump in a new schema."""
    server, schema = split_schema(url)
    with psycopg.connect(server) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
        connection.execute(f'SET LOCAL search_path TO "{schema}"'.encode())
        connection.execute(script.encode())


def split_schema(url: str) -> tuple[str, str]:
    """The address of a server, and the schema that a lake is in."""
    address = urlsplit(url)
    options = dict(parse_qsl(address.query))
    return address._replace(query="").geturl(), options.get("metadata_schema", "ducklake")


@contextmanager
def sql_on(url: str) -> Iterator[RunSql]:
    """Run statements on the database of a lake."""
    address = urlsplit(url)
    if address.scheme == "sqlite":
        with closing(sqlite3.connect(address.path[1:], isolation_level=None, timeout=60)) as connection:
            yield lambda text: connection.execute(text).fetchall()
    elif address.scheme == "duckdb":
        with duckdb.connect(address.path[1:]) as connection:
            connection.execute("USE ducklake")
            yield lambda text: connection.execute(text).fetchall()
    else:
        server, schema = split_schema(url)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'SET search_path TO "{schema}"'.encode())

            def run(text: str) -> Rows:
                cursor = connection.execute(text.encode())
                return cursor.fetchall() if cursor.description else []

            yield run


def structure(url: str) -> dict[str, Any]:
    """All that a database says of its tables, indexes and views: it differs if anything in them does."""
    with sql_on(url) as run:
        match urlsplit(url).scheme:
            case "sqlite":
                made = run("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
                return {f"{kind} {name}": (table, _plain(text)) for kind, name, table, text in made}
            case "duckdb":
                return {
                    "columns": run(
                        "SELECT table_name, column_index, column_name, data_type, is_nullable, "
                        "column_default FROM duckdb_columns() WHERE schema_name = 'ducklake' ORDER BY ALL"
                    ),
                    "constraints": run(
                        "SELECT table_name, constraint_type, constraint_column_names "
                        "FROM duckdb_constraints() ORDER BY ALL"
                    ),
                    "indexes": run("SELECT index_name, table_name, sql FROM duckdb_indexes() ORDER BY ALL"),
                    "views": run(
                        "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY view_name"
                    ),
                }
            case _:
                schema = split_schema(url)[1]
                here = "= to_regnamespace(quote_ident(current_schema()))"
                found = {
                    "columns": run(
                        "SELECT c.relname, c.relkind, a.attnum, a.attname, "
                        "format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef "
                        "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
                        f"WHERE c.relnamespace {here} AND c.relkind IN ('r', 'v') AND a.attnum > 0 "
                        "ORDER BY 1, 3"
                    ),
                    "constraints": run(
                        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) "
                        f"FROM pg_constraint WHERE connamespace {here} ORDER BY 1, 2"
                    ),
                    "indexes": run(
                        "SELECT indexname, indexdef FROM pg_indexes "
                        "WHERE schemaname = current_schema() ORDER BY 1"
                    ),
                    "views": run(
                        "SELECT viewname, definition FROM pg_views "
                        "WHERE schemaname = current_schema() ORDER BY 1"
                    ),
                    "sequences": run(
                        "SELECT sequencename, data_type::text, start_value, min_value, increment_by "
                        "FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1"
                    ),
                }
                text = json.dumps(found, default=str)
                return json.loads(text.replace(f'\\"{schema}\\".', "").replace(f"{schema}.", ""))


def contents(url: str) -> dict[str, Rows]:
    """Every row of every table, so that two states of a database can be compared."""
    with sql_on(url) as run:
        match urlsplit(url).scheme:
            case "sqlite":
                tables = run("SELECT name FROM sqlite_master WHERE type = 'table'")
            case "duckdb":
                tables = run("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ducklake'")
            case _:
                tables = run("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {table: sorted(run(f"SELECT * FROM {table}"), key=str) for (table,) in tables}


def _plain(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())
