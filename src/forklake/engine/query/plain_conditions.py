"""Conditions that compare columns with values, as a tree of DuckDB has them: most of those on one table.

They could be written as SQL and read again like any other predicate; for a small statement that takes as long
as to run it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forklake.model.entities import Column
from forklake.model.sql.predicate_tree import SWAPPED, Node, Operator, all_of, compare
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import INTEGERS

Params = Sequence[Any] | Mapping[str, Any] | None

_OPERATORS: Mapping[str, Operator] = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "!=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_CONSTANTS: Mapping[type, frozenset[str]] = {
    int: frozenset(
        f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
    ),
    bool: frozenset(),
    str: frozenset({"VARCHAR"}),
}
"""Types of constants whose value in a tree is what it says."""


def plain_condition(condition: Any, table: str, columns: Columns, params: Params) -> Node | None:
    """What a condition asks of the rows of a table; None if it is more than comparisons and AND."""
    match condition:
        case {"type": "CONJUNCTION_AND", "children": list(children)}:
            parts = [plain_condition(child, table, columns, params) for child in children]
            known = [part for part in parts if part is not None]
            return all_of(known) if len(known) == len(parts) else None
        case {"type": "COMPARE_BETWEEN", "input": target, "lower": low, "upper": high}:
            bounds = (
                _compared(target, ">=", low, table, columns, params),
                _compared(target, "<=", high, table, columns, params),
            )
            return None if bounds[0] is None or bounds[1] is None else all_of((bounds[0], bounds[1]))
        case {"type": str(kind), "left": left, "right": right} if kind in _OPERATORS:
            op = _OPERATORS[kind]
            found = _compared(left, op, right, table, columns, params)
            return found or _compared(right, SWAPPED[op], left, table, columns, params)
        case _:
            return None


def _compared(
    target: Any, op: Operator, other: Any, table: str, columns: Columns, params: Params
) -> Node | None:
    column, value = _column(target, table, columns), _value(other, params)
    if column is None or value is None or not _is_alike(column, value):
        return None
    return compare(column, op, value, name=column.name)


def _column(node: Any, table: str, columns: Columns) -> Column | None:
    if node.get("type") != "COLUMN_REF":
        return None
    names = [str(name).lower() for name in node["column_names"]]
    found = {column.name.lower(): column for column in columns}
    # `t.a` is a field of the column t, if there is one.
    if len(names) == 2 and names[0] == table and names[0] not in found:
        names = names[1:]
    return found.get(names[0]) if len(names) == 1 else None


def _value(node: Any, params: Params) -> int | str | None:
    match node:
        case {
            "type": "VALUE_CONSTANT",
            "value": {"is_null": False, "type": kind, "value": int() | str() as value},
        }:
            # Decimals and dates are integers there too.
            is_plain = kind["type_info"] is None and kind["id"] in _CONSTANTS[type(value)]
            return value if is_plain else None
        case {"type": "VALUE_PARAMETER", "identifier": str(name)} if params is not None:
            value = params[name] if isinstance(params, Mapping) else params[int(name) - 1]
            return value if type(value) in (int, str) else None
        case _:
            return None


def _is_alike(column: Column, value: int | str) -> bool:
    """Whether DuckDB compares the two without a cast that could change what they are."""
    if not isinstance(column.data_type, Scalar) or isinstance(value, bool):
        return False
    kind = column.data_type.name
    return kind == "varchar" if isinstance(value, str) else kind in INTEGERS
