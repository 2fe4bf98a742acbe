"""PostgreSQL as the metadata database: any number of processes, hosts and writers."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict

from forklake.errors import (
    CorruptMetadata,
    ForklakeError,
    InvalidUrl,
    ReadOnlyStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    raise_alone,
)
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import quoted
from forklake.store.backend import (
    PAUSES,
    Allocation,
    Answer,
    Home,
    Interrupted,
    LockedHead,
    OpenTransaction,
    Record,
    Row,
    SchemaSession,
    UniqueViolation,
    as_time,
    locked_head,
)
from forklake.store.built_statements import end_text, insert_text, update_text
from forklake.store.commits_in_flight import CommitsInFlight
from forklake.store.libpq import LOST_STATEMENT, PreparedQuery, Wire, run_now
from forklake.store.pool import ConnectionPool
from forklake.store.pooler import Pooler
from forklake.store.row_sets import SETTINGS, RowSet
from forklake.store.statements import Dialect, schema_script, statements
from forklake.store.url import SECRET_OPTIONS, unreadable
from forklake.store.versions import check_unchanged

LONGEST_NAME = 63

_DEFAULTS: dict[str, Any] = {"connect_timeout": 10, "application_name": "forklake"}
# Every statement is keyed, so an index is right however few rows there were when its plan was made and kept.
_PLANNING = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
_KEPT = 1024
"""Statements of sets that are not built again: some for each lake."""
_MANY = 4096
"""Sets of more rows than this are sent at once."""
_MANY_KEYS = 1000
"""Sets of more keys than this get a plan of their own."""
# A table that was counted when it was empty is taken for small even if it has grown: then each key would be
# compared with each row, and 20,000 keys take a minute. Unless there are many more rows than keys, reading
# all of them takes no longer than looking up the keys.
_PLAN_FOR_MANY = """SELECT set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('enable_nestloop',
      CASE WHEN pg_table_size(to_regclass($table)) < $keys::bigint * 10000 THEN 'off' ELSE 'on' END, true)"""
_PLAN_AS_BEFORE = (
    "SELECT set_config('plan_cache_mode', $mode, true), set_config('enable_nestloop', 'on', true)"
)
_INIT_LOCK = 0x666F726B6C616B65
"""`forklake` in ASCII: whoever creates a lake holds this advisory lock."""
# After waiting for a head, a commit must see what was committed meanwhile.
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_COMMIT = b"COMMIT"
_ROLLBACK = b"ROLLBACK"

Connection = psycopg.Connection[Row]


class PostgresDatabase:
    """A lake's metadata in one schema of a PostgreSQL database."""

    dialect: Dialect = "postgresql"

    def __init__(
        self, conninfo: str, *, metadata_schema: str, pool_size: int, options: Mapping[str, str]
    ) -> None:
        """Connect once, so that a wrong URL fails here and says why. `options` are about a `Pooler`."""
        if len(metadata_schema.encode()) > LONGEST_NAME:
            raise InvalidUrl(
                f"PostgreSQL keeps {LONGEST_NAME} bytes of a name: choose a shorter metadata_schema"
            )
        given = self._given = _parameters(conninfo)
        self._conninfo = conninfo
        self._defaults = {name: value for name, value in _DEFAULTS.items() if name not in given}
        self.metadata_schema = metadata_schema
        self._pooler = Pooler.of(options)
        self.url = _shown(given, {"metadata_schema": metadata_schema, **options})
        self.statements = {
            name: PreparedQuery(text, metadata_schema) for name, text in statements(self.dialect).items()
        }
        self.pool = ConnectionPool(self._open_wire, most=pool_size, usable=Wire.is_usable)
        self._in_flight = CommitsInFlight(self)
        self._connect().close()

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run one query outside any transaction. It only reads, so it may be tried again."""
        for pause in PAUSES:
            try:
                return self._rows_once(statement, params)
            except Interrupted:
                time.sleep(pause)
        return self._rows_once(statement, params)

    def transaction(self) -> PostgresSession:
        """Begin a transaction that may write."""
        return PostgresSession(self)

    def home(self) -> Home | None:
        """The schema, by the server and the database that it is in; None where asking that is not allowed."""
        try:
            (found,) = self.rows("home", schema=self.metadata_schema)
        except StoreError:
            return None
        server, database, database_id, schema_id = found
        return Home(f"{server}/{database}/{self.metadata_schema}", f"{server}/{database_id}/{schema_id}")

    def check_writable(self) -> None:
        """Whether a server takes writes, it says when it is asked to."""

    def now(self) -> datetime:
        """The time on the server's clock."""
        return as_time(self.rows("clock")[0][0])

    def wait_for_commits(self, at: SnapshotId | datetime) -> None:
        """Wait for commits in flight that may come to stand at or before a snapshot, or a time."""
        self._in_flight.wait_for_commits(at)

    def exists(self) -> bool:
        """Whether the metadata schema holds a lake, finished or not."""
        return bool(self.rows("metadata_exists"))

    def create_schema(self, settings: Mapping[str, str]) -> None:
        """Create the empty lake with its settings, all or nothing, and once if several try."""
        with translated(self.url), self._connect() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_INIT_LOCK])
            schema = sql.Identifier(self.metadata_schema)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            connection.execute("SELECT set_config('search_path', %s, true)", [self._search_path])
            if connection.execute(self.statements["metadata_exists"].text).fetchone():
                raise UniqueViolation("another process has created the lake meanwhile")
            connection.execute(schema_script(self.dialect).encode())
            run_now(
                connection,
                _insert(self.metadata_schema, SETTINGS),
                _columns(SETTINGS, list(settings.items())),
            )

    def begin_upgrade(self) -> SchemaSession:
        """Begin a transaction that may change the tables; readers and writers wait for its end."""
        # It is needed once in the life of a lake.
        from forklake.store.postgres_upgrade import PostgresUpgrade

        return PostgresUpgrade(self._connect(), self.url, self.metadata_schema)

    def close(self) -> None:
        """Give back every connection."""
        self.pool.close()

    def _rows_once(self, statement: str, params: Mapping[str, object]) -> list[Row]:
        with translated(self.url), self.pool.connection() as wire:
            return wire.read(self.statements[statement], params)

    def _connect(self) -> Connection:
        try:
            return psycopg.connect(self._conninfo, prepare_threshold=None, **self._defaults)
        except psycopg.Error as error:
            hidden = _hidden(str(error), self._given)
            if hidden != str(error):
                raise_alone(_error(self.url, type(error)(hidden)))
            raise _error(self.url, error) from error
        except UnicodeError:
            # No name of a host has such characters, or parts of such length.
            raise_alone(StoreUnavailable(f"{self.url} cannot be reached: there is no host of that name"))

    def _open_wire(self) -> Wire:
        try:
            connection = self._connect()
        except StoreUnavailable as error:
            # The server was there before, so it may come back.
            raise Interrupted(str(error)) from error
        connection.autocommit = True
        wire = Wire(connection)
        try:
            with translated(self.url):
                self._pooler.set_up(wire, {"search_path": self._search_path, **_PLANNING}, self.statements)
        except BaseException:
            wire.close()
            raise
        return wire

    @property
    def _search_path(self) -> str:
        """Where functions are looked for, after those of PostgreSQL; what is temporary comes last."""
        return f"{quoted(self.metadata_schema)}, pg_temp"


class PostgresSession(OpenTransaction):
    """A write transaction on PostgreSQL: statements wait on this side until an answer is needed."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Take a connection; the transaction begins with the first statement."""
        self._open = False
        self._database = database
        self._schema = database.metadata_schema
        self._ends: list[tuple[int, int, str]] = []
        """Which of the waiting statements must end how many rows of which table."""
        self._asked: list[tuple[int, list[list[Row]]]] = []
        """Which of the waiting statements have rows that somebody wants later, and where to put them."""
        self._sent = 1
        self._pid = os.getpid()
        self._wire = database.pool.take()
        self._wire.begin(_BEGIN)
        self._open = True
        # Before all else: an upgrade that comes now waits for us, and one that came before is noticed.
        self._version: Answer | None = self.ask("setting", key="version")

    def rows(self, statement: str, /, **params: object) -> list[Row]:
        """Run a query and return its rows."""
        self._send(self._database.statements[statement], params)
        return self._wire.rows(self._answers()[-1])

    def ask(self, statement: str, /, **params: object) -> Answer:
        """Run a query together with those that follow: all of them take one round trip."""
        place, found = self._sent, list[list[Row]]()
        self._send(self._database.statements[statement], params)
        self._asked.append((place, found))

        def answer() -> list[Row]:
            if not found:
                self._answers()
            return found[0]

        return answer

    def execute(self, statement: str, /, **params: object) -> None:
        """Run a statement that returns nothing, together with those that follow."""
        self._send(self._database.statements[statement], params)

    def insert(self, into: RowSet, rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        if rows:
            self._send(_insert(self._schema, into), _columns(into, rows))
        if len(rows) > _MANY:
            # What waits is kept in memory.
            self._answers()

    def update(self, of: RowSet, rows: Sequence[Row]) -> None:
        """Give columns of rows new values."""
        with self._planned_for(of.table, len(rows)):
            self._send(_update(self._schema, of), _columns(of, rows))

    def end_rows(self, of: RowSet, rows: Sequence[Row], *, catalog: CatalogId, end: SnapshotId) -> None:
        """Set the end of a catalog's own live rows; checked with the other answers, before the commit."""
        ended = _columns(of, rows) | {"catalog": catalog, "end": end}
        with self._planned_for(of.table, len(rows)):
            self._ends.append((self._sent, len(rows), of.table))
            self._send(_end(self._schema, of), ended)

    def allocate(self, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        """Draw the number of a snapshot, and numbers for what it creates."""
        (numbers,) = self.rows("allocate", catalog_ids=catalog_ids, file_ids=file_ids)
        return _allocation(numbers)

    def lock_head(
        self,
        catalog: CatalogId,
        *,
        only_at: SnapshotId | None = None,
        catalog_ids: int = 0,
        file_ids: int = 0,
    ) -> tuple[LockedHead, Allocation] | None:
        """Wait for the head, then draw numbers, in one statement."""
        found = self.rows(
            "lock_and_allocate", catalog=catalog, only_at=only_at, catalog_ids=catalog_ids, file_ids=file_ids
        )
        if not found:
            return None
        return locked_head(found[0][:4]), _allocation(found[0][4:])

    def record(self, record: Record) -> None:
        """Add a snapshot with what it did, and move the catalog's head to it, in one statement."""
        self._send(self._database.statements["record_snapshot"], asdict(record))

    def commit(self) -> None:
        """Make everything durable."""
        if self._ends or self._version is not None:
            self._answers()
        self._wire.send_command(_COMMIT)
        outcome = self._answers()[-1]
        if outcome.command_status != b"COMMIT":
            raise StoreError(f"PostgreSQL did not commit on {self._database.url}")
        self._finish()

    def rollback(self) -> None:
        """Undo everything; nothing happens if the transaction has ended."""
        if self._pid != os.getpid():
            # A forked child must not speak on its parent's connection.
            self._open = False
        if self._open:
            try:
                # What waits goes out with it, and is undone with the rest.
                self._wire.send_command(_ROLLBACK)
                self._wire.receive()
            except psycopg.Error:
                # The statement that failed has been reported; a connection in doubt is not kept.
                self._wire.close()
            finally:
                self._finish()

    def _send(self, query: PreparedQuery, params: Mapping[str, object]) -> None:
        self._check_open()
        with translated(self._database.url):
            self._wire.send(query, params)
        self._sent += 1

    @contextmanager
    def _planned_for(self, table: str, keys: int) -> Generator[None, None, None]:
        """Around a statement that looks for so many keys in a table."""
        if keys <= _MANY_KEYS:
            yield
            return
        asked = {"table": f"{quoted(self._schema)}.{table}", "keys": keys}
        self._send(PreparedQuery(_PLAN_FOR_MANY, self._schema), asked)
        yield
        self._send(PreparedQuery(_PLAN_AS_BEFORE, self._schema), {"mode": _PLANNING["plan_cache_mode"]})

    def _answers(self) -> list[pq.abc.PGresult]:
        self._check_open()
        with translated(self._database.url):
            answers = self._wire.receive()
        ends, self._ends, self._sent = self._ends, [], 0
        asked, self._asked = self._asked, []
        for place, found in asked:
            found.append(self._wire.rows(answers[place]))
        if self._version is not None:
            version, self._version = self._version(), None
            check_unchanged(self._database.url, version[0][0] if version else None)
        for place, expected, table in ends:
            ended = answers[place].command_tuples or 0
            if ended != expected:
                raise CorruptMetadata(f"{expected - ended} rows of {table} that should end are not live")
        return answers

    def _finish(self) -> None:
        self._open = False
        self._database.pool.give_back(self._wire)


def _allocation(answer: Row) -> Allocation:
    snapshot, timestamp, catalog_ids, file_ids, next_catalog_id, next_file_id = answer
    return Allocation(
        SnapshotId(snapshot),
        as_time(timestamp),
        tuple(catalog_ids),
        tuple(file_ids),
        next_catalog_id,
        next_file_id,
    )


def _columns(into: RowSet, rows: Sequence[Row]) -> dict[str, Any]:
    return {name: [row[place] for row in rows] for place, name in enumerate(into.columns)}


@lru_cache(_KEPT)
def _insert(schema: str, rows: RowSet) -> PreparedQuery:
    return PreparedQuery(insert_text("postgresql", rows), schema)


@lru_cache(_KEPT)
def _update(schema: str, rows: RowSet) -> PreparedQuery:
    return PreparedQuery(update_text("postgresql", rows), schema)


@lru_cache(_KEPT)
def _end(schema: str, rows: RowSet) -> PreparedQuery:
    return PreparedQuery(end_text("postgresql", rows), schema)


def _parameters(conninfo: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # What the client says quotes the URL.
        raise_alone(unreadable(conninfo, {option.keyword.decode() for option in pq.Conninfo.get_defaults()}))


def _hidden(text: str, parameters: Mapping[str, Any]) -> str:
    """A text without passwords, should it hold any."""
    for name in SECRET_OPTIONS & parameters.keys():
        # A very short one would be found in words of the text, and is no secret.
        if len(str(parameters[name])) > 3:
            text = text.replace(str(parameters[name]), "…")
    return text


def _shown(parameters: Mapping[str, Any], ours: Mapping[str, str]) -> str:
    """The URL without a password, for messages and for other processes that know the password."""
    given = {name: str(value) for name, value in parameters.items() if name not in SECRET_OPTIONS}
    user, name = given.pop("user", ""), given.pop("dbname", "")
    place = ""
    # Of several servers, the list has no place before the path.
    if "," not in given.get("host", "") + given.get("port", ""):
        host, port = given.pop("host", ""), given.pop("port", "")
        place = (f"[{host}]" if ":" in host else quote(host, safe="")) + (port and f":{port}")
    before = (user and f"{quote(user, safe='')}@") + place
    options = urlencode({**given, **ours}, quote_via=quote)
    return f"postgresql://{before}/{quote(name, safe='')}?{options}"


@contextmanager
def translated(url: str) -> Generator[None, None, None]:
    """Turn PostgreSQL's errors into ours, by their SQLSTATE."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        raise UniqueViolation(str(error)) from error
    except psycopg.Error as error:
        if error.sqlstate in LOST_STATEMENT:
            raise Interrupted(
                f"a pooler before {url} does not keep prepared statements: add prepared_statements=off "
                f"to the URL ({_first_line(error)})"
            ) from error
        if _again(error):
            raise Interrupted(f"{url} gave up: {_first_line(error)}; try again") from error
        raise _error(url, error) from error


def _again(error: psycopg.Error) -> bool:
    """Whether a fresh transaction may succeed: serialisation, deadlock, shutdown, a connection that broke."""
    state = error.sqlstate or ""
    broke = not state and isinstance(error, psycopg.OperationalError)
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
