"""Columns of Arrow as Python values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from forklake.lazy.arrow import pa


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; structs are dicts, and tuples if their fields have no names, as in DuckDB."""
    kind = column.type
    if has_nameless(kind):
        return [_value(scalar) for scalar in column]
    values = column.to_pylist()
    if pa.types.is_decimal(kind) and kind.scale == 0 and kind.precision == 38:
        # HUGEINT, which sums of whole numbers are.
        return [int(value) if isinstance(value, Decimal) else value for value in values]
    return values


def python_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples."""
    columns = [python_values(table.column(at)) for at in range(table.num_columns)]
    return list(zip(*columns, strict=True))


def has_nameless(kind: Any) -> bool:
    """Whether there is a struct in a type that is no dict: its fields have no names, as in `row(1, 'a')`."""
    inside = [kind.field(at) for at in range(kind.num_fields)]
    return (pa.types.is_struct(kind) and _is_nameless(kind)) or any(has_nameless(one.type) for one in inside)


def _is_nameless(kind: Any) -> bool:
    names = [kind.field(at).name for at in range(kind.num_fields)]
    return len(set(names)) < len(names) or names == [""]


def _value(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        values = tuple(_value(scalar[at]) for at in range(kind.num_fields))
        if _is_nameless(kind):
            return values
        return {kind.field(at).name: value for at, value in enumerate(values)}
    if pa.types.is_map(kind):
        return [(_value(pair[0]), _value(pair[1])) for pair in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(value) for value in scalar.values]
    return scalar.as_py()
