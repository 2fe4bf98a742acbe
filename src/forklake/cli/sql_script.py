"""Statements that are run one after the other: those of a script, or of one input at the prompt."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from forklake.cli.rows_shown import write_lines
from forklake.cli.sql_output import ScriptOutput, result_lines
from forklake.cli.statement_text import placed
from forklake.errors import ForklakeError, InvalidSql
from forklake.sql.options import SqlOptions
from forklake.sql.parser.parse import parse

if TYPE_CHECKING:
    from forklake.api.sql_result import SqlResult
    from forklake.sql.session import Session
    from forklake.sql.statements import Parsed


@dataclass(frozen=True, slots=True)
class Script:
    """Statements with their parameters, and what they may do."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: SqlOptions = field(default_factory=SqlOptions)
    one_transaction: bool = False

    def run(self, session: Session, output: ScriptOutput) -> None:
        """Run all of it, and print what comes of it. The first error ends it, and says where it is.

        Nothing is run if anything does not parse, or if there is a parameter that no statement has.
        """
        parsed = parse(self.text)
        self._check_parameters(parsed)
        engine = session.context.engine
        last: SqlResult | None = None
        with self._transaction(session):
            for one, result in self._results(session, parsed):
                if output.is_text:
                    with self._placed(one):
                        write_lines(result_lines(engine, one.text, result))
                elif result.columns:
                    if last is not None:
                        last.close()
                    last = result
            if not output.is_text:
                output.write_last(engine, last)

    def _results(self, session: Session, parsed: list[Parsed]) -> Iterator[tuple[Parsed, SqlResult]]:
        for one in parsed:
            params = {name: value for name, value in self.params.items() if name in one.parameters}
            with self._placed(one):
                result = session.execute(one.statement, params or None, self.options)
            yield one, result

    @contextmanager
    def _transaction(self, session: Session) -> Generator[None]:
        if self.one_transaction:
            session.begin()
        try:
            yield
            if session.open is not None:
                if not self.one_transaction:
                    raise InvalidSql(
                        "the statements end within a transaction, which was rolled back: end it with COMMIT"
                    )
                session.commit()
        finally:
            if session.open is not None:
                session.rollback()

    def _check_parameters(self, parsed: list[Parsed]) -> None:
        known = frozenset[str]().union(*(one.parameters for one in parsed))
        unknown = [name for name in self.params if name not in known]
        if unknown:
            shown = ", ".join(f"${name}" for name in sorted(known)) or "none"
            raise InvalidSql(f"no statement has a parameter ${unknown[0]}; there is {shown}")

    @contextmanager
    def _placed(self, one: Parsed) -> Generator[None]:
        """Say where the statement is that an error is about."""
        try:
            yield
        except ForklakeError as error:
            if isinstance(error, InvalidSql) and error.line is not None:
                raise
            error.args = (placed(self.text, one.start, str(error)), *error.args[1:])
            raise


def read_parameters(given: list[str]) -> dict[str, Any]:
    """`name=value` as parameters: numbers, true, false and null are what they are, all else is text."""
    params: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is no parameter: write NAME=VALUE")
        params[name.removeprefix("$")] = parameter_value(value)
    return params


_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_READERS: tuple[Callable[[str], Any], ...] = (int, float)


def parameter_value(text: str) -> Any:
    """A value: `7`, `1.5`, `true`, `null`, and text, which may stand in quotes: `'7'`."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1].lstrip("+-").isdigit() or text[:2].lstrip("+-.")[:1].isdigit():
        for read in _READERS:
            try:
                return read(text)
            except ValueError:
                continue
    return text
