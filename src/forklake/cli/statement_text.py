"""Statements that somebody types: whether one is complete, and where it stands in a text. Pure."""

from __future__ import annotations

from forklake.sql.parser.problems import place_of
from forklake.sql.parser.tokens import TOKEN


def is_complete(text: str) -> bool:
    """Whether a text ends a statement: with a semicolon that is in no text, comment or bracket."""
    last = ""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None or found.lastgroup in (None, "open"):
            return False
        if found.lastgroup == "end":
            break
        last = found[found.lastgroup]
        at = found.end()
    return last == ";"


def placed(text: str, start: int, message: str) -> str:
    """A message about a statement of a text, with the line and column where the statement begins."""
    found = TOKEN.match(text, start)
    begin = start if found is None or found.lastgroup is None else found.start(found.lastgroup)
    line, column = place_of(text, begin)
    return f"line {line}, column {column}: {message}"
