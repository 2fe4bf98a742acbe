"""Conditions and values of UPDATE, DELETE and MERGE as Spark's verbs take them. Pure.

These run expressions in the local engine, in the tasks that have the rows, so they stay in DuckDB's dialect.
Columns are spelled as the verbs want them, and parameters become literals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from forklake.engine.query.run import Parameters
from forklake.errors import InvalidSql
from forklake.model.names import quoted
from forklake.model.sql.expressions import dotted, path_of, read
from forklake.model.sql.predicate import given_expression
from forklake.model.table.columns import Columns
from forklake.spark.sql.parameters import by_name, literal
from forklake.sql.parser.tokens import parameters_in

Spell = Callable[[Sequence[str]], tuple[str, Sequence[str]]]
"""From the names along `a.b.c` to what the column is called, and the fields inside of it."""


def spelled(text: str, params: Parameters, spell: Spell) -> str:
    """An expression with its columns spelled out and the values of its parameters."""
    given = given_expression(with_literals(text, params))
    return read(given, lambda node: dotted(*spell(path_of(node))))[1]


def with_literals(text: str, params: Parameters) -> str:
    """An expression in which literals stand for parameters; the tokenizer says where those are."""
    values, parts, last = by_name(params), list[str](), 0
    for start, end, name in parameters_in(text, 0, len(text)):
        parts += [text[last:start], literal(name, values[name])]
        last = end
    return "".join([*parts, text[last:]])


def of_table(table: str, schema: str, alias: str | None, columns: Columns) -> Spell:
    """Columns of one table, which may be named with it."""
    known = {column.name.lower() for column in columns}

    def spell(path: Sequence[str]) -> tuple[str, Sequence[str]]:
        lower = [part.lower() for part in path]
        if len(path) > 1 and lower[0] == (alias or table).lower() and lower[0] not in known:
            path = path[1:]
        elif len(path) > 2 and alias is None and lower[:2] == [schema.lower(), table.lower()]:
            path = path[2:]
        return quoted(path[0]), path[1:]

    return spell


def of_two(target: str, columns: Collection[str], source: str, others: Collection[str]) -> Spell:
    """Columns of a table and of the source that is merged into it, each with the name of its side."""
    inside = {"target": {name.lower() for name in columns}, "source": {name.lower() for name in others}}
    called = {target.lower(): "target", source.lower(): "source"}

    def spell(path: Sequence[str]) -> tuple[str, Sequence[str]]:
        first = path[0].lower()
        if len(path) > 1 and first in called and path[1].lower() in inside[called[first]]:
            return f"{called[first]}.{quoted(path[1])}", path[2:]
        sides = [side for side, names in inside.items() if first in names]
        if len(sides) != 1:
            problem = "is in both" if sides else "is in neither of"
            raise InvalidSql(f'column "{".".join(path)}" {problem} "{target}" and "{source}": name the side')
        return f"{sides[0]}.{quoted(path[0])}", path[1:]

    return spell
