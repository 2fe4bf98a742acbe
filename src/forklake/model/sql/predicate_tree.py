"""The tree of a predicate: what a row is asked, in a form that can be decided from bounds. Pure.

A node is TRUE, FALSE or UNKNOWN for a row, as in SQL; a row counts only if the whole is TRUE. The functions
after the classes build nodes, and choose `Opaque` where bounds say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal, NamedTuple

from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import HIGHEST, LOWEST, Value, has_key, has_nan, key_of, keys_for

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
NEGATED: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SWAPPED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", ">=": "<=", ">": "<", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Operand:
    """A column, or a field inside structs, that a leaf of the tree speaks of."""

    column_id: ColumnId
    name: str = field(default="", compare=False)
    """For messages: `address.city`."""
    may_be_nan: bool = False


@dataclass(frozen=True, slots=True)
class Always:
    """The same for every row; None is UNKNOWN."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything may come of it."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A column against a value that is not NULL."""

    operand: Operand
    op: Operator
    key: str
    value: Value | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """A column against a set of values that are not NULL."""

    operand: Operand
    keys: tuple[str, ...]
    """In order, each once, and at least one."""
    values: tuple[Value, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is NULL, which is never UNKNOWN."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a text begins with another."""

    operand: Operand
    key: str
    prefix: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; UNKNOWN stays UNKNOWN."""

    node: Node


@dataclass(frozen=True, slots=True)
class And:
    """FALSE if one of them is, TRUE if all are."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE if one of them is, FALSE if all are."""

    nodes: tuple[Node, ...]


Leaf = Compare | In | IsNull | StartsWith
Node = Always | Opaque | Leaf | Not | And | Or


def operand_of(column: Column, name: str = "") -> Operand:
    """What a node keeps of a column."""
    return Operand(column.id, name or column.name, has_nan(column.data_type))


def compare(column: Column, op: Operator, value: Value | None, *, name: str = "") -> Node:
    """`column op value`."""
    if value is None:
        return Always(None)
    key = key_of(value, column.data_type)
    return Opaque() if key is None else Compare(operand_of(column, name), op, key, value)


def is_in(column: Column, values: Iterable[Value | None], *, name: str = "") -> Node:
    """`column IN (values)`; with NULL among them it is never FALSE."""
    given = list(values)
    type = column.data_type
    if not has_key(type):
        return Opaque()
    present = [value for value in given if value is not None]
    keyed = {key or "": value for key, value in zip(keys_for(present, type), present, strict=True)}
    nodes: list[Node] = []
    if keyed:
        ordered = sorted(keyed)
        nodes.append(In(operand_of(column, name), tuple(ordered), tuple(keyed[key] for key in ordered)))
    if len(nodes) == 0 or len(present) < len(given):
        nodes.append(Always(None if given else False))
    return any_of(nodes)


def is_null(column: Column, *, name: str = "") -> Node:
    """`column IS NULL`. Files of others do not tell how many lists, maps and structs are; ours do."""
    return Opaque() if column.data_type == Scalar("variant") else IsNull(operand_of(column, name))


def starts_with(column: Column, prefix: str, *, name: str = "") -> Node:
    """`starts_with(column, prefix)`."""
    if column.data_type != Scalar("varchar"):
        return Opaque()
    return StartsWith(operand_of(column, name), prefix.encode().hex(), prefix)


def all_of(nodes: Iterable[Node]) -> Node:
    """The nodes joined by AND, flat; nothing at all is TRUE."""
    flat = tuple(part for node in nodes for part in (node.nodes if isinstance(node, And) else (node,)))
    return flat[0] if len(flat) == 1 else And(flat) if flat else Always(True)


def any_of(nodes: Iterable[Node]) -> Node:
    """The nodes joined by OR, flat; nothing at all is FALSE."""
    flat = tuple(part for node in nodes for part in (node.nodes if isinstance(node, Or) else (node,)))
    return flat[0] if len(flat) == 1 else Or(flat) if flat else Always(False)


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The nodes that must all be TRUE for the whole to be."""
    if isinstance(node, And):
        return tuple(part for child in node.nodes for part in conjuncts(child))
    return (node,)


def leaves(node: Node) -> Iterator[Leaf]:
    """Every leaf that speaks of a column."""
    match node:
        case And(nodes) | Or(nodes):
            for child in nodes:
                yield from leaves(child)
        case Not(child):
            yield from leaves(child)
        case Always() | Opaque():
            return
        case _:
            yield node


class Range(NamedTuple):
    """Where values of a column lie if the predicate is TRUE, both ends included."""

    column_id: ColumnId
    low: str
    high: str
    wants_null: bool
    """Whether NULL would do as well, so that a file with NULLs counts whatever its bounds are."""


class _Hull(NamedTuple):
    low: str
    high: str
    nulls: bool = False
    points: bool = False

    def meet(self, other: _Hull) -> _Hull:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return _Hull(low, high, self.nulls and other.nulls, self.points or other.points)

    def join(self, other: _Hull) -> _Hull:
        low, high = min(self.low, other.low), max(self.high, other.high)
        return _Hull(low, high, self.nulls or other.nulls, self.points and other.points)

    def rank(self) -> tuple[int, bool]:
        if self.low == self.high:
            kind = 0
        elif self.points:
            kind = 1
        else:
            kind = 2 if self.low != LOWEST and self.high != HIGHEST else 3
        return kind, self.nulls


_Hulls = dict[ColumnId, _Hull]
_NO_VALUE = _Hull(HIGHEST, LOWEST, nulls=True, points=True)


def ranges(node: Node, *, with_nulls: bool = False) -> list[Range]:
    """For each column, where its values lie in rows that satisfy the predicate; the most selective first.

    A file has such a row only if `min_key <= high AND max_key >= low`. Columns of which that excludes
    nothing are left out, and so is what asks for NULL alone. `with_nulls` adds ranges beside which NULL
    satisfies as well, as in `x = 1 OR x IS NULL`: for those, files with NULLs count too, whatever their
    bounds are.
    """
    hulls = _hulls(node, True) or {}
    useful = [
        (hull.rank(), Range(column, hull.low, hull.high, hull.nulls))
        for column, hull in hulls.items()
        if (hull.low, hull.high) not in ((LOWEST, HIGHEST), _NO_VALUE[:2]) and (with_nulls or not hull.nulls)
    ]
    return [found for _, found in sorted(useful)]


def keys_of(node: Node, column: ColumnId) -> tuple[str, ...]:
    """The single values of which a column must have one, if the predicate lists them."""
    for part in conjuncts(node):
        if isinstance(part, In) and part.operand.column_id == column:
            return tuple(part.keys)
    return ()


def is_one_range(node: Node) -> bool:
    """Whether bounds exclude exactly those files that do not meet the one range of the predicate."""
    parts = conjuncts(node)
    closed = all(isinstance(part, StartsWith) or _is_closed(part) for part in parts)
    return closed and len(columns_of(node)) == len(ranges(node)) == 1


def _is_closed(node: Node) -> bool:
    return isinstance(node, Compare) and node.op in ("=", "<=", ">=")


def columns_of(node: Node) -> frozenset[ColumnId]:
    """The columns and fields whose bounds may decide the predicate."""
    return frozenset(leaf.operand.column_id for leaf in leaves(node))


def _hulls(node: Node, wanted: bool) -> _Hulls | None:
    """The hull for each column that the node limits if it has the wanted value; None if it never has."""
    match node:
        case Always(value):
            return {} if value is wanted else None
        case Opaque():
            return {}
        case Not(child):
            return _hulls(child, not wanted)
        case And(nodes) | Or(nodes):
            parts = [_hulls(child, wanted) for child in nodes]
            return _every(parts) if isinstance(node, And) == wanted else _either(parts)
        case _:
            hull = _hull(node, wanted)
            return {} if hull is None else {node.operand.column_id: hull}


def _every(parts: list[_Hulls | None]) -> _Hulls | None:
    met: _Hulls = {}
    for part in parts:
        if part is None:
            return None
        for column, hull in part.items():
            met[column] = met[column].meet(hull) if column in met else hull
    return met


def _either(parts: list[_Hulls | None]) -> _Hulls | None:
    possible = [part for part in parts if part is not None]
    if not possible:
        return None
    shared = set(possible[0]).intersection(*possible)
    return {column: reduce(_Hull.join, (part[column] for part in possible)) for column in shared}


def _hull(leaf: Leaf, wanted: bool) -> _Hull | None:
    match leaf:
        case IsNull():
            return _NO_VALUE if wanted else None
        case StartsWith(_, key):
            return _Hull(key, key + "~", points=True) if wanted and key else None
        case In(_, keys):
            return _Hull(keys[0], keys[-1], points=True) if wanted else None
        case Compare(_, op, key):
            match op if wanted else NEGATED[op]:
                case "=":
                    return _Hull(key, key, points=True)
                case "<" | "<=":
                    return _Hull(LOWEST, key)
                case ">" | ">=":
                    return _Hull(key, HIGHEST)
                case "!=":
                    return None
