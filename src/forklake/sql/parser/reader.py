"""A place in a text of SQL, with the token that stands there, and ways to go on from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from forklake.errors import InvalidSql
from forklake.sql.parser import tokens
from forklake.sql.parser.keywords import NO_NAMES, RESERVED
from forklake.sql.parser.problems import not_supported, shown, syntax_error
from forklake.sql.statements import ColumnPath, Fragment, ObjectName

_Item = TypeVar("_Item")

_STRINGS = frozenset({"string", "escaped", "dollar"})
_MOST_PARTS = 3
_CASE = frozenset({"CASE", "END"})
_CLAUSES = (
    "SELECT",
    "FROM",
    "WHERE",
    "HAVING",
    "QUALIFY",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "INTERSECT",
    "INTO",
)
"""Words that never stand in an expression, but in brackets."""
_INSIDE_CASE = frozenset({"WHEN", "THEN"})
"""Words that CASE has too."""


class Reader:
    """Reads tokens one after another; only the present one is looked at."""

    __slots__ = ("end", "kind", "limit", "past", "start", "text", "word")

    def __init__(self, text: str, start: int = 0, limit: int | None = None) -> None:
        """Begin at a place; nothing beyond the limit is read."""
        self.text = text
        self.limit = len(text) if limit is None else limit
        self.past = start
        """Where the last token ended that was passed."""
        self._read(start)

    def _read(self, at: int) -> None:
        found = tokens.TOKEN.match(self.text, at, self.limit)
        assert found is not None  # noqa: S101  # Every character is a sign if nothing else.
        self.kind = kind = str(found.lastgroup)
        self.start, self.end = found.span(kind)
        if kind == "word":
            token = found[kind]
            # Letters beyond ASCII make no keyword, though some have an ASCII letter as their capital.
            self.word = token.upper() if token.isascii() else token
        elif kind == "sign":
            self.word = found[kind]
        elif kind == "open":
            if found[kind] != "/*":
                raise tokens.unfinished(self.text, self.start)
            self._read(tokens.comment_end(self.text, self.start, self.limit))
        else:
            self.word = ""

    @property
    def at_end(self) -> bool:
        """Whether the statement ends here."""
        return self.kind == "end" or self.word == ";"

    @property
    def token(self) -> str:
        """The token as it was written."""
        return self.text[self.start : self.end]

    def next(self) -> None:
        """Pass the present token."""
        self.past = self.end
        self._read(self.end)

    def back(self, place: tuple[int, int]) -> None:
        """Return to a place of before."""
        self.past = place[1]
        self._read(place[0])

    @property
    def place(self) -> tuple[int, int]:
        """Where the reader is, to come back."""
        return self.start, self.past

    # Words and signs.

    def take(self, *words: str) -> bool:
        """Pass these words if they all come next, in this order."""
        if self.word != words[0]:
            return False
        place = self.place
        self.next()
        for word in words[1:]:
            if self.word != word:
                self.back(place)
                return False
            self.next()
        return True

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        place = self.place
        if not self.take(*words):
            return False
        self.back(place)
        return True

    def expect(self, *words: str) -> None:
        """Pass words that have to come."""
        for word in words:
            if self.word != word:
                raise self.expected(shown(word) if len(word) == 1 else word)
            self.next()

    def one_of(self, *words: str) -> str | None:
        """Pass the present word if it is one of these."""
        if self.word not in words:
            return None
        word = self.word
        self.next()
        return word

    def expected(self, expected: str) -> InvalidSql:
        """Something else has to stand here; to be raised."""
        token = "" if self.kind == "end" else self.token
        problem = f"expected {expected}, found {shown(token)}"
        if self.kind == "word" and self.word in NO_NAMES and ("name" in expected or "alias" in expected):
            problem += f', which is a keyword: as a name it is written "{token}" with the quotes'
        return syntax_error(self.text, self.start, problem, token)

    def refuse(self, syntax: str, instead: str, at: int | None = None) -> InvalidSql:
        """Syntax that is not supported, to be raised."""
        return not_supported(self.text, self.start if at is None else at, syntax, instead)

    def expect_end(self) -> None:
        """Refuse whatever follows a statement."""
        if not self.at_end:
            raise self.expected("the end of the statement")

    # Names and values.

    def name(self, what: str = "a name") -> str:
        """The name of a table, a column or the like."""
        if self.kind == "quoted":
            return self._quoted()
        if self.kind != "word" or self.word in NO_NAMES:
            raise self.expected(what)
        token = self.token
        self.next()
        return token

    def label(self, what: str = "a name") -> str:
        """A name where no keyword can stand, as after a dot."""
        if self.kind == "quoted":
            return self._quoted()
        if self.kind != "word":
            raise self.expected(what)
        token = self.token
        self.next()
        return token

    def function_name(self) -> str:
        """The name of a function, which may be a keyword that no table is called by."""
        if self.kind == "word" and self.word not in RESERVED:
            return self.label()
        return self.name("the name of a function")

    def label_or_string(self) -> str:
        """A word or a string."""
        return self.string() if self.kind in _STRINGS else self.label("a word or a string")

    def _quoted(self) -> str:
        token = self.token[1:-1].replace('""', '"')
        if not token:
            raise syntax_error(self.text, self.start, "a quoted name is empty", '""')
        self.next()
        return token

    def parts(self, what: str = "a name") -> tuple[str, ...]:
        """Names with dots between them."""
        names = [self.name(what)]
        while self.word == ".":
            self.next()
            names.append(self.label())
        return tuple(names)

    def object_name(self, what: str = "a name", most: int = _MOST_PARTS) -> ObjectName:
        """The name of something in a catalog."""
        start = self.start
        if self.kind == "string":
            return ObjectName((self.string(),), start)
        parts = self.parts(what)
        if len(parts) > most:
            allowed = " or ".join(
                [f"{count} parts" if count > 1 else "one part" for count in (most - 1, most) if count]
            )
            raise syntax_error(
                self.text,
                start,
                f'"{".".join(parts)}" has {len(parts)} parts, and a name has {allowed} here',
                parts[0],
            )
        return ObjectName(parts, start)

    def catalog(self) -> str:
        """The name of a catalog."""
        return self.string() if self.kind == "string" else self.name("the name of a catalog")

    def path(self, what: str = "a column name") -> ColumnPath:
        """A column or a field of one."""
        return self.parts(what)

    def names(self, what: str = "a column name") -> tuple[str, ...]:
        """Names in brackets."""
        return self.list(lambda: self.name(what))

    def list(self, item: Callable[[], _Item], trailing: bool = False) -> tuple[_Item, ...]:
        """Items in brackets, with commas between them, and one after the last where that is allowed."""
        self.expect("(")
        items = [item()]
        while self.take(","):
            if trailing and self.word == ")":
                break
            items.append(item())
        if self.word != ")":
            raise self.expected('"," or ")"')
        self.next()
        return tuple(items)

    def string(self, what: str = "a string in single quotes") -> str:
        """A string."""
        if self.kind not in _STRINGS:
            raise self.expected(what)
        value = tokens.unquoted(self.token)
        self.next()
        return value

    def string_or_parameter(self, what: str = "a string in single quotes") -> str | Fragment:
        """A string, or a parameter that stands for one."""
        if self.kind == "parameter":
            return self.single()
        return self.string(what)

    def single(self) -> Fragment:
        """The present token as a fragment."""
        fragment = Fragment(self.token, self.start)
        self.next()
        return fragment

    # Parts that stay text.

    def skip_brackets(self) -> None:
        """Pass brackets with all that is in them."""
        closed = tokens.closing(self.text, self.start, self.limit)
        self.past = closed + 1
        self._read(closed + 1)

    def until(self, *stops: str, comma: bool = False, what: str = "an expression") -> Fragment:
        """What is written up to one of some words, a comma, a closing bracket, or the end of the statement.

        A word stops only where it is a keyword: not in brackets, after a dot or AS, nor inside of CASE.
        """
        start = self.start
        stop, end = self._stop(frozenset(stops), comma)
        if end <= start:
            raise self.expected(what)
        self.past = end
        self._read(stop)
        return Fragment(self.text[start:end], start)

    def expression(self, *stops: str) -> Fragment:
        """An expression, up to one of some words or a comma. No clause of a query can follow it."""
        return self.until(*stops, *_CLAUSES, comma=True)

    def inside(self) -> Fragment:
        """What stands in the brackets that begin here."""
        if self.word != "(":
            raise self.expected('"("')
        closed = tokens.closing(self.text, self.start, self.limit)
        inner = Reader(self.text, self.end, closed)
        if inner.kind == "end":
            fragment = Fragment("", closed)
        else:
            fragment = inner.until()
            if inner.kind != "end":
                raise inner.expected('")"')
        self.past = closed + 1
        self._read(closed + 1)
        return fragment

    def _stop(self, words: frozenset[str], comma: bool) -> tuple[int, int]:
        """Where a part stops, and where its last token ends."""
        text, limit = self.text, self.limit
        pattern = tokens.stops_at(words | _CASE if words & _INSIDE_CASE else words, comma)
        comments: list[tuple[int, int]] = []
        place, cases = self.start, 0
        while True:
            for found in pattern.finditer(text, place, limit):
                start = found.start()
                sign = text[start]
                if sign in "([{":
                    if found.end() - start > 1:
                        continue
                    place = tokens.closing(text, start, limit) + 1
                    break
                if sign in "-/":
                    if tokens.is_unfinished(text, found):
                        place = tokens.comment_end(text, start, limit)
                        comments.append((start, place))
                        break
                    comments.append(found.span())
                elif sign in "'\"$":
                    tokens.is_unfinished(text, found)
                elif found[0].upper() in _CASE and not tokens.is_label(text, self.start, start):
                    cases = max(0, cases + (1 if sign in "cC" else -1))
                elif not cases and not self._goes_on(found):
                    return start, _last_token(text, start, comments)
            else:
                return limit, _last_token(text, limit, comments)

    def _goes_on(self, found: re.Match[str]) -> bool:
        """Whether a word that would stop is only a name, or part of an expression."""
        word = found[0].upper()
        if not word.isalpha():
            return False
        start = found.start()
        return tokens.is_label(self.text, self.start, start) or (
            word == "FROM" and tokens.follows_distinct(self.text, self.start, start)
        )


def _last_token(text: str, stop: int, comments: list[tuple[int, int]]) -> int:
    """The end of the last token before a place, without spaces and comments."""
    while True:
        while stop and text[stop - 1] in tokens.SPACES:
            stop -= 1
        if not comments or comments[-1][1] < stop:
            return stop
        stop = comments.pop()[0]
