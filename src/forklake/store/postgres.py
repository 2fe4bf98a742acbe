"""PostgreSQL as the metadata database: any number of processes, hosts and writers."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
import psycopg_pool
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper

from forklake.errors import (
    CorruptMetadata,
    ForklakeError,
    ReadOnlyStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Allocation, Interrupted, OpenTransaction, Row, UniqueViolation, as_time
from forklake.store.statements import Dialect, schema_script, statements
from forklake.store.tables import TABLES, end_set, insert_set

CONNECT_SECONDS = 10
POOL_WAIT_SECONDS = 60.0

_ARRAYS = {
    "int": "bigint[]",
    "text": "text[]",
    "uuid": "uuid[]",
    "bool": "boolean[]",
    "time": "timestamptz[]",
}
_PARAMETER = re.compile(r"\$(\w+)")
_INIT_LOCK = 0x666F726B6C616B65
"""`forklake` in ASCII: whoever creates a lake holds this advisory lock."""

Connection = psycopg.Connection[Row]


class PostgresDatabase:
    """A lake's metadata in one schema of a PostgreSQL database."""

    dialect: Dialect = "postgresql"

    def __init__(self, conninfo: str, *, metadata_schema: str, pool_size: int) -> None:
        """Connect once, so that a wrong address fails here and says why."""
        self._conninfo = conninfo
        self.metadata_schema = metadata_schema
        self._pool_size = pool_size
        self.url = _shown(conninfo, metadata_schema)
        self.statements = {name: _rewritten(text) for name, text in statements(self.dialect).items()}
        self._pid = os.getpid()
        with self._translated():
            first = psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS)
            first.close()
        self._pool = self._open_pool()

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction. It is only read, so a lost connection is replaced once."""
        try:
            return self._rows_once(statement, params)
        except Interrupted:
            return self._rows_once(statement, params)

    def transaction(self) -> PostgresSession:
        """Begin a transaction that may write."""
        return PostgresSession(self)

    def exists(self) -> bool:
        """Whether the metadata schema holds a lake, finished or not."""
        return bool(self.rows("metadata_exists"))

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing, and once if several try."""
        with self._translated(), self.connection() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INIT_LOCK])
            schema = sql.Identifier(self.metadata_schema)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            if connection.execute(self.statements["metadata_exists"]).fetchone():
                raise UniqueViolation("another process has created the lake meanwhile")
            connection.execute(schema_script(self.dialect).encode())
            connection.cursor().executemany(
                "INSERT INTO ducklake_metadata (key, value) VALUES (%s, %s)", list(settings.items())
            )

    def close(self) -> None:
        """Give back every connection."""
        self._pool.close()

    @contextmanager
    def connection(self) -> Generator[Connection, None, None]:
        """Borrow a connection from the pool."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> Connection:
        """A connection of one's own, from the pool."""
        if self._pid != os.getpid():
            # A forked child must not use its parent's sockets.
            self._pool, self._pid = self._open_pool(), os.getpid()
        try:
            return self._pool.getconn()
        except psycopg_pool.PoolClosed as error:
            raise StoreError("the lake was closed: connect again") from error
        except psycopg_pool.PoolTimeout as error:
            raise StoreBusy(
                f"no connection to {self.url} was free for {POOL_WAIT_SECONDS:.0f} seconds: "
                f"all {self._pool_size} are in use, or the server does not answer; "
                "raise pool_size in the URL, or try again"
            ) from error

    def give_back(self, connection: Connection) -> None:
        """Return a connection; the pool undoes what it left open and drops it if it broke."""
        self._pool.putconn(connection)

    def _rows_once(self, statement: str, params: Mapping[str, object]) -> list[Row]:
        with self._translated(), self.connection() as connection:
            return connection.execute(self.statements[statement], params).fetchall()

    def _open_pool(self) -> psycopg_pool.ConnectionPool[Connection]:
        return psycopg_pool.ConnectionPool(
            self._conninfo,
            min_size=0,
            max_size=self._pool_size,
            timeout=POOL_WAIT_SECONDS,
            max_waiting=0,
            configure=self._configure,
            kwargs={"connect_timeout": CONNECT_SECONDS, "application_name": "forklake"},
            open=True,
        )

    def _configure(self, connection: Connection) -> None:
        # After waiting for a head, a commit must see what was committed meanwhile.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        # One width for all numbers keeps one prepared statement for each text.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.prepare_threshold = 2
        path = sql.Identifier(self.metadata_schema).as_string(connection)
        connection.autocommit = True
        connection.execute("SELECT set_config('search_path', %s, false)", [path])

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        with translated(self.url):
            yield


class PostgresSession(OpenTransaction):
    """A write transaction on PostgreSQL, in pipeline mode: it waits for answers only where one is needed."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Take a connection; the transaction begins with the first statement."""
        self._open = False
        self._database = database
        self._connection = database.take()
        self._connection.autocommit = False
        self._batch = self._connection.pipeline()
        self._expected: list[tuple[psycopg.Cursor[Row], int, str]] = []
        with translated(database.url):
            self._pipeline = self._batch.__enter__()
        self._open = True

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        with self._running():
            return self._run(statement, params).fetchall()

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing, together with those that follow."""
        with self._running():
            self._run(statement, params)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        if rows:
            with self._running():
                self._connection.execute(_insert(table, tuple(columns)), _columns(columns, rows))

    def end_rows(
        self, table: str, keys: Sequence[str], rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId
    ) -> None:
        """Set the end of a catalog's own live rows; checked with the other answers, before the commit."""
        params = _columns(keys, rows) | {"catalog": catalog, "end": end}
        with self._running():
            cursor = self._connection.execute(_end(table, tuple(keys)), params)
        self._expected.append((cursor, len(rows), table))

    def allocate(self, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        """Draw the number of a snapshot, and numbers for what it creates."""
        with self._running():
            answer = self._run("allocate", {"catalog_ids": catalog_ids, "file_ids": file_ids}).fetchone()
        return _allocation(answer)

    def lock_head(
        self, catalog: CatalogId, *, catalog_ids: int = 0, file_ids: int = 0
    ) -> tuple[Row | None, Allocation]:
        """Wait for the head and draw numbers, sent together: the server runs the second after the first."""
        with self._running():
            head = self._run("lock_head", {"catalog": catalog})
            numbers = self._run("allocate", {"catalog_ids": catalog_ids, "file_ids": file_ids})
            return head.fetchone(), _allocation(numbers.fetchone())

    def commit(self) -> None:
        """Make everything durable."""
        with self._running():
            if self._expected:
                self._pipeline.sync()
                for cursor, rows, table in self._expected:
                    if cursor.rowcount != rows:
                        raise CorruptMetadata(
                            f"{rows - cursor.rowcount} rows of {table} that should end are not live"
                        )
            self._connection.commit()
            self._leave_pipeline()
        self._finish()

    def rollback(self) -> None:
        """Undo everything; nothing happens if the transaction has ended."""
        if self._open:
            try:
                self._leave_pipeline()
                self._connection.rollback()
            except psycopg.Error:
                # The statement that failed has been reported; a connection in doubt is not kept.
                self._connection.close()
            finally:
                self._finish()

    def _run(self, statement: str, params: Mapping[str, object]) -> psycopg.Cursor[Row]:
        return self._connection.execute(self._database.statements[statement], params)

    def _leave_pipeline(self) -> None:
        self._batch.__exit__(None, None, None)

    def _finish(self) -> None:
        self._open = False
        if not self._connection.closed:
            self._connection.autocommit = True
        self._database.give_back(self._connection)

    @contextmanager
    def _running(self) -> Generator[None, None, None]:
        self._check_open()
        with translated(self._database.url):
            yield


def _allocation(answer: Row | None) -> Allocation:
    if answer is None:
        raise CorruptMetadata("the sequences of the lake did not answer")
    snapshot, moment, catalog_ids, file_ids, next_catalog_id, next_file_id = answer
    return Allocation(
        SnapshotId(snapshot),
        as_time(moment),
        tuple(catalog_ids),
        tuple(file_ids),
        next_catalog_id,
        next_file_id,
    )


def _rewritten(text: str) -> bytes:
    """`$name` becomes psycopg's `%(name)s`; done once for each statement."""
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")).encode()


def _columns(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, Any]:
    return {name: [row[place] for row in rows] for place, name in enumerate(columns)}


def _arrays(table: str, columns: tuple[str, ...]) -> list[str]:
    return [f"${column}::{_ARRAYS[TABLES[table][column]]}" for column in columns]


@cache
def _insert(table: str, columns: tuple[str, ...]) -> bytes:
    return _rewritten(insert_set(table, columns, _arrays(table, columns)))


@cache
def _end(table: str, keys: tuple[str, ...]) -> bytes:
    return _rewritten(end_set(table, keys, _arrays(table, keys)))


def _shown(conninfo: str, metadata_schema: str) -> str:
    """An address for messages: without a password."""
    parts = conninfo_to_dict(conninfo)
    host, port = parts.get("host", "localhost"), parts.get("port", 5432)
    return f"postgresql://{host}:{port}/{parts.get('dbname', '')}?metadata_schema={metadata_schema}"


@contextmanager
def translated(url: str) -> Generator[None, None, None]:
    """Turn PostgreSQL's errors into ours, by their SQLSTATE."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        raise UniqueViolation(str(error)) from error
    except psycopg.Error as error:
        if _again(error):
            raise Interrupted(_first_line(error)) from error
        raise _error(url, error) from error


def _again(error: psycopg.Error) -> bool:
    """Whether a fresh transaction may succeed: serialisation, deadlock, shutdown, a connection that broke."""
    state = error.sqlstate or ""
    broke = not state and isinstance(error, psycopg.OperationalError) and error.pgconn is not None
    return state in ("40001", "40P01") or state.startswith(("08", "57P")) or broke


def _error(url: str, error: psycopg.Error) -> ForklakeError:
    state = error.sqlstate or ""
    what = _first_line(error)
    if state == "25006":
        return ReadOnlyStore(f"{url} only allows reading: connect to the primary server, or ask for rights")
    if state == "42501":
        return StoreUnavailable(f"{url} denies this: {what}; ask its owner for rights on the schema")
    if state in ("53300", "55P03"):
        return StoreBusy(f"{url} is busy: {what}; try again")
    if isinstance(error, psycopg.OperationalError):
        return StoreUnavailable(f"{url} cannot be reached: {what}")
    return StoreError(f"PostgreSQL failed on {url}: {what}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
