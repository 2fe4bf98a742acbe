"""The statements of an upgrade, as they are run: each is kept, so that it can be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from forklake.store.backend import Home, Row, SchemaSession
from forklake.store.statements import Dialect, parse

_PARAMETER = re.compile(r"\$([a-z_]+)")
_ROWS_AT_A_TIME = 500


class Script:
    """Runs the statements of an upgrade in its transaction, and remembers those that change something."""

    def __init__(self, session: SchemaSession, dialect: Dialect, home: Home | None) -> None:
        """Run nothing yet."""
        self._session = session
        self.dialect: Dialect = dialect
        self.home = home
        """Where the database is."""
        self.statements: list[str] = []

    def rows(self, text: str, **params: int | str) -> list[Row]:
        """Run a query."""
        return self._session.query(_filled(text, params))

    def run(self, text: str, **params: int | str) -> None:
        """Run a statement that changes something."""
        written = _filled(text, params)
        self.statements.append(written)
        self._session.run_script(written + ";\n")

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[int | str]]) -> None:
        """Add rows to a table."""
        written = ["(" + ", ".join(map(literal, row)) + ")" for row in rows]
        for start in range(0, len(written), _ROWS_AT_A_TIME):
            values = ",\n       ".join(written[start : start + _ROWS_AT_A_TIME])
            self.run(f"INSERT INTO {table} ({', '.join(columns)})\nVALUES {values}")


@cache
def named(name: str) -> Mapping[str, str]:
    """The statements of a file in this folder, by their names."""
    return parse(files("forklake.store.upgrades").joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def literal(value: int | str) -> str:
    """A value as SQL writes it."""
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _filled(text: str, params: Mapping[str, int | str]) -> str:
    # A statement is looked at once: no value is taken for a parameter.
    return _PARAMETER.sub(lambda match: literal(params[match[1]]), text) if params else text
