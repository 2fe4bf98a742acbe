"""The dialect: how SQLAlchemy connects, and what a lake can do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from sqlalchemy import exc, util
from sqlalchemy import types as sa
from sqlalchemy.dialects.postgresql import INTERVAL

from forklake.api.connect import connect as open_lake
from forklake.dbapi.connection import connect_to
from forklake.dbapi.exceptions import InterfaceError, translated
from forklake.sqlalchemy.compilers import (
    ForklakeCompiler,
    ForklakeDDLCompiler,
    ForklakePreparer,
    ForklakeTypeCompiler,
)
from forklake.sqlalchemy.reflection import MAIN, Reflection, session_of

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

    from forklake.api.lake import Lake
    from forklake.dbapi import Connection as DriverConnection

_FLAGS = ("create", "read_only")
_NUMBERS = {"max_rows": int, "max_seconds": float}
_TEXTS = ("catalog", "data_path", "max_memory")


class ForklakeDialect(Reflection):
    """`forklake+sqlite://…?catalog=name`, `forklake+duckdb://…` and `forklake+postgresql://…`."""

    name = "forklake"
    driver = "forklake"
    default_paramstyle = "qmark"
    default_schema_name = MAIN
    max_identifier_length = 255

    preparer = ForklakePreparer
    statement_compiler = ForklakeCompiler
    ddl_compiler = ForklakeDDLCompiler
    type_compiler_cls = ForklakeTypeCompiler
    colspecs = {sa.Interval: INTERVAL}  # noqa: RUF012

    supports_statement_cache = True
    supports_alter = True
    supports_comments = True
    supports_default_values = True
    supports_multivalues_insert = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_native_enum = False
    supports_sequences = False
    supports_identity_columns = True  # So that they are refused, not forgotten.
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_schemas = True
    supports_views = True
    supports_is_distinct_from = True
    returns_native_bytes = True
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    use_insertmanyvalues = True
    # What PostgreSQL's compilers ask for.
    _backslash_escapes = False
    _supports_jsonb_subscripting = False

    def __init__(self, **kwargs: Any) -> None:
        """Open nothing yet."""
        super().__init__(**kwargs)
        self._lakes = _OpenLakes()

    @classmethod
    def import_dbapi(cls) -> Any:
        """The driver."""
        from forklake import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> Any:
        """The URL of the lake, and what follows the question mark as options."""
        kind = url.drivername.partition("+")[2]
        options: dict[str, Any] = {name: url.query[name] for name in _TEXTS if name in url.query}
        options |= {name: util.asbool(url.query[name]) for name in _FLAGS if name in url.query}
        options |= {name: read(str(url.query[name])) for name, read in _NUMBERS.items() if name in url.query}
        if "allow" in url.query:
            allowed = url.query["allow"]
            options["allow"] = [allowed] if isinstance(allowed, str) else list(allowed)
        if not options.get("catalog"):
            raise exc.ArgumentError("the URL names no catalog: forklake+sqlite:///lake.db?catalog=shop")
        place = url.difference_update_query([*_TEXTS, *_FLAGS, *_NUMBERS, "allow"]).set(drivername=kind)
        return [place.render_as_string(hide_password=False)], options

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        """A connection; all of an engine share one open lake."""
        (url,) = cargs
        with translated():
            lake = self._lakes.take(url, cparams)
            try:
                return connect_to(lake, release=lambda: self._lakes.give_back(url), **cparams)
            except BaseException:
                self._lakes.give_back(url)
                raise

    def initialize(self, connection: Connection) -> None:
        """Nothing is asked: all lakes can do the same."""
        self.default_isolation_level = "REPEATABLE READ"

    def do_ping(self, dbapi_connection: Any) -> bool:
        """A connection that is open works: the lake opens those of the database again by itself."""
        return not dbapi_connection.closed

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Whether it was closed."""
        return isinstance(e, InterfaceError) and connection is not None and bool(connection.closed)

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement, if there is one: an index is none."""
        if statement:
            cursor.execute(statement, parameters)

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """Run a statement, if there is one."""
        self.do_execute(cursor, statement, None, context)

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        """A transaction reads one snapshot; AUTOCOMMIT has none."""
        return ["REPEATABLE READ", "AUTOCOMMIT"]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """What the connection does."""
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "REPEATABLE READ"

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        """What a new connection does."""
        return "REPEATABLE READ"

    def set_isolation_level(self, dbapi_connection: DriverConnection, level: Any) -> None:  # pyright: ignore
        """Turn commits by statement on or off."""
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def _get_server_version_info(self, connection: Connection) -> Any:
        return None

    def _get_default_schema_name(self, connection: Connection) -> str:
        return session_of(connection).schema


class _OpenLakes:
    """The lakes that the connections of one engine use, each opened once."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Lake, int]] = {}

    def take(self, url: str, options: dict[str, Any]) -> Lake:
        """A lake, opened if it is not; give it back when the connection is closed."""
        with self._lock:
            found = self._open.get(url)
            if found is None:
                found = (
                    open_lake(url, create=options.get("create", False), data_path=options.get("data_path")),
                    0,
                )
            self._open[url] = (found[0], found[1] + 1)
            return found[0]

    def give_back(self, url: str) -> None:
        """The last closes it."""
        with self._lock:
            lake, users = self._open[url]
            if users > 1:
                self._open[url] = (lake, users - 1)
                return
            del self._open[url]
        lake.close()


__all__ = ["ForklakeDialect"]
