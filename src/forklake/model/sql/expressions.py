"""SQL expressions over a row: read, checked, and written anew with every column spelled out. Pure.

Conditions, new values of an update or a merge, and defaults all go through here, so that all refuse the same:
whatever says something else than the row does, such as queries, positions of columns or session settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NoReturn, TypeAlias

from forklake.errors import ForklakeError, InvalidPredicate
from forklake.lazy.sqlglot import exp, sqlglot, sqlglot_errors
from forklake.model.names import quoted
from forklake.model.sql.functions import BARE, REFUSED
from forklake.model.sql.long_lists import LongList, shortened

LONG_LIST = "long_list"
"""What a literal that stands for a long list is noted under."""
_OPEN = "SELECT ("
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_ESCAPED = re.compile(r"[eE]'(?:[^\\']|\\[ntr\\])*'")
"""E'…' with escapes that everybody reads alike."""
_LONGEST = str(2**128 - 1)
_ROW = "only the row itself can be asked"


@dataclass(frozen=True, slots=True)
class Given:
    """A text, and what it is to be."""

    text: str
    what: str = "predicate"
    good: str = "a condition as it stands after WHERE, such as id = 7"
    one: str = "condition: join conditions with AND or OR"
    hint: str = ""
    error: type[ForklakeError] = InvalidPredicate
    body: str = field(init=False, default="")
    """The text with a mark in the place of each long list of literals."""
    lists: Mapping[str, LongList] = field(init=False, default_factory=dict[str, LongList])
    """Those lists, by their marks."""

    def __post_init__(self) -> None:
        """Take long lists out, before anything is parsed."""
        body, lists = shortened(self.text)
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "lists", lists)

    def refuse(self, problem: str) -> NoReturn:
        """Say that the text cannot be used, and why."""
        raise self.error(f"the {self.what} {self.text[:80]!r} {problem}") from None


Spell: TypeAlias = "Callable[[exp.Column], str]"
"""What to write for a column; it refuses those that are not there."""


def read(
    given: Given, spell: Spell, *, taken: Set[str] = frozenset(), lists: Mapping[str, str] | None = None
) -> tuple[exp.Expr, str]:
    """The tree of an expression, and SQL that is safe to run, in parentheses.

    `taken` are names, in lower case, that no variable of a lambda may have: DuckDB takes some for the column.
    `lists` is what to write instead of long lists.
    """
    root = parsed(given)
    return root, written(given, root, spell, taken=taken, lists=lists)


def parsed(given: Given) -> exp.Expr:
    """The tree of an expression that speaks of nothing but the row; all else is refused."""
    text = given.body
    if _UNSTORABLE.search(given.text):
        given.refuse("holds NUL characters or lone surrogates")
    if not text.strip():
        given.refuse(f"is empty: write {given.good}")
    try:
        statements = sqlglot.parse(f"{_OPEN}{text}\n)", dialect="duckdb")
    except sqlglot_errors.SqlglotError:
        given.refuse(f"cannot be read: write {given.good}{given.hint}")
    except RecursionError:
        given.refuse("is nested too deep: write it flatter")
    select = statements[0]
    values = select.expressions if isinstance(select, exp.Select) and len(statements) == 1 else []
    for value in values:
        _check(value, given)
    for mark in _marks(given, values):
        mark.meta[LONG_LIST] = given.lists[str(mark.this)]
    # More than one statement, clause or value means that the text closed the parenthesis itself.
    alone = len(values) == 1 and isinstance(values[0], exp.Paren)
    if select is None or not alone or any(v for k, v in select.args.items() if v and k != "expressions"):
        given.refuse(f"is not one {given.one}, and balance the parentheses")
    return values[0].this


def _marks(given: Given, values: Sequence[exp.Expr]) -> Iterator[exp.Literal]:
    """The literals that stand for long lists."""
    for value in values if given.lists else ():
        yield from (one for one in value.find_all(exp.Literal) if one.is_string and one.this in given.lists)


@cache
def _refused_kinds() -> tuple[tuple[type[exp.Expr], str, str], ...]:
    """What no expression over a row may hold: the kind of node, what it is called, and what to do."""
    return (
        (exp.Query, "a query", _ROW),
        (exp.Exists, "a query", _ROW),
        (exp.Table, "a query", _ROW),
        (exp.Describe, "a query", _ROW),
        (exp.Summarize, "a query", _ROW),
        (exp.Show, "a query", _ROW),
        (exp.Command, "a query", _ROW),
        (exp.Pivot, "a query", _ROW),
        (exp.Window, "a window function", _ROW),
        (exp.AggFunc, "an aggregate", _ROW),
        (exp.Filter, "an aggregate", _ROW),
        (exp.WithinGroup, "an aggregate", _ROW),
        (exp.Placeholder, "a parameter", "write the value itself"),
        (exp.Parameter, "a parameter", "write the value itself"),
        (exp.SessionParameter, "a parameter", "write the value itself"),
        (exp.Star, "a star", "name the columns"),
        (exp.Columns, "COLUMNS", "name the columns"),
        (exp.PositionalColumn, "the position of a column", "name it"),
        (exp.UDTF, "a table function", "it returns rows: use one that returns a list"),
        (exp.Explode, "a table function", "it returns rows: use one that returns a list"),
        (exp.Alias, "an alias, or two things without an operator between them", "leave one out"),
    )


def _check(root: exp.Expr, given: Given) -> None:
    for node in root.walk():
        for kind, what, advice in _refused_kinds():
            if isinstance(node, kind):
                given.refuse(f"holds {what}: {advice}")
        if isinstance(node, exp.Anonymous) and node.name.lower() == "glob":
            given.refuse(f"calls glob, {REFUSED['read_text']}")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            name = node.expression.name or "f"
            given.refuse(f"calls a function behind a dot: write {name}(x) instead of x.{name}()")


def written(
    given: Given,
    root: exp.Expr,
    spell: Spell,
    *,
    taken: Set[str] = frozenset(),
    lists: Mapping[str, str] | None = None,
) -> str:
    """The text of a tree with its columns spelled out, every quoted piece written anew.

    Everything else stays as it is, because sqlglot's own SQL means something else here and there: it turns
    `~`, which matches a whole text, into a search inside of it.
    """
    _check_variables(given, root, taken)
    spelled: dict[int, tuple[int, str]] = {}
    variables = _uses_of_variables(root)
    for node in root.find_all(exp.Column):
        if id(node) not in variables:
            parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
            start, end = (parts[0].meta["start"] - len(_OPEN), parts[-1].meta["end"] - len(_OPEN))
            spelled[start] = (end, spell(node))
    return _joined(given, spelled, {} if lists is None else lists)


def _check_variables(given: Given, root: exp.Expr, taken: Set[str]) -> None:
    """Refuse variables of lambdas that DuckDB, or what is written here, takes for a column of that name.

    A variable alone comes before a column; `x.y` is the field of a column `x` if there is one; and `X` is a
    column beside a variable `x`.
    """
    for node in root.find_all(exp.Lambda, exp.Comprehension):
        for name in _variables(node):
            clashes = name.lower() in taken and any(_is_taken(part, name) for part in node.walk())
            if clashes:
                given.refuse(f"calls a variable {name!r} like a column or table: give it another name")


def _is_taken(part: exp.Expr, name: str) -> bool:
    if isinstance(part, exp.Dot):
        return isinstance(part.this, exp.Identifier) and part.this.name == name
    if not isinstance(part, exp.Column):
        return False
    first = part.parts[0].name
    return first.lower() == name.lower() and (first != name or len(part.parts) > 1)


def _variables(node: exp.Expr) -> Iterator[str]:
    """The names that a lambda or a comprehension of lists brings."""
    if isinstance(node, exp.Lambda):
        yield from (variable.name for variable in node.expressions)
        return
    for key in ("expression", "position"):
        found = node.args.get(key)
        if isinstance(found, exp.Expr):
            yield found.name


def _uses_of_variables(root: exp.Expr) -> Set[int]:
    """Which columns are the variable of a comprehension around them. sqlglot itself knows those of lambdas.

    They are looked for from above: from each column upwards, a long chain of conditions took quadratic time.
    """
    return {
        id(column)
        for node in root.find_all(exp.Comprehension)
        for part in node.iter_expressions()
        if part is not node.args.get("iterator")
        for column in part.find_all(exp.Column)
        if column.parts[0].name in _variables(node)
    }


def _joined(given: Given, spelled: Mapping[int, tuple[int, str]], lists: Mapping[str, str]) -> str:
    text = given.body
    pieces: list[str] = []
    done, depth = 0, 0
    # Split as it was parsed: at the start of a text, some words would begin a command.
    tokens = sqlglot.tokenize(f"{_OPEN}{text}\n)", dialect="duckdb")[2:]
    for token, following in pairwise(tokens):
        start = token.start - len(_OPEN)
        if start < done:
            continue
        gap = text[done:start]
        if gap.strip() or token.comments:
            given.refuse("holds a comment: leave it out")
        column = spelled.get(start)
        if column is None:
            _check_call(given, token, following)
        end, piece = column or (token.end - len(_OPEN), _piece(token, given, lists))
        done = end + 1
        depth += (token.token_type == sqlglot.TokenType.L_PAREN) - (
            token.token_type == sqlglot.TokenType.R_PAREN
        )
        if depth < 0:
            given.refuse("closes a parenthesis that it did not open")
        pieces += [" " if gap and pieces else "", piece]
    if text[done:].strip():
        given.refuse("holds a comment: leave it out")
    return f"({''.join(pieces)})"


def _check_call(given: Given, token: sqlglot.Token, following: sqlglot.Token) -> None:
    """Refuse functions by their names: sqlglot knows only some of DuckDB's."""
    name = token.text.lower()
    if token.token_type == sqlglot.TokenType.STRING or name not in REFUSED:
        return
    if following.token_type == sqlglot.TokenType.L_PAREN or (
        name in BARE and token.token_type != sqlglot.TokenType.IDENTIFIER
    ):
        given.refuse(f"calls {name}, {REFUSED[name]}")


def _piece(token: sqlglot.Token, given: Given, lists: Mapping[str, str]) -> str:
    match token.token_type:
        case sqlglot.TokenType.STRING | sqlglot.TokenType.HEREDOC_STRING:
            if token.text in given.lists:
                return lists.get(token.text) or given.lists[token.text].text
            return "'" + token.text.replace("'", "''") + "'"
        case sqlglot.TokenType.IDENTIFIER:
            return quoted(token.text)
        case sqlglot.TokenType.BYTE_STRING if _ESCAPED.fullmatch(_slice(token, given)):
            return "'" + token.text.replace("'", "''") + "'"
        case sqlglot.TokenType.NUMBER if _is_too_long(token.text):
            # A DOUBLE to every DuckDB: since 2.0 it would be a BIGNUM, which is compared with few types.
            return f"{token.text}e0"
        case _:
            piece = _slice(token, given)
            if any(sign in piece for sign in ("'", '"', "`", ";", "--", "/*")):
                given.refuse(
                    f"holds {piece[:20]!r}: write text in plain single quotes, and one condition only"
                )
            return piece


def _is_too_long(number: str) -> bool:
    """Whether no integer type holds a number."""
    digits = number.lstrip("0")
    return number.isdecimal() and (len(digits), digits) > (len(_LONGEST), _LONGEST)


def _slice(token: sqlglot.Token, given: Given) -> str:
    return given.body[token.start - len(_OPEN) : token.end - len(_OPEN) + 1]


def path_of(node: exp.Expr) -> list[str]:
    """The names along `a.b.c` or `(a).b`; nothing if it is not a path."""
    match node:
        case exp.Paren():
            return path_of(node.this)
        case exp.Column():
            names = [part.name for part in node.parts]
            parent = node.parent
            # sqlglot puts four names into a column, and the others around it.
            while (
                len(names) >= 4
                and isinstance(parent, exp.Dot)
                and isinstance(parent.expression, exp.Identifier)
            ):
                names.append(parent.expression.name)
                parent = parent.parent
            return names
        case exp.Dot(this=inner, expression=exp.Identifier() as name):
            path = path_of(inner)
            return path if len(path) > 4 or not path else [*path, name.name]
        case _:
            return []


def dotted(first: str, rest: Sequence[str]) -> str:
    """A column and fields inside of it. Without parentheses it could be taken for a table of that name."""
    return ".".join((f"({first})", *map(quoted, rest))) if rest else first
