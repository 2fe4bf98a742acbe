"""Predicates: from the text after WHERE to SQL that is safe to run, and a tree for pruning. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from forklake.errors import InvalidPredicate, NamingError
from forklake.model import literals
from forklake.model.columns import find
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.tree import (
    SWAPPED,
    Always,
    And,
    Compare,
    In,
    IsNull,
    Node,
    Not,
    Opaque,
    Operand,
    Operator,
    Or,
    Range,
    StartsWith,
    all_of,
    any_of,
    columns_of,
    compare,
    conjuncts,
    is_in,
    is_null,
    is_one_range,
    ranges,
    starts_with,
)
from forklake.model.types import Scalar, to_sql

__all__ = [
    "Always",
    "And",
    "Compare",
    "In",
    "IsNull",
    "Node",
    "Not",
    "Opaque",
    "Operand",
    "Operator",
    "Or",
    "Predicate",
    "Range",
    "StartsWith",
    "all_of",
    "any_of",
    "column_of",
    "columns_of",
    "compare",
    "conjuncts",
    "is_in",
    "is_null",
    "is_one_range",
    "node_of",
    "parse_expression",
    "parse_predicate",
    "parsed_condition",
    "ranges",
    "starts_with",
]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on the rows of one table."""

    sql: str
    """For DuckDB, in parentheses; columns are quoted and spelled as the table spells them."""
    tree: Node
    columns: frozenset[str]
    """The top-level columns that are needed to evaluate it."""
    text: str = field(default="", compare=False)
    """As it was given."""
    is_truth: bool = True
    """Whether it is certain that it is a condition; if not, DuckDB has to say what comes of it."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A text, and what it is to be."""

    text: str
    what: str = "predicate"
    good: str = "a condition as it stands after WHERE, such as id = 7"
    one: str = "condition: join conditions with AND or OR"
    hint: str = ""


_OPEN = "SELECT ("
_COMPARISONS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a query: only the row itself can be asked"),
    (exp.Exists, "a query: only the row itself can be asked"),
    (exp.Window, "a window function: only the row itself can be asked"),
    (exp.AggFunc, "an aggregate: only the row itself can be asked"),
    (exp.Placeholder, "a parameter: write the value itself"),
    (exp.Parameter, "a parameter: write the value itself"),
    (exp.Star, "a star: name the columns"),
    (exp.Columns, "COLUMNS: name the columns"),
    (exp.PositionalColumn, "the position of a column: name it"),
    (exp.UDTF, "a function that returns rows: use one that returns a list"),
    (exp.Explode, "a function that returns rows: use one that returns a list"),
    (exp.Alias, "an alias, or two things without an operator between them: leave one out"),
)


def parse_predicate(text: str, columns: tuple[Column, ...]) -> Predicate:
    """Read a condition as DuckDB would, or refuse it with `InvalidPredicate`."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPredicate(f"a predicate is text, such as 'id = 7', not {type(text).__name__}")
    given = _Given(text)
    try:
        root, sql, names = _read(given, columns)
        is_truth = _is_truth(given, root, columns)
        return Predicate(sql, _node(root, columns), names, text, is_truth)
    except RecursionError:
        _refuse(given, "is nested too deep: write it flatter")


def parse_expression(text: str, columns: tuple[Column, ...]) -> str:
    """Read a value that is computed from a row as DuckDB would, or refuse it with `InvalidPredicate`."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPredicate(
            f'a new value is an SQL expression, given as text: "7", "n + 1", "\'a text\'", '
            f'"NULL", not as {type(text).__name__}'
        )
    shown = text.replace("'", "''")
    hint = f"; a text is written in single quotes: \"'{shown}'\"" if len(text) <= 80 else ""
    given = _Given(
        text, "expression", "an SQL expression, such as n + 1", "expression: give each column its own", hint
    )
    try:
        return _read(given, columns)[1]
    except RecursionError:
        _refuse(given, "is nested too deep: write it flatter")


def parsed_condition(predicate: Predicate) -> exp.Expr:
    """The condition as sqlglot read it, for those who say it in another dialect."""
    return _parsed(_Given(predicate.text))


def node_of(part: exp.Expr, columns: tuple[Column, ...]) -> Node:
    """What one part of a condition asks; `Opaque` where that is not certain."""
    return _node(part, columns)


def column_of(part: exp.Expr, columns: tuple[Column, ...]) -> Column | None:
    """The column or field of structs that a part of a condition is; None if it is something else."""
    target = _Target.of(part, columns)
    return None if target is None else target.column


def _read(given: _Given, columns: tuple[Column, ...]) -> tuple[exp.Expr, str, frozenset[str]]:
    """The tree, the SQL that is safe to run, and the columns that it needs."""
    root = _parsed(given)
    used = _Columns(given, columns)
    for node in root.find_all(exp.Column):
        used.add(node)
    return root, _rewritten(given, used.spelled), frozenset(used.names)


def _is_truth(given: _Given, node: exp.Expr, columns: tuple[Column, ...]) -> bool:
    """Whether it is certain that an expression is TRUE, FALSE or NULL; refused if it certainly is not."""
    if isinstance(node, exp.Literal):
        _refuse(given, "is a value and no condition: write a comparison, such as id = 7")
    match node:
        case exp.Paren():
            return _is_truth(given, node.this, columns)
        case exp.Not() | exp.Connector():
            for part in [node.this] if isinstance(node, exp.Not) else node.flatten():
                _is_truth(given, part, columns)
            return True
        case exp.Predicate() | exp.Boolean() | exp.Null() | exp.StartsWith() | exp.EndsWith() | exp.Escape():
            return True
        case exp.Column() | exp.Dot():
            target = _Target.of(node, columns)
            if target is not None and not target.is_truth:
                type = to_sql(target.column.data_type)
                _refuse(given, f'is no condition, as "{target.name}" is {type}: write what it is to be')
            return target is not None
        case _:
            return False


def _refuse(given: _Given, problem: str) -> NoReturn:
    raise InvalidPredicate(f"the {given.what} {given.text[:80]!r} {problem}") from None


def _parsed(given: _Given) -> exp.Expr:
    text = given.text
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        _refuse(given, "holds NUL characters or lone surrogates")
    if not text.strip():
        _refuse(given, f"is empty: write {given.good}")
    try:
        statements = sqlglot.parse(f"{_OPEN}{text}\n)", dialect="duckdb")
    except SqlglotError:
        _refuse(given, f"cannot be read: write {given.good}{given.hint}")
    select = statements[0]
    values = select.expressions if isinstance(select, exp.Select) and len(statements) == 1 else []
    # More than one statement, clause or value means that the text closed the parenthesis itself.
    alone = len(values) == 1 and isinstance(values[0], exp.Paren)
    if select is None or not alone or any(v for k, v in select.args.items() if v and k != "expressions"):
        _refuse(given, f"is not one {given.one}, and balance the parentheses")
    root: exp.Expr = values[0].this
    for node in root.walk():
        _check(node, given)
    return root


def _check(node: exp.Expr, given: _Given) -> None:
    for kind, what in _REFUSED:
        if isinstance(node, kind):
            _refuse(given, f"holds {what}")
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        name = node.expression.name or "f"
        _refuse(given, f"calls a function behind a dot: write {name}(x) instead of x.{name}()")


class _Columns:
    """The columns that a text mentions, and how to spell each."""

    def __init__(self, given: _Given, columns: tuple[Column, ...]) -> None:
        self.given = given
        self.columns = columns
        self.names: set[str] = set()
        self.spelled: dict[int, tuple[int, str]] = {}
        """By the place of its first character: the place of the last, and the spelling."""

    def add(self, node: exp.Column) -> None:
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        path = _path(node) or [part.name for part in parts]
        spelling = [column.name for column in _resolved(self.given, self.columns, path)][: len(parts)]
        spelling += [part.name for part in parts[len(spelling) :]]
        self.names.add(spelling[0])
        # Without parentheses a struct could be taken for a table of that name.
        first = quoted(spelling[0]) if len(spelling) == 1 else f"({quoted(spelling[0])})"
        start = parts[0].meta["start"] - len(_OPEN)
        end = parts[-1].meta["end"] - len(_OPEN)
        name = ".".join((first, *map(quoted, spelling[1:])))
        self.spelled[start] = (end, _hidden(name) if _is_distinguished(node) else name)


def _is_distinguished(node: exp.Expr) -> bool:
    """Whether a column is inside of IS [NOT] DISTINCT FROM, which IS [NOT] TRUE and FALSE are to DuckDB too.

    Beside another condition on the column, DuckDB passes over the row groups where it is NULL throughout.
    """
    above = node.parent
    while above is not None:
        if isinstance(above, exp.NullSafeEQ | exp.NullSafeNEQ):
            return True
        if isinstance(above, exp.Is) and isinstance(above.expression, exp.Boolean):
            return True
        above = above.parent
    return False


def _hidden(name: str) -> str:
    """A column without what footers say of it."""
    return f"(CASE WHEN {name} IS NULL THEN NULL ELSE {name} END)"


def _resolved(given: _Given, columns: tuple[Column, ...], path: Sequence[str]) -> list[Column]:
    """The columns along a path, as far as it goes through structs."""
    found: list[Column] = []
    for depth in range(1, len(path) + 1):
        try:
            found.append(find(columns, list(path[:depth])))
        except NamingError as problem:
            shown = f"the {given.what} {given.text[:80]!r}"
            raise InvalidPredicate(f"{shown} cannot be used: {problem}{given.hint}") from problem
        if found[-1].type != "struct":
            break
    return found


def _path(node: exp.Expr) -> list[str]:
    """The names along `a.b.c` or `(a).b`; nothing if it is not a path."""
    match node:
        case exp.Paren():
            return _path(node.this)
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
            path = _path(inner)
            return path if len(path) > 4 or not path else [*path, name.name]
        case _:
            return []


def _rewritten(given: _Given, spelled: dict[int, tuple[int, str]]) -> str:
    """The text with its columns spelled out and every quoted piece written anew.

    Everything else stays as it is, because sqlglot's own SQL means something else here and there: it turns
    `~`, which matches a whole text, into a search inside of it.
    """
    text = given.text
    pieces: list[str] = []
    done, depth = 0, 0
    # Split as it was parsed: at the start of a text, some words would begin a command.
    for token in sqlglot.tokenize(f"{_OPEN}{text}\n)", dialect="duckdb")[2:-1]:
        start = token.start - len(_OPEN)
        if start < done:
            continue
        gap = text[done:start]
        if gap.strip() or token.comments:
            _refuse(given, "holds a comment: leave it out")
        end, piece = spelled.get(start) or (token.end - len(_OPEN), _piece(token, given))
        done = end + 1
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            _refuse(given, "closes a parenthesis that it did not open")
        pieces += [" " if gap and pieces else "", piece]
    if text[done:].strip():
        _refuse(given, "holds a comment: leave it out")
    return f"({''.join(pieces)})"


def _piece(token: Token, given: _Given) -> str:
    match token.token_type:
        case TokenType.STRING | TokenType.HEREDOC_STRING:
            return "'" + token.text.replace("'", "''") + "'"
        case TokenType.IDENTIFIER:
            return quoted(token.text)
        case _:
            piece = given.text[token.start - len(_OPEN) : token.end - len(_OPEN) + 1]
            if any(sign in piece for sign in ("'", '"', "`", ";", "--", "/*")):
                _refuse(
                    given, f"holds {piece[:20]!r}: write text in plain single quotes, and one condition only"
                )
            return piece


def _node(node: exp.Expr, columns: tuple[Column, ...]) -> Node:
    """The tree of an expression; every operand that is not a plain column or literal makes it opaque."""
    match node:
        case exp.Paren():
            return _node(node.this, columns)
        case exp.And():
            return all_of(_node(part, columns) for part in node.flatten())
        case exp.Or():
            return any_of(_node(part, columns) for part in node.flatten())
        case exp.Not():
            return Not(_node(node.this, columns))
        case exp.Boolean():
            return Always(bool(node.this))
        case exp.Null():
            return Always(None)
        case _:
            leaf = _leaf(node, columns)
            known = Opaque() if leaf is None else leaf
            return Not(known) if node.args.get("negate") else known


def _leaf(node: exp.Expr, columns: tuple[Column, ...]) -> Node | None:
    if isinstance(node, exp.Column | exp.Dot):
        flag = _Target.of(node, columns)
        return compare(flag.column, "=", True, name=flag.name) if flag and flag.is_truth else None
    if type(node) in _COMPARISONS or isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return _comparison(node, columns)
    target = _Target.of(node.this, columns) if isinstance(node.this, exp.Expr) else None
    if target is None and isinstance(node, exp.Anonymous) and len(node.expressions) == 2:
        target = _Target.of(node.expressions[0], columns)
    return None if target is None else _about(target, node)


def _about(target: _Target, node: exp.Expr) -> Node | None:
    match node:
        case exp.Is(expression=exp.Null()):
            return is_null(target.column, name=target.name)
        case exp.Is(expression=exp.Boolean() as truth) if target.is_truth:
            return all_of((target.compared("=", bool(truth.this)), target.has_value()))
        case exp.Between() if not node.args.get("symmetric"):
            return target.between(node.args["low"], node.args["high"])
        case exp.In(expressions=[_, *_]):
            return target.among(node.expressions)
        case exp.Like():
            return target.like(node.expression)
        case exp.StartsWith():
            return target.begins(node.expression)
        case exp.Anonymous() if node.name.lower() == "prefix":
            return target.begins(node.expressions[1])
        case _:
            return None


def _comparison(node: exp.Expr, columns: tuple[Column, ...]) -> Node | None:
    left, right = node.this, node.args["expression"]
    op = _COMPARISONS.get(type(node), "=")
    target = _Target.of(left, columns)
    if target is None:
        target, right, op = _Target.of(right, columns), left, SWAPPED[op]
    values = target.values([right]) if target else None
    if target is None or values is None:
        return None
    value = values[0]
    if not isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return target.compared(op, value)
    # Never UNKNOWN: NULL is distinct from every value and not from itself.
    if value is None:
        same = is_null(target.column, name=target.name)
    else:
        same = all_of((target.compared("=", value), target.has_value()))
    return same if isinstance(node, exp.NullSafeEQ) else Not(same)


@dataclass(frozen=True, slots=True)
class _Target:
    """The column, or field of structs, on one side of a comparison."""

    column: Column
    name: str

    @classmethod
    def of(cls, node: exp.Expr, columns: tuple[Column, ...]) -> _Target | None:
        while isinstance(node, exp.Paren):
            node = node.this
        path = _path(node)
        if not path:
            return None
        found = _resolved(_Given(""), columns, path)
        return cls(found[-1], ".".join(column.name for column in found)) if len(found) == len(path) else None

    @property
    def is_truth(self) -> bool:
        return self.column.data_type == Scalar("boolean")

    def values(self, nodes: Sequence[exp.Expr]) -> list[literals.Value | None] | None:
        """What the column is compared with, or None if that is not certain."""
        known = [literal for literal in map(literals.read, nodes) if literal is not None]
        return literals.comparable(known, self.column.data_type) if len(known) == len(nodes) else None

    def compared(self, op: Operator, value: literals.Value | None) -> Node:
        return compare(self.column, op, value, name=self.name)

    def has_value(self) -> Node:
        return Not(is_null(self.column, name=self.name))

    def between(self, low: exp.Expr, high: exp.Expr) -> Node | None:
        values = self.values([low, high])
        if values is None:
            return None
        return all_of((self.compared(">=", values[0]), self.compared("<=", values[1])))

    def among(self, nodes: Sequence[exp.Expr]) -> Node | None:
        values = self.values(nodes)
        return None if values is None else is_in(self.column, values, name=self.name)

    def begins(self, node: exp.Expr) -> Node | None:
        text = self._text(node)
        return None if text is None else starts_with(self.column, text, name=self.name)

    def like(self, node: exp.Expr) -> Node | None:
        pattern = self._text(node)
        if pattern is None or "\\" in pattern:
            return None
        prefix = pattern[: next((at for at, sign in enumerate(pattern) if sign in "%_"), len(pattern))]
        if prefix == pattern:
            return self.compared("=", pattern)
        begins = starts_with(self.column, prefix, name=self.name)
        # Whatever matches the whole pattern begins like it.
        return begins if pattern == prefix + "%" else all_of((begins, Opaque()))

    def _text(self, node: exp.Expr) -> str | None:
        literal = literals.read(node)
        is_text = (
            self.column.data_type == Scalar("varchar") and literal is not None and literal.kind == "text"
        )
        return str(literal.value) if is_text and literal else None
