"""What may happen to a catalog: each verb changes the model and returns what does the same to the lake.

A step is a number; it seeds the choices that make the step, given what there is by then. So a program is a
list of numbers, of which any part is a program again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import forklake
from tests.property.fork_model import KEYS, WIDER, Column, Key, Object, Row, State, Table, Value

SCHEMAS = ("main", "s", "r")
RELATIONS = ("t", "u", "v")
MACROS = ("m", "n")
COLUMNS = ("a", "b", "c", "D d")
TEXTS = ("x", "y", "it's", "")
MOST_ROWS = 9

Scope = forklake.Catalog | forklake.Transaction
Act = tuple[str, Callable[[Scope], Any]]
"""How it reads, and what to do. It returns how many rows it is said to have changed, where it says so."""


class Author:
    """Makes up what happens next."""

    def __init__(self, random: Random, state: State) -> None:
        self.random = random
        self.state = state
        self.touched: set[Key] = set()
        """The tables whose rows are not what or where they were."""

    # ---- Choices ---

    def pick(self, choices: Iterable[Any]) -> Any:
        return self.random.choice(list(choices))

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def act(self) -> Act:
        while True:
            verb = self.random.choices(NAMES, WEIGHTS)[0]
            act = getattr(self, verb)()
            if act is not None:
                return act

    def value(self, column: Column) -> Value:
        if self.chance(5):
            return None
        return self.random.randrange(6) if column.is_number else self.pick(TEXTS)

    def default(self, type: str) -> Value:
        return self.random.randrange(6, 9) if type != "varchar" else self.pick(("z", "it's"))

    def table(self) -> tuple[Any, Table] | None:
        """A table, by its name as it is now."""
        if not self.state.tables:
            return None
        key = self.pick(self.state.tables)
        table = self.state.tables[key]
        return self.state.name(table), table

    def touch(self, table: Table) -> None:
        self.touched |= {key for key, known in self.state.tables.items() if known is table}

    def free(self, kind: dict[Key, Any], names: Sequence[str], schema: Key) -> list[str]:
        """Names that nothing of that kind has; tables and views share theirs."""
        kinds = (kind,) if kind is self.state.macros else (self.state.tables, self.state.views)
        taken = {item.name for known in kinds for item in known.values() if item.schema == schema}
        return [name for name in names if name not in taken]

    def place(self, kind: dict[Key, Any], names: Sequence[str]) -> tuple[Key, str] | None:
        schema = self.pick(self.state.schemas)
        free = self.free(kind, names, schema)
        return (schema, self.pick(free)) if free else None

    # ---- Rows ---

    def given(self, table: Table) -> tuple[list[dict[str, Value]], list[Row]]:
        """New rows as they are handed over, and as they are then."""
        columns = [column for column in table.columns if not self.chance(4)] or table.columns[:1]
        data, rows = [], []
        for _ in range(self.pick((1, 1, 2, 3))):
            chosen = {column.key: self.value(column) for column in columns}
            data.append({column.name: chosen[column.key] for column in columns})
            rows.append(Row({column.key: chosen.get(column.key, column.default) for column in table.columns}))
        return data, rows

    def condition(self, table: Table) -> tuple[str | None, Callable[[Row], bool]]:
        if self.chance(6):
            return None, lambda row: True
        column = self.pick(table.columns)
        name, key = f'"{column.name}"', column.key
        if self.chance(5):
            return f"{name} IS NULL", lambda row: row.values[key] is None
        known = [row.values[key] for row in table.rows if row.values[key] is not None]
        value: Any = self.pick(known) if known and not self.chance(4) else self.value(column)
        if value is None:
            return f"{name} IS NOT NULL", lambda row: row.values[key] is not None
        if column.is_number and self.chance(2):
            return f"{name} < {value}", lambda row: row.values[key] is not None and row.values[key] < value
        return f"{name} = {literal(value)}", lambda row: row.values[key] == value

    def append(self) -> Act | None:
        found = self.table()
        if found is None or len(found[1].rows) > MOST_ROWS:
            return self.delete()
        name, table = found
        data, rows = self.given(table)
        table.rows += rows
        self.touch(table)
        return f"append {data} to {name}", lambda scope: scope.table(name).append(data) - len(rows)

    def delete(self) -> Act | None:
        found = self.table()
        if found is None:
            return None
        name, table = found
        where, test = self.condition(table)
        gone = [row for row in table.rows if test(row)]
        table.rows = [row for row in table.rows if not test(row)]
        self.touch(table)
        return f"delete from {name} where {where}", lambda scope: scope.table(name).delete(where) - len(gone)

    def update(self) -> Act | None:
        found = self.table()
        if found is None:
            return None
        name, table = found
        where, test = self.condition(table)
        column = self.pick(table.columns)
        value = self.value(column)
        grows = column.is_number and self.chance(2)
        text = f'"{column.name}" + 1' if grows else literal(value)
        changed = [row for row in table.rows if test(row)]
        for row in changed:
            old: Any = row.values[column.key]
            row.values[column.key] = value if not grows else None if old is None else old + 1
        self.touch(table)
        return (
            f"update {name} set {column.name} = {text} where {where}",
            lambda scope: scope.table(name).update({column.name: text}, where) - len(changed),
        )

    def overwrite(self) -> Act | None:
        found = self.table()
        if found is None:
            return None
        name, table = found
        where, test = self.condition(table)
        data, rows = self.given(table)
        table.rows = [row for row in table.rows if not test(row)] + rows
        self.touch(table)
        return (
            f"overwrite {name} where {where} by {data}",
            lambda scope: scope.table(name).overwrite(data, where) - len(rows),
        )

    def flush(self) -> Act | None:
        found = self.table()
        if found is None or self.chance(3):
            self.touched |= self.state.tables.keys()
            return "flush", lambda scope: scope.flush_inlined() and None
        name, table = found
        self.touch(table)
        return f"flush {name}", lambda scope: scope.flush_inlined(name) and None

    def compact(self) -> Act | None:
        # Every table would be a commit of its own.
        found = self.table()
        if found is None:
            return None
        name, table = found
        self.touch(table)
        if self.chance(3):
            share = self.pick((0, 0, 0.5))
            return f"rewrite deletes of {name}", lambda scope: scope.rewrite_deletes(share, name) and None
        return f"compact {name}", lambda scope: scope.compact(name) and None

    # ---- Tables ---

    def create_table(self) -> Act | None:
        place = self.place(self.state.tables, RELATIONS)
        if place is None or len(self.state.tables) > 3:
            return None
        schema, name = place
        columns = [
            Column(next(KEYS), name, self.pick(("smallint", "integer", "varchar")))
            for name in self.random.sample(COLUMNS, self.pick((1, 2, 2, 3)))
        ]
        table = Table("table", name, schema, columns=columns)
        if self.chance(3):
            columns[0].default = self.default(columns[0].type)
        ddl = ", ".join(f'"{column.name}" {column.type}{_default(column)}' for column in columns)
        self.state.tables[next(KEYS)] = table
        named = self.state.name(table)
        return f"create table {named} ({ddl})", lambda scope: scope.create_table(named, ddl) and None

    def drop_table(self) -> Act | None:
        found = self.table()
        if found is None:
            return None
        name, table = found
        key = next(key for key, known in self.state.tables.items() if known is table)
        del self.state.tables[key]
        return f"drop table {name}", lambda scope: scope.drop_table(name)

    def rename_table(self) -> Act | None:
        found, place = self.table(), self.place(self.state.tables, RELATIONS)
        if found is None or place is None:
            return None
        name, table = found
        table.schema, table.name = place
        new = self.state.name(table)
        return f"rename table {name} to {new}", lambda scope: scope.table(name).rename(new)

    def add_column(self) -> Act | None:
        found = self.table()
        if found is None or len(found[1].columns) == len(COLUMNS):
            return None
        name, table = found
        taken = {column.name for column in table.columns}
        new = self.pick(name for name in COLUMNS if name not in taken)
        column = Column(next(KEYS), new, self.pick(("smallint", "integer", "varchar")))
        if self.chance(2):
            column.default = self.default(column.type)
        table.columns.append(column)
        for row in table.rows:
            row.values[column.key] = column.default
        sql = None if column.default is None else literal(column.default)
        self.touch(table)
        return (
            f"add column {new} {column.type} default {sql} to {name}",
            lambda scope: scope.table(name).add_column([new], column.type, default=sql),
        )

    def _some_column(self, *, laid_out: bool = True) -> tuple[Any, Table, Column] | None:
        found = self.table()
        if found is None:
            return None
        columns = [column for column in found[1].columns if laid_out or not found[1].is_laid_out_by(column)]
        return (*found, self.pick(columns)) if columns else None

    def drop_column(self) -> Act | None:
        found = self._some_column(laid_out=False)
        if found is None or len(found[1].columns) == 1:
            return None
        name, table, column = found
        table.columns.remove(column)
        for row in table.rows:
            del row.values[column.key]
        self.touch(table)
        return f"drop column {column.name} of {name}", lambda scope: scope.table(name).drop_column(
            [column.name]
        )

    def rename_column(self) -> Act | None:
        found = self._some_column()
        if found is None:
            return None
        name, table, column = found
        free = [new for new in COLUMNS if all(known.name != new for known in table.columns)]
        if not free:
            return None
        old, new = column.name, self.pick(free)
        column.name = new
        self.touch(table)
        return f"rename column {old} of {name} to {new}", lambda scope: scope.table(name).rename_column(
            [old], new
        )

    def widen(self) -> Act | None:
        found = self._some_column(laid_out=False)
        if found is None or found[2].type not in WIDER:
            return None
        name, table, column = found
        column.type = type = WIDER[column.type]
        self.touch(table)
        return f"widen {column.name} of {name} to {type}", lambda scope: scope.table(name).alter_type(
            [column.name], type
        )

    def set_default(self) -> Act | None:
        found = self._some_column()
        if found is None:
            return None
        name, _, column = found
        path = [column.name]
        if column.default is not None and self.chance(3):
            column.default = None
            return f"drop default of {path} of {name}", lambda scope: scope.table(name).drop_default(path)
        column.default = self.default(column.type)
        sql = literal(column.default)
        return f"default of {path} of {name} is {sql}", lambda scope: scope.table(name).set_default(path, sql)

    def set_option(self, limits: Sequence[int | None] = (0, 1, None, None, None)) -> Act | None:
        found = self.table()
        if found is None:
            return None
        name, table = found
        table.limit = limit = self.pick(limits)
        return f"limit of {name} is {limit}", lambda scope: scope.table(name).set_option(
            "data_inlining_row_limit", limit
        )

    def to_files(self) -> Act | None:
        return self.set_option((0,))

    def set_partitioning(self) -> Act | None:
        found = self._some_column()
        if found is None:
            return None
        name, table, column = found
        new = self.pick(((), (("{}", column.key),), (("bucket(2, {})", column.key),)))
        texts = [text.format(f'"{column.name}"') for text, _ in new]
        table.partitioning = new
        return f"partition {name} by {texts}", lambda scope: scope.table(name).set_partitioning(texts)

    def set_sort_order(self) -> Act | None:
        found = self._some_column()
        if found is None:
            return None
        name, table, column = found
        table.sort_order = self.pick(((), (("{} DESC NULLS LAST", column.key),)))
        texts = [text.format(f'"{column.name}"') for text, _ in table.sort_order]
        return f"sort {name} by {texts}", lambda scope: scope.table(name).set_sort_order(texts)

    # ---- Tags ---

    def tag(self) -> Act | None:
        _, item = self.pick(self.state.things())
        key, value = self.pick(("comment", "k")), self.pick(("one", "two", None))
        _set(item.tags, key, value)
        kind, name = item.kind, self.state.name(item)
        return f"tag {kind} {name}: {key} is {value}", lambda scope: scope.set_tag(kind, name, key, value)

    def tag_column(self) -> Act | None:
        found = self._some_column()
        if found is None:
            return None
        name, _, column = found
        key, value, path = self.pick(("comment", "k")), self.pick(("one", "two", None)), [column.name]
        _set(column.tags, key, value)
        return f"tag {path} of {name}: {key} is {value}", lambda scope: scope.table(name).set_tag(
            key, value, column=path
        )

    # ---- Schemas, views and macros ---

    def create_schema(self) -> Act | None:
        free = _unused(SCHEMAS, self.state.schemas.values())
        if not free:
            return None
        name = self.pick(free)
        self.state.schemas[next(KEYS)] = Object("schema", name)
        return f"create schema {name}", lambda scope: scope.create_schema(name)

    def drop_schema(self) -> Act | None:
        if len(self.state.schemas) == 1:
            return None
        key = self.pick(self.state.schemas)
        name = self.state.schemas.pop(key).name
        for kind in (self.state.tables, self.state.views, self.state.macros):
            for inside in [inner for inner, item in kind.items() if item.schema == key]:
                del kind[inside]
        return f"drop schema {name}", lambda scope: scope.drop_schema(name, cascade=True)

    def rename_schema(self) -> Act | None:
        free = _unused(SCHEMAS, self.state.schemas.values())
        if not free:
            return None
        schema = self.pick(self.state.schemas.values())
        old, new = schema.name, self.pick(free)
        schema.name = new
        return f"rename schema {old} to {new}", lambda scope: scope.rename_schema(old, new)

    def create_view(self) -> Act | None:
        place, sql = self.place(self.state.views, RELATIONS), f"SELECT {self.random.randrange(9)}"
        if self.state.views and self.chance(2):
            view = self.pick(self.state.views.values())
            view.sql = sql
        elif place is not None:
            view = Object("view", place[1], place[0], sql)
            self.state.views[next(KEYS)] = view
        else:
            return None
        name = self.state.name(view)
        return f"view {name} is {sql}", lambda scope: scope.create_view(name, sql, or_replace=True)

    def create_macro(self) -> Act | None:
        place, sql = self.place(self.state.macros, MACROS), f"x + {self.random.randrange(9)}"
        if self.state.macros and self.chance(2):
            key = self.pick(self.state.macros)
            macro = self.state.macros[key]
            if macro.sql != sql:
                # A new body makes it another macro, and the tags of the old one are gone.
                del self.state.macros[key]
                macro = Object("macro", macro.name, macro.schema, sql)
                self.state.macros[next(KEYS)] = macro
        elif place is not None:
            macro = Object("macro", place[1], place[0], sql)
            self.state.macros[next(KEYS)] = macro
        else:
            return None
        name = self.state.name(macro)
        return f"macro {name} is {sql}", lambda scope: scope.create_macro(name, ["x"], sql, or_replace=True)

    def rename_other(self) -> Act | None:
        kind, names = self.pick(((self.state.views, RELATIONS), (self.state.macros, MACROS)))
        place = self.place(kind, names)
        if not kind or place is None:
            return None
        item = self.pick(kind.values())
        old = self.state.name(item)
        item.schema, item.name = place
        verb, new = f"rename_{item.kind}", self.state.name(item)
        return f"{verb} {old} to {new}", lambda scope: getattr(scope, verb)(old, new)

    def drop_other(self) -> Act | None:
        kind = self.pick((self.state.views, self.state.macros))
        if not kind:
            return None
        item = kind[key := self.pick(kind)]
        verb, name = f"drop_{item.kind}", self.state.name(item)
        del kind[key]
        return f"{verb} {name}", lambda scope: getattr(scope, verb)(name)


VERBS = {
    "append": 20,
    "delete": 8,
    "update": 7,
    "overwrite": 3,
    "flush": 2,
    "compact": 4,
    "create_table": 9,
    "drop_table": 3,
    "rename_table": 3,
    "add_column": 5,
    "drop_column": 3,
    "rename_column": 3,
    "widen": 3,
    "set_default": 3,
    "set_option": 3,
    "set_partitioning": 2,
    "set_sort_order": 2,
    "tag": 6,
    "tag_column": 3,
    "create_schema": 3,
    "drop_schema": 1,
    "rename_schema": 2,
    "create_view": 4,
    "create_macro": 4,
    "rename_other": 3,
    "drop_other": 2,
}
"""How often each is chosen; most rows stay in the metadata database, for files take their time."""
NAMES, WEIGHTS = list(VERBS), list(VERBS.values())


def literal(value: Value) -> str:
    """As SQL has it."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _default(column: Column) -> str:
    return "" if column.default is None else f" DEFAULT {literal(column.default)}"


def _set(tags: dict[str, str], key: str, value: str | None) -> None:
    tags.pop(key, None)
    if value is not None:
        tags[key] = value


def _unused(names: Sequence[str], items: Iterable[Object]) -> list[str]:
    taken = {item.name for item in items}
    return [name for name in names if name not in taken]
