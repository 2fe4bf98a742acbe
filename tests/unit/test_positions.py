"""Sets of positions are what sets of Python are, whatever the sizes and the order they come in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.parquet import positions
from forklake.data.parquet.positions import (
    ascending,
    common,
    in_order,
    is_ascending,
    joined,
    lower_bounds,
    united,
    without,
)

SETS = st.one_of(
    st.frozensets(st.integers(0, 40)),
    st.frozensets(st.integers(0, 2**40)),
    st.builds(
        lambda start, length, step: frozenset(range(start, start + length * step, step)),
        st.integers(0, 500),
        st.integers(0, 300),
        st.integers(1, 7),
    ),
)


def array(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int64())


@st.composite
def some_positions(draw: st.DrawFn) -> tuple[frozenset[int], pa.Array]:
    """A set, in order or shuffled."""
    values = draw(SETS)
    if draw(st.booleans()):
        return values, ascending(values)
    return values, array(
        draw(st.permutations(sorted(values))) if len(values) < 20 else sorted(values, key=hash)
    )


@given(st.lists(some_positions(), min_size=1, max_size=4))
def test_united(parts: list[tuple[frozenset[int], pa.Array]]) -> None:
    found = united([listed for _, listed in parts]).to_pylist()
    assert found == sorted(frozenset().union(*(values for values, _ in parts)))


@given(some_positions(), some_positions())
def test_without_and_common(
    one: tuple[frozenset[int], pa.Array], other: tuple[frozenset[int], pa.Array]
) -> None:
    assert sorted(without(one[1], other[1]).to_pylist()) == sorted(one[0] - other[0])
    assert without(ascending(one[0]), ascending(other[0])).to_pylist() == sorted(one[0] - other[0])
    assert common(one[1], other[1]).to_pylist() == sorted(one[0] & other[0])
    assert without(one[1], None) is one[1]


@given(some_positions(), some_positions())
def test_joined(one: tuple[frozenset[int], pa.Array], other: tuple[frozenset[int], pa.Array]) -> None:
    fresh = ascending(other[0] - one[0])
    assert joined(one[1], fresh).to_pylist() == sorted(one[0] | other[0])
    assert joined(None, fresh) is fresh


def test_each_position_comes_once() -> None:
    assert in_order(array([3, 1, 3, 2])).to_pylist() == [1, 2, 3]
    assert united([array([3, 3]), array([3])]).to_pylist() == [3]


def test_what_is_known_of_a_list_is_not_taken_for_another() -> None:
    for _ in range(20):
        # Each is likely to lie where the one before was.
        assert is_ascending(array(list(range(5_000))))
        assert not is_ascending(array([*range(5_000), 7]))
    one = array(list(range(5_000)))
    assert is_ascending(one) and is_ascending(one)
    assert not is_ascending(pa.concat_arrays([one, one]))


class OlderArrow:
    """Arrow before it had a binary search."""

    def __getattr__(self, name: str) -> Any:
        if name == "search_sorted":
            raise AttributeError(name)
        return getattr(pc, name)


def test_an_arrow_without_binary_search_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    many, few = array(list(range(0, 3_000, 3))), array([0, 1, 2, 3, 1499, 1500, 2997, 2998, 5_000])
    expected = lower_bounds(many, few)
    monkeypatch.setattr(positions, "pc", OlderArrow())
    assert lower_bounds(many, few).equals(expected)
    assert expected.to_pylist() == [0, 1, 1, 1, 500, 500, 999, 1000, 1000]
    for length in range(1, 70):
        every = array(list(range(length)))
        assert lower_bounds(every, every).equals(every)
