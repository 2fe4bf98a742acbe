"""Expressions over two rows, such as `target.n + source.n`, checked before DuckDB sees them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from forklake.errors import ColumnNotFound, InvalidPredicate
from forklake.model.names import check_text

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a query"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
    (exp.Star, "a star"),
    (exp.UDTF, "a table function"),
    (exp.Alias, "an alias"),
)


def check_qualified(text: object, sides: Mapping[str, Set[str]]) -> str:
    """An expression whose columns name their side, as it is; or refuse it."""
    expression = check_text(text, "expression")
    shown = repr(expression[:80])
    try:
        statements = sqlglot.parse(f"SELECT ({expression}\n)", dialect="duckdb")
    except (SqlglotError, RecursionError):
        raise InvalidPredicate(f"{shown} is not an SQL expression") from None
    select = statements[0]
    values = select.expressions if isinstance(select, exp.Select) and len(statements) == 1 else []
    clauses = [
        key for key, value in (select.args if select else {}).items() if value and key != "expressions"
    ]
    if len(values) != 1 or not isinstance(values[0], exp.Paren) or clauses:
        raise InvalidPredicate(f"{shown} is not one SQL expression")
    for part in values[0].walk():
        if part.comments:
            raise InvalidPredicate(f"{shown} holds a comment")
        for kind, what in _REFUSED:
            if isinstance(part, kind):
                raise InvalidPredicate(f"{shown} holds {what}, which an expression over rows may not")
        if isinstance(part, exp.Column):
            _check_column(part, shown, sides)
    return f"({expression}\n)"


def _check_column(column: exp.Column, shown: str, sides: Mapping[str, Set[str]]) -> None:
    side = column.table.lower()
    if side not in sides:
        choices = " or ".join(f"{side}.{column.name}" for side in sides)
        raise InvalidPredicate(
            f"{shown} names {column.name!r} without its side: write {choices}; a text stands in single quotes"
        )
    if column.name.lower() not in {name.lower() for name in sides[side]}:
        raise ColumnNotFound(f'{shown}: {side} has no column "{column.name}"')
