"""Texts that DuckDB has no tree for, such as PIVOT: whether they parse, and what they may name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forklake.engine.check_sql import check_statement

_PIECE = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$"""
    r"""|(?P<chain>(?:"(?:[^"]|"")*"|[^\W\d]\w*)(?:\s*\.\s*(?:"(?:[^"]|"")*"|[^\W\d]\w*))*)(?P<call>\s*\()?""",
    re.DOTALL,
)
_PART = re.compile(r'"(?:[^"]|"")*"|[^\W\d]\w*')
_STRING = re.compile(r"\s*'((?:[^']|'')*)'\s*[,)]")


def check_syntax(text: str) -> None:
    """Refuse a text that DuckDB does not parse, with line and column."""
    check_statement(text)


def names_in(text: str) -> Iterator[tuple[str, ...]]:
    """Whatever could be the name of a table."""
    seen: set[tuple[str, ...]] = set()
    for parts, _ in _chains(text):
        if len(parts) <= 3 and parts not in seen:
            seen.add(parts)
            yield parts


def calls_in(text: str) -> Iterator[tuple[tuple[str, ...], list[object]]]:
    """Whatever could be a call, with its first argument if that is a string."""
    for parts, end in _chains(text):
        if end is not None:
            string = _STRING.match(text, end)
            yield parts, [string[1].replace("''", "'")] if string else [None]


def _chains(text: str) -> Iterator[tuple[tuple[str, ...], int | None]]:
    for found in _PIECE.finditer(text):
        if found["chain"] is not None:
            parts = tuple(_unquoted(part) for part in _PART.findall(found["chain"]))
            yield parts, found.end() if found["call"] else None


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
