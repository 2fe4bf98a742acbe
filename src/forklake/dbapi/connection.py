"""A connection of the DB-API: a session of SQL on a catalog, or on a whole lake, with its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

from forklake.api.connect import connect as open_lake
from forklake.api.handle import Handle
from forklake.api.lake import Lake
from forklake.dbapi import exceptions
from forklake.dbapi.cursor import Cursor
from forklake.dbapi.exceptions import InterfaceError, ProgrammingError, translated
from forklake.errors import ForklakeError
from forklake.sql.options import SqlOptions, checked_options
from forklake.sql.session import Session, session_of

_OF_STATEMENTS = ("read_only", "allow", "max_rows", "max_seconds", "max_memory")


class ConnectKeywords(TypedDict, total=False):
    """The options of `connect`."""

    create: bool
    autocommit: bool
    data_path: str | Path | None
    read_only: bool
    allow: Sequence[str]
    max_rows: int | None
    max_seconds: float | None
    max_memory: int | str | None


def connect(url: str | Lake, catalog: str | None = None, **options: Unpack[ConnectKeywords]) -> Connection:
    """Connect to a catalog of a lake, by the URL of the lake or with a lake that is open.

    Without a catalog, names begin with one, and each statement is committed by itself. `create` makes the
    lake and the catalog if they do not exist, with the data files in `data_path`. A transaction begins with
    the first statement, unless `autocommit` makes each statement one of its own. `read_only` refuses changes,
    `allow` lists folders whose files statements may read and write, `max_rows`, `max_seconds` and
    `max_memory` limit a statement.
    """
    if isinstance(url, Lake):
        return connect_to(url, catalog, lambda: None, **options)
    with translated():
        lake = open_lake(url, create=options.get("create", False), data_path=options.get("data_path"))
    try:
        return connect_to(lake, catalog, lake.close, **options)
    except BaseException:
        lake.close()
        raise


def connect_to(
    lake: Lake, catalog: str | None, release: Callable[[], None], **options: Unpack[ConnectKeywords]
) -> Connection:
    """Connect to a catalog of a lake that is open. `release` is called when the connection is closed."""
    with translated():
        checked = checked_options({name: value for name, value in options.items() if name in _OF_STATEMENTS})
        handle = None
        if catalog is not None:
            is_new = options.get("create", False) and catalog not in lake
            handle = lake.create_catalog(catalog, if_not_exists=True) if is_new else lake.catalog(catalog)
    session = session_of(lake, handle)
    return Connection(session, checked, release, autocommit=options.get("autocommit", False))


class Connection(Handle):
    """A connection. One thread at a time uses it.

    `with connect(…) as connection:` commits at the end, or rolls back after an exception, and closes.
    """

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(
        self, session: Session, options: SqlOptions, release: Callable[[], None], *, autocommit: bool
    ) -> None:
        """Use `connect`."""
        self._session = session
        self._options = options
        self._release = release
        self._autocommit = autocommit
        self._is_closed = False

    def __repr__(self) -> str:
        """The lake and the catalog."""
        state = ", closed" if self._is_closed else ""
        return f"<Connection to {self._session.lake.url}, catalog {self._session.catalog!r}{state}>"

    @property
    def session(self) -> Session:
        """The session behind the connection."""
        if self._is_closed:
            raise InterfaceError("the connection is closed: connect again")
        return self._session

    @property
    def options(self) -> SqlOptions:
        """What statements may do."""
        return self._options

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if value != self._autocommit and self.in_transaction:
            raise ProgrammingError("a transaction is open: commit it or roll it back first")
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.session.open is not None

    def begin_if_needed(self) -> None:
        """Begin the transaction that the next statement is part of, as the standard says."""
        session = self.session
        if not self._autocommit and session.open is None and session.handle is not None:
            session.begin()

    def cursor(self) -> Cursor:
        """Something that runs statements. All cursors of a connection share its transaction."""
        if self._is_closed:
            raise InterfaceError("the connection is closed: connect again")
        return Cursor(self)

    def commit(self) -> None:
        """Commit the transaction, if one is open: what it changed is one snapshot."""
        session = self.session
        if session.open is not None:
            with translated():
                session.commit()

    def rollback(self) -> None:
        """Discard what the transaction changed, if one is open."""
        session = self.session
        if session.open is not None:
            with translated():
                session.rollback()

    def close(self) -> None:
        """Close it. A transaction that is open is rolled back."""
        session = self.session
        self._is_closed = True
        with suppress(ForklakeError):
            if session.open is not None:
                session.rollback()
        with translated():
            self._release()

    def __enter__(self) -> Self:
        """Begin the block."""
        if self._is_closed:
            raise InterfaceError("the connection is closed: connect again")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back after an exception, and close."""
        if self._is_closed:
            return
        try:
            if error is None:
                self.commit()
        finally:
            self.close()
