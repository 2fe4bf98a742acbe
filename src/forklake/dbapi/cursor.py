"""A cursor of the DB-API: runs statements and hands out rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from forklake.api.handle import Handle
from forklake.api.sql_result import SqlResult
from forklake.dbapi.exceptions import InterfaceError, ProgrammingError, translated
from forklake.dbapi.parameters import ROWS, in_one_insert, tables_of, with_dollars
from forklake.engine.row_values import python_rows
from forklake.lazy.arrow import pa
from forklake.sql.parser.parse import parse
from forklake.sql.statements import Insert, Parsed, Statement, TransactionControl

if TYPE_CHECKING:
    from forklake.dbapi.connection import Connection

Values = Sequence[Any] | Mapping[str, Any]
Row = tuple[Any, ...]
Described = tuple[str, str, None, None, int | None, int | None, None]

_WHOLE = ("HUGEINT", "UHUGEINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


class Cursor(Handle):
    """Runs statements, and gives the rows of the last one."""

    def __init__(self, connection: Connection) -> None:
        """Use `Connection.cursor`."""
        self.connection = connection
        """The connection that it belongs to."""
        self.arraysize = 1
        """How many rows `fetchmany` gives if it is not told."""
        self.description: tuple[Described, ...] | None = None
        """Of each column: name, type, and for decimals precision and scale. None without rows."""
        self.rowcount = -1
        """How many rows were inserted, updated or deleted; -1 if that is not known or not asked."""
        self.lastrowid: int | None = None
        """Always None: tables have no keys that the lake makes up."""
        self._rows: Iterator[Row] | None = None
        self._result: SqlResult | None = None
        self._is_closed = False

    # ---- Running ---

    def execute(self, operation: str, parameters: Values | None = None) -> Self:
        """Run a statement, or several; the result is that of the last. Returns the cursor.

        `?` takes values from a sequence, `$name` and `:name` from a dict.
        """
        self._begin()
        if isinstance(parameters, Mapping):
            operation = with_dollars(operation, parameters)
        connection = self.connection
        with translated():
            parsed = parse(operation)
            if not any(isinstance(one.statement, TransactionControl) for one in parsed):
                connection.begin_if_needed()
                self._take(connection.session.run(operation, parameters or None, connection.options))
                return self
            for one in parsed:
                if isinstance(one.statement, TransactionControl):
                    self._control(one.statement)
                else:
                    connection.begin_if_needed()
                    given = parameters if one.parameters else None
                    self._take(connection.session.run(one.text, given, connection.options))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Values]) -> Self:
        """Run a statement for each of many parameters; an INSERT of VALUES inserts all of them at once.

        What it changes is committed together, with `autocommit` too.
        """
        self._begin()
        rows = list(seq_of_parameters)
        if rows and isinstance(rows[0], Mapping):
            operation = with_dollars(operation, rows[0])
        connection = self.connection
        session = connection.session
        with translated():
            parsed = parse(operation)
            if len(parsed) != 1 or isinstance(parsed[0].statement, TransactionControl):
                raise ProgrammingError("executemany runs one statement that changes rows")
            connection.begin_if_needed()
            is_own = session.open is None and session.handle is not None
            if is_own:
                session.begin()
            try:
                self.rowcount = self._run_many(parsed[0], rows)
                if is_own:
                    session.commit()
            finally:
                if is_own and session.open is not None:
                    session.rollback()
        return self

    def _run_many(self, parsed: Parsed, rows: Sequence[Any]) -> int:
        session, options = self.connection.session, self.connection.options
        statement: Statement = parsed.statement
        many = in_one_insert(statement) if isinstance(statement, Insert) else None
        count = 0
        for part in [rows] if many is None else tables_of(many[1], rows):
            if many is not None and isinstance(part, pa.Table):
                count += session.execute(many[0], None, options, {ROWS: part}).rows_affected or 0
                continue
            for values in part:
                result = session.run(parsed.text, values, options)
                if result.rows_affected is None:
                    raise ProgrammingError("executemany runs one statement that changes rows")
                count += result.rows_affected
        return count

    def _control(self, statement: TransactionControl) -> None:
        """BEGIN, COMMIT or ROLLBACK as text."""
        connection = self.connection
        match statement.action:
            case "begin":
                session = connection.session
                if connection.autocommit or not connection.in_transaction:
                    session.begin(read_only=statement.read_only)
                elif statement.read_only:
                    # It has begun by itself: from here on it only reads.
                    session.is_read_only = True
            case "commit":
                connection.commit()
            case "rollback":
                connection.rollback()

    # ---- Rows ---

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        with translated():
            return next(self._fetched(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, `arraysize` of them unless it is said how many."""
        with translated():
            return list(islice(self._fetched(), self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        with translated():
            return list(self._fetched())

    def __iter__(self) -> Self:
        """One row after the other."""
        return self

    def __next__(self) -> Row:
        """The next row."""
        with translated():
            return next(self._fetched())

    # ---- What the standard has beside it ---

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing: values have the size that they have."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are read as a whole."""

    def close(self) -> None:
        """Close it. It cannot be used any more."""
        self._forget()
        self._is_closed = True

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Of which connection."""
        return f"<Cursor of {self.connection!r}>"

    def _begin(self) -> None:
        """Forget the last result, and see that there may be another."""
        self._check_open()
        self._forget()
        self.rowcount = -1

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed: ask the connection for another")
        if self.connection.closed:
            raise InterfaceError("the connection is closed: connect again")

    def _forget(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result = self._rows = self.description = None

    def _take(self, result: SqlResult) -> None:
        self._forget()
        self.rowcount = -1 if result.rows_affected is None else result.rows_affected
        if result.columns and not result.is_count:
            self._result = result
            self.description = tuple(map(_described, result.columns, result.types))
            self._rows = self._read(result)

    def _read(self, result: SqlResult) -> Iterator[Row]:
        engine = self.connection.session.context.engine
        whole = [at for at, kind in enumerate(result.types) if kind in _WHOLE]
        for batch in result.to_batches():
            rows = python_rows(engine, batch)
            yield from _with_whole(rows, whole) if whole else rows

    def _fetched(self) -> Iterator[Row]:
        self._check_open()
        if self._rows is None:
            raise ProgrammingError("there are no rows to fetch: the last statement returned none")
        return self._rows


def _with_whole(rows: Iterable[Row], places: Sequence[int]) -> Iterator[Row]:
    """Rows in which some columns hold whole numbers, which Arrow has as decimals."""
    for row in rows:
        values = list(row)
        for place in places:
            values[place] = None if values[place] is None else int(values[place])
        yield tuple(values)


def _described(name: str, kind: str) -> Described:
    decimal = _DECIMAL.fullmatch(kind)
    precision, scale = (None, None) if decimal is None else (int(decimal[1]), int(decimal[2]))
    return name, kind, None, None, precision, scale, None
