"""What people type into a search box, as a tree. Pure.

    red bicycle             rows with one of the words; those with both, or with the rarer one, come first
    red AND bicycle         both; NOT, OR and parentheses work too, and AND binds before OR
    +red -blue bicycle      red is needed, blue must not be there, bicycle makes a row better
    "red bicycle"           the words one after the other; "red bicycle"~2 lets two others come between
    bicy*  "red bicy*"      words that begin so
    title:red  title:(a b)  in one of the columns
    red^2 bicycle           a word that counts twice
    *                       every row that has an entry

A backslash takes the meaning from what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from forklake.errors import InvalidQuery

_MAX_DEPTH = 64
_MAX_LENGTH = 100_000
_SPECIAL = '()"^'
_OPERATORS = ("AND", "OR", "NOT")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SLOP = re.compile(r"~(\d{1,4})")

Occurs = Literal["may", "must", "must not"]
Operator = Literal["and", "or"]


@dataclass(frozen=True, slots=True)
class Text:
    """A word or a phrase, before it is analyzed."""

    text: str
    column: str | None = None
    """As it was typed; None for all columns."""
    quoted: bool = False
    prefix: bool = False
    slop: int = 0
    """How many other words may come between."""


@dataclass(frozen=True, slots=True)
class Everything:
    """Every row that has an entry."""


@dataclass(frozen=True, slots=True)
class Boost:
    """A part that counts more, or less."""

    part: Tree
    factor: float


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that may, must or must not be there."""

    parts: tuple[tuple[Occurs, Tree], ...]


Tree: TypeAlias = "Text | Everything | Boost | Group"


def parse(query: str, columns: Collection[str], operator: Operator = "or") -> Tree:
    """The tree of a query; `InvalidQuery` says what is wrong, and where, counted from 1.

    `columns` are names that may stand before a colon, in small letters. `operator` is what joins
    words that stand side by side.
    """
    if len(query) > _MAX_LENGTH:
        raise InvalidQuery(f"the query has {len(query):,} characters: {_MAX_LENGTH:,} are the most")
    return _Parser(query, columns, operator).all()


class _Parser:
    def __init__(self, query: str, columns: Collection[str], operator: Operator) -> None:
        self._query = query
        self._columns = columns
        self._operator = operator
        self._at = 0
        self._depth = 0

    def all(self) -> Tree:
        if self._next() == "":
            self._refuse("the query is empty: write a word to search for", 0)
        tree = self._any(None)
        if self._next() == ")":
            self._refuse("this parenthesis was never opened", self._at)
        return tree

    # Words side by side are joined as loosely as the operator that they stand for.

    def _any(self, column: str | None) -> Tree:
        began = self._at
        parts = [self._every(column)]
        while self._goes_on() and (self._operator == "or" or self._peek_word() == "OR"):
            self._take_operator("OR")
            parts.append(self._every(column))
        return self._group(parts, "may", began)

    def _every(self, column: str | None) -> tuple[Occurs, Tree]:
        began = self._at
        parts = [self._signed(column)]
        while self._goes_on() and (
            self._peek_word() == "AND" or (self._operator == "and" and self._peek_word() != "OR")
        ):
            self._take_operator("AND")
            parts.append(self._signed(column))
        if len(parts) == 1:
            return parts[0]
        return "may", self._group(parts, "must", began)

    def _group(self, parts: list[tuple[Occurs, Tree]], usual: Occurs, began: int) -> Tree:
        if all(occurs == "must not" for occurs, _ in parts):
            self._refuse("nothing is searched for, only left out: add a word that rows should have", began)
        if len(parts) == 1:
            return parts[0][1]
        return Group(tuple((usual if occurs == "may" else occurs, part) for occurs, part in parts))

    def _signed(self, column: str | None) -> tuple[Occurs, Tree]:
        sign = self._next()
        following = self._query[self._at + 1 : self._at + 2]
        occurs: Occurs = "may"
        if sign and sign in "+-" and following.strip() and following not in "+-)^":
            self._at += 1
            occurs = "must" if sign == "+" else "must not"
        elif self._peek_word() == "NOT":
            self._take_operator("NOT")
            occurs = "must not"
        return occurs, self._boosted(column)

    def _boosted(self, column: str | None) -> Tree:
        part = self._part(column)
        if not self._query.startswith("^", self._at):
            return part
        found = _NUMBER.match(self._query, self._at + 1)
        if found is None:
            self._refuse("^ is followed by a number that says how much the word counts", self._at)
        self._at = found.end()
        return Boost(part, float(found[0]))

    def _part(self, column: str | None) -> Tree:
        began = self._at
        match self._next():
            case "(":
                return self._parenthesis(column)
            case '"':
                return self._phrase(column)
            case "" | ")" | "^":
                self._refuse("a word, a phrase or a parenthesis should stand here", min(self._at, began + 1))
            case _:
                pass
        return self._word(column)

    def _parenthesis(self, column: str | None) -> Tree:
        opened = self._at
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._refuse(f"parentheses are nested more than {_MAX_DEPTH} deep", opened)
        self._at += 1
        tree = self._any(column)
        if self._next() != ")":
            self._refuse("this parenthesis is never closed", opened)
        self._at += 1
        self._depth -= 1
        return tree

    def _phrase(self, column: str | None) -> Text:
        opened = self._at
        self._at += 1
        text: list[str] = []
        prefix = False
        while not self._query.startswith('"', self._at):
            if text and self._query.startswith('*"', self._at):
                prefix = True
                self._at += 1
                break
            if self._at >= len(self._query):
                self._refuse("this quote is never closed", opened)
            text.append(self._character())
        self._at += 1
        if self._query.startswith("*", self._at):
            prefix = True
            self._at += 1
        slop = _SLOP.match(self._query, self._at)
        if slop is not None:
            self._at = slop.end()
        return Text("".join(text), column, True, prefix, 0 if slop is None else int(slop[1]))

    def _word(self, column: str | None) -> Tree:
        began = self._at
        text: list[str] = []
        while (here := self._query[self._at : self._at + 1]) and not here.isspace() and here not in _SPECIAL:
            if here == "*":
                return self._star("".join(text), column)
            if here == ":" and text:
                return self._in_column("".join(text), column, began)
            text.append(self._character())
        word = "".join(text)
        if word in _OPERATORS and self._query[began : self._at] == word:
            self._refuse(f"{word} stands between words: put it in quotes to search for it", began)
        return Text(word, column)

    def _star(self, text: str, column: str | None) -> Tree:
        star = self._at
        self._at += 1
        after = self._query[self._at : self._at + 1]
        if after and not after.isspace() and after not in _SPECIAL:
            self._refuse(
                "* stands only at the end of a word: put a backslash before it to search for it", star
            )
        if text:
            return Text(text, column, prefix=True)
        if column is not None:
            self._refuse("* alone means every row: leave out the column", star)
        return Everything()

    def _in_column(self, name: str, outer: str | None, began: int) -> Tree:
        if name.casefold() not in self._columns:
            self._refuse(
                f'the index has no column "{name[:80]}": put the word in quotes if the colon is part of it',
                began,
            )
        if outer is not None:
            self._refuse("a column stands inside of another", began)
        self._at += 1
        if not self._query[self._at : self._at + 1].strip():
            self._refuse("a column is followed by what to search in it", self._at)
        return self._part(name)

    def _character(self) -> str:
        if self._query.startswith("\\", self._at) and self._at + 1 < len(self._query):
            self._at += 1
        self._at += 1
        return self._query[self._at - 1]

    def _next(self) -> str:
        while self._query[self._at : self._at + 1].isspace():
            self._at += 1
        return self._query[self._at : self._at + 1]

    def _goes_on(self) -> bool:
        return self._next() not in ("", ")")

    def _peek_word(self) -> str:
        self._next()
        end = self._at
        while end < len(self._query) and not self._query[end].isspace() and self._query[end] not in _SPECIAL:
            end += 1
        return self._query[self._at : end]

    def _take_operator(self, word: str) -> None:
        if self._peek_word() == word:
            self._at += len(word)

    def _refuse(self, why: str, at: int) -> NoReturn:
        raise InvalidQuery(f"the query does not parse at character {at + 1}: {why}")
