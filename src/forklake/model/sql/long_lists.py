"""Long lists of literals after IN, taken out of a text before it is parsed. Pure.

A parser of SQL takes microseconds for every literal, which are seconds for a hundred thousand of them; a
regular expression takes them all at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal as Choice

MANY = 200
"""Shorter lists are left to the parser."""

_NUMBER = r"-?\d{1,38}(?:\.\d{1,38})?"
_TEXT = r"'(?:[^']|'')*+'"
# What comes before a list: texts and names in quotes are passed over, and after anything that could be a
# comment or another kind of quotes, such as $$ or E'', nothing is certain any more.
_BEFORE = re.compile(
    rf"""{_TEXT}|"(?:[^"]|"")*"|(?P<odd>--|/\*|\$|`|\b[A-Za-z]')|\b[Ii][Nn]\s*\((?P<list>)"""
)
_LISTS = {
    "number": re.compile(rf"\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*+\s*(?=\))", re.ASCII),
    "text": re.compile(rf"\s*{_TEXT}(?:\s*,\s*{_TEXT})*+\s*(?=\))"),
}
_TEXTS = re.compile(_TEXT)


@dataclass(frozen=True)
class LongList:
    """The literals of a list, as they were written."""

    text: str
    kind: Choice["number", "text"]

    @cached_property
    def texts(self) -> list[str]:
        """Each literal: the digits of a number, or what a text says."""
        if self.kind == "number":
            return [part.strip() for part in self.text.split(",")]
        return [part[1:-1].replace("''", "'") for part in _TEXTS.findall(self.text)]

    @property
    def has_fractions(self) -> bool:
        """Whether a number is written with a point."""
        return "." in self.text

    @cached_property
    def widest(self) -> int:
        """The length of the longest literal."""
        return max(map(len, self.texts))


def shortened(text: str) -> tuple[str, Mapping[str, LongList]]:
    """The text with a string literal, the mark, in the place of each long list; and the lists by mark."""
    if not isinstance(text, str) or text.count(",") < MANY:  # pyright: ignore[reportUnnecessaryIsInstance]
        return text, {}
    mark = "long list"
    while mark in text:
        mark += "!"
    found: dict[str, LongList] = {}
    pieces: list[str] = []
    done = 0
    at = 0
    while (before := _BEFORE.search(text, at)) is not None and before["odd"] is None:
        at = before.end()
        if before["list"] is None:
            continue
        for kind, pattern in _LISTS.items():
            inside = pattern.match(text, at)
            if inside is not None and inside[0].count(",") >= MANY:
                name = f"{mark} {len(found)}"
                found[name] = LongList(inside[0].strip(), "number" if kind == "number" else "text")
                pieces += [text[done:at], f"'{name}'"]
                done = at = inside.end()
                break
    if not found:
        return text, {}
    return "".join((*pieces, text[done:])), found
