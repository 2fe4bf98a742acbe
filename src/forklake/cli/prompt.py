"""The interactive prompt for SQL: lines, history and completion; Ctrl-C ends a statement, Ctrl-D leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, InMemoryHistory

from forklake.cli.backslash import Leave, PromptState, run_backslash
from forklake.cli.completion import SqlCompleter
from forklake.cli.pager import show_pages
from forklake.cli.sql_output import result_lines
from forklake.cli.statement_text import is_complete
from forklake.cli.waiting import Waiting
from forklake.display import literal
from forklake.errors import ForklakeError, InvalidSql
from forklake.sql.parser.parse import parse
from forklake.version import VERSION

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from forklake.sql.options import SqlOptions
    from forklake.sql.session import Session
    from forklake.sql.statements import Parsed

_MOST_ROWS = 10_000
"""How many rows of a result are shown; a file can have all of them."""


class Prompt:
    """Asks for statements and shows their results, until the person leaves."""

    def __init__(self, session: Session, options: SqlOptions, params: Mapping[str, Any]) -> None:
        """On a session."""
        self._state = PromptState(session, self._run)
        self._options = options
        self._params = params

    def run(self) -> None:
        """Ask and run, again and again."""
        place = literal(self._state.session.lake.url)
        typer.echo(f"forklake {VERSION} on {place}; \\? for help, \\q to leave.")
        asked = self._prompt()
        while True:
            try:
                text = asked.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            try:
                self._take(text)
            except Leave:
                break
            except KeyboardInterrupt:
                _complain("interrupted")
            except ForklakeError as error:
                _complain(str(error), text, error)
            except OSError as error:
                _complain(str(error))
        self._leave()

    def _take(self, text: str) -> None:
        if text.strip().startswith("\\"):
            run_backslash(text, self._state)
        else:
            self._run(text)

    def _run(self, text: str) -> None:
        for one in parse(text):
            self._run_one(one)

    def _run_one(self, one: Parsed) -> None:
        session = self._state.session
        params = {name: value for name, value in self._params.items() if name in one.parameters}
        begun = time.perf_counter()
        with Waiting():
            result = session.execute(one.statement, params or None, self._options)
            lines = list(
                result_lines(
                    session.context.engine, one.text, result, most=_MOST_ROWS, blocks=self._state.blocks
                )
            )
        taken = time.perf_counter() - begun
        show_pages(lines, paged=self._state.pager)
        if self._state.timing:
            typer.echo(f"Time: {taken * 1000:.1f} ms")

    def _leave(self) -> None:
        session = self._state.session
        if session.open is not None:
            session.rollback()
            _complain("the transaction was not committed, and is rolled back")

    def _prompt(self) -> PromptSession[str]:
        asked: PromptSession[str] = PromptSession(
            self._name,
            prompt_continuation=lambda width, line, wrapped: "-> ".rjust(width),
            history=_history(),
            completer=SqlCompleter(self._state),
            complete_while_typing=False,
            enable_open_in_editor=True,
            enable_suspend=True,
        )
        # Enter makes another line until the statement is complete.
        asked.multiline = Condition(lambda: not _is_whole(asked.default_buffer.text))
        return asked

    def _name(self) -> str:
        session = self._state.session
        return f"{literal(session.catalog or 'lake')}{'' if session.open is None else '*'}> "


def _is_whole(text: str) -> bool:
    """Whether Enter runs what was typed."""
    return not text.strip() or text.lstrip().startswith("\\") or is_complete(text)


def _history() -> History:
    """What was typed before, in a file that only its owner may read."""
    path = Path(os.environ.get("FORKLAKE_HISTORY") or Path.home() / ".forklake_history")
    try:
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _complain(message: str, text: str = "", error: ForklakeError | None = None) -> None:
    """Say what is wrong, and show the place in what was typed."""
    for line in message.splitlines():
        typer.secho(literal(line), fg="red", err=True)
    if isinstance(error, InvalidSql) and error.line is not None and error.column is not None:
        lines = text.splitlines()
        if len(lines) > 1 and error.line <= len(lines):
            typer.echo(f"{literal(lines[error.line - 1])}\n{' ' * (error.column - 1)}^", err=True)
