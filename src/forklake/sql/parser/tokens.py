"""Tokens of SQL as DuckDB cuts them: one pattern for a token, others that only stop at what matters."""

from __future__ import annotations

import re
from functools import cache

from forklake.errors import InvalidSql
from forklake.sql.parser.problems import syntax_error

# DuckDB takes these for spaces, and every other character beyond ASCII for a letter.
_WIDE_SPACES = "\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
SPACES = " \t\n\r\f\u00a0" + "".join(map(chr, range(0x2000, 0x200C))) + "\u202f\u205f\u2060\u3000\ufeff"

_FIRST = rf"[^\x00-@\[-^`{{-\x7f{_WIDE_SPACES}]"
_LETTER = rf"[^\x00-#%-/:-@\[-^`{{-\x7f{_WIDE_SPACES}]"
_COMMENT = r"--[^\r\n]*|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/"
_TAG_LETTER = rf"[^\x00-/:-@\[-^`{{-\x7f{_WIDE_SPACES}]"
_TAG = rf"\$(?:{_FIRST}{_TAG_LETTER}*)?\$"
_NUMBER = r"(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?"

TOKEN = re.compile(
    rf"(?:[ \t\n\r\f{_WIDE_SPACES}]++|{_COMMENT})*+"
    rf"(?:(?P<escaped>[eE]'(?:[^'\\]++|\\.|'')*+')"
    rf"|(?P<word>{_FIRST}{_LETTER}*)"
    rf"|(?P<quoted>\"(?:[^\"]++|\"\")*+\")"
    rf"|(?P<string>'(?:[^']++|'')*+')"
    rf"|(?P<dollar>(?P<tag>{_TAG}).*?(?P=tag))"
    rf"|(?P<number>{_NUMBER})"
    rf"|(?P<open>/\*|[\"']|{_TAG})"
    rf"|(?P<parameter>\$[A-Za-z0-9_]+|\?[0-9]*)"
    rf"|(?P<sign>=>|:=|::|.)"
    rf"|(?P<end>\Z))",
    re.DOTALL,
)
"""Spaces and comments, and the token after them."""

# Every branch begins with one plain character, so that the search skips everything else quickly.
# An unfinished text or comment is found as its first characters.
_ESCAPED = rf"(?<=[eE]')(?<!{_LETTER}.')"
_TEXTS = (
    rf"'{_ESCAPED}(?:[^'\\]++|\\.|'')*+'|'(?!{_ESCAPED})(?:[^']++|'')*+'|'"
    rf"|\"(?:[^\"]++|\"\")*+\"|\""
    rf"|--[^\r\n]*|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/|/\*"
    rf"|\$(?<!{_LETTER}\$)(?=(?P<tag>(?:{_FIRST}{_TAG_LETTER}*)?)\$)(?P=tag)\$.*?\$(?P=tag)\$"
    rf"|\$(?<!{_LETTER}\$)(?=(?:{_FIRST}{_TAG_LETTER}*)?\$)"
)
# Brackets with nothing in them that needs a closer look, as most rows of VALUES have, are passed at once.
_SIMPLE = r"|\((?:[^()\[\]{}'\"$/;\-]++|'[^'\\]*+'|-(?!-)|/(?!\*))*+\)"
_BRACKETS = _SIMPLE + r"|\(|\)|\[|\]|\{|\}"
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_INSIDE = re.compile(_TEXTS + _BRACKETS, re.DOTALL)
_COMMENT_SIGNS = re.compile(r"/\*|\*/")
_PARAMETERS = re.compile(_TEXTS + rf"|\?[0-9]*|\$(?<!{_LETTER}\$)[A-Za-z0-9_]+", re.DOTALL)
_BEFORE_LABEL = re.compile(
    rf"(?:(?P<dot>\.)|(?<!{_LETTER})[aA][sS])[ \t\n\r\f{_WIDE_SPACES}]*\Z",
)
_NUMBER_BEFORE_DOT = re.compile(rf"(?<!{_LETTER})[0-9][0-9_]*\Z")
_DISTINCT = re.compile(rf"(?<!{_LETTER})(?ai:DISTINCT)[ \t\n\r\f{_WIDE_SPACES}]*\Z")
_WITH_DATA = re.compile(
    rf"(?<!{_LETTER})(?ai:WITH)(?:[ \t\n\r\f{_WIDE_SPACES}]|{_COMMENT})+"
    rf"(?ai:(?P<no>NO)(?:[ \t\n\r\f{_WIDE_SPACES}]|{_COMMENT})+)?(?ai:DATA)\Z"
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''", re.DOTALL
)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@cache
def stops_at(words: frozenset[str], comma: bool) -> re.Pattern[str]:
    """A pattern of texts, comments, brackets, `;` and the words and signs that end a part of a statement."""
    pattern = _TEXTS + _BRACKETS + "|;" + ("|," if comma else "")
    if words:
        pattern += rf"|(?<!{_LETTER})(?ai:{'|'.join(sorted(words))})(?!{_LETTER})"
    return re.compile(pattern, re.DOTALL)


def comment_end(text: str, at: int, limit: int) -> int:
    """Where a block comment ends that others may be inside of."""
    depth = 0
    for found in _COMMENT_SIGNS.finditer(text, at, limit):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    raise syntax_error(text, at, "this comment has no end: */ is missing", "/*")


def unfinished(text: str, at: int) -> InvalidSql:
    """A text in quotes without its end."""
    sign = text[at]
    what = {"'": "string", '"': "quoted name"}.get(sign, "string between dollars")
    return syntax_error(text, at, f"this {what} has no end", text[at : at + 20])


def closing(text: str, at: int, limit: int) -> int:
    """Where the bracket is that closes the one at a place."""
    expected = [_CLOSES[text[at]]]
    opened = [at]
    place = at + 1
    while True:
        for found in _INSIDE.finditer(text, place, limit):
            start = found.start()
            sign = text[start]
            if found.end() - start > 1:
                if found[0] == "/*":
                    break
            elif sign in _CLOSES:
                expected.append(_CLOSES[sign])
                opened.append(start)
            elif sign in ")]}":
                if sign != expected.pop():
                    before = text[opened[-1]]
                    raise syntax_error(text, start, f'"{sign}" does not close "{before}"', sign)
                if not expected:
                    return start
                opened.pop()
            else:
                raise unfinished(text, start)
        else:
            raise syntax_error(text, opened[-1], f'"{text[opened[-1]]}" is not closed', text[opened[-1]])
        place = comment_end(text, found.start(), limit)


def is_unfinished(text: str, found: re.Match[str]) -> bool:
    """Whether a comment begins that holds others; a text without its end is refused."""
    written = found[0]
    if written == "/*":
        return True
    if written in ("'", '"', "$"):
        raise unfinished(text, found.start())
    return False


def is_label(text: str, start: int, at: int) -> bool:
    """Whether a word is the name after a dot or after AS, whatever keyword it looks like."""
    before = _BEFORE_LABEL.search(text, max(start, at - 60), at)
    if before is None:
        return False
    return before["dot"] is None or not _NUMBER_BEFORE_DOT.search(text, max(start, at - 60), before.start())


def follows_distinct(text: str, start: int, at: int) -> bool:
    """Whether FROM is that of IS DISTINCT FROM."""
    return _DISTINCT.search(text, max(start, at - 60), at) is not None


def without_data(query: str) -> tuple[str, bool]:
    """A query without WITH DATA or WITH NO DATA at its end, and whether there is to be data."""
    begin = max(0, len(query) - 200)
    found = _WITH_DATA.search(query, begin) if query[-4:].upper() == "DATA" else None
    if found is None or is_label(query, 0, found.start()):
        return query, True
    return query[: found.start()].rstrip(SPACES), found["no"] is None


def unquoted(token: str) -> str:
    r"""What a string stands for: 'it''s', E'it\'s' or $$it's$$."""
    if token[0] == "'":
        return token[1:-1].replace("''", "'")
    if token[0] == "$":
        tag = token.index("$", 1) + 1
        return token[tag:-tag]
    return _ESCAPE.sub(_escaped, token[2:-1])


def _escaped(found: re.Match[str]) -> str:
    octal, short, middle, long, other = found.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if short or middle or long:
        return chr(int(short or middle or long, 16))
    return _ESCAPES.get(other, other) if other else "'"


def parameters_in(text: str, start: int, end: int) -> list[tuple[int, int, str]]:
    """Where parameters are, and what they are called: `?` by the order in which they stand."""
    if text.find("?", start, end) < 0 and text.find("$", start, end) < 0:
        return []
    places: list[tuple[int, int, str]] = []
    place, last = start, 0
    while place < end:
        for found in _PARAMETERS.finditer(text, place, end):
            token = found[0]
            if token[0] == "?":
                last = int(token[1:]) if len(token) > 1 else last + 1
                places.append((found.start(), found.end(), str(last)))
            elif token[0] == "$" and token[-1:] != "$":
                places.append((found.start(), found.end(), token[1:]))
            elif len(token) <= 2 and is_unfinished(text, found):
                place = comment_end(text, found.start(), end)
                break
        else:
            break
    return places
