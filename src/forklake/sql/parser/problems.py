"""What to say of SQL that cannot be read: where it is, and what would be right."""

from __future__ import annotations

import re

from forklake.errors import InvalidSql

_SHOWN = 60
_LINE_END = re.compile(r"\r\n|\r|\n")


def place_of(text: str, at: int) -> tuple[int, int]:
    """Line and column of a place in a text, in characters from 1."""
    ends = [found.end() for found in _LINE_END.finditer(text, 0, at)]
    return len(ends) + 1, at - (ends[-1] if ends else 0) + 1


def syntax_error(text: str, at: int, problem: str, token: str | None = None) -> InvalidSql:
    """A statement that does not parse."""
    line, column = place_of(text, at)
    return InvalidSql(f"syntax error at line {line}, column {column}: {problem}", line, column, token)


def not_supported(text: str, at: int, syntax: str, instead: str) -> InvalidSql:
    """Syntax that DuckDB has and forklake does not, with what to do instead."""
    line, column = place_of(text, at)
    return InvalidSql(
        f"{syntax} is not supported (line {line}, column {column}): {instead}", line, column, syntax
    )


def shown(token: str) -> str:
    """A token in quotes, cut where it is long."""
    if not token:
        return "the end"
    cut = token if len(token) <= _SHOWN else token[: _SHOWN - 1] + "…"
    return f'"{cut}"' if '"' not in cut else cut
