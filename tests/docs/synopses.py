"""Statements made at random of how they are said to be written."""

from __future__ import annotations

import re
from random import Random

EXAMPLES = {
    "aggregate": "sum(n)", "alias": "x", "catalog": "shop", "catalog.schema": "shop.sales", "column": "id",
    "column.field": "home.zip", "condition": "id > 1", "expression": "id + 1", "file": "'out.parquet'",
    "function": "snapshots", "macro": "twice", "number": "7",
    "query": "SELECT 1 AS id", "schema": "sales", "string": "'text'", "table": "sales.orders",
    "table.column": "orders.id", "type": "DECIMAL(10, 2)", "view": "seen", "merge_action": "merge_action",
    "year": "year", "month": "month", "day": "day", "hour": "hour", "bucket": "bucket",
    "identity": "identity",
}  # fmt: skip
"""What stands for each word that is not written as it is."""
_TOKEN = re.compile(r"\[, …\]|\[ … \]|=>|[A-Z]+(?![a-z_])|[a-z_]+(?:\.[a-z_]+)?|\d+|[\[\]{}|(),=*]")


class Statements:
    """Draws statements of one synopsis."""

    def __init__(self, synopsis: str, random: Random) -> None:
        self._random = random
        main, *named = re.split(r"^(?:where|and) (\w+) is\b", synopsis, flags=re.MULTILINE)
        self._rules = dict(zip(named[::2], map(_TOKEN.findall, named[1::2]), strict=True))
        self._forms = [_TOKEN.findall(form) for form in re.split(r"^or$", main, flags=re.MULTILINE)]
        self._named = 0

    def one(self) -> str:
        """A statement."""
        return self._choice(self._random.choice(self._forms))

    def _choice(self, tokens: list[str]) -> str:
        return self._sequence(self._random.choice(_alternatives(tokens)))

    def _sequence(self, tokens: list[str]) -> str:
        made: list[str] = []
        at, last = 0, [""]
        while at < len(tokens):
            token = tokens[at]
            if token in "[{":
                end = _closing(tokens, at)
                inside, at = tokens[at + 1 : end], end + 1
                if token == "{" or self._random.random() < 0.5:
                    made.append(self._choice(inside))
                last = ["{", *inside, "}"]
                continue
            if token == "[, …]":
                if self._random.random() < 0.4:
                    made += [",", self._sequence(last)]
            elif token != "[ … ]":
                last = [token]
                made.append(self._word(token))
            at += 1
        return " ".join(filter(None, made))

    def _word(self, token: str) -> str:
        if token in self._rules:
            return self._choice(self._rules[token])
        if token in ("name", "option"):
            # Two of one name are refused.
            self._named += 1
            return f"{token}_{self._named}"
        return EXAMPLES[token] if token[0].islower() else token


def _closing(tokens: list[str], start: int) -> int:
    depth = 0
    for at in range(start, len(tokens)):
        depth += (tokens[at] in "[{") - (tokens[at] in "]}")
        if depth == 0:
            return at
    raise AssertionError(f"nothing closes {tokens[start:]}")


def _alternatives(tokens: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "[{") - (token in "]}")
        if token == "|" and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found
