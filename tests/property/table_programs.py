"""Programs: a table, and what is done to it step by step, drawn so that each step makes sense."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from forklake.model.names import quoted
from forklake.model.types.data_types import DataType, Decimal, Scalar, to_sql
from tests.property.table_draws import Draws, is_evaluated, is_ordered
from tests.property.table_model import Column, Refused
from tests.property.table_steps import DML, Op, Program, Step, reshaped
from tests.property.table_values import FIELDS, ORDERED, UNITS, types, widened, wider_types

NAMES = ("a", "b", "C d", "é", "select", "change_type", "place", "file_row_number", "f")
TABLES = ("t", "u", "Tab le")
BUCKETS = frozenset(
    {"time", "varchar", "blob", "uuid", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}
)


class Author(Draws):
    """Draws one program; keeps the columns as they are at each step, but no rows."""

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
        keys = [column for column in self.table.columns if is_evaluated(column.type)]
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
        able = [column for column in self.table.columns if is_ordered(column.type)]
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
