"""Values, rows, conditions and expressions that fit the columns of a table, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from forklake.model.names import quoted
from forklake.model.types.data_types import DataType, Decimal, Scalar
from tests.property.table_model import Column, Condition, Table, Test
from tests.property.table_steps import Look
from tests.property.table_values import ORDERED, content, literal, sign, values_of

NO_LITERAL = frozenset({"geometry", "time_ns"})
EVALUATED = frozenset(
    {"varchar", "date", "boolean", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64, 128))}
)
"""What Python compares as SQL does."""
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
FORMS = ("to_arrow", "to_batches", "to_duckdb")


class Draws:
    """Draws what is done to rows and asked about them; keeps the columns as they are, but no rows."""

    def __init__(self, draw: st.DrawFn, type_strategy: st.SearchStrategy[DataType]) -> None:
        self.draw = draw
        self.types = type_strategy
        self.table = Table("t")
        self.pools: dict[int, list[Any]] = {}

    # ---- Values ---

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def pool(self, column: Column) -> list[Any]:
        if column.key not in self.pools:
            self.pools[column.key] = self.draw(st.lists(values_of(column.type), min_size=1, max_size=3))
        return self.pools[column.key]

    def value(self, column: Column, *, nullable: bool = True) -> Any:
        if nullable and self.chance(5):
            return None
        match column.kind:
            case "struct":
                return {child.key: self.value(child) for child in column.children}
            case "list":
                return [self.value(column.children[0]) for _ in range(self.pick((1, 2, 0)))]
            case "map":
                key, item = column.children
                keys = {self.pick(self.pool(key)) for _ in range(self.pick((1, 2, 0)))}
                return [(known, self.value(item)) for known in sorted(keys)]
            case _:
                return self.pick(self.pool(column))

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], str]:
        """The names that are given, the rows, and how they are handed over."""
        count = self.pick((2, 6, 1, 8, 3, 0))
        # No rows lack nothing, or what their names lack: that depends on how they are handed over.
        careless = count > 0 and self.chance(8)
        columns = [
            column
            for column in self.table.columns
            if not (self.chance(4) and (careless or column.nullable or column.default is not None))
        ] or [self.table.columns[0]]
        rows = tuple(
            tuple(self.value(column, nullable=column.nullable or careless) for column in columns)
            for _ in range(count)
        )
        return tuple(column.name for column in columns), rows, self.pick(("arrow", "dicts"))

    def default(self, type: DataType, *, constant: bool) -> tuple[str, Any] | None:
        """A default that the type can have."""
        match type:
            case Scalar("varchar") if not constant and self.chance(2):
                return "upper('x')", "X"
            case Scalar("int32") if not constant and self.chance(2):
                return "40 + 2", 42
            case Scalar(name) if name in NO_LITERAL:
                return None
            case Scalar() | Decimal():
                value = self.draw(values_of(type))
                text = content(value, type).replace("'", "''")
                return None if "\0" in text else (f"'{text}'", value)
            case _:
                return None

    # ---- Conditions ---

    def condition(self, depth: int = 2) -> Condition:
        if depth and self.chance(3):
            left = self.condition(depth - 1)
            match self.pick(("AND", "OR", "NOT")):
                case "NOT":
                    return Condition(f"NOT ({left.sql})", _not(left.test))
                case word:
                    right = self.condition(depth - 1)
                    join = _both if word == "AND" else _either
                    return Condition(f"({left.sql}) {word} ({right.sql})", join(left.test, right.test))
        if self.chance(12):
            return self.pick((Condition("TRUE", lambda row: True), Condition("1 > 2", lambda row: False)))
        way = self.pick(_leaves(self.table.columns))
        column, get, name = way[-1], _getter(way), _spelled(way)
        type = column.type
        if column.children or not is_ordered(type) or self.chance(5):
            if self.chance(2):
                return Condition(f"{name} IS NOT NULL", lambda row: get(row) is not None)
            return Condition(f"{name} IS NULL", lambda row: get(row) is None)
        kind = self.pick(("compare", "compare", "in", "between", "distinct"))
        if kind == "compare":
            operator, value = self.pick(tuple(OPERATORS)), self.operand(column)
            sql = f"{name} {operator} {self.written(value, type)}"
            test = self._tested(type, get, lambda v: _compared(operator, v, value))
        elif kind == "distinct":
            word, value = self.pick(("IS DISTINCT FROM", "IS NOT DISTINCT FROM")), self.operand(column)
            sql = f"{name} {word} {self.written(value, type)}"
            test = self._tested(type, get, lambda v: (v == value) is ("NOT" in word))
        elif kind == "in":
            values = [self.operand(column) for _ in range(self.pick((2, 1, 3)))]
            sql = f"{name} IN ({', '.join(self.written(value, type) for value in values)})"
            test = self._tested(type, get, lambda v: _among(v, values))
        else:
            low, high = self.operand(column), self.operand(column)
            sql = f"{name} BETWEEN {self.written(low, type)} AND {self.written(high, type)}"
            test = self._tested(type, get, lambda v: _and(_compared(">=", v, low), _compared("<=", v, high)))
        return Condition(sql, test)

    def operand(self, column: Column) -> Any:
        """A value to compare with, mostly one that rows may have."""
        if self.chance(12):
            return None
        value = self.draw(values_of(column.type)) if self.chance(4) else self.pick(self.pool(column))
        # A condition is text, and that has no NUL.
        return value.replace("\0", "") if isinstance(value, str) else value

    def written(self, value: Any, type: DataType) -> str:
        return "NULL" if value is None else sign(value, type)

    def _tested(
        self, type: DataType, get: Callable[[Mapping[int, Any]], Any], test: Callable[[Any], bool | None]
    ) -> Test | None:
        return (lambda row: test(get(row))) if is_evaluated(type) else None

    def expression(self, column: Column) -> str:
        """SQL that gives a column a value."""
        type, name = column.type, quoted(column.name)
        same = [quoted(other.name) for other in self.table.columns if other.type == type]
        ways = [f"({self.pick(same)})"]
        if column.nullable or self.chance(4):
            ways.append("NULL")
        match type:
            case Scalar("varchar"):
                ways.append(f"{name} || 'x'")
            case Scalar("boolean"):
                ways.append(f"NOT {name}")
            case Scalar(kind) if "int" in kind or kind.startswith("float"):
                ways.append(f"{name} + 1")
            case Decimal():
                ways.append(f"{name} + 1")
            case _:
                pass
        if not column.children and not (isinstance(type, Scalar) and type.name in NO_LITERAL):
            value = self.operand(column)
            ways += [literal(value, type)] * 2 if value is not None else []
        return self.pick(ways)

    def where(self) -> Condition | None:
        return None if self.chance(4) else self.condition()

    def look(self) -> Look:
        names = [column.name for column in self.table.columns]
        columns = self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        return Look(self.condition(), tuple(columns), self.pick(FORMS), self.pick(names))


def is_evaluated(type: DataType) -> bool:
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name in EVALUATED)


def is_ordered(type: DataType) -> bool:
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name in ORDERED)


def _leaves(columns: Sequence[Column], path: tuple[Column, ...] = ()) -> list[tuple[Column, ...]]:
    """Columns, and fields of structs, each with the way that leads there."""
    found: list[tuple[Column, ...]] = []
    for column in columns:
        found.append((*path, column))
        if column.kind == "struct":
            found += _leaves(column.children, (*path, column))
    return found


def _spelled(way: Sequence[Column]) -> str:
    return ".".join(quoted(column.name) for column in way)


def _getter(way: Sequence[Column]) -> Callable[[Mapping[int, Any]], Any]:
    def get(values: Mapping[int, Any]) -> Any:
        value: Any = values
        for column in way:
            value = None if value is None else value[column.key]
        return value

    return get


def _not(test: Test | None) -> Test | None:
    if test is None:
        return None
    return lambda row: None if (known := test(row)) is None else not known


def _both(left: Test | None, right: Test | None) -> Test | None:
    if left is None or right is None:
        return None

    def test(row: Mapping[int, Any]) -> bool | None:
        sides = (left(row), right(row))
        return False if False in sides else None if None in sides else True

    return test


def _either(left: Test | None, right: Test | None) -> Test | None:
    return _not(_both(_not(left), _not(right)))


def _compared(operator: str, left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else OPERATORS[operator](left, right)


def _and(left: bool | None, right: bool | None) -> bool | None:
    return False if False in (left, right) else None if None in (left, right) else True


def _among(value: Any, values: Sequence[Any]) -> bool | None:
    if value is None:
        return None
    return (
        True
        if any(other is not None and value == other for other in values)
        else None
        if None in values
        else False
    )
