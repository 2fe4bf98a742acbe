"""Programs: a table, and what is done to it step by step, drawn so that each step makes sense."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from forklake.model.names import quoted
from forklake.model.types.data_types import DataType, Decimal, Scalar, to_sql
from tests.property.table_model import Column, Condition, Refused, Table, Test
from tests.property.table_values import (
    FIELDS,
    ORDERED,
    UNITS,
    content,
    literal,
    sign,
    types,
    values_of,
    widened,
    wider_types,
)

NAMES = ("a", "b", "C d", "é", "select", "change_type", "place", "file_row_number", "f")
TABLES = ("t", "u", "Tab le")
NO_LITERAL = frozenset({"geometry", "time_ns"})
EVALUATED = frozenset(
    {"varchar", "date", "boolean", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64, 128))}
)
"""What Python compares as SQL does."""
BUCKETS = frozenset(
    {"time", "varchar", "blob", "uuid", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}
)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
DML = ("append", "delete", "update", "overwrite", "merge")
LAYOUT = ("flush", "compact", "rewrite_deletes", "set_partitioning", "set_sort_order", "set_option")
"""What changes where rows are, and never what they are."""
DDL = (
    "add_column",
    "drop_column",
    "rename_column",
    "alter_type",
    "set_default",
    "drop_default",
    "set_nullable",
    "reorder",
    "rename",
    "add_field",
    "drop_field",
    "rename_field",
    "alter_field",
)
FORMS = ("to_arrow", "to_batches", "to_duckdb")

Op = tuple[Any, ...]


@dataclass(frozen=True)
class Look:
    """A question about the rows."""

    where: Condition
    columns: tuple[str, ...]
    form: str
    extreme: str


@dataclass(frozen=True)
class Step:
    """Something that happens, and a question that is asked afterwards."""

    handle: int
    action: str
    """`do` one thing, a `transaction` or a `rollback` of many, an `overlap` of two handles, or `reopen`."""
    ops: tuple[Op, ...] = ()
    look: Look | None = None
    theirs: Op | None = None


@dataclass(frozen=True)
class Program:
    """A whole story."""

    ddl: str
    start: Table = field(repr=False)
    steps: tuple[Step, ...] = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As hypothesis shows it."""
        printer.text(str(self))

    def __str__(self) -> str:
        lines = [f"create table ({self.ddl})"]
        for step in self.steps:
            theirs = "" if step.theirs is None else f" while the other does {step.theirs}"
            lines.append(f"[{step.handle}] {step.action}{theirs}")
            lines += [f"    {op}" for op in step.ops]
            if step.look is not None:
                lines.append(f"    look: {step.look}")
        return "\n".join(lines)


def _is_evaluated(type: DataType) -> bool:
    return isinstance(type, Decimal) or (isinstance(type, Scalar) and type.name in EVALUATED)


def _is_ordered(type: DataType) -> bool:
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


class Author:
    """Draws one program; keeps the columns as they are at each step, but no rows."""

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
        if column.children or not _is_ordered(type) or self.chance(5):
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
        return (lambda row: test(get(row))) if _is_evaluated(type) else None

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

    # ---- Verbs; None if the columns do not allow it ---

    def op(self, verb: str) -> Op | None:
        """An operation, after which the columns are as it leaves them."""
        drawn = getattr(self, f"_{verb}")()
        if drawn is not None:
            self._follow(drawn)
        return drawn

    def _follow(self, op: Op) -> None:
        try:
            after = reshaped(self.table, op)
        except Refused:
            return
        before = {c.key: c for top in self.table.columns for c in top.walk()}
        self.table = after
        for column in (c for top in self.table.columns for c in top.walk()):
            old = before.get(column.key)
            if old is not None and old.kind != column.kind and column.key in self.pools:
                self.pools[column.key] = [
                    widened(value, old.type, column.type) for value in self.pools[column.key]
                ]

    def _append(self) -> Op:
        return ("append", *self.rows())

    def _overwrite(self) -> Op:
        return ("overwrite", *self.rows(), self.where())

    def _delete(self) -> Op:
        return ("delete", self.where())

    def _update(self) -> Op:
        columns = self.draw(
            st.lists(st.sampled_from(self.table.columns), min_size=1, max_size=2, unique=True)
        )
        return ("update", {column.name: self.expression(column) for column in columns}, self.where())

    def _merge(self) -> Op | None:
        keys = [column for column in self.table.columns if _is_evaluated(column.type)]
        if not keys:
            return None
        on = self.pick(keys)
        names, rows, form = self.rows()
        at = list(names).index(on.name) if on.name in names else None
        if at is None:
            names = (*names, on.name)
            rows = tuple((*row, self.value(on)) for row in rows)
            at = len(names) - 1
        # A row may be given new values once; NULL meets nothing.
        given = {row[at]: row for row in rows if row[at] is not None}
        unknown = tuple(row for row in rows if row[at] is None)
        matched = self.pick(("update", "update", "delete", "ignore"))
        unmatched = self.pick(("insert", "insert", "ignore"))
        return ("merge", names, (*given.values(), *unknown), form, on.name, matched, unmatched)

    def _flush(self) -> Op:
        return ("flush",)

    def _compact(self) -> Op:
        return ("compact",)

    def _rewrite_deletes(self) -> Op:
        return ("rewrite_deletes", self.pick((0, 0.2, 0.9)))

    def _set_partitioning(self) -> Op:
        able = [column for column in self.table.columns if _transforms(column.type)]
        chosen = self.draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able else []
        fields = tuple(self.pick(_transforms(c.type)).format(quoted(c.name)) for c in chosen)
        return ("set_partitioning", fields, tuple(column.key for column in chosen))

    def _set_sort_order(self) -> Op:
        able = [column for column in self.table.columns if _is_ordered(column.type)]
        chosen = self.draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able else []
        orders = ("", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST")
        keys = tuple(quoted(column.name) + self.pick(orders) for column in chosen)
        return ("set_sort_order", keys, tuple(column.key for column in chosen))

    def _set_option(self) -> Op:
        if self.chance(3):
            return ("set_option", "target_file_size", self.pick((1, None)))
        return ("set_option", "data_inlining_row_limit", self.pick((0, 1, 100, None)))

    def _new_name(self, taken: Sequence[Column], names: Sequence[str]) -> str | None:
        known = {column.name for column in taken}
        free = [name for name in names if name not in known]
        return self.pick(free) if free else None

    def _add_column(self) -> Op | None:
        name = self._new_name(self.table.columns, NAMES)
        if name is None or len(self.table.columns) > 6:
            return None
        type = self.draw(self.types)
        default = self.default(type, constant=True) if self.chance(2) else None
        return ("add_column", name, type, default, default is None or not self.chance(3))

    def _drop_column(self) -> Op | None:
        if len(self.table.columns) < 2:
            return None
        return ("drop_column", (self.pick(self.table.columns).name,))

    def _rename_column(self) -> Op | None:
        name = self._new_name(self.table.columns, NAMES)
        return None if name is None else ("rename_column", (self.pick(self.table.columns).name,), name)

    def _alter_type(self) -> Op | None:
        return self._wider([(column,) for column in self.table.columns])

    def _alter_field(self) -> Op | None:
        return self._wider([way for way in _ways(self.table.columns) if len(way) > 1])

    def _wider(self, ways: Sequence[tuple[Column, ...]]) -> Op | None:
        able = [way for way in ways if not way[-1].children and wider_types(way[-1].type)]
        if not able:
            return None
        way = self.pick(able)
        return ("alter_type", _names(way), self.pick(wider_types(way[-1].type)))

    def _set_default(self) -> Op | None:
        column = self.pick(self.table.columns)
        default = self.default(column.type, constant=False)
        return None if default is None else ("set_default", column.name, default)

    def _drop_default(self) -> Op:
        return ("set_default", self.pick(self.table.columns).name, None)

    def _set_nullable(self) -> Op:
        return ("set_nullable", self.pick(self.table.columns).name, self.chance(2))

    def _reorder(self) -> Op:
        names = [column.name for column in self.table.columns]
        return ("reorder", tuple(self.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))))

    def _rename(self) -> Op:
        return ("rename", self.pick([name for name in TABLES if name != self.table.name]))

    def _struct(self, least: int) -> tuple[Column, ...] | None:
        ways = [way for way in _ways(self.table.columns) if way[-1].kind == "struct"]
        ways = [way for way in ways if len(way[-1].children) >= least]
        return self.pick(ways) if ways else None

    def _add_field(self) -> Op | None:
        way = self._struct(1)
        name = None if way is None else self._new_name(way[-1].children, FIELDS)
        if way is None or name is None:
            return None
        return ("add_field", (*_names(way), name), self.draw(types(1)))

    def _drop_field(self) -> Op | None:
        way = self._struct(2)
        return None if way is None else ("drop_column", (*_names(way), self.pick(way[-1].children).name))

    def _rename_field(self) -> Op | None:
        way = self._struct(1)
        name = None if way is None else self._new_name(way[-1].children, FIELDS)
        if way is None or name is None:
            return None
        return ("rename_column", (*_names(way), self.pick(way[-1].children).name), name)

    # ---- Steps ---

    def ops(self, verbs: Sequence[str], most: int) -> tuple[Op, ...]:
        drawn = [self.op(self.pick(verbs)) for _ in range(self.draw(st.integers(1, most)))]
        return tuple(op for op in drawn if op is not None)

    def step(self, verbs: Sequence[str]) -> Step:
        handle = self.pick((0, 0, 0, 1))
        before, pools = self.table, dict(self.pools)
        match self.pick(("do",) * 6 + ("transaction",) * 5 + ("rollback", "overlap", "reopen")):
            case "do":
                return Step(handle, "do", self.ops(verbs, 1), self.look())
            case "transaction":
                return Step(handle, "transaction", self.ops(verbs, 5), self.look())
            case "rollback":
                ops = self.ops(verbs, 3)
                self.table, self.pools = before, pools
                return Step(handle, "rollback", ops)
            case "overlap":
                # Both start from the same columns.
                ours = self.ops([verb for verb in verbs if verb in DML], 2)
                theirs = self.op(self.pick(verbs))
                return Step(handle, "overlap", ours, self.look(), theirs)
            case action:
                return Step(handle, action, (), self.look())


def _transforms(type: DataType) -> list[str]:
    """Partition fields that a column of a type takes."""
    match type:
        case Decimal():
            return ["{}"]
        case Scalar("date"):
            return ["{}", "year({})", "month({})", "day({})", "bucket(3, {})"]
        case Scalar(name) if name in UNITS:
            return ["{}", "year({})", "hour({})", "bucket(3, {})"]
        case Scalar(name) if name in BUCKETS:
            return ["{}", "bucket(3, {})"]
        case Scalar(name) if name in ORDERED:
            return ["{}"]
        case _:
            return []


def _ways(columns: Sequence[Column], path: tuple[Column, ...] = ()) -> list[tuple[Column, ...]]:
    """Every column and everything inside of it, each with the way that leads there."""
    found: list[tuple[Column, ...]] = []
    for column in columns:
        found += [(*path, column), *_ways(column.children, (*path, column))]
    return found


def _names(way: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in way)


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


def reshaped(table: Table, op: Op) -> Table:
    """A table of the model after a change of its structure; anything else leaves it as it is."""
    match op:
        case "add_column", name, type, default, nullable:
            return table.create(name, type, default=default, nullable=nullable)
        case "add_field", path, type:
            return table.add_field(path, type)
        case "drop_column", path:
            return table.drop_column(path)
        case "rename_column", path, name:
            return table.rename_column(path, name)
        case "alter_type", path, type:
            return table.alter_type(path, type)
        case "set_default", name, default:
            return table.set_default(name, default)
        case "set_nullable", name, flag:
            return table.set_nullable(name, flag)
        case "reorder", names:
            return table.reorder(names)
        case "rename", name:
            return replace(table, name=name)
        case "set_partitioning", _, keys:
            return replace(table, laid_out=frozenset(keys))
        case "set_sort_order", _, keys:
            return replace(table, sorted_by=frozenset(keys))
        case _:
            return table


@st.composite
def programs(
    draw: st.DrawFn,
    kinds: Sequence[st.SearchStrategy[DataType]],
    verbs: Sequence[str],
    most_steps: int,
) -> Program:
    """A table and its story. Each keeps to one of the kinds of types and to a few verbs, which meet often."""
    author = Author(draw, draw(st.sampled_from(kinds)))
    for at in range(draw(st.integers(1, 4))):
        type = draw(author.types)
        default = author.default(type, constant=False) if author.chance(3) else None
        nullable = not author.chance(6)
        author.table = author.table.create(NAMES[at], type, default=default, nullable=nullable)
    start = author.table
    ddl = ", ".join(
        f"{quoted(column.name)} {to_sql(column.type)}"
        + ("" if column.default is None else f" DEFAULT {column.default[0]}")
        + ("" if column.nullable else " NOT NULL")
        for column in start.columns
    )
    chosen = draw(st.lists(st.sampled_from(verbs), min_size=2, max_size=5))
    first = Step(0, "do", (author.op("append"),), author.look())
    steps = [author.step(("append", "append", *chosen)) for _ in range(draw(st.integers(2, most_steps)))]
    return Program(ddl, start, (first, *steps))
