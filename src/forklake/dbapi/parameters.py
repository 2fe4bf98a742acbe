"""Parameters of the DB-API: `:name` as DuckDB has it, and many rows of values as one INSERT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from forklake.lazy.arrow import pa
from forklake.sql.parser.tokens import TOKEN
from forklake.sql.statements import Fragment, Insert

ROWS = "forklake_parameters"
"""What an INSERT of many rows reads them from."""
_MOST_ROWS = 500_000
"""How many rows are inserted at once: they are held in memory as Arrow has them."""


def with_dollars(text: str, names: Mapping[str, Any]) -> str:
    """A statement with `$name` for each `:name` that is one of these names."""
    parts: list[str] = []
    last, colon = 0, None
    for kind, start, end in _tokens(text):
        if kind == "word" and colon == start and text[start:end] in names:
            parts += [text[last : start - 1], "$"]
            last = start
        colon = end if kind == "sign" and text[start:end] == ":" else None
    return "".join([*parts, text[last:]])


def in_one_insert(statement: Insert) -> tuple[Insert, tuple[str | int, ...]] | None:
    """An INSERT of one row of VALUES as one that reads many of them from `ROWS`.

    Its columns are `p0`, `p1` and so on; with it come the names or places (from 0) of the parameters that
    they hold. None if it is another kind of INSERT, or one whose values depend on more than parameters.
    """
    query = statement.query
    if query is None or statement.default_places or statement.returning is not None:
        return None
    tokens = [(kind, start, end) for kind, start, end in _tokens(query.text) if kind != "end"]
    words = [query.text[start:end].upper() for _, start, end in tokens]
    if len(words) < 3 or words[0] != "VALUES" or words[1] != "(" or words[-1] != ")":
        return None
    if _closing(words, 1) != len(words) - 1 or not {"SELECT", "FROM", "OVER"}.isdisjoint(words):
        return None
    parts: list[str] = []
    columns: list[str | int] = []
    places = count()
    last = tokens[1][2]
    for kind, start, end in tokens:
        if kind == "parameter":
            name = query.text[start + 1 : end]
            found = next(places) if not name else int(name) - 1 if name.isdecimal() else name
            if found not in columns:
                columns.append(found)
            parts += [query.text[last:start], f"{ROWS}.p{columns.index(found)}"]
            last = end
    if not columns:
        return None
    values = "".join([*parts, query.text[last : tokens[-1][1]]])
    return replace(statement, query=Fragment(f"FROM {ROWS} SELECT {values}")), tuple(columns)


def tables_of(columns: Sequence[str | int], rows: Sequence[Any]) -> Iterator[pa.Table | Sequence[Any]]:
    """Rows of values as Arrow tables, in their order; those that do not go into one are given as they are."""
    for part in _alike(columns, rows):
        try:
            arrays = [pa.array([row[name] for row in part]) for name in columns]
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            yield part
        else:
            yield pa.table(arrays, names=[f"p{place}" for place in range(len(columns))])


def _alike(columns: Sequence[str | int], rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Rows in runs in which the values of a column are of one type: Arrow would make 1.0 of 1 beside 0.5."""
    begin = 0
    kinds: list[type | None] = [None] * len(columns)
    for at, row in enumerate(rows):
        found = [None if row[name] is None else type(row[name]) for name in columns]
        fits = all(
            one is None or known is None or one is known for one, known in zip(found, kinds, strict=True)
        )
        if not fits or at - begin >= _MOST_ROWS:
            yield rows[begin:at]
            begin = at
            kinds = [None] * len(columns)
        kinds = [known or one for known, one in zip(kinds, found, strict=True)]
    if begin < len(rows):
        yield rows[begin:]


def _closing(words: Sequence[str], opening: int) -> int:
    """Where the bracket closes that is opened there."""
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] in ("(", "[", "{")) - (words[place] in (")", "]", "}"))
        if not depth:
            return place
    return -1


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of each token."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            return
        yield found.lastgroup, found.start(found.lastgroup), found.end()
        at = found.end()
