"""Sets of positions of rows in a file, as ascending Arrow arrays.

A large file may have lost millions of rows, and a commit takes a few more. So a few positions are looked for
in many by binary search, and put between them by copying what is on both sides: time goes with the few.
Two large sets of the same file are combined as bitmaps, which takes a fraction of hashing or sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from weakref import ref

from forklake.lazy.arrow import pa, pc

_SLICE = 64
"""If there are more positions to a new one than that, it is quicker to copy those between than to sort."""
_DENSE = 16
"""If both sets name one row in so many of those that they span, bitmaps are quicker than binary search."""
_LARGEST_BITMAP = 1 << 26
"""Each of these rows takes four bytes on the way to a bitmap; with more, lists are searched and sorted."""

_LONG = 4096
_ASCENDING: dict[int, ref[pa.Array]] = {}
"""Long lists that are in order, for as long as they live: one that is kept is asked again and again."""


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
        if _are_dense(part, largest):
            largest = _by_bitmap(pc.or_, part, largest)
        else:
            largest = _inserted(largest, without(part, largest))
    return largest


def without(positions: pa.Array, gone: pa.Array | None) -> pa.Array:
    """Those positions that are not among others."""
    if gone is None or not len(gone) or not len(positions):
        return positions
    if not (is_ascending(positions) and is_ascending(gone)):
        return positions.filter(pc.invert(pc.is_in(positions, value_set=gone)))
    if _are_dense(positions, gone):
        return _by_bitmap(pc.and_not, positions, gone)
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
    if not len(few):
        return few
    return _by_bitmap(pc.and_, few, many) if _are_dense(few, many) else few.filter(_is_among(few, many))


def is_ascending(positions: pa.Array) -> bool:
    """Whether positions are in order, each once."""
    if len(positions) < 2:
        return True
    known = _ASCENDING.get(id(positions))
    if known is not None and known() is positions:
        return True
    found = pc.all(pc.less(positions.slice(0, len(positions) - 1), positions.slice(1))).as_py()
    if found and len(positions) >= _LONG:
        number = id(positions)
        _ASCENDING[number] = ref(positions, lambda _: _ASCENDING.pop(number, None))
    return found


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


def _are_dense(one: pa.Array, other: pa.Array) -> bool:
    """Whether both of two ascending lists name many of the rows that they span."""
    few = min(len(one), len(other))
    return few > 0 and _span(one, other)[1] <= min(few * _DENSE, _LARGEST_BITMAP)


def _span(one: pa.Array, other: pa.Array) -> tuple[int, int]:
    """The first row that two ascending lists name, and how many there are up to the last."""
    first = min(one[0].as_py(), other[0].as_py())
    return first, max(one[-1].as_py(), other[-1].as_py()) + 1 - first


def _by_bitmap(combine: Callable[[pa.Array, pa.Array], pa.Array], one: pa.Array, other: pa.Array) -> pa.Array:
    """What an operation on bitmaps makes of two ascending lists."""
    first, length = _span(one, other)
    start = pa.scalar(first, pa.int64())

    def bitmap(positions: pa.Array) -> pa.Array:
        shifted = pc.subtract(positions, start)
        # Where a row is in the list: there is no such place for those that are not.
        return pc.is_valid(pc.inverse_permutation(shifted, max_index=length - 1, output_type=pa.int32()))

    return pc.add(pc.indices_nonzero(combine(bitmap(one), bitmap(other))).cast(pa.int64()), start)


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
