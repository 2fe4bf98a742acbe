"""Sets of positions are what sets of Python are, whatever the sizes and the order they come in."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from forklake.data.parquet.positions import ascending, common, in_order, joined, united, without

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
def listed(draw: st.DrawFn) -> tuple[frozenset[int], pa.Array]:
    """A set, in order or shuffled."""
    values = draw(SETS)
    if draw(st.booleans()):
        return values, ascending(values)
    return values, array(
        draw(st.permutations(sorted(values))) if len(values) < 20 else sorted(values, key=hash)
    )


@given(st.lists(listed(), min_size=1, max_size=4))
def test_united(parts: list[tuple[frozenset[int], pa.Array]]) -> None:
    found = united([positions for _, positions in parts]).to_pylist()
    assert found == sorted(frozenset().union(*(values for values, _ in parts)))


@given(listed(), listed())
def test_without_and_common(
    one: tuple[frozenset[int], pa.Array], other: tuple[frozenset[int], pa.Array]
) -> None:
    assert sorted(without(one[1], other[1]).to_pylist()) == sorted(one[0] - other[0])
    assert without(ascending(one[0]), ascending(other[0])).to_pylist() == sorted(one[0] - other[0])
    assert common(one[1], other[1]).to_pylist() == sorted(one[0] & other[0])
    assert without(one[1], None) is one[1]


@given(listed(), listed())
def test_joined(one: tuple[frozenset[int], pa.Array], other: tuple[frozenset[int], pa.Array]) -> None:
    fresh = ascending(other[0] - one[0])
    assert joined(one[1], fresh).to_pylist() == sorted(one[0] | other[0])
    assert joined(None, fresh) is fresh


def test_each_position_comes_once() -> None:
    assert in_order(array([3, 1, 3, 2])).to_pylist() == [1, 2, 3]
    assert united([array([3, 3]), array([3])]).to_pylist() == [3]
