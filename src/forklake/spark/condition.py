"""Conditions of `where=` in Spark's SQL, with the meaning that they have in the local engine. Pure.

What is certain, comparisons of columns with values, comes from the tree that files are pruned by. Of the rest
only what both engines do alike is taken. The other is refused: DataFrames have Spark's own `filter` for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, localcontext
from decimal import Decimal as Number
from functools import cache
from typing import NoReturn
from uuid import UUID

from forklake.errors import InvalidPredicate
from forklake.lazy.sqlglot import exp
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.sql.predicate import Predicate, column_of, node_of, parsed_condition
from forklake.model.sql.predicate_tree import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Leaf,
    Node,
    Not,
    Opaque,
    Operator,
    Or,
    StartsWith,
)
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import MAX_PRECISION, DataType, Decimal, Scalar, to_spark, to_sql
from forklake.model.types.sort_keys import Value
from forklake.spark.sql_text import field_of, name, text

_LISTED = frozenset({"varchar", "date", "time", "timestamp", "timestamptz", "uuid", "blob"})
"""What both engines find in a list as they find it equal."""
_MANY = 200
"""Longer lists of values are given to Spark as one text."""
_ALIKE = frozenset({"boolean", "date", "time", "timestamp", "timestamptz", "varchar", "blob", "uuid"})
_TIMESTAMPS = frozenset({"date", "timestamp", "timestamp_s", "timestamp_ms"})
_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})


@cache
def _signs() -> dict[type[exp.Expr], str]:
    return {
        exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
        exp.NullSafeEQ: "<=>",
    }  # fmt: skip


def condition(
    predicate: Predicate, columns: Columns, names: Mapping[ColumnId, str], nanos: Mapping[ColumnId, str]
) -> str:
    """A condition over a DataFrame whose columns have these names.

    `nanos` names further columns, where a TIMESTAMP_NS is a number of nanoseconds.
    """
    return _Translation(predicate, columns, names, nanos).sql()


class _Translation:
    def __init__(
        self,
        predicate: Predicate,
        columns: Columns,
        names: Mapping[ColumnId, str],
        nanos: Mapping[ColumnId, str],
    ) -> None:
        self.text = predicate.text
        self.root = parsed_condition(predicate)
        self.columns = columns
        self.nanos = nanos
        self.known: dict[ColumnId, tuple[Column, str]] = {}
        for column in columns:
            if column.id in names:
                self._learn(column, name(names[column.id]))

    def sql(self) -> str:
        return self._part(self.root)

    def _learn(self, column: Column, place: str) -> None:
        self.known[column.id] = column, place
        for child in column.children if column.type == "struct" else ():
            self._learn(child, field_of(place, child.name))

    def _refuse(self, part: exp.Expr | str) -> NoReturn:
        sql = part if isinstance(part, str) else repr(part.sql(dialect="duckdb")[:80])
        raise InvalidPredicate(
            f"the predicate {self.text[:80]!r} cannot be given to Spark because of {sql}: "
            "leave that part out, and filter the DataFrame with a condition of Spark's own"
        )

    # ---- Parts of the text ---

    def _part(self, part: exp.Expr) -> str:
        match part:
            case exp.Paren():
                return self._part(part.this)
            case exp.And() | exp.Or():
                word = " AND " if isinstance(part, exp.And) else " OR "
                return "(" + word.join(self._part(inner) for inner in part.flatten()) + ")"
            case exp.Not():
                return f"(NOT {self._part(part.this)})"
            case _:
                node = node_of(part, self.columns)
                return self._opaque(part) if _is_opaque(node) else self._node(node)

    def _opaque(self, part: exp.Expr) -> str:
        sql = None
        if isinstance(part, exp.Like):
            sql = self._like(part)
        elif type(part) in _signs():
            sql = self._between_values(part, _signs()[type(part)])
        elif isinstance(part, exp.NullSafeNEQ):
            same = self._between_values(part, "<=>")
            sql = None if same is None else f"(NOT {same})"
        if sql is None:
            self._refuse(part)
        return f"(NOT {sql})" if part.args.get("negate") else sql

    def _like(self, part: exp.Like) -> str | None:
        column, pattern = column_of(part.this, self.columns), part.expression
        if column is None or column.type != "varchar":
            return None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return None
        # In DuckDB nothing escapes unless it is asked to, in Spark a backslash does.
        escape = (
            next(sign for sign in "\\!~^|#" if sign not in pattern.this) if "\\" in pattern.this else "\\"
        )
        return f"({self._place(column.id)} LIKE {text(str(pattern.this))} ESCAPE {_sign(escape)})"

    def _between_values(self, part: exp.Expr, sign: str) -> str | None:
        """Two columns that both engines compare alike, or what is left of a whole number by a division."""
        left, right = column_of(part.this, self.columns), column_of(part.args["expression"], self.columns)
        if left is not None and right is not None and _alike(left.data_type, right.data_type):
            return f"({self._place(left.id)} {sign} {self._place(right.id)})"
        rest, number = part.this, part.args["expression"]
        if isinstance(rest, exp.Paren):
            rest = rest.this
        if isinstance(rest, exp.Mod) and (found := self._remainder(rest)) and _is_whole(number):
            return f"({found} {sign} {number.sql()})"
        return None

    def _remainder(self, part: exp.Mod) -> str | None:
        column, by = column_of(part.this, self.columns), part.expression
        whole = column is not None and column.type in _WHOLE
        if column is None or not whole or not _is_whole(by) or int(by.sql()) == 0:
            return None
        return f"({self._place(column.id)} % {by.sql()})"

    def _place(self, column: ColumnId) -> str:
        return self.known[column][1]

    # ---- Nodes of the tree ---

    def _node(self, node: Node) -> str:
        match node:
            case Always(value):
                return "CAST(NULL AS BOOLEAN)" if value is None else str(value).lower()
            case Not(inner):
                return f"(NOT {self._node(inner)})"
            case And(nodes) | Or(nodes):
                word = " AND " if isinstance(node, And) else " OR "
                return "(" + word.join(self._node(inner) for inner in nodes) + ")"
            case Opaque():
                return self._refuse("something in it")
            case _:
                return self._leaf(node)

    def _leaf(self, leaf: Leaf) -> str:
        column, place = self.known[leaf.operand.column_id]
        match leaf:
            case IsNull():
                return f"({place} IS NULL)"
            case StartsWith(_, _, prefix):
                return f"startswith({place}, {text(prefix)})"
            case Compare(_, op, _, value):
                return self._compared(column, place, op, value)
            case In() if len(leaf.values) > _MANY and (among := _among(column, leaf.values)) is not None:
                return f"({place} IN ({among}))"
            case In():
                if column.type in _LISTED and column.id not in self.nanos:
                    sql = [_literal(value, column.data_type) for value in leaf.values]
                    if None not in sql:
                        return f"({place} IN ({', '.join(map(str, sql))}))"
                found = [self._compared(column, place, "=", value) for value in leaf.values]
                return f"({' OR '.join(found)})"

    def _compared(self, column: Column, place: str, op: Operator, value: Value | None) -> str:
        kind = column.data_type
        if column.id in self.nanos and isinstance(value, int):
            return f"({name(self.nanos[column.id])} {_spelled(op)} {value}L)"
        exact = _grid(kind)
        if exact is not None and isinstance(value, int | Number) and not isinstance(value, bool):
            return _on_grid(place, op, Number(value), exact)
        sql = _literal(value, kind)
        if sql is None:
            self._refuse(f"a comparison with {column.name!r}, which is {to_sql(kind)}")
        return f"({place} {_spelled(op)} {sql})"


def _among(column: Column, values: Sequence[Value]) -> str | None:
    """A query of many values, as one text: Spark would need minutes to read so many literals."""
    kind = column.data_type
    grid = _grid(kind)
    if grid is not None:
        numbers = [
            Number(one) for one in values if isinstance(one, int | Number) and not isinstance(one, bool)
        ]
        # What the column cannot hold is never met; if nothing were left, NULL would not be in it either.
        texts = [f"{one:f}" for one in numbers if _is_held(one, grid)]
        spark = grid.spark
    elif kind == Scalar("varchar"):
        texts, spark = [str(one) for one in values], "STRING"
    else:
        return None
    if not texts:
        return None
    listed = text(json.dumps(texts))
    values_of = f"SELECT explode(from_json({listed}, 'array<string>')) AS v"
    return f"SELECT CAST(v AS {spark}) FROM ({values_of})"  # noqa: S608


def _is_opaque(node: Node) -> bool:
    match node:
        case Opaque():
            return True
        case Not(inner):
            return _is_opaque(inner)
        case And(nodes) | Or(nodes):
            return any(map(_is_opaque, nodes))
        case _:
            return False


def _spelled(op: Operator) -> str:
    return "<>" if op == "!=" else op


def _sign(sign: str) -> str:
    return r"'\\'" if sign == "\\" else f"'{sign}'"


def _alike(one: DataType, other: DataType) -> bool:
    whole = isinstance(one, Scalar) and isinstance(other, Scalar) and {one.name, other.name} <= _WHOLE
    return whole or (one == other and isinstance(one, Scalar) and one.name in _ALIKE)


def _is_whole(part: exp.Expr) -> bool:
    inner = part.this if isinstance(part, exp.Neg) else part
    return (
        isinstance(inner, exp.Literal)
        and not inner.is_string
        and inner.this.isdigit()
        and len(inner.this) < 10
    )


class _Grid:
    """The exact numbers that a column can hold."""

    def __init__(self, scale: int, low: Number, high: Number, spark: str) -> None:
        self.scale, self.low, self.high, self.spark = scale, low, high, spark


def _grid(kind: DataType) -> _Grid | None:
    match kind:
        case Decimal(precision, scale):
            with localcontext(prec=2 * MAX_PRECISION):
                most = (Number(10) ** precision - 1).scaleb(-scale)
            return _Grid(scale, -most, most, to_spark(kind))
        case Scalar("int128" | "uint128"):
            most = Number(10) ** MAX_PRECISION - 1
            return _Grid(0, -most, most, to_spark(kind))
        case Scalar(word) if word.removeprefix("u").startswith("int") and word != "interval":
            bits = int(word.removeprefix("u").removeprefix("int"))
            low, high = (
                (0, 2**bits - 1) if word.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            )
            return _Grid(0, Number(low), Number(high), to_spark(kind))
        case _:
            return None


def _is_held(value: Number, grid: _Grid) -> bool:
    with localcontext(prec=3 * MAX_PRECISION):
        whole = value.quantize(Number(1).scaleb(-grid.scale), ROUND_FLOOR) == value
        return whole and grid.low <= value <= grid.high


def _on_grid(place: str, op: Operator, value: Number, grid: _Grid) -> str:
    """A comparison with a number that the column may not be able to hold: its neighbours say the same.

    Spark would bring both sides to one type, and lose digits of large ones.
    """
    with localcontext(prec=3 * MAX_PRECISION):
        unit = Number(1).scaleb(-grid.scale)
        below = value.quantize(unit, ROUND_FLOOR)
        above = value.quantize(unit, ROUND_CEILING)
    if _is_held(value, grid):
        return f"({place} {_spelled(op)} CAST('{value:f}' AS {grid.spark}))"
    if op in ("=", "!="):
        return f"({place} {'<>' if op == '=' else '='} {place})"
    downwards = op in ("<", "<=")
    if (below < grid.low) if downwards else (above > grid.high):
        return f"({place} <> {place})"
    bound = min(below, grid.high) if downwards else max(above, grid.low)
    return f"({place} {'<=' if downwards else '>='} CAST('{bound:f}' AS {grid.spark}))"


def _literal(value: Value | None, kind: DataType) -> str | None:
    word = kind.name if isinstance(kind, Scalar) else ""
    match value:
        case bool() if word == "boolean":
            return str(value).lower()
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str() if word == "varchar":
            return text(value)
        case bytes() if word == "blob":
            return f"X'{value.hex()}'"
        case UUID() if word == "uuid":
            return f"'{value}'"
        case date() | time():
            return _timestamp(value, word)
        case _:
            return None


def _timestamp(value: date | time, word: str) -> str | None:
    match value:
        case datetime() if word == "timestamptz":
            timestamp = value.astimezone(UTC).replace(tzinfo=None)
            return f"TIMESTAMP'{timestamp.isoformat(' ', 'microseconds')}+00:00'"
        case datetime() if value.tzinfo is None and word in _TIMESTAMPS:
            return f"TIMESTAMP_NTZ'{value.isoformat(' ', 'microseconds')}'"
        case date() if word == "date":
            return f"DATE'{value.isoformat()}'"
        case date() if word in _TIMESTAMPS:
            return f"TIMESTAMP_NTZ'{value.isoformat()} 00:00:00'"
        case time() if word == "time":
            return f"TIME'{value.isoformat('microseconds')}'"
        case _:
            return None
