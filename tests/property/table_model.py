"""A table in plain Python: what the real one is compared with.

Columns are known by keys of the model's own, so that a column stays itself whatever it is called. A model is
never changed: every verb returns the table that follows, and so each snapshot keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from forklake.model.names import quoted
from forklake.model.types.data_types import DataType, List, Map, Scalar, Struct, can_promote, to_sql
from tests.property.table_values import arrow_type, identity, plain, widened


class Refused(Exception):
    """The model would not do that."""


@dataclass(frozen=True)
class Column:
    """A column or a field inside one."""

    key: int
    name: str
    kind: DataType | str
    """A type without parts, or `struct`, `list`, `map`."""
    children: tuple[Column, ...] = ()
    nullable: bool = True
    default: tuple[str, Any] | None = None
    """What inserts put in: the SQL, and the value that it has."""

    @property
    def type(self) -> DataType:
        match self.kind:
            case "struct":
                return Struct(tuple((child.name, child.type) for child in self.children))
            case "list":
                return List(self.children[0].type)
            case "map":
                return Map(self.children[0].type, self.children[1].type)
            case leaf:
                assert not isinstance(leaf, str)
                return leaf

    def walk(self) -> Iterator[Column]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def identity(self) -> tuple[Any, ...]:
        return (
            self.key,
            self.name,
            to_sql(self.type),
            self.nullable,
            None if self.default is None else self.default[0],
        )


Columns = tuple[Column, ...]


def numbered(name: str, type: DataType, keys: Iterator[int]) -> Column:
    """A new column with keys at every level."""
    key = next(keys)
    match type:
        case Struct(fields):
            return Column(key, name, "struct", tuple(numbered(field, kind, keys) for field, kind in fields))
        case List(element):
            return Column(key, name, "list", (numbered("element", element, keys),))
        case Map(first, second):
            return Column(key, name, "map", (numbered("key", first, keys), numbered("value", second, keys)))
        case leaf:
            return Column(key, name, leaf)


def to_arrow(values: Sequence[Any], column: Column) -> pa.Array:
    """Values of the model as an Arrow array."""
    return pa.array([_named(value, column) for value in values], arrow_type(column.type))


def _named(value: Any, column: Column) -> Any:
    """A value with the names of fields instead of their keys."""
    if value is None:
        return None
    match column.kind:
        case "struct":
            return {child.name: _named(value[child.key], child) for child in column.children}
        case "list":
            return [_named(item, column.children[0]) for item in value]
        case "map":
            key, item = column.children
            return [(_named(a, key), _named(b, item)) for a, b in value]
        case _:
            return value


def from_arrow(array: Any, column: Column) -> list[Any]:
    """Values of the model from any Arrow array of the column; fields come in the order of the column."""
    return [_read(scalar, column) for scalar in array]


def _read(scalar: Any, column: Column) -> Any:
    if not scalar.is_valid:
        return None
    match column.kind:
        case "struct":
            assert [field.name for field in scalar.type] == [child.name for child in column.children]
            return {child.key: _read(scalar[at], child) for at, child in enumerate(column.children)}
        case "list":
            return from_arrow(scalar.values, column.children[0])
        case "map":
            key, item = column.children
            return [(_read(pair[0], key), _read(pair[1], item)) for pair in scalar.values]
        case _:
            return plain(scalar)


@dataclass(frozen=True)
class Row:
    """A row by the keys of columns. It has no id until it is committed."""

    id: int | None
    values: Mapping[int, Any]

    def key(self, columns: Columns) -> tuple[Any, ...]:
        """What the row is compared by."""
        return tuple(identity(self.values[column.key]) for column in columns)


Test = Callable[[Mapping[int, Any]], bool | None]
"""A condition: true, false or unknown for the values of a row."""


@dataclass(frozen=True)
class Condition:
    """A condition as text, and as a function if Python can tell what it means."""

    sql: str
    test: Test | None = None

    def __repr__(self) -> str:
        return repr(self.sql)


@dataclass(frozen=True)
class Table:
    """A table as of one timestamp."""

    name: str
    columns: Columns = ()
    rows: tuple[Row, ...] = ()
    used: int = 0
    """The highest key that a column ever had."""
    laid_out: frozenset[int] = frozenset()
    """Columns that files are partitioned by."""
    sorted_by: frozenset[int] = frozenset()

    # ---- Columns ---

    def keys(self) -> Iterator[int]:
        return iter(range(self.used + 1, 10**9))

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def at(self, path: Sequence[str]) -> Column:
        """A column, or a field inside of one."""
        level = self.columns
        for name in path[:-1]:
            level = next(column for column in level if column.name == name).children
        return next(column for column in level if column.name == path[-1])

    def _changed(self, path: Sequence[str], change: Callable[[Column], Column]) -> Columns:
        def step(columns: Columns, rest: Sequence[str]) -> Columns:
            return tuple(
                column
                if column.name != rest[0]
                else change(column)
                if len(rest) == 1
                else replace(column, children=step(column.children, rest[1:]))
                for column in columns
            )

        return step(self.columns, path)

    def _with_values(self, columns: Columns, change: Callable[[Any, Column], Any]) -> Table:
        """The table with other columns, and each value changed along the path of its column."""
        rows = tuple(
            replace(row, values={c.key: _mapped(row.values.get(c.key), c, change) for c in columns})
            for row in self.rows
        )
        return replace(self, columns=columns, rows=rows)

    def create(
        self, name: str, type: DataType, *, default: tuple[str, Any] | None = None, nullable: bool = True
    ) -> Table:
        """Add a column; rows that exist get the value of the default."""
        column = replace(numbered(name, type, self.keys()), default=default, nullable=nullable)
        initial = None if default is None else default[1]
        rows = tuple(replace(row, values={**row.values, column.key: initial}) for row in self.rows)
        used = max(inner.key for inner in column.walk())
        return replace(self, columns=(*self.columns, column), rows=rows, used=used)

    def add_field(self, path: Sequence[str], type: DataType) -> Table:
        """Add a field to a struct; it is NULL in values that exist."""
        field = numbered(path[-1], type, self.keys())
        parent = self.at(path[:-1])
        columns = self._changed(path[:-1], lambda c: replace(c, children=(*c.children, field)))

        def change(value: Any, column: Column) -> Any:
            return {**value, field.key: None} if column.key == parent.key and value is not None else value

        used = max(inner.key for inner in field.walk())
        return replace(self._with_values(columns, change), used=used)

    def drop_column(self, path: Sequence[str]) -> Table:
        gone = self.at(path)
        if gone.key in self.laid_out | self.sorted_by:
            raise Refused(f"files are laid out by {gone.name}")
        if len(path) == 1:
            columns = tuple(column for column in self.columns if column.key != gone.key)
        else:
            columns = self._changed(
                path[:-1],
                lambda c: replace(c, children=tuple(f for f in c.children if f.key != gone.key)),
            )

        def change(value: Any, column: Column) -> Any:
            if isinstance(value, dict):
                return {key: item for key, item in value.items() if key != gone.key}
            return value

        return self._with_values(columns, change)

    def rename_column(self, path: Sequence[str], name: str) -> Table:
        return replace(self, columns=self._changed(path, lambda column: replace(column, name=name)))

    def alter_type(self, path: Sequence[str], type: DataType) -> Table:
        target = self.at(path)
        old = target.type
        assert can_promote(old, type)

        def wider(column: Column) -> Column:
            default = column.default
            if default is not None:
                default = (default[0], widened(default[1], old, type))
            return replace(column, kind=type, default=default)

        def change(value: Any, column: Column) -> Any:
            return widened(value, old, type) if column.key == target.key else value

        return self._with_values(self._changed(path, wider), change)

    def set_default(self, name: str, default: tuple[str, Any] | None) -> Table:
        return replace(self, columns=self._changed([name], lambda column: replace(column, default=default)))

    def set_nullable(self, name: str, flag: bool) -> Table:
        key = self.column(name).key
        if not flag and any(row.values[key] is None for row in self.rows):
            raise Refused("there are rows where it is NULL")
        return replace(self, columns=self._changed([name], lambda column: replace(column, nullable=flag)))

    def reorder(self, names: Sequence[str]) -> Table:
        first = tuple(self.column(name) for name in names)
        return replace(self, columns=(*first, *(column for column in self.columns if column not in first)))

    # ---- Rows ---

    def rows_of(self, names: Sequence[str], values: Sequence[Sequence[Any]]) -> tuple[Row, ...]:
        """New rows; a column that is not named gets its default."""
        rows: list[Row] = []
        for given in values:
            named = dict(zip(names, given, strict=True))
            row = {
                column.key: named[column.name]
                if column.name in named
                else None
                if column.default is None
                else column.default[1]
                for column in self.columns
            }
            rows.append(self._checked(Row(None, row)))
        missing = [c for c in self.columns if c.name not in names and not c.nullable and c.default is None]
        if missing:
            raise Refused(f"{missing[0].name} needs a value")
        return tuple(rows)

    def _checked(self, row: Row) -> Row:
        for column in self.columns:
            if not column.nullable and row.values[column.key] is None:
                raise Refused(f"{column.name} is NULL")
        return row

    def append(self, rows: Sequence[Row]) -> Table:
        return replace(self, rows=(*self.rows, *rows))

    def without(self, places: set[int]) -> Table:
        """Delete rows by their place."""
        return replace(self, rows=tuple(row for at, row in enumerate(self.rows) if at not in places))

    def updated(self, changed: Mapping[int, Mapping[int, Any]]) -> Table:
        """Give rows, by their place, new values, by the keys of columns; they keep their ids."""
        rows = list(self.rows)
        for at, values in changed.items():
            rows[at] = self._checked(replace(rows[at], values={**rows[at].values, **values}))
        return replace(self, rows=tuple(rows))

    def merged(
        self, names: Sequence[str], values: Sequence[Sequence[Any]], on: str, matched: str, unmatched: str
    ) -> tuple[Table, tuple[int, int, int]]:
        """Bring rows in by a key; also how many were updated, deleted and inserted."""
        key, at = self.column(on).key, list(names).index(on)
        source = {row[at]: row for row in values if row[at] is not None}
        found = {place for place, row in enumerate(self.rows) if row.values[key] in source}
        known = {row.values[key] for row in self.rows}
        new = [row for row in values if row[at] is None or row[at] not in known]
        added = self.rows_of(names, new) if unmatched == "insert" and new else ()
        table = self
        if matched == "update":
            keys = [self.column(name).key for name in names]
            table = self.updated(
                {p: dict(zip(keys, source[self.rows[p].values[key]], strict=True)) for p in found}
            )
        elif matched == "delete":
            table = self.without(found)
        counts = (len(found) * (matched == "update"), len(found) * (matched == "delete"), len(added))
        return table.append(added), counts


def _mapped(value: Any, column: Column, change: Callable[[Any, Column], Any]) -> Any:
    """Change a value and all values inside of it, along a column as it is now."""
    value = change(value, column)
    if value is None:
        return None
    match column.kind:
        case "struct":
            return {child.key: _mapped(value[child.key], child, change) for child in column.children}
        case "list":
            return [_mapped(item, column.children[0], change) for item in value]
        case "map":
            key, item = column.children
            return [(_mapped(a, key, change), _mapped(b, item, change)) for a, b in value]
        case _:
            return value


# What DuckDB shows of a type in a form that Arrow has.
_SHOWN = {"int128": "DECIMAL(38,0)", "uint128": "DECIMAL(38,0)", "timetz": "TIME", "geometry": "BLOB"}


def _sql(type: DataType, *, shown: bool = False) -> str:
    match type:
        case Scalar("geometry"):
            return "BLOB"
        case Scalar(name) if shown and name in _SHOWN:
            return _SHOWN[name]
        case Scalar("uuid" | "json") if shown:
            return "VARCHAR"
        case List(element):
            return f"{_sql(element, shown=shown)}[]"
        case Map(key, value):
            return f"MAP({_sql(key, shown=shown)}, {_sql(value, shown=shown)})"
        case Struct(fields):
            return (
                f"STRUCT({', '.join(f'{quoted(name)} {_sql(kind, shown=shown)}' for name, kind in fields)})"
            )
        case _:
            return to_sql(type)


class Oracle:
    """A DuckDB that holds the rows of a model in memory, and tells what SQL means there."""

    def __init__(self) -> None:
        self._duckdb = duckdb.connect()
        self._duckdb.execute("SET TimeZone = 'UTC'; SET arrow_lossless_conversion = true")
        self._loaded: Table | None = None

    def close(self) -> None:
        self._duckdb.close()

    def places(self, table: Table, condition: Condition | None) -> set[int]:
        """The rows that meet a condition, by their place."""
        if condition is None:
            return set(range(len(table.rows)))
        if condition.test is not None:
            return {at for at, row in enumerate(table.rows) if condition.test(row.values) is True}
        return set(
            self._query(table, "model_place", f"WHERE {condition.sql}").column("model_place").to_pylist()
        )

    def computed(
        self, table: Table, assignments: Mapping[str, str], condition: Condition | None
    ) -> dict[int, dict[int, Any]]:
        """New values by the place of a row and the key of a column."""
        places = self.places(table, condition)
        columns = {table.column(name): sql for name, sql in assignments.items()}
        chosen = ", ".join(
            f"CAST(CAST(({sql}) AS {_sql(c.type)}) AS {_sql(c.type, shown=True)}) AS c{c.key}"
            for c, sql in columns.items()
        )
        listed = ", ".join(map(str, places)) or "-1"
        found = self._query(table, f"model_place, {chosen}", f"WHERE model_place IN ({listed})")
        values = {column.key: from_arrow(found.column(f"c{column.key}"), column) for column in columns}
        return {
            place: {key: column[at] for key, column in values.items()}
            for at, place in enumerate(found.column("model_place").to_pylist())
        }

    def extreme(self, table: Table, column: Column, function: str) -> Any:
        """The lowest or highest value of a column, as the model has it."""
        expression = f"CAST({function}({quoted(column.name)}) AS {_sql(column.type, shown=True)}) AS v"
        return from_arrow(self._query(table, expression, "").column("v"), column)[0]

    def _query(self, table: Table, selected: str, rest: str) -> pa.Table:
        if table is not self._loaded:
            self._load(table)
        return self._duckdb.sql(f"SELECT {selected} FROM model {rest}").to_arrow_table()

    def _load(self, table: Table) -> None:
        """A table of DuckDB's own: it would leave conditions on others to Arrow, which finds NaN lowest."""
        arrays = {
            f"c{column.key}": to_arrow([row.values[column.key] for row in table.rows], column)
            for column in table.columns
        }
        rows = pa.table({"model_place": pa.array(range(len(table.rows)), pa.int64()), **arrays})
        columns = ", ".join(f"CAST(c{c.key} AS {_sql(c.type)}) AS {quoted(c.name)}" for c in table.columns)
        self._duckdb.register("model_rows", rows)
        self._duckdb.execute(
            f"CREATE OR REPLACE TEMP TABLE model AS SELECT model_place, {columns} FROM model_rows"
        )
        self._duckdb.unregister("model_rows")
        self._loaded = table
