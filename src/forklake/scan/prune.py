"""Whether a file can hold a row that satisfies a predicate, from what is known of its columns. Pure.

Asked is whether a node can have a value, TRUE or FALSE, for some row. That question goes through NOT by
swapping the two, and through AND and OR part by part. UNKNOWN never matters: no part is TRUE or FALSE by it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from forklake.model.sql.predicate_tree import (
    NEGATED,
    Always,
    And,
    Compare,
    In,
    IsNull,
    Leaf,
    Node,
    Not,
    Opaque,
    Operand,
    Operator,
    Or,
    StartsWith,
)
from forklake.model.table.files import ColumnStats, FileStatistics
from forklake.model.types.sort_keys import HIGHEST, LOWEST


def skip_reason(node: Node, file: FileStatistics) -> str | None:
    """Why no row of the file makes the predicate TRUE, or None if one may."""
    if file.record_count == 0:
        return "it holds no rows"
    return _never(node, True, file)


def _never(node: Node, value: bool, file: FileStatistics) -> str | None:
    """Why the node has this value for no row, or None if it may have it."""
    match node:
        case Always(constant):
            return None if constant is value else "the predicate is never true"
        case Opaque():
            return None
        case Not(child):
            return _never(child, not value, file)
        case And(nodes) | Or(nodes):
            reasons = [_never(child, value, file) for child in nodes]
            given = [reason for reason in reasons if reason is not None]
            # AND is TRUE, and OR is FALSE, only if every part is; so one that never is will do.
            if isinstance(node, And) == value:
                return given[0] if given else None
            return " and ".join(dict.fromkeys(given)) if len(given) == len(reasons) else None
        case _:
            return _leaf_never(node, value, file)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is certain of a column in a file."""

    only_nulls: bool
    no_nulls: bool
    low: str
    high: str

    @classmethod
    def of(cls, operand: Operand, stats: ColumnStats) -> _Known:
        bounds_known = stats.min_key is not None and stats.max_key is not None
        if stats.null_count is None:
            only_nulls = stats.min_key is None and stats.max_key is None
        else:
            only_nulls = stats.null_count >= stats.value_count
        low = stats.min_key if bounds_known and stats.min_key is not None else LOWEST
        high = stats.max_key if bounds_known and stats.max_key is not None else HIGHEST
        if operand.may_be_nan and stats.contains_nan is not False:
            high = HIGHEST
        return cls(only_nulls, stats.null_count == 0, low, high)


def _leaf_never(leaf: Leaf, value: bool, file: FileStatistics) -> str | None:
    stats = file.stats.get(leaf.operand.column_id)
    # Counts that contradict the file's own are not to be trusted.
    if stats is None or stats.value_count < file.record_count:
        return None
    known = _Known.of(leaf.operand, stats)
    name = f'"{leaf.operand.name}"'
    if isinstance(leaf, IsNull):
        if value:
            return f"{name} is never NULL" if known.no_nulls else None
        return f"{name} is always NULL" if known.only_nulls else None
    if known.only_nulls:
        return f"{name} is always NULL"
    return _outside(name, stats) if _excluded(leaf, value, known.low, known.high) else None


def _excluded(leaf: Compare | In | StartsWith, value: bool, low: str, high: str) -> bool:
    """Whether the leaf has this value for no key between the two."""
    match leaf:
        case Compare(_, op, key):
            return _no_key(op if value else NEGATED[op], key, low, high)
        case In(_, keys):
            at = bisect_left(keys, low)
            if not value:
                return low == high and at < len(keys) and keys[at] == low
            return at == len(keys) or keys[at] > high
        case StartsWith(_, key):
            if not value:
                # What lies between two texts that begin alike begins like them.
                return low.startswith(key) and high.startswith(key)
            return high < key or low > key + "~"


def _no_key(op: Operator, key: str, low: str, high: str) -> bool:
    match op:
        case "=":
            return key < low or key > high
        case "!=":
            return low == high == key
        case "<":
            return low >= key
        case "<=":
            return low > key
        case ">":
            return high <= key
        case ">=":
            return high < key


def _outside(name: str, stats: ColumnStats) -> str:
    if stats.min_value is None or stats.max_value is None:
        return f"the bounds of {name} exclude it"
    return f"{name} lies between {stats.min_value[:40]} and {stats.max_value[:40]}"
