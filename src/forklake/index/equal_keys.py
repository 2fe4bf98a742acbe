"""Keys that conditions list, and entries that have one of some keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from forklake.index.key_values import placed, plain, plain_type
from forklake.index.recent import Recent
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec
from forklake.model.sql.predicate_tree import Always, Compare, In, Node, Or, conjuncts
from forklake.model.types.data_types import DataType
from forklake.model.types.sort_keys import Value

_MOST_COMBINED = 100_000
"""How many keys of several columns are made from lists of values for each."""

_Values = tuple[Value, ...]


_Asked = tuple[IndexSpec, Node, "pa.Table | None"]
_LATELY: Recent[_Asked] = Recent(64 << 20, lambda asked: 1 + (0 if asked[2] is None else asked[2].nbytes))
"""What was made of conditions lately: each is asked about several times, for every segment too."""


def wanted_keys(spec: IndexSpec, node: Node) -> pa.Table | None:
    """The keys that rows must have for a condition to hold, as plain values by column id.

    None if it does not list them.
    """
    # What is kept holds both of them, so that nothing else gets their ids.
    return _LATELY.get((id(spec), id(node)), lambda: (spec, node, _wanted_keys(spec, node)))[2]


def _wanted_keys(spec: IndexSpec, node: Node) -> pa.Table | None:
    lists = _lists(tuple(column.id for column in spec.keys), node)
    if lists is None or sum(prod(map(len, values)) for values in lists) > _most(spec):
        return None
    tables = [_combined(spec.keys, values) for values in lists]
    fields = [(str(column.id), plain_type(column.data_type)) for column in spec.keys]
    return pa.concat_tables([pa.schema(fields).empty_table(), *tables])


def _most(spec: IndexSpec) -> float:
    return _MOST_COMBINED if len(spec.keys) > 1 else inf


def _lists(ids: tuple[ColumnId, ...], node: Node) -> list[list[_Values]] | None:
    """Lists of values for each key, of which all combinations are wanted; None if there are others."""
    match node:
        case Always(True):
            return None
        case Always():
            return []
        case Or(nodes):
            parts = [_lists(ids, part) for part in nodes]
            known = [part for part in parts if part is not None]
            return [values for part in known for values in part] if len(known) == len(parts) else None
        case _:
            return _of_all(ids, conjuncts(node))


def _of_all(ids: tuple[ColumnId, ...], parts: Sequence[Node]) -> list[list[_Values]] | None:
    """What one of the parts says of all keys, or several together."""
    found: dict[ColumnId, _Values] = {}
    for part in parts:
        if isinstance(part, Always) and not part.value:
            return []
        known = _of_one(part)
        if known is not None and known[0] in ids:
            column, values = known
            found[column] = min(values, found.get(column, values), key=len)
        elif isinstance(part, Or):
            whole = _lists(ids, part)
            if whole is not None:
                return whole
    return [[found[column] for column in ids]] if len(found) == len(ids) else None


def _of_one(node: Node) -> tuple[ColumnId, _Values] | None:
    """The column and its values, if a condition lists those of one column."""
    match node:
        case Compare(operand, "=", _, value) if value is not None:
            return operand.column_id, (value,)
        case In(operand, _, values) if values:
            return operand.column_id, values
        case Or(nodes):
            # NULL among the values: it equals nothing.
            parts = [part for part in nodes if not (isinstance(part, Always) and not part.value)]
            known = [_of_one(part) for part in parts]
            columns = {part[0] for part in known if part is not None}
            if len(columns) != 1 or None in known:
                return None
            return columns.pop(), tuple(value for part in known if part is not None for value in part[1])
        case _:
            return None


def _combined(keys: Sequence[Column], values: Sequence[_Values]) -> pa.Table:
    """All combinations of values; those that a column cannot have are left out."""
    columns = [exact_values(listed, column.data_type) for column, listed in zip(keys, values, strict=True)]
    if len(columns) > 1:
        grid = np.indices([len(column) for column in columns]).reshape(len(columns), -1)
        columns = [column.take(pa.array(at)) for column, at in zip(columns, grid, strict=True)]
    return pa.table(columns, [str(column.id) for column in keys])


def exact_values(values: Sequence[Value], type: DataType) -> pa.Array:
    """Literals as plain values of a type, without those that no value of it equals."""
    found = (placed(value, type) for value in values)
    return pa.array([place.value for place in found if place.is_exact], plain_type(type))


def matching(spec: IndexSpec, entries: pa.Table, keys: pa.Table) -> pa.Array:
    """Which entries have one of the keys, both in columns named by column id. NULL equals nothing."""
    codes: tuple[np.ndarray, np.ndarray] | None = None
    for column in spec.keys:
        name = str(column.id)
        held, wanted = (plain(table.column(name), column.data_type) for table in (entries, keys))
        numbers = _numbers(held, wanted)
        codes = numbers if codes is None else _joined(codes, numbers)
    held, wanted = codes or (np.empty(0, np.int64), np.empty(0, np.int64))
    return pa.array(np.isin(held, wanted[wanted >= 0]))


def _numbers(held: pa.Array, wanted: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Values as numbers of those that are wanted; below zero for others and for NULL."""
    values = wanted.drop_null().unique()
    return tuple(  # pyright: ignore[reportReturnType]
        pc.fill_null(pc.index_in(array, values), -1).to_numpy(zero_copy_only=False).astype(np.int64)
        for array in (held, wanted)
    )


def _joined(
    before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of combinations, which stay small: those that are wanted are numbered again."""
    held, wanted = after
    width = int(max(wanted.max(initial=0), 0)) + 1
    both = [np.where((a < 0) | (b < 0), -1, a * width + b) for a, b in zip(before, after, strict=True)]
    known = np.unique(both[1][both[1] >= 0])
    if len(known) == 0:
        return np.full(len(held), -1), np.full(len(wanted), -1)
    at = [np.minimum(np.searchsorted(known, codes), len(known) - 1) for codes in both]
    numbers = [np.where(known[a] == codes, a, -1) for a, codes in zip(at, both, strict=True)]
    return numbers[0], numbers[1]
