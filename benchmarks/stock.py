"""Writers that commit through DuckDB's own DuckLake extension, loaded from wheels without network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from benchmarks.contenders import ADDED, COLUMNS, Alternating
from benchmarks.harness import Change, Writer

_EXTENSIONS = {
    "duckdb_extension_ducklake": "ducklake",
    "duckdb_extension_postgres_scanner": "postgres_scanner",
    "duckdb_extension_sqlite_scanner": "sqlite_scanner",
}


@dataclass(frozen=True, slots=True)
class DuckLake:
    """A writer with a schema of its own in some DuckLake."""

    server: str
    metadata_schema: str
    folder: str
    schema: str
    retries: int | None = None

    @contextmanager
    def open(self) -> Iterator[Change]:
        """A DuckDB in this process, attached to the lake."""
        with attached(postgres(self.server), self.folder, metadata_schema=self.metadata_schema) as connection:
            if self.retries is not None:
                connection.execute(f"SET ducklake_max_retry_count = {self.retries}")
            connection.execute(f"USE lake.{self.schema}")

            def create(name: str) -> None:
                connection.execute(f"CREATE TABLE {name} ({COLUMNS})")

            def alter(name: str) -> None:
                connection.execute(f"ALTER TABLE {name} ADD COLUMN {' '.join(ADDED)}")

            yield Alternating(create, alter)


def postgres(server: str) -> str:
    """How the extension wants the address of a PostgreSQL."""
    parts = conninfo_to_dict(server)
    return "postgres:" + " ".join(f"{key}={parts[key]}" for key in ("host", "port", "user", "dbname"))


@contextmanager
def attached(
    address: str, folder: str, *, metadata_schema: str | None = None, inlined_rows: int = 0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with a DuckLake called `lake`; the address is a path, `sqlite:path` or that of a server."""
    # With inlining it would also create a table in the database for each of ours, which is slower.
    options = f"DATA_PATH '{folder}', DATA_INLINING_ROW_LIMIT {inlined_rows}"
    if metadata_schema is not None:
        options += f", METADATA_SCHEMA '{metadata_schema}'"
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.execute("SET enable_progress_bar = false")
        for package, name in _EXTENSIONS.items():
            file = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
            connection.execute(f"LOAD '{importlib.resources.files(package) / file}'")
        connection.execute(f"ATTACH 'ducklake:{address}' AS lake ({options})")
        yield connection


def make_ducklake(
    server: str, schema: str, folder: Path, writers: int, *, shared: bool, retries: int | None = None
) -> list[Writer]:
    """One DuckLake with a schema for each writer, or a DuckLake for each."""
    made: list[Writer] = []
    for lake in range(1 if shared else writers):
        metadata_schema = f"{schema}_{lake}"
        data = str(folder / metadata_schema)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(metadata_schema)))
        with attached(postgres(server), data, metadata_schema=metadata_schema) as connection:
            for place in range(writers if shared else 1):
                connection.execute(f"CREATE SCHEMA lake.writer_{place}")
                made.append(DuckLake(server, metadata_schema, data, f"writer_{place}", retries))
    return made
