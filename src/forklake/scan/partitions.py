"""What the partition of a file says about its rows. Pure."""

from __future__ import annotations

from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.sql.predicate_tree import (
    And,
    Compare,
    In,
    IsNull,
    Leaf,
    Node,
    Not,
    Or,
    StartsWith,
    conjuncts,
)
from forklake.model.table.layout import PartitionField, Partitioning
from forklake.model.table.partition_and_sort import show_transform
from forklake.model.table.transforms import transform_of, value_of
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import Value

Columns = tuple[Column, ...]


def point(node: Node, field: PartitionField, columns: Columns) -> str | None:
    """The one partition that matching rows can be in, if the predicate asks for one value of the column."""
    for part in conjuncts(node):
        match part:
            case Compare(operand, "=", _, value) if (
                operand.column_id == field.column_id and value is not None
            ):
                return _partition(field, value, columns)
            case _:
                pass
    return None


def skip_partition(
    node: Node, partitioning: Partitioning, values: tuple[str | None, ...], columns: Columns
) -> str | None:
    """Why no row of a partition can make the predicate TRUE, or None."""
    match node:
        case And(nodes):
            found = (skip_partition(inner, partitioning, values, columns) for inner in nodes)
            return next((reason for reason in found if reason is not None), None)
        case Or(nodes):
            reasons = [skip_partition(inner, partitioning, values, columns) for inner in nodes]
            return None if None in reasons or not reasons else reasons[0]
        case Not(IsNull(operand)):
            if (operand.column_id, None) in _pairs(partitioning, values):
                return f'"{operand.name}" is NULL in its partition'
            return None
        case Compare() | In() | IsNull() | StartsWith():
            return _skip_leaf(node, partitioning, values, columns)
        case _:
            return None


def _pairs(partitioning: Partitioning, values: tuple[str | None, ...]) -> list[tuple[ColumnId, str | None]]:
    return [(field.column_id, value) for field, value in zip(partitioning.fields, values, strict=False)]


def _skip_leaf(
    leaf: Leaf, partitioning: Partitioning, values: tuple[str | None, ...], columns: Columns
) -> str | None:
    for field, value in zip(partitioning.fields, values, strict=False):
        if field.column_id != leaf.operand.column_id:
            continue
        name = leaf.operand.name
        match leaf:
            case IsNull():
                excluded = value is not None
            case _ if value is None:
                # Every transform keeps NULL, and NULL satisfies no comparison.
                excluded = True
            case Compare(_, "=", _, wanted) if wanted is not None:
                excluded = _is_other(field, wanted, columns, value)
            case In(_, _, wanted) if wanted:
                excluded = all(_is_other(field, one, columns, value) for one in wanted)
            case _:
                excluded = False
        if excluded:
            return f"{show_transform(field, name)} is {value} in its partition"
    return None


def _is_other(field: PartitionField, wanted: Value, columns: Columns, value: str) -> bool:
    partition = _partition(field, wanted, columns)
    return partition is not None and partition != value


# Where a value has the same partition whatever the column was when a file was written: 7 is in one bucket as
# an INTEGER and as a BIGINT, but in another as a DECIMAL, and a day that became a timestamp has another text.
# Floats have two zeros.
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_TIMESTAMPS = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"}
_STEADY: dict[str, set[str]] = {
    "identity": _INTEGERS | {"varchar", "blob", "uuid", "boolean", "date"},
    "bucket": _INTEGERS | {"varchar", "blob", "uuid", "date"},
    **{part: _TIMESTAMPS | {"date"} for part in ("year", "month", "day", "hour")},
}


def _partition(field: PartitionField, value: Value, columns: Columns) -> str | None:
    """Where rows with a value are; None if that is not certain for files of every age."""
    type = next((column.data_type for column in columns if column.id == field.column_id), None)
    if not isinstance(type, Scalar) or type.name not in _STEADY[transform_of(field)[0]]:
        return None
    return value_of(field, value, type)
