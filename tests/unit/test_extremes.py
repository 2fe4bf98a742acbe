"""Bounds of several files: together they surround all values, and a named value is the extreme one."""

from __future__ import annotations

import math
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import Bounds
from forklake.model.types.data_types import DataType, Scalar
from forklake.model.types.sort_keys import PREFIX_BYTES, bounds, max_key, min_key

DOUBLE, VARCHAR = Scalar("float64"), Scalar("varchar")

floats = st.lists(st.sampled_from([-math.inf, -2.5, 0.0, 1.0, 10.0, math.inf, math.nan]), max_size=3)
long = st.sampled_from(["a", "b", "x" * PREFIX_BYTES + "a", "x" * PREFIX_BYTES + "b"])


def stats(values: list[float] | list[str], type: DataType, *, nan: bool | None = None) -> ColumnStats:
    known = [value for value in values if value == value]
    low, high = min(known, default=None), max(known, default=None)
    if not values:
        return ColumnStats(ColumnId(1), 0, 0)
    texts = [None if value is None else str(value) for value in (low, high)]
    keys = bounds(low, high, type, contains_nan=nan)
    return ColumnStats(ColumnId(1), len(values), 0, *texts, *keys, contains_nan=nan)


def together(files: list[ColumnStats]) -> Bounds:
    return reduce(Bounds.with_stats, files, Bounds())


@given(st.lists(st.tuples(floats, st.booleans()), min_size=1, max_size=4))
def test_floats_of_files_that_may_have_nan(files: list[tuple[list[float], bool]]) -> None:
    known = together(
        [stats(values, DOUBLE, nan=any(map(math.isnan, values)) if says else None) for values, says in files]
    )
    values = [value for part, _ in files for value in part]
    numbers = [value for value in values if value == value]
    for value in numbers:
        assert known.min_key is not None and known.min_key <= min_key(value, DOUBLE)
    for value in values:
        assert known.max_key is not None and known.max_key >= max_key(value, DOUBLE)
    if all(not part or any(value == value for value in part) for part, _ in files):
        assert known.max_value == (str(max(numbers)) if numbers else None)
        assert known.min_value == (str(min(numbers)) if numbers else None)
    if any(map(math.isnan, values)):
        assert known.contains_nan is not False


@given(st.lists(st.lists(long, max_size=3), min_size=1, max_size=4))
def test_texts_that_begin_alike(files: list[list[str]]) -> None:
    known = together([stats(values, VARCHAR) for values in files])
    values = [value for part in files for value in part]
    for value in values:
        assert known.min_key is not None and known.min_key <= min_key(value, VARCHAR)
    for value in values:
        assert known.max_key is not None and known.max_key >= max_key(value, VARCHAR)
    assert known.max_value in (None, max(values, default=None))
    assert known.min_value in (None, min(values, default=None))
