"""A catalog in plain Python: what the real one is compared with."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field


class Refused(Exception):
    """The model would not do that."""


@dataclass
class ModelTable:
    schema: str
    name: str
    columns: dict[str, tuple[str, bool]]
    """Name → type and whether it may be NULL, in order."""
    used: int
    """How many column ids were ever given out."""
    ids: dict[str, int]
    comment: str | None = None
    committed: int = 0
    """How many of those ids were in a commit."""


@dataclass
class ModelView:
    schema: str
    name: str
    sql: str


@dataclass
class Model:
    """Schemas, tables and views by uuid, so that an operation means the same object everywhere."""

    schemas: dict[str, str] = field(default_factory=dict)
    tables: dict[str, ModelTable] = field(default_factory=dict)
    views: dict[str, ModelView] = field(default_factory=dict)
    macros: dict[tuple[str, str], str] = field(default_factory=dict)

    def copy(self) -> Model:
        return copy.deepcopy(self)

    # ---- Look-ups ---

    def schema(self, name: str) -> str:
        found = [uuid for uuid, known in self.schemas.items() if known == name]
        if not found:
            raise Refused(f"no schema {name}")
        return found[0]

    def table(self, schema: str, name: str) -> str:
        owner = self.schema(schema)
        found = [uuid for uuid, table in self.tables.items() if (table.schema, table.name) == (owner, name)]
        if not found:
            raise Refused(f"no table {name}")
        return found[0]

    def view(self, schema: str, name: str) -> str:
        owner = self.schema(schema)
        found = [uuid for uuid, view in self.views.items() if (view.schema, view.name) == (owner, name)]
        if not found:
            raise Refused(f"no view {name}")
        return found[0]

    def _refuse_relation(self, owner: str, name: str) -> None:
        taken = {(item.schema, item.name) for item in (*self.tables.values(), *self.views.values())}
        if (owner, name) in taken:
            raise Refused(f"{name} is taken")

    # ---- Verbs; objects are given by uuid ---

    def create_schema(self, uuid: str, name: str) -> None:
        if name in self.schemas.values():
            raise Refused(f"schema {name} is taken")
        self.schemas[uuid] = name

    def rename_schema(self, uuid: str, name: str) -> None:
        self._there(self.schemas, uuid)
        if name in {known for other, known in self.schemas.items() if other != uuid}:
            raise Refused(f"schema {name} is taken")
        self.schemas[uuid] = name

    def drop_schema(self, uuid: str, cascade: bool) -> None:
        self._there(self.schemas, uuid)
        inside = [key for key, table in self.tables.items() if table.schema == uuid]
        views = [key for key, view in self.views.items() if view.schema == uuid]
        macros = [key for key in self.macros if key[0] == uuid]
        if (inside or views or macros) and not cascade:
            raise Refused("not empty")
        for key in inside:
            del self.tables[key]
        for key in views:
            del self.views[key]
        for key in macros:
            del self.macros[key]
        del self.schemas[uuid]

    def create_table(self, uuid: str, schema: str, name: str) -> None:
        self._there(self.schemas, schema)
        self._refuse_relation(schema, name)
        self.tables[uuid] = ModelTable(schema, name, {"id": ("int64", False)}, 1, {"id": 1})

    def rename_table(self, uuid: str, schema: str, name: str) -> None:
        self._there(self.schemas, schema)
        table = self._there(self.tables, uuid)
        if (table.schema, table.name) != (schema, name):
            self._refuse_relation(schema, name)
        table.schema, table.name = schema, name

    def drop_table(self, uuid: str) -> None:
        self._there(self.tables, uuid)
        del self.tables[uuid]

    def add_column(self, uuid: str, name: str) -> None:
        table = self._there(self.tables, uuid)
        if name in table.columns:
            raise Refused("column is taken")
        table.used += 1
        table.columns[name] = ("int32", True)
        table.ids[name] = table.used

    def drop_column(self, uuid: str, name: str) -> None:
        table = self._there(self.tables, uuid)
        if name not in table.columns or len(table.columns) == 1:
            raise Refused("no such column, or the last")
        del table.columns[name], table.ids[name]

    def rename_column(self, uuid: str, name: str, new: str) -> None:
        table = self._there(self.tables, uuid)
        if name not in table.columns or (new in table.columns and new != name):
            raise Refused("no such column, or taken")
        table.columns = {(new if key == name else key): value for key, value in table.columns.items()}
        table.ids = {(new if key == name else key): value for key, value in table.ids.items()}

    def widen(self, uuid: str, name: str) -> None:
        table = self._there(self.tables, uuid)
        if name not in table.columns:
            raise Refused("no such column")
        table.columns[name] = ("int64", table.columns[name][1])

    def set_nullable(self, uuid: str, name: str, flag: bool) -> None:
        table = self._there(self.tables, uuid)
        if name not in table.columns:
            raise Refused("no such column")
        table.columns[name] = (table.columns[name][0], flag)

    def comment(self, uuid: str, text: str | None) -> None:
        self._there(self.tables, uuid).comment = text

    def create_view(self, uuid: str, schema: str, name: str, sql: str) -> None:
        self._there(self.schemas, schema)
        self._refuse_relation(schema, name)
        self.views[uuid] = ModelView(schema, name, sql)

    def replace_view(self, uuid: str, sql: str) -> None:
        self._there(self.views, uuid).sql = sql

    def drop_view(self, uuid: str) -> None:
        self._there(self.views, uuid)
        del self.views[uuid]

    def create_macro(self, schema: str, name: str, sql: str) -> None:
        self._there(self.schemas, schema)
        if (schema, name) in self.macros:
            raise Refused("macro is taken")
        self.macros[schema, name] = sql

    def drop_macro(self, schema: str, name: str) -> None:
        if (schema, name) not in self.macros:
            raise Refused("no such macro")
        del self.macros[schema, name]

    # ---- What a transaction means for a catalog that moved on ---

    def follow(self, base: Model, after: Model) -> None:
        """Do what led from `base` to `after`; refuse to overwrite what somebody else changed since `base`."""
        for kind in ("schemas", "views", "macros"):
            _follow(getattr(self, kind), getattr(base, kind), getattr(after, kind))
        for group in (("schema", "name"), ("columns", "ids"), ("comment",)):
            _follow_tables(self.tables, base.tables, after.tables, group)
        self._check()

    def _check(self) -> None:
        names = [(item.schema, item.name) for item in (*self.tables.values(), *self.views.values())]
        assert len(set(names)) == len(names), "two relations have one name"
        assert len(set(self.schemas.values())) == len(self.schemas), "two schemas have one name"
        owners = {name[0] for name in names} | {key[0] for key in self.macros}
        assert owners <= self.schemas.keys(), "something is in a schema that is gone"

    def _there(self, items, key):
        if key not in items:
            raise Refused(f"{key} is gone")
        return items[key]


def _follow(items: dict, base: dict, after: dict) -> None:
    for key in base.keys() | after.keys():
        if base.get(key) != after.get(key):
            assert items.get(key) == base.get(key), f"{key} was changed by two"
            if key in after:
                items[key] = copy.deepcopy(after[key])
            else:
                del items[key]


def _follow_tables(items: dict, base: dict, after: dict, group: tuple[str, ...]) -> None:
    def part(table):
        return None if table is None else [getattr(table, name) for name in group]

    for key in base.keys() | after.keys():
        if key not in after:
            if key in items:
                # Others may have commuted only by putting in rows, which this model does not have.
                assert items[key] == base[key], f"{key} was changed by another and dropped"
                del items[key]
        elif key not in base:
            items.setdefault(key, copy.deepcopy(after[key]))
        elif part(base[key]) != part(after[key]):
            assert part(items.get(key)) == part(base[key]), f"{key} was changed by two"
            for name in group:
                setattr(items[key], name, copy.deepcopy(getattr(after[key], name)))
