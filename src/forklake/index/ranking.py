"""Hits of a search: asked whether they count, and put into a table."""

from __future__ import annotations

from typing import Any, TypeAlias

from forklake.index.kind import Alive, Hits
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def hits(segments: Numbers, ordinals: Numbers, positions: Numbers, scores: Numbers, *, is_all: bool) -> Hits:
    """Hits that are in order already."""
    columns = {
        "segment": pa.array(segments, pa.int64()),
        "ordinal": pa.array(ordinals, pa.int64()),
        "position": pa.array(positions, pa.int64()),
        "score": pa.array(scores, pa.float64()),
    }
    return Hits(pa.table(columns), is_all)


def no_hits() -> Hits:
    """Nothing was found, and there is nothing else."""
    none = np.empty(0)
    return hits(none, none, none, none, is_all=True)


def living(alive: Alive, segments: Numbers, ordinals: Numbers, positions: Numbers) -> Numbers:
    """Which of some rows count: each data file is asked once, about ascending positions."""
    found = np.zeros(len(positions), bool)
    if not len(positions):
        return found
    order = np.lexsort((positions, ordinals, segments))
    starts = (np.diff(segments[order]) != 0) | (np.diff(ordinals[order]) != 0)
    for rows in np.split(order, np.flatnonzero(starts) + 1):
        answer = alive(int(segments[rows[0]]), int(ordinals[rows[0]]), pa.array(positions[rows], pa.int64()))
        found[rows] = answer.to_numpy(zero_copy_only=False)
    return found
