"""DuckDB as the metadata database: one file, one process, any number of threads."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

import duckdb

from forklake.errors import (
    CorruptMetadata,
    ForklakeError,
    ReadOnlyStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import quoted
from forklake.store.backend import Row, UniqueViolation
from forklake.store.embedded import EmbeddedSession
from forklake.store.pool import ConnectionPool, WriterLock, is_read_only
from forklake.store.statements import Dialect, schema_script, statements
from forklake.store.tables import TABLES, end_set, insert_set

_TYPES = {"int": "BIGINT", "text": "VARCHAR", "uuid": "UUID", "bool": "BOOLEAN", "time": "TIMESTAMPTZ"}


class DuckDBDatabase:
    """A lake's metadata in a schema of a DuckDB file. DuckDB lets one process open it for writing."""

    dialect: Dialect = "duckdb"

    def __init__(self, path: Path, url: str, *, metadata_schema: str) -> None:
        """Open the file, or make an empty one."""
        self.path = path
        self.url = url
        self.metadata_schema = metadata_schema
        self.read_only = is_read_only(path)
        _check_header(path)
        self.statements = statements(self.dialect)
        self.lock = WriterLock.of(path)
        with translated(path):
            self._database = duckdb.connect(str(path), read_only=self.read_only)
        self._pool = ConnectionPool(self._connect)

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction."""
        with translated(self.path), self._pool.connection() as connection:
            return connection.execute(self.statements[statement], params or None).fetchall()

    def transaction(self) -> DuckDBSession:
        """Begin a transaction that may write, when it is this thread's turn."""
        if self.read_only:
            raise ReadOnlyStore(f"{self.path} is read-only: ask for write permission on the file")
        return DuckDBSession(self, self._pool)

    def exists(self) -> bool:
        """Whether the file holds a lake in the metadata schema, finished or not."""
        with translated(self.path), self._pool.connection() as connection:
            text = self.statements["metadata_exists"]
            return bool(connection.execute(text, {"schema": self.metadata_schema}).fetchall())

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing."""
        with self.transaction() as session:
            session.run_script(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.metadata_schema)}")
            session.run_script(f"USE {quoted(self.metadata_schema)}")
            session.run_script(schema_script(self.dialect))
            session.insert("ducklake_metadata", ("key", "value"), list(settings.items()))
            session.commit()
        # Connections that were opened before the schema existed cannot find it.
        self._pool.close()
        self._pool = ConnectionPool(self._connect)

    def close(self) -> None:
        """Close the file, unless another handle of this process has it open."""
        self._pool.close()
        self._database.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        with translated(self.path):
            connection = self._database.cursor()
            known = connection.execute(
                "SELECT 1 FROM information_schema.schemata WHERE schema_name = $schema",
                {"schema": self.metadata_schema},
            )
            if known.fetchall():
                connection.execute(f"USE {quoted(self.metadata_schema)}")
            return connection


class DuckDBSession(EmbeddedSession[duckdb.DuckDBPyConnection]):
    """A write transaction on DuckDB."""

    def __init__(self, database: DuckDBDatabase, pool: ConnectionPool[duckdb.DuckDBPyConnection]) -> None:
        """Wait for the turn: two writers at once would make DuckDB refuse one of them."""
        self._database = database

        def begin(connection: duckdb.DuckDBPyConnection) -> None:
            connection.execute("BEGIN")

        super().__init__(database.lock, pool, lambda: translated(database.path), begin)

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        with self._running() as connection:
            return connection.execute(self._database.statements[statement], params or None).fetchall()

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing."""
        self.rows(statement, **params)

    def run_script(self, script: str) -> None:
        """Run a schema file inside this transaction."""
        with self._running() as connection:
            connection.execute(script)

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], *, over: Sequence[str] = ()
    ) -> None:
        """Add rows to a table, or overwrite those that have the same key."""
        if rows:
            with self._running() as connection:
                text = _insert(table, tuple(columns), tuple(over))
                connection.execute(text, {"rows": _columns_as_json(columns, rows)})

    def end_rows(
        self, table: str, keys: Sequence[str], rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId
    ) -> None:
        """Set the end of a catalog's own live rows."""
        params = {"rows": _columns_as_json(keys, rows), "catalog": catalog, "end": end}
        with self._running() as connection:
            answer = connection.execute(_end(table, tuple(keys)), params).fetchone()
        ended = answer[0] if answer else 0
        if ended != len(rows):
            raise CorruptMetadata(f"{len(rows) - ended} rows of {table} that should end are not live")


def _columns_as_json(columns: Sequence[str], rows: Sequence[Row]) -> str:
    # Python lists are bound value by value, 70 times slower than this one text.
    return json.dumps(
        {name: [row[place] for row in rows] for place, name in enumerate(columns)}, default=_plain
    )


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be stored")


@cache
def _insert(table: str, columns: tuple[str, ...], keys: tuple[str, ...]) -> str:
    arrays = [f"r.{column}" for column in columns]
    return insert_set(table, columns, arrays, _from_json(table, columns), keys)


@cache
def _end(table: str, keys: tuple[str, ...]) -> str:
    return end_set(table, keys, [f"r.{key}" for key in keys], _from_json(table, keys))


def _from_json(table: str, columns: tuple[str, ...]) -> str:
    shape = json.dumps({column: [_TYPES[TABLES[table][column]]] for column in columns})
    return " ".join(("FROM (SELECT from_json($rows,", f"'{shape}'", ") AS r)"))


def _check_header(path: Path) -> None:
    """Refuse other files before DuckDB does: it would try to download an extension that reads them."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error
    if start and start[8:] != b"DUCK":
        raise StoreUnavailable(f"{path} is not a DuckDB database, or is damaged")


@contextmanager
def translated(path: Path) -> Generator[None, None, None]:
    """Turn DuckDB's errors into ours, by their classes."""
    try:
        yield
    except duckdb.ConstraintException as error:
        if "NOT NULL" in str(error):
            raise _error(path, error) from error
        raise UniqueViolation(str(error)) from error
    except duckdb.Error as error:
        raise _error(path, error) from error


def _error(path: Path, error: duckdb.Error) -> ForklakeError:
    match error:
        case duckdb.IOException() if "Could not set lock" in str(error):
            return StoreBusy(f"{path} is open in another process, and DuckDB allows one: close it there")
        case duckdb.IOException():
            return StoreUnavailable(f"{path} cannot be opened as a DuckDB database: {_first_line(error)}")
        case duckdb.ConnectionException():
            return StoreBusy(f"{path} cannot be opened twice: {_first_line(error)}")
        case _:
            return StoreError(f"DuckDB failed on {path}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
