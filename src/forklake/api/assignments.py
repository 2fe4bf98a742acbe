"""New values that somebody asked for, by column: SQL expressions, values of Python, and fields of structs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forklake.data.input.literal import literal_of
from forklake.errors import ColumnNotFound, InvalidArgument, InvalidPredicate
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.table.columns import Columns, find, split_path
from forklake.model.types.data_types import to_sql

NewValue = object
"""An SQL expression as text, or any other value of Python, which is a literal."""
Assignments = Mapping[str, NewValue]
"""By column, or by the dotted path to a field of a struct."""


def column_path(columns: Columns, name: object) -> tuple[Column, ...]:
    """The column that a name or a dotted path leads to, after those that it is inside of."""
    if isinstance(name, str):
        try:
            # A column may have a dot in its name.
            return (find(columns, [name]),)
        except ColumnNotFound:
            if "." not in name and '"' not in name:
                raise
    parts = split_path(name)  # type: ignore[arg-type]
    found: list[Column] = []
    for depth in range(1, len(parts) + 1):
        if found and found[-1].type != "struct":
            shown = ".".join(column.name for column in found)
            raise ColumnNotFound(f'"{shown}" is no struct, so it has no field "{parts[depth - 1]}"')
        found.append(find(columns, parts[:depth]))
    return tuple(found)


@dataclass(slots=True)
class _New:
    """What becomes of a column: a value, or values of some of its fields."""

    column: Column
    value: str | None = None
    fields: dict[str, _New] = field(default_factory=dict[str, "_New"])

    def sql(self, old: str | None) -> str:
        """The whole column, where `old` is what it was. A struct that was NULL gets the field alone."""
        if self.value is not None:
            return self.value
        packed: list[str] = []
        for child in self.column.children:
            before = None if old is None else f"struct_extract({old}, {_text(child.name)})"
            new = self.fields.get(child.name)
            kept = before or f"CAST(NULL AS {to_sql(child.data_type)})"
            packed.append(f"{quoted(child.name)} := {kept if new is None else new.sql(before)}")
        return f"struct_pack({', '.join(packed)})"


def new_values(
    asked: Mapping[Any, Any],
    columns: Columns,
    expression: Callable[[str], str],
    old: Callable[[Column], str] | None,
) -> dict[str, str]:
    """New values as SQL, by column. `expression` reads a text; `old` says where the old value is, if any."""
    found: dict[str, _New] = {}
    for name, given in asked.items():
        path = column_path(columns, name)
        shown = ".".join(column.name for column in path)
        level, new = found, None
        for column in path:
            if new is not None and new.value is not None:
                raise InvalidArgument(f'column "{shown}" gets two values')
            new = level.setdefault(column.name, _New(column))
            level = new.fields
        if new is None or new.value is not None or new.fields:
            raise InvalidArgument(f'column "{shown}" gets two values')
        new.value = _value(given, path[-1], shown, expression)
    return {name: new.sql(None if old is None else old(new.column)) for name, new in found.items()}


def _value(given: object, column: Column, shown: str, expression: Callable[[str], str]) -> str:
    try:
        if not isinstance(given, str):
            return literal_of(given, column)
        # A field is put into a struct, and so has to be of its type before that.
        return (
            f"CAST({expression(given)} AS {to_sql(column.data_type)})" if "." in shown else expression(given)
        )
    except InvalidPredicate as error:
        raise InvalidPredicate(f'no new value for column "{shown}": {error}') from error


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
