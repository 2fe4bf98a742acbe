"""Predicates: from the text after WHERE to SQL that is safe to run, and a tree for pruning. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache

from forklake.errors import ColumnNotFound, InvalidArgument, InvalidPredicate, NamingError
from forklake.lazy.sqlglot import exp
from forklake.model.alike import instead
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.names import quoted
from forklake.model.sql import literals
from forklake.model.sql.expressions import LONG_LIST, Given, dotted, parsed, path_of, read, written
from forklake.model.sql.functions import REFUSED
from forklake.model.sql.keywords import optionally_quoted
from forklake.model.sql.long_lists import LongList
from forklake.model.sql.predicate_tree import (
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
from forklake.model.table.columns import find
from forklake.model.types.data_types import Scalar, to_sql

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
    "parse_qualified",
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


@cache
def _comparisons() -> dict[type[exp.Expr], Operator]:
    return {
        exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    }  # fmt: skip


def parse_predicate(text: str, columns: tuple[Column, ...]) -> Predicate:
    """Read a condition as DuckDB would, or refuse it with `InvalidPredicate`."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPredicate(f"a predicate is a string, such as 'id = 7', not {type(text).__name__}")
    given = Given(text)
    try:
        root, sql, names = _read(given, columns)
        is_truth = _is_truth(given, root, columns)
        return Predicate(sql, _node(root, columns), names, text, is_truth)
    except RecursionError:
        given.refuse("is nested too deep: write it flatter")


def parse_expression(text: str, columns: tuple[Column, ...]) -> str:
    """Read a value that is computed from a row as DuckDB would, or refuse it with `InvalidPredicate`."""
    given = given_expression(text)
    try:
        return _read(given, columns)[1]
    except RecursionError:
        given.refuse("is nested too deep: write it flatter")


def parse_sort_expression(
    text: str, columns: tuple[Column, ...], now: Mapping[ColumnId, str] | None = None
) -> tuple[str, frozenset[str]]:
    """Read what rows are sorted by as DuckDB would: its SQL, and the columns that it needs.

    `now` are names that columns have by now; the SQL has these.
    """
    given = Given(
        text, "sort key", "a column or an expression, such as lower(name)", "sort key", error=InvalidArgument
    )
    names: set[str] = set()

    def spell(node: exp.Column) -> str:
        found = _resolved(given, columns, path_of(node))
        names.add(found[0].name)
        spelling = _spelling(node, found)
        if now is not None:
            spelling[: len(found)] = [now.get(column.id, column.name) for column in found]
        return ".".join(quoted(one) if one.lower() in REFUSED else optionally_quoted(one) for one in spelling)

    try:
        _, sql = read(given, spell, taken={column.name.lower() for column in columns})
    except RecursionError:
        given.refuse("is nested too deep: write it flatter")
    if not names:
        given.refuse("names no column: all rows would be alike")
    return sql[1:-1], frozenset(names)


def parse_qualified(text: str, sides: Mapping[str, tuple[Column, ...]]) -> str:
    """Read a value that is computed from rows of several sides, such as `target.n + source.n`."""
    given = given_expression(text)
    taken = {column.name.lower() for columns in sides.values() for column in columns} | sides.keys()

    def spell(node: exp.Column) -> str:
        side, *path = path_of(node)
        known = sides.get(side.lower())
        if known is None:
            choices = " or ".join(f"{one}.{'.'.join((side, *path))}" for one in sides)
            given.refuse(f"names {side!r} without its side: write {choices}{given.hint}")
        if not path:
            given.refuse(f"names all of {side}: name a column of it")
        if path[0].lower() not in {column.name.lower() for column in known}:
            meant = instead(path[0], [column.name for column in known])
            raise ColumnNotFound(
                f'the expression {text[:80]!r}: {side.lower()} has no column "{path[0]}": {meant}'
            )
        spelling = _spelling(node, _resolved(given, known, path), skip=1)
        return dotted(f"{side.lower()}.{quoted(spelling[0])}", spelling[1:])

    try:
        return read(given, spell, taken=taken)[1]
    except RecursionError:
        given.refuse("is nested too deep: write it flatter")


def given_expression(text: object) -> Given:
    """A text that is to be the new value of a column."""
    if not isinstance(text, str):
        raise InvalidPredicate(f'an expression is given as a string: "n + 1", not as {type(text).__name__}')
    shown = text.replace("'", "''")
    hint = f"; a text is written in single quotes: \"'{shown}'\"" if len(text) <= 80 else ""
    return Given(
        text, "expression", "an SQL expression, such as n + 1", "expression: give each column its own", hint
    )


def parsed_condition(predicate: Predicate) -> exp.Expr:
    """The condition as sqlglot read it, for those who say it in another dialect."""
    return parsed(Given(predicate.text))


def node_of(part: exp.Expr, columns: tuple[Column, ...]) -> Node:
    """What one part of a condition asks; `Opaque` where that is not certain."""
    return _node(part, columns)


def column_of(part: exp.Expr, columns: tuple[Column, ...]) -> Column | None:
    """The column or field of structs that a part of a condition is; None if it is something else."""
    target = _Target.of(part, columns)
    return None if target is None else target.column


def _read(given: Given, columns: tuple[Column, ...]) -> tuple[exp.Expr, str, frozenset[str]]:
    """The tree, the SQL that is safe to run, and the columns that it needs."""
    names: set[str] = set()
    root = parsed(given)
    distinguished = _distinguished(root)

    def spell(node: exp.Column) -> str:
        spelling = _spelling(node, _resolved(given, columns, path_of(node)))
        names.add(spelling[0])
        name = dotted(quoted(spelling[0]), spelling[1:])
        return _hidden(name) if id(node) in distinguished else name

    taken = {column.name.lower() for column in columns}
    sql = written(given, root, spell, taken=taken, lists=_as_queries(given, root, columns))
    return root, sql, frozenset(names)


def _spelling(node: exp.Column, found: Sequence[Column], skip: int = 0) -> list[str]:
    """The names of a column as the table spells them; what lies deeper than structs stays as it is."""
    parts = [part.name for part in node.parts if isinstance(part, exp.Identifier)][skip:]
    known = [column.name for column in found][: len(parts)]
    return [*known, *parts[len(known) :]]


def _as_queries(given: Given, root: exp.Expr, columns: tuple[Column, ...]) -> dict[str, str]:
    """Long lists as one text each, which DuckDB splits much faster than it reads so many literals."""
    found: dict[str, str] = {}
    for node in root.find_all(exp.In) if given.lists else ():
        values = _long_list(node)
        target = _Target.of(node.this, columns) if values is not None else None
        inside = node.find_ancestor(exp.Lambda, exp.Comprehension)
        if values is None or target is None or inside is not None:
            continue
        sql = literals.as_query(values, target.column.data_type)
        if sql is not None:
            found[str(node.expressions[0].this)] = sql
    return found


def _long_list(node: exp.In) -> LongList | None:
    return node.expressions[0].meta.get(LONG_LIST) if len(node.expressions) == 1 else None


def _is_truth(given: Given, node: exp.Expr, columns: tuple[Column, ...]) -> bool:
    """Whether it is certain that an expression is TRUE, FALSE or NULL; refused if it certainly is not."""
    if isinstance(node, exp.Literal):
        given.refuse("is a value and no condition: write a comparison, such as id = 7")
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
                given.refuse(f'is no condition, as "{target.name}" is {type}: write what it is to be')
            return target is not None
        case _:
            return False


def _distinguished(root: exp.Expr) -> Set[int]:
    """Which columns are inside of IS [NOT] DISTINCT FROM; IS [NOT] TRUE and FALSE are that to DuckDB too.

    Beside another condition on the column, DuckDB passes over the row groups where it is NULL throughout.
    """
    return {
        id(column)
        for node in root.find_all(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is)
        if not isinstance(node, exp.Is) or isinstance(node.expression, exp.Boolean)
        for column in node.find_all(exp.Column)
    }


def _hidden(name: str) -> str:
    """A column without what footers say of it."""
    return f"(CASE WHEN {name} IS NULL THEN NULL ELSE {name} END)"


def _resolved(given: Given, columns: tuple[Column, ...], path: Sequence[str]) -> list[Column]:
    """The columns along a path, as far as it goes through structs."""
    found: list[Column] = []
    for depth in range(1, len(path) + 1):
        try:
            found.append(find(columns, list(path[:depth])))
        except NamingError as problem:
            shown = f"the {given.what} {given.text[:80]!r}"
            raise given.error(f"{shown} cannot be used: {problem}{given.hint}") from problem
        if found[-1].type != "struct":
            break
    return found


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
    if type(node) in _comparisons() or isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
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
            values = _long_list(node)
            return target.among(node.expressions) if values is None else target.among_many(values)
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
    op = _comparisons().get(type(node), "=")
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
        path = path_of(node)
        if not path:
            return None
        found = _resolved(Given(""), columns, path)
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

    def among_many(self, values: LongList) -> Node | None:
        found = literals.comparable_list(values, self.column.data_type)
        return None if found is None else is_in(self.column, found, name=self.name)

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
