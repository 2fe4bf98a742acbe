"""What conditions ask of the keys of a B-tree: which row groups may have an answer, which entries are.

A condition is TRUE, FALSE or UNKNOWN for an entry, as in SQL; NaN equals itself and lies above all numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import reduce

from forklake.index.equal_keys import exact_values
from forklake.index.key_values import placed, plain, plain_type
from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.numpy import np
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec, Support
from forklake.model.sql.predicate_tree import (
    NEGATED,
    Always,
    And,
    Compare,
    In,
    IsNull,
    Node,
    Not,
    Opaque,
    Operator,
    Or,
    StartsWith,
    columns_of,
)
from forklake.model.types.sort_keys import LOWEST

NULL_KEY = "~~~"
"""Above all keys: NULL is last."""


def answered(spec: IndexSpec, node: Node) -> tuple[Node, Support]:
    """The part of a condition that speaks of the keys alone, and whether that is all of it."""
    ids = frozenset(column.id for column in spec.keys)
    if isinstance(node, And):
        parts = [answered(spec, part) for part in node.nodes]
        kept = tuple(part for part, support in parts if support is not Support.NO)
        whole = all(support is Support.EXACT for _, support in parts)
        support = Support.EXACT if whole else Support.INEXACT if kept else Support.NO
        return And(kept), support
    if isinstance(node, Or):
        parts = [answered(spec, part) for part in node.nodes]
        supports = {support for _, support in parts}
        if Support.NO in supports:
            return node, Support.NO
        return Or(tuple(part for part, _ in parts)), min(supports, key=lambda each: each is Support.EXACT)
    return node, Support.EXACT if _is_known(node) and columns_of(node) <= ids else Support.NO


def _is_known(node: Node) -> bool:
    match node:
        case Opaque():
            return False
        case Not(child):
            return _is_known(child)
        case And(nodes) | Or(nodes):
            return all(_is_known(part) for part in nodes)
        case Compare(_, _, _, value):
            return value is not None
        case In(_, keys, values):
            return len(keys) == len(values)
        case _:
            return True


def limits(node: Node, column: ColumnId, wanted: bool = True) -> bool:
    """Whether a condition tells row groups apart by a column."""
    match node:
        case Always(value):
            return value is not wanted
        case Not(child):
            return limits(child, column, not wanted)
        case And(nodes) | Or(nodes):
            some = any if isinstance(node, And) == wanted else all
            return some(limits(part, column, wanted) for part in nodes)
        case Compare(operand, op):
            return operand.column_id == column and (op if wanted else NEGATED[op]) != "!="
        case In(operand) | StartsWith(operand):
            return wanted and operand.column_id == column
        case IsNull(operand):
            return operand.column_id == column
        case Opaque():
            return False


class Fences:
    """The lowest and the highest keys of row groups, as order-preserving text."""

    def __init__(self, lows: Sequence[Sequence[str]], highs: Sequence[Sequence[str]]) -> None:
        """For each column of the keys those of all row groups. The first column is in order."""
        self.count = len(lows[0]) if lows else 0
        self.lows = [list(keys) for keys in lows]
        self.highs = [list(keys) for keys in highs]
        alone = [True] * self.count
        for at in range(self.count):
            for column in range(len(lows)):
                if not alone[at]:
                    # Under several values of the columns before it, this one may have any.
                    self.lows[column][at], self.highs[column][at] = LOWEST, NULL_KEY
                alone[at] = alone[at] and self.lows[column][at] == self.highs[column][at]

    def between(self, column: int, low: str, high: str) -> np.ndarray:
        """The row groups that may have a key in a range, both ends included."""
        lows, highs = self.lows[column], self.highs[column]
        mask = np.zeros(self.count, bool)
        if column == 0:
            mask[bisect_left(highs, low) : bisect_right(lows, high)] = True
        else:
            mask[:] = [a <= high and low <= b for a, b in zip(lows, highs, strict=True)]
        return mask

    def among(self, column: int, keys: Sequence[str]) -> np.ndarray:
        """The row groups that may have one of some keys, which are in order."""
        lows, highs = self.lows[column], self.highs[column]
        if column == 0 and len(keys) < self.count:
            return reduce(np.logical_or, (self.between(0, key, key) for key in keys))
        at = [bisect_left(keys, low) for low in lows]
        return np.array([a < len(keys) and keys[a] <= high for a, high in zip(at, highs, strict=True)], bool)

    def where(self, node: Node, ids: Sequence[ColumnId], wanted: bool = True) -> np.ndarray:
        """The row groups that may have an entry for which a condition is as it is wanted."""
        match node:
            case Always(value):
                return np.full(self.count, value is wanted)
            case Not(child):
                return self.where(child, ids, not wanted)
            case And(nodes) | Or(nodes):
                masks = [self.where(part, ids, wanted) for part in nodes]
                every = isinstance(node, And) == wanted
                return reduce(np.logical_and if every else np.logical_or, masks, np.full(self.count, every))
            case Opaque():
                return np.ones(self.count, bool)
            case _:
                return self._of_leaf(node, ids.index(node.operand.column_id), wanted)

    def _of_leaf(self, leaf: Compare | In | IsNull | StartsWith, column: int, wanted: bool) -> np.ndarray:
        match leaf:
            case Compare(_, op, key):
                return self._compared(column, op if wanted else NEGATED[op], key)
            case In(_, keys) if wanted:
                return self.among(column, keys)
            case StartsWith(_, key) if wanted:
                return self.between(column, key, key + "~")
            case IsNull() if wanted:
                return self.between(column, NULL_KEY, NULL_KEY)
            case _:
                return self.between(column, LOWEST, NULL_KEY)

    def _compared(self, column: int, op: Operator, key: str) -> np.ndarray:
        match op:
            case "=":
                return self.between(column, key, key)
            case "<" | "<=":
                return self.between(column, LOWEST, key)
            case ">" | ">=":
                return self.between(column, key, NULL_KEY)
            case "!=":
                return np.ones(self.count, bool)


def holds(node: Node, keys: Sequence[Column], entries: pa.Table) -> pa.Array:
    """For which entries a condition is TRUE."""
    known = {column.id: column for column in keys}
    values: dict[ColumnId, pa.Array] = {}

    def column_of(number: ColumnId) -> pa.Array:
        if number not in values:
            values[number] = plain(entries.column(str(number)), known[number].data_type)
        return values[number]

    truth = _truth(node, known, column_of, entries.num_rows)
    return pc.fill_null(truth, False)


_Values = Callable[[ColumnId], "pa.Array"]


def _truth(node: Node, known: dict[ColumnId, Column], values: _Values, count: int) -> pa.Array:
    match node:
        case Always(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), count)
        case Not(child):
            return pc.invert(_truth(child, known, values, count))
        case And(nodes) | Or(nodes):
            parts = [_truth(part, known, values, count) for part in nodes]
            first = pa.repeat(isinstance(node, And), count)
            return reduce(pc.and_kleene if isinstance(node, And) else pc.or_kleene, parts, first)
        case Opaque():
            return pa.repeat(True, count)
        case IsNull(operand):
            return values(operand.column_id).is_null()
        case StartsWith(operand, _, prefix):
            return pc.starts_with(values(operand.column_id), pattern=prefix)
        case In(operand, _, listed):
            array = values(operand.column_id)
            wanted = exact_values(listed, known[operand.column_id].data_type)
            return pc.if_else(array.is_null(), _unknown(), pc.is_in(array, wanted))
        case Compare(operand, op, _, value):
            return _compared(values(operand.column_id), known[operand.column_id], op, value)


def _compared(array: pa.Array, column: Column, op: Operator, value: object) -> pa.Array:
    place = placed(value, column.data_type)  # pyright: ignore[reportArgumentType]
    if op in ("!=", ">", ">="):
        return pc.invert(_compared(array, column, NEGATED[op], value))
    if op == "=" and not place.is_exact:
        return _same(array, False)
    if place.value is None:
        return _same(array, False)
    bound = pa.scalar(place.value, plain_type(column.data_type))
    # What lies between two values that the column can have is above the lower one.
    compare = {"=": pc.equal, "<": pc.less if place.is_exact else pc.less_equal, "<=": pc.less_equal}[op]
    if not kind.is_floating(array.type):
        return compare(array, bound)
    is_nan = pc.is_nan(array)
    if place.value != place.value:
        return {"=": is_nan, "<": pc.invert(is_nan), "<=": _same(array, True)}[op]
    return pc.and_(pc.invert(is_nan), compare(array, bound))


def _unknown() -> pa.Scalar:
    return pa.scalar(None, pa.bool_())


def _same(array: pa.Array, value: bool) -> pa.Array:
    return pc.if_else(array.is_null(), _unknown(), value)
