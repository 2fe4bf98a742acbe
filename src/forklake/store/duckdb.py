"""DuckDB as the metadata database: one file, one process, any number of threads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

import duckdb

from forklake.errors import (
    CorruptMetadata,
    ForklakeError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import quoted
from forklake.store.backend import Row, UniqueViolation
from forklake.store.built_statements import end_text, insert_text, insert_values_text, update_text
from forklake.store.embedded import EmbeddedDatabase, EmbeddedSession, Translated
from forklake.store.pool import ConnectionPool, WriterLock, is_read_only
from forklake.store.row_sets import SETTINGS, RowSet
from forklake.store.statements import Dialect, schema_script, statements


class DuckDBDatabase(EmbeddedDatabase):
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
        was_killed = not self.read_only and path.with_name(f"{path.name}.wal").exists()
        with translated(path):
            self._database = duckdb.connect(str(path), read_only=self.read_only)
            if was_killed:
                self._settle()
            # What commits and plans touch is small: handing it to other threads costs more than it saves.
            self._database.execute("SET threads = 1")
        self._pool = ConnectionPool(self._connect)

    def _settle(self) -> None:
        """Write down at once what a process has left in its log that did not close the file.

        Later, DuckDB would forget it in the indexes of tables that nobody has touched meanwhile, and then
        refuse for ever to delete these rows.
        """
        # Somebody is writing in this process: then it was open already, and settled.
        with suppress(duckdb.TransactionException):
            self._database.execute("CHECKPOINT")

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction."""
        with translated(self.path), self._pool.connection() as connection:
            return connection.execute(filled(self.statements[statement], params)).fetchall()

    def transaction(self) -> DuckDBSession:
        """Begin a transaction that may write, when it is this thread's turn."""
        self.check_writable()
        return DuckDBSession(self, self._pool)

    def exists(self) -> bool:
        """Whether the file holds a lake in the metadata schema, finished or not."""
        with translated(self.path), self._pool.connection() as connection:
            text = filled(self.statements["metadata_exists"], {"schema": self.metadata_schema})
            return bool(connection.execute(text).fetchall())

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing."""
        with self.begin_upgrade() as session:
            session.run_script(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.metadata_schema)}")
            session.run_script(f"USE {quoted(self.metadata_schema)}")
            session.run_script(schema_script(self.dialect))
            session.insert(SETTINGS, list(settings.items()))
            session.commit()
        # Connections that were opened before the schema existed cannot find it.
        self._pool.close()
        self._pool = ConnectionPool(self._connect)

    def begin_upgrade(self) -> DuckDBSession:
        """Begin a transaction that may change the tables: no other process has the file open."""
        return self.transaction()

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
    """A write transaction on DuckDB. Statements wait until an answer is needed, and go together."""

    opening = ("BEGIN",)

    def __init__(self, database: DuckDBDatabase, pool: ConnectionPool[duckdb.DuckDBPyConnection]) -> None:
        """Wait for the turn: two writers at once would make DuckDB refuse one of them."""
        self._database = database
        self._waiting: list[str] = []

        def begin(connection: duckdb.DuckDBPyConnection) -> None:
            connection.execute(self.opening[0])

        super().__init__(database.lock, pool, translated(database.path), begin)

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        self._waiting.append(filled(self._database.statements[statement], params))
        return self._send()

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing, together with those that follow."""
        self._check_open()
        self._waiting.append(filled(self._database.statements[statement], params))

    def commit(self) -> None:
        """Make everything durable."""
        if self._waiting:
            self._send()
        super().commit()

    def _send(self) -> list[Row]:
        waiting, self._waiting = self._waiting, []
        with self._translated:
            return self._running().execute(";\n".join(waiting)).fetchall()

    def query(self, text: str) -> list[Row]:
        """Run a query, given as text."""
        with self._translated:
            return self._running().execute(text).fetchall()

    def run_script(self, script: str) -> None:
        """Run a schema file inside this transaction."""
        with self._translated:
            self._running().execute(script)

    def insert(self, into: RowSet, rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        self._check_open()
        if 0 < len(rows) <= _FEW:
            self._waiting.append(insert_values_text(into) + _written_out(rows))
        elif rows:
            text = insert_text("duckdb", into)
            self._waiting.append(filled(text, {"rows": _columns_as_json(into.columns, rows)}))
        if len(rows) > _MANY:
            # What waits is kept in memory.
            self._send()

    def update(self, of: RowSet, rows: Sequence[Row]) -> None:
        """Give columns of rows new values."""
        self._check_open()
        before, _, after = _pieces(update_text("duckdb", of))
        self._waiting.append(f"{before}{_written_out(rows)}{after}")

    def end_rows(self, of: RowSet, rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId) -> None:
        """Set the end of a catalog's own live rows."""
        params = {"rows": _columns_as_json(of.keys, rows), "catalog": catalog, "end": end}
        self._waiting.append(filled(end_text("duckdb", of), params))
        answer = self._send()
        ended = answer[0][0] if answer else 0
        if ended != len(rows):
            raise CorruptMetadata(f"{len(rows) - ended} rows of {of.table} that should end are not live")


# Values are written into the statement: binding one costs more than parsing it, and where pandas is
# not installed DuckDB looks for it each time.
_PARAMETER = re.compile(r"\$(\w+)")
_FEW = 16
"""Up to how many rows are written out one by one."""
_MANY = 4096
"""Sets of more rows than this are sent at once."""


def filled(text: str, params: Mapping[str, object]) -> str:
    """A statement with its parameters in place. It is put together once: no value is looked at for more."""
    pieces = list(_pieces(text))
    pieces[1::2] = [literal(params[name]) for name in pieces[1::2]]
    return "".join(pieces)


@cache
def _pieces(text: str) -> Sequence[str]:
    """A statement, split at its parameters: every second piece is the name of one."""
    return _PARAMETER.split(text)


def literal(value: object) -> str:
    """A value as DuckDB's SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case str():
            written = ["'" + piece.replace("'", "''") + "'" for piece in value.split("\0")]
            # DuckDB's parser ends at a NUL.
            return written[0] if len(written) == 1 else f"({' || chr(0) || '.join(written)})"
        case datetime():
            return f"TIMESTAMPTZ '{value.isoformat()}'"
        case _:
            raise TypeError(f"{type(value).__name__} cannot be stored")


def _written_out(rows: Sequence[Row]) -> str:
    return ", ".join(["(" + ", ".join(map(literal, row)) + ")" for row in rows])


def _columns_as_json(columns: Sequence[str], rows: Sequence[Row]) -> str:
    # Python lists are bound value by value, 70 times slower than this one text.
    return json.dumps(
        {name: [row[place] for row in rows] for place, name in enumerate(columns)}, default=_plain
    )


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be stored")


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


def translated(path: Path) -> Translated:
    """Turn DuckDB's errors into ours, by their classes."""

    def translate(error: BaseException) -> BaseException | None:
        match error:
            case duckdb.ConstraintException() if "NOT NULL" not in str(error):
                return UniqueViolation(str(error))
            case duckdb.Error():
                return _error(path, error)
            case RuntimeError() if "interrupted" in str(error).lower():
                # What DuckDB makes of a Ctrl-C that comes while it runs a statement.
                return KeyboardInterrupt()
            case _:
                return None

    return Translated(translate)


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
