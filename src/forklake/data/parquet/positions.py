"""Sets of positions of rows in a file, as ascending Arrow arrays.

A large file may have lost millions of rows, and a commit takes a few more. So a few positions are looked for
in many by binary search, and put between them by copying what is on both sides: time goes with the few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from forklake.lazy.arrow import pa, pc

_SLICE = 64
"""If there are more positions to a new one than that, it is quicker to copy those between than to sort."""


def ascending(positions: Iterable[int]) -> pa.Array:
    """Positions in order."""
    return pa.array(sorted(positions), pa.int64())


def in_order(positions: pa.Array) -> pa.Array:
    """Positions in order, each once."""
    return positions if is_ascending(positions) else pc.unique(positions).sort()


def joined(one: pa.Array | None, other: pa.Array) -> pa.Array:
    """Positions of two lists that have none in common, in order."""
    return other if one is None else _inserted(in_order(one), in_order(other))


def united(parts: Sequence[pa.Array]) -> pa.Array:
    """Positions of several lists: ascending, each once."""
    largest, *others = sorted(map(in_order, parts), key=len, reverse=True)
    for part in others:
        largest = _inserted(largest, without(part, largest))
    return largest


def without(positions: pa.Array, gone: pa.Array | None) -> pa.Array:
    """Those positions that are not among others."""
    if gone is None or not len(gone) or not len(positions):
        return positions
    if not (is_ascending(positions) and is_ascending(gone)):
        return positions.filter(pc.invert(pc.is_in(positions, value_set=gone)))
    if len(positions) <= len(gone):
        return positions.filter(pc.invert(_is_among(positions, gone)))
    # Only those between the first and the last of them can be gone.
    start, end = (at.as_py() for at in lower_bounds(positions, _ends(gone)))
    inside = positions.slice(start, end + 1 - start)
    left = inside.filter(pc.invert(pc.is_in(inside, value_set=gone)))
    return pa.concat_arrays([positions.slice(0, start), left, positions.slice(end + 1)])


def common(one: pa.Array, other: pa.Array) -> pa.Array:
    """Positions that are in both lists."""
    few, many = sorted((in_order(one), in_order(other)), key=len)
    return few.filter(_is_among(few, many)) if len(few) else few


def is_ascending(positions: pa.Array) -> bool:
    """Whether positions are in order, each once."""
    if len(positions) < 2:
        return True
    return pc.all(pc.less(positions.slice(0, len(positions) - 1), positions.slice(1))).as_py()


def _inserted(many: pa.Array, few: pa.Array) -> pa.Array:
    """Both, which are ascending and have none in common, in order."""
    if len(few) > len(many):
        many, few = few, many
    if not len(few):
        return many
    if len(few) * _SLICE > len(many):
        return pa.concat_arrays([many, few]).sort()
    # What lies between them is copied as it is.
    places = [0, *lower_bounds(many, few).to_pylist(), len(many)]
    parts: list[pa.Array] = []
    for number, (start, end) in enumerate(pairwise(places)):
        parts += [many.slice(start, end - start), few.slice(number, 1)]
    return pa.concat_arrays(parts)


def _ends(positions: pa.Array) -> pa.Array:
    return positions.take(pa.array([0, len(positions) - 1]))


def _is_among(few: pa.Array, many: pa.Array) -> pa.Array:
    places = pc.min_element_wise(lower_bounds(many, few), pa.scalar(len(many) - 1, pa.int64()))
    return pc.equal(many.take(places), few)


def lower_bounds(many: pa.Array, few: pa.Array) -> pa.Array:
    """For each position, how many of an ascending list are below it."""
    if hasattr(pc, "search_sorted"):
        return pc.search_sorted(many, few).cast(pa.int64())
    # Before 26, Arrow has no binary search: this is one for all at once.
    last = pa.scalar(len(many) - 1, pa.int64())
    found = pa.repeat(pa.scalar(0, pa.int64()), len(few))
    step = 1 << (len(many).bit_length() - 1)
    while step:
        probe = pc.add(found, pa.scalar(step - 1, pa.int64()))
        below = pc.less(many.take(pc.min_element_wise(probe, last)), few)
        goes_on = pc.and_(below, pc.less_equal(probe, last))
        found = pc.if_else(goes_on, pc.add(found, pa.scalar(step, pa.int64())), found)
        step >>= 1
    return found
