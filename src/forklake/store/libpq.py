"""Statements sent through libpq in as few packets as possible.

psycopg sends every statement of a pipeline by itself, which wakes the server each time. Here all that needs
no answer yet waits in libpq's buffer and goes out as one packet; `make bench-commit` shows what that gains.

Nothing here relies on a session. Names are written with their schema, so that no statement can reach a lake
next door, whatever search path it meets. Behind a pooler, what a transaction needs is sent along with it.
"""

from __future__ import annotations

import re
import select
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import count
from secrets import token_hex
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from forklake.model.names import quoted
from forklake.store.backend import Row

_PARAMETER = re.compile(r"\$([a-z_]\w*)")
_RELATION = re.compile(
    r"""(?<![\w.$"'])(?P<name>(?:ducklake|visible)_\w+)|'(?P<text>ducklake_\w+)'|current_schema\(\)"""
)
_STATEMENT_IS_MISSING, _STATEMENT_IS_THERE = "26000", "42P05"
LOST_STATEMENT = (_STATEMENT_IS_MISSING, _STATEMENT_IS_THERE)
"""How a pooler fails that gives a connection another server process and knows nothing of its statements."""
_ESCAPED = re.compile(r'(["\\])')
_NOTHING = object()


class PreparedQuery:
    """A statement with named parameters, as libpq takes it: numbered, on the tables of one schema."""

    def __init__(self, text: str, schema: str) -> None:
        """Do nothing yet: most programs run few of all statements."""
        self._text = text
        self._schema = schema

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters in the order in which they first appear."""
        return tuple(dict.fromkeys(_PARAMETER.findall(self._text)))

    @cached_property
    def text(self) -> bytes:
        """What the server gets."""
        numbers = {name: f"${place}" for place, name in enumerate(self.names, 1)}
        # In this order: the name of a schema may look like a parameter.
        numbered = _PARAMETER.sub(lambda match: numbers[match[1]], self._text)
        return _in_schema(numbered, self._schema).encode()

    def values(self, params: Mapping[str, object]) -> list[bytes | None]:
        """The parameters in order, as text."""
        return [_encoded(params[name]) for name in self.names]


class Wire:
    """A connection in pipeline mode for all its life.

    Statements are prepared when they are first sent, once it is known that they can be found again.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Take a connection over; psycopg must not run statements on it any more."""
        self._connection = connection
        self._server = connection.pgconn
        self._transformer = Transformer(connection)
        self.prepares = False
        """Whether what was prepared here can be run in later transactions."""
        self.settings: tuple[PreparedQuery, Mapping[str, object]] | None = None
        """A statement that each transaction begins with, if another server process may run it each time."""
        self._prepared: dict[bytes, bytes] = {}
        # Clients of one pooler may meet each other's statements.
        token = token_hex(8)
        self._names = (f"forklake_{token}_{number}".encode() for number in count())
        self._waiting: list[bytes | bool] = []
        """What answers are due: the text of a statement being prepared, or whether the answer is wanted."""
        self._server.enter_pipeline_mode()

    @property
    def process(self) -> int:
        """The server process that the connection was said to have when it was opened."""
        return self._server.backend_pid

    def keeps_names(self, probe: PreparedQuery) -> bool:
        """Whether the server knows a statement by the name under which it was prepared here.

        A pooler that keeps track of prepared statements gives them names of its own. The `probe` looks for
        a $name; whoever shares the server process is not left with it.
        """
        name = next(self._names)
        self.send_command(b"BEGIN")
        self._server.send_prepare(name, probe.text)
        self._server.send_query_prepared(name, probe.values({"name": name.decode()}))
        self._waiting += [False, True]
        found = bool(self.rows(self.receive()[-1]))
        if found:
            self.send_command(b"DEALLOCATE " + name)
        self.send_command(b"COMMIT")
        self.receive()
        return found

    def begin(self, command: bytes) -> None:
        """Let the begin of a transaction wait for the next `receive`."""
        self.send_command(command)
        self._send_settings()

    def read(self, query: PreparedQuery, params: Mapping[str, object]) -> list[Row]:
        """Run one query by itself: what is sent together is one transaction."""
        self._send_settings()
        self.send(query, params)
        return self.rows(self.receive()[-1])

    def send(self, query: PreparedQuery, params: Mapping[str, object], *, wanted: bool = True) -> None:
        """Let a statement wait for the next `receive`."""
        if self.prepares:
            name = self._prepared.get(query.text)
            if name is None:
                name = self._prepared[query.text] = next(self._names)
                self._server.send_prepare(name, query.text)
                self._waiting.append(query.text)
            self._server.send_query_prepared(name, query.values(params))
        else:
            self._server.send_query_params(query.text, query.values(params))
        self._waiting.append(wanted)

    def send_command(self, text: bytes) -> None:
        """Let a command such as COMMIT, which needs no planning, wait for the next `receive`."""
        self._server.send_query_params(text, None)
        self._waiting.append(True)

    def receive(self) -> list[pq.abc.PGresult]:
        """Send what waits, and return the answer to each statement; the first failure is raised."""
        try:
            return self._receive()
        except psycopg.Error as error:
            if error.sqlstate in (None, *LOST_STATEMENT):
                self._server.finish()
            raise
        except BaseException:
            # Somebody gave up waiting: nobody knows any more which answer belongs to what.
            self._server.finish()
            raise

    def is_usable(self) -> bool:
        """Whether the connection is open and silent. What a server says unasked is that it has closed it."""
        if self._server.status != pq.ConnStatus.OK or self._waiting:
            return False
        poll = select.poll()
        poll.register(self._server.socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _receive(self) -> list[pq.abc.PGresult]:
        due, self._waiting = self._waiting, []
        self._server.pipeline_sync()
        self._flush()
        answers: list[pq.abc.PGresult] = []
        failure: pq.abc.PGresult | None = None
        for what in due:
            answer = self._next()
            if answer.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED):
                if failure is None:
                    failure = answer
                if isinstance(what, bytes):
                    del self._prepared[what]
            if what is True:
                answers.append(answer)
        self._next(last=True)
        if failure is not None:
            raise error_from_result(failure)
        return answers

    def rows(self, answer: pq.abc.PGresult) -> list[Row]:
        """The rows of an answer as Python values."""
        self._transformer.set_pgresult(answer)
        return self._transformer.load_rows(0, answer.ntuples, tuple)

    def _send_settings(self) -> None:
        if self.settings is not None:
            self.send(*self.settings, wanted=False)

    def _next(self, *, last: bool = False) -> pq.abc.PGresult:
        """The next answer; behind each but the last stands an empty one."""
        answer = self._result()
        if answer is None:
            raise psycopg.OperationalError("the server sent no answer")
        if not last and self._result() is not None:
            raise psycopg.OperationalError("the server sent two answers to one statement")
        return answer

    def _result(self) -> pq.abc.PGresult | None:
        while self._server.is_busy():
            _wait(self._server.socket, select.POLLIN)
            self._server.consume_input()
        return self._server.get_result()

    def _flush(self) -> None:
        while self._server.flush():
            # The server may stop reading until its own answers are taken.
            if _wait(self._server.socket, select.POLLIN | select.POLLOUT) & select.POLLIN:
                self._server.consume_input()


def run_now(connection: psycopg.Connection[Any], query: PreparedQuery, params: Mapping[str, object]) -> None:
    """Run a statement on a connection that no `Wire` has taken over."""
    answer = connection.pgconn.exec_params(query.text, query.values(params))
    if answer.status != pq.ExecStatus.COMMAND_OK:
        raise error_from_result(answer)


def _in_schema(text: str, schema: str) -> str:
    """A statement whose tables, views and sequences are those of one schema, whatever the search path is."""

    def written(match: re.Match[str]) -> str:
        if match["name"]:
            return f"{quoted(schema)}.{match['name']}"
        return _literal(f"{quoted(schema)}.{match['text']}" if match["text"] else schema)

    return _RELATION.sub(written, text)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _wait(socket: int, events: int) -> int:
    poll = select.poll()
    poll.register(socket, events)
    return poll.poll()[0][1]


def _encoded(value: object) -> bytes | None:
    match value:
        case None:
            return None
        case bool():
            return b"t" if value else b"f"
        case str():
            return value.encode()
        case datetime():
            return value.isoformat().encode()
        case list() | tuple():
            return _array(value)
        case _:
            return str(value).encode()


def _array(values: Sequence[Any]) -> bytes:
    """An array literal; every element is quoted, so that none is taken for something else."""
    written: list[bytes] = []
    last, text = _NOTHING, b""
    for value in values:
        # What a commit writes for many is often the same for all.
        if value is not last:
            last, text = value, _element(value)
        written.append(text)
    return b"{" + b",".join(written) + b"}"


def _element(value: object) -> bytes:
    if value is None:
        return b"NULL"
    if isinstance(value, int):
        return b"%d" % value
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    if '"' in text or "\\" in text:
        text = _ESCAPED.sub(r"\\\1", text)
    return b'"' + text.encode() + b'"'
