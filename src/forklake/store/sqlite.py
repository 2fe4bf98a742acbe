"""SQLite as the metadata database: one file, any number of readers, one writer at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from forklake.errors import (
    CorruptMetadata,
    ForklakeError,
    ReadOnlyStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Row, UniqueViolation
from forklake.store.built_statements import end_text, insert_text, update_text
from forklake.store.embedded import EmbeddedDatabase, EmbeddedSession, Translated
from forklake.store.pool import WAIT_SECONDS, ConnectionPool, WriterLock, is_read_only
from forklake.store.row_sets import SETTINGS, RowSet
from forklake.store.statements import Dialect, schema_script, statements
from forklake.store.tables import TABLES
from forklake.store.versions import check_unchanged

_TAKEN = (
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
)


class SqliteDatabase(EmbeddedDatabase):
    """A lake's metadata in a SQLite file, in WAL mode: readers never wait for the writer, nor it for them."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, url: str) -> None:
        """Open the file, or make an empty one."""
        self.path = path
        self.url = url
        self.statements = statements(self.dialect)
        self.read_only = is_read_only(path)
        self._logs_ahead = False
        self._pool = ConnectionPool(self._connect)
        self.lock = WriterLock.of(path)
        with self._borrow() as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction."""
        with self._borrow() as connection:
            return connection.execute(self.statements[statement], _stored(params)).fetchall()

    def transaction(self) -> SqliteSession:
        """Begin a transaction that may write, when it is its turn."""
        self.check_writable()
        return SqliteSession(self, self._pool)

    def exists(self) -> bool:
        """Whether the file holds a lake, finished or not."""
        return bool(self.rows("metadata_exists"))

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing."""
        with self.begin_upgrade() as session:
            session.run_script(schema_script(self.dialect))
            session.insert(SETTINGS, list(settings.items()))
            session.commit()

    def begin_upgrade(self) -> SqliteSession:
        """Begin a transaction that may change the tables, when it is its turn; readers go on meanwhile."""
        self.check_writable()
        return SqliteSession(self, self._pool, any_version=True)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc"
        if self.read_only:
            # Without a log beside it, a file in a read-only folder can only be opened as unchanging.
            unchanging = not self.path.with_name(self.path.name + "-wal").exists()
            mode = "ro&immutable=1" if unchanging else "ro"
        with translated(self.path):
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=WAIT_SECONDS,
                cached_statements=512,
            )
            if not self.read_only:
                connection.execute("PRAGMA synchronous = FULL")
            return connection

    def log_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging, for good: readers then never wait for a writer."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._logs_ahead:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                self._logs_ahead = True
            except sqlite3.OperationalError as error:
                # Switching needs the file alone for a moment, and does not wait for that by itself.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _borrow(self) -> Generator[sqlite3.Connection, None, None]:
        with translated(self.path):
            if self.read_only and not self._pool.closed:
                # Whether a log stands beside the file may change, and with it how the file must be opened.
                with closing(self._connect()) as connection:
                    yield connection
            else:
                with self._pool.connection() as connection:
                    yield connection


class SqliteSession(EmbeddedSession[sqlite3.Connection]):
    """A write transaction on SQLite."""

    opening = ("BEGIN IMMEDIATE",)

    def __init__(
        self,
        database: SqliteDatabase,
        pool: ConnectionPool[sqlite3.Connection],
        *,
        any_version: bool = False,
    ) -> None:
        """Wait for the turn among this process's threads, then among processes."""
        self._database = database

        def begin(connection: sqlite3.Connection) -> None:
            database.log_ahead(connection)
            connection.execute(self.opening[0])
            if not any_version:
                # Another process may have upgraded the lake since it was opened.
                found = connection.execute(database.statements["setting"], {"key": "version"}).fetchone()
                check_unchanged(database.url, found and found[0])

        super().__init__(database.lock, pool, translated(database.path), begin)

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        with self._translated:
            return self._running().execute(self._database.statements[statement], _stored(params)).fetchall()

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing."""
        with self._translated:
            self._running().execute(self._database.statements[statement], _stored(params))

    def query(self, text: str) -> list[Row]:
        """Run a query, given as text."""
        with self._translated:
            return self._running().execute(text).fetchall()

    def run_script(self, script: str) -> None:
        """Run a schema file inside this transaction."""
        with self._translated:
            connection = self._running()
            pending = ""
            for line in script.splitlines(keepends=True):
                pending += line
                if sqlite3.complete_statement(pending):
                    connection.execute(pending)
                    pending = ""

    def insert(self, into: RowSet, rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        given = [tuple(map(_adapted, row)) for row in rows] if _has_times(into) else rows
        with self._translated:
            self._running().executemany(insert_text("sqlite", into), given)

    def update(self, of: RowSet, rows: Sequence[Row]) -> None:
        """Give columns of rows new values."""
        text, first = update_text("sqlite", of), of.key_count
        with self._translated:
            self._running().executemany(
                text, [tuple(map(_adapted, (*row[first:], *row[:first]))) for row in rows]
            )

    def end_rows(self, of: RowSet, rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId) -> None:
        """Set the end of a catalog's own live rows."""
        text = end_text("sqlite", of)
        with self._translated:
            ended = self._running().executemany(text, [(end, catalog, *row) for row in rows]).rowcount
        if ended != len(rows):
            raise CorruptMetadata(f"{len(rows) - ended} rows of {of.table} that should end are not live")


@cache
def _has_times(rows: RowSet) -> bool:
    return any(TABLES[rows.table][column] == "time" for column in rows.columns)


def _adapted(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    # Stored times are compared as text, so all are in one zone and of one length.
    return value.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")


def _stored(params: Mapping[str, object]) -> dict[str, object]:
    return {name: _adapted(value) for name, value in params.items()}


def translated(path: Path) -> Translated:
    """Turn SQLite's errors into ours, by their codes."""

    def translate(error: BaseException) -> ForklakeError | UniqueViolation | None:
        if not isinstance(error, sqlite3.Error):
            return None
        if getattr(error, "sqlite_errorcode", 0) in _TAKEN:
            return UniqueViolation(str(error))
        return _error(path, error)

    return Translated(translate)


def _error(path: Path, error: sqlite3.Error) -> ForklakeError:
    # The primary code is in the low byte.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"another process has been writing to {path} for {WAIT_SECONDS:.0f} seconds: try again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return ReadOnlyStore(f"{path} is read-only: ask for write permission on the file and its folder")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StoreUnavailable(f"{path} is not a SQLite database, or is damaged: {error}")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(f"{path} cannot be opened: check the path and its permissions")
        case _:
            return StoreError(f"SQLite failed on {path}: {error}")
