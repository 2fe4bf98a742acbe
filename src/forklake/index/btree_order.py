"""The first rows in the order of the keys of B-trees: row groups are read until no other can have one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from forklake.index.btree_conditions import Fences
from forklake.index.found_rows import SEGMENT
from forklake.index.kind import Alive
from forklake.index.ranking import living
from forklake.index.segment_parquet import ORDINAL, POSITION
from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.numpy import np


class Source(NamedTuple):
    """A segment."""

    fences: Fences
    groups: Sequence[int]
    """The row groups that may have a row that is wanted."""
    read: Callable[[int], pa.Table]
    """The wanted entries of a row group: ordinal, position, and the keys."""


def first_rows(
    sources: Sequence[Source],
    keys: Sequence[str],
    text_of: Callable[[pa.Array], str],
    k: int,
    alive: Alive,
    *,
    descending: bool,
) -> pa.Table | None:
    """The first `k` rows that count; None if no row group was looked at.

    `text_of` makes of a value of the first key what fences have.
    """
    best: pa.Table | None = None
    last: str | None = None
    for edge, number, group in _in_order(sources, descending):
        if last is not None and (edge < last if descending else edge > last):
            break
        entries = sources[number].read(group)
        numbers = np.full(entries.num_rows, number, np.int64)
        ordinals, positions = (entries.column(name).to_numpy() for name in (ORDINAL, POSITION))
        counting = living(alive, numbers, ordinals.astype(np.int64), positions)
        entries = entries.append_column(SEGMENT, pa.array(numbers)).filter(pa.array(counting))
        found = _sorted(entries if best is None else pa.concat_tables([best, entries]), keys, descending)
        found = found.slice(0, k)
        if found.num_rows == k:
            last = text_of(found.column(keys[0]).slice(k - 1).combine_chunks())
        best = found
    return best


def _in_order(sources: Sequence[Source], descending: bool) -> list[tuple[str, int, int]]:
    """Row groups with the key that they begin with, or end with."""
    groups = [
        ((source.fences.highs if descending else source.fences.lows)[0][group], number, group)
        for number, source in enumerate(sources)
        for group in source.groups
    ]
    return sorted(groups, reverse=descending)


def _sorted(table: pa.Table, keys: Sequence[str], descending: bool) -> pa.Table:
    places = [(name, "ascending") for name in (SEGMENT, ORDINAL, POSITION)]
    if not descending:
        return table.take(pc.sort_indices(table, sort_keys=[*((key, "ascending") for key in keys), *places]))
    # Arrow leaves NULL and NaN last in either direction.
    columns = {name: table.column(name) for name, _ in places}
    for key in keys:
        values = table.column(key)
        above = pc.cast(values.is_null(), pa.int8())
        if kind.is_floating(values.type):
            above = pc.add(pc.multiply(above, 2), pc.cast(pc.fill_null(pc.is_nan(values), False), pa.int8()))
        columns |= {f"above {key}": above, key: values}
    order = [(name, "descending") for key in keys for name in (f"above {key}", key)]
    # Of equals the first in the segments comes first.
    return table.take(pc.sort_indices(pa.table(columns), sort_keys=[*order, *places]))
