"""What a table's bounds say after one more file."""

from __future__ import annotations

from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import Bounds, widened

COLUMN = ColumnId(1)


def stats(low: str | None, high: str | None, *, nulls: int = 0, nan: bool | None = None) -> ColumnStats:
    return ColumnStats(COLUMN, 10, nulls, low, high, low, high, nan)


def after(*files: ColumnStats) -> Bounds:
    bounds: dict[ColumnId, Bounds] = {}
    for file in files:
        bounds |= widened(bounds, [file])
    return bounds[COLUMN]


def test_bounds_only_become_wider() -> None:
    bounds = after(stats("b", "d"), stats("c", "c"), stats("a", "b"), stats("c", "e"))
    assert (bounds.min_key, bounds.max_key, bounds.min_value, bounds.max_value) == ("a", "e", "a", "e")


def test_what_changes_nothing_is_not_written() -> None:
    known = {COLUMN: after(stats("b", "d"))}
    assert widened(known, [stats("c", "c")]) == {}


def test_nulls_are_remembered() -> None:
    assert after(stats("b", "d"), stats(None, None, nulls=10), stats("c", "c")).contains_null


def test_nan_is_out_of_the_question_only_if_every_file_says_so() -> None:
    assert after(stats("b", "d", nan=False), stats("c", "c", nan=False)).contains_nan is False
    assert after(stats("b", "d", nan=False), stats("c", "c", nan=None)).contains_nan is None
    assert after(stats("b", "d", nan=None), stats("c", "c", nan=False)).contains_nan is None
    assert after(stats("b", "d", nan=None), stats("c", "c", nan=True), stats("c", "c")).contains_nan is True
    assert after(stats(None, None, nulls=10), stats("c", "c", nan=False)).contains_nan is False


def test_a_value_whose_key_was_cut_is_no_bound_beside_another_of_that_key() -> None:
    cut = "70" * 32
    one, other = (
        ColumnStats(COLUMN, 1, 0, f"{text}a", f"{text}z", cut, f"{cut}~") for text in ("p" * 40, "p" * 50)
    )
    assert after(one, one) == after(one)
    assert (after(one, other).min_value, after(one, other).max_value) == (None, None)
    assert (after(one, other).min_key, after(one, other).max_key) == (cut, f"{cut}~")
