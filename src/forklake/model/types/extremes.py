"""The least and the greatest value of a column over several files."""

from __future__ import annotations

from forklake.model.types.sort_keys import NAN, is_cut

Extreme = tuple[str | None, str | None]
"""A key, None if there is no value; and the value as text, None where it is not known."""


def least(known: Extreme, more: Extreme) -> Extreme:
    """The lower bound of two files."""
    if known[0] is None or more[0] is None:
        return more if known[0] is None else known
    return _outer(known, more, more[0] < known[0])


def greatest(known: Extreme, more: Extreme) -> Extreme:
    """The upper bound of two files."""
    if known[0] is None or more[0] is None:
        return more if known[0] is None else known
    if NAN in (known[0], more[0]):
        # NaN is the key of all floats that may have it beside them: it says nothing of their numbers.
        if known[1] is None or more[1] is None:
            return NAN, None
        return NAN, max(known[1], more[1], key=float)
    return _outer(known, more, more[0] > known[0])


def _outer(known: Extreme, more: Extreme, is_more: bool) -> Extreme:
    if known[0] == more[0] and known[1] != more[1] and is_cut(known[0]):
        # The key is the beginning of both values: which lies further out is not known.
        return known[0], None
    return more if is_more else known
