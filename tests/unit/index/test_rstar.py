"""Indexes of places find what comparing every geometry finds."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from forklake.data.parquet.geometry import Geometry
from forklake.errors import InvalidData, InvalidIndex, InvalidQuery, MissingDependency, UnreadableIndex
from forklake.index.kind import Segment
from forklake.index.registry import kind_of
from forklake.index.rstar.boxes import outwards
from forklake.index.rstar.kind import Rstar
from forklake.lazy import LazyModule
from forklake.model.index import IndexSpec, Support
from forklake.model.sql.predicate_tree import Opaque
from tests.unit.index.indexing import everything, only, part, places, segment
from tests.unit.index.segments import column

KEY = column(3, "shape", "GEOMETRY")
SPEC = IndexSpec("rstar", (KEY,), (), {"row_group_rows": 5})
# Of a wide range, and often alike.
NUMBERS = st.one_of(
    st.integers(-4, 4).map(float), st.floats(-180, 180), st.floats(-1e30, 1e30).map(np.float32).map(float)
)
POINTS = st.tuples(NUMBERS, NUMBERS)


def box(corners: tuple[tuple[float, float], tuple[float, float]]) -> Any:
    (a, b), (c, d) = corners
    return shapely.box(min(a, c), min(b, d), max(a, c), max(b, d))


SHAPES = st.one_of(
    POINTS.map(shapely.Point),
    POINTS.map(shapely.Point),
    st.tuples(POINTS, POINTS).filter(lambda ends: ends[0] != ends[1]).map(shapely.LineString),
    st.tuples(POINTS, POINTS).map(box).filter(lambda shape: shape.is_valid),
    st.just(shapely.Point()),
    st.none(),
)
Rows = list[Any]


def table(rows: Rows) -> pa.Table:
    wkb = pa.array([None if row is None else shapely.to_wkb(row) for row in rows], pa.binary())
    return pa.table({"3": pa.ExtensionArray.from_storage(Geometry(), wkb)})


def built(folder: Path, name: str, files: dict[int, pa.Table]) -> Segment:
    facts = Rstar().build(SPEC, [part(ordinal, rows) for ordinal, rows in files.items()], folder / name)
    return segment(folder / name, facts)


def expected(
    rows: dict[tuple[int, int, int], Any], relation: str, shape: Any
) -> list[tuple[float, tuple[int, int, int]]]:
    """All rows that there are with their distances, in order."""
    known = {place: row for place, row in rows.items() if row is not None and not row.is_empty}
    if relation == "near":
        found = [(shapely.distance(row, shape), place) for place, row in known.items()]
    else:
        test = {"intersects": shapely.intersects, "within": shapely.within, "contains": shapely.contains}[
            relation
        ]
        found = [(0.0, place) for place, row in known.items() if test(row, shape)]
    return sorted(found)


@settings(max_examples=80)
@given(st.data())
def test_searches_find_what_comparing_everything_finds(data: st.DataObject) -> None:
    files = [data.draw(st.lists(SHAPES, max_size=12)) for _ in range(4)]
    *stored, loose = files
    shape = data.draw(SHAPES.filter(lambda shape: shape is not None and not shape.is_empty))
    relation = data.draw(st.sampled_from(("near", "near", "intersects", "within", "contains")))
    k = data.draw(st.integers(1, 8))
    with TemporaryDirectory() as name:
        folder = Path(name)
        segments = [
            built(folder, "one", {0: table(stored[0]), 1: table(stored[1])}),
            built(folder, "two", {4: table(stored[2])}),
        ]
        merged = segment(folder / "m", Rstar().merge(SPEC, segments, [{1: 0}, {4: 1}], folder / "m"))
        given = table(loose).append_column("position", pa.array(range(100, 100 + len(loose)), pa.int64()))
        outside = {(-1, 0, 100 + at): row for at, row in enumerate(loose)}
        for used, homes in (
            (segments, {(0, 0): 0, (0, 1): 1, (1, 4): 2}),
            ([merged], {(0, 0): 1, (0, 1): 2}),
        ):
            rows = outside | {
                (*home, at): row for home, number in homes.items() for at, row in enumerate(stored[number])
            }
            alive = {place for place in rows if data.draw(st.booleans())}
            best = expected({place: rows[place] for place in alive}, relation, shape)
            query = {relation: shape}
            hits = Rstar().search(SPEC, used, given, query, k, only(alive), {})
            assert places(hits.table) == [place for _, place in best[:k]]
            assert hits.table.column("score").to_pylist() == [-distance for distance, _ in best[:k]]
            assert hits.is_all == (len(best) <= k)


def test_queries_are_written_in_many_ways(tmp_path: Path) -> None:
    rows = [shapely.Point(at, 0) for at in range(10)]
    one = built(tmp_path, "one", {0: table(rows)})

    def found(query: object) -> list[int]:
        hits = Rstar().search(SPEC, [one], None, query, 3, everything, {})
        return [position for _, _, position in places(hits.table)]

    for near in [
        (4.2, 0),
        [4.2, 0],
        "POINT (4.2 0)",
        "near POINT(4.2 0)",
        shapely.to_wkb(shapely.Point(4.2, 0)),
    ]:
        assert found(near) == [4, 5, 3]
        assert found({"near": near}) == [4, 5, 3]
    for within in [{"within": (2.5, -1, 4.5, 1)}, "WITHIN: POLYGON ((2.5 -1, 4.5 -1, 4.5 1, 2.5 1, 2.5 -1))"]:
        assert found(within) == [3, 4]
    for query, told in [
        ("POINT (4 ", "'POINT \\(4 ', from character 1, cannot be read"),
        ("within POINT (", "from character 8, cannot be read"),
        (b"\x01", "cannot be read"),
        (7, "is \\(x, y\\), WKT"),
        ((1, 2, 3), "not '\\(1, 2, 3\\)'"),
        ((1, 2, 0, 3), "a box"),
        (("a", "b"), "not .*'a', 'b'"),
        ({"touches": (1, 2)}, "one of near, intersects, within, contains, not touches"),
        ({}, "not nothing"),
        ("POINT EMPTY", "not empty"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", r"not valid: Self-intersection\[0.5 0.5\]"),
    ]:
        with pytest.raises(InvalidQuery, match=told):
            found(query)
    with pytest.raises(InvalidQuery, match="no parameters: leave out nprobe"):
        Rstar().search(SPEC, [one], None, (1, 2), 3, everything, {"nprobe": 1})


def test_bytes_that_are_no_geometry_are_told_when_somebody_searches(tmp_path: Path) -> None:
    rows = table([shapely.Point(0, 0), shapely.Point(1, 1)]).column("3").combine_chunks().storage.to_pylist()
    torn = pa.table({"3": pa.array([*rows, b"no geometry"], pa.binary())})
    spec = IndexSpec("rstar", (column(3, "shape", "BLOB"),), (), {"row_group_rows": 5})
    one = segment(tmp_path / "one", Rstar().build(spec, [part(0, torn)], tmp_path / "one"))
    assert one.file.facts.entry_count == 3
    assert one.file.facts.summary is None
    for query in ((0, 0), {"intersects": (50, 50, 60, 60)}):
        with pytest.raises(InvalidData, match="row 2 of a data file holds bytes that are no geometry"):
            Rstar().search(spec, [one], None, query, 2, everything, {})
    hits = Rstar().search(spec, [one], None, (0, 0), 2, only({(0, 0, 0), (0, 0, 1)}), {})
    assert [position for _, _, position in places(hits.table)] == [0, 1]


def test_a_search_reads_only_what_is_near(tmp_path: Path) -> None:
    x, y = np.random.default_rng(1).random((2, 20_000))
    wide = IndexSpec("rstar", (KEY,), (), {"row_group_rows": 64})
    rows = table(list(shapely.points(x, y)))
    one = segment(tmp_path / "one", Rstar().build(wide, [part(0, rows, 5_000)], tmp_path / "one"))
    asked: list[int] = []

    def alive(number: int, ordinal: int, positions: pa.Array) -> pa.Array:
        asked.append(len(positions))
        return everything(number, ordinal, positions)

    hits = Rstar().search(wide, [one], None, (0.5, 0.5), 10, alive, {})
    far = np.hypot(x - 0.5, y - 0.5)
    assert [position for _, _, position in places(hits.table)] == np.argsort(far)[:10].tolist()
    assert sum(asked) < 64 * 12


def test_boxes_in_32_bits_hold_those_in_64() -> None:
    numbers = np.random.default_rng(2).normal(size=(1_000, 4)) * 10.0 ** np.arange(-20, 20, 0.04)[:, None]
    boxes = np.hstack([numbers[:, :2], numbers[:, :2] + np.abs(numbers[:, 2:])])
    wide = outwards(np.vstack([boxes, [[-1e300, -1.0, 1.0, 1e300]]])).astype(np.float64)
    exact = np.vstack([boxes, [[-1e300, -1.0, 1.0, 1e300]]])
    assert (wide[:, :2] <= exact[:, :2]).all()
    assert (wide[:, 2:] >= exact[:, 2:]).all()
    assert (np.abs(wide[:-1] - boxes) <= np.abs(boxes) * 2e-7).all()


def test_what_an_index_of_places_cannot_be_is_refused(tmp_path: Path) -> None:
    kind = kind_of("rstar")
    assert kind.check(IndexSpec("rstar", (KEY,))) == {"row_group_rows": 8_192}
    assert kind.supports(SPEC, Opaque()) is Support.NO
    for spec, told in [
        (IndexSpec("rstar", ()), "one column, not 0"),
        (IndexSpec("rstar", (column(1, "a", "INTEGER"),)), '"a" is INTEGER'),
        (IndexSpec("rstar", (KEY,), (column(1, "a", "INTEGER"),)), "leave out include"),
        (IndexSpec("rstar", (KEY,), (), {"rows": 5}), "no parameter"),
        (IndexSpec("rstar", (KEY,), (), {"row_group_rows": 5}), "from 64"),
    ]:
        with pytest.raises(InvalidIndex, match=told):
            kind.check(spec)
    with pytest.raises(InvalidIndex, match="no conditions"):
        kind.filter(SPEC, [], Opaque())
    one = built(tmp_path, "one", {0: table([shapely.Point(0, 0)])})
    one.file.path.write_bytes(one.file.path.read_bytes()[:-9])
    with pytest.raises(UnreadableIndex):
        kind.search(SPEC, [one], None, (0, 0), 1, everything, {})


def test_nothing_at_all_is_a_segment_too(tmp_path: Path) -> None:
    empty = built(tmp_path, "empty", {0: table([None, shapely.Point()])})
    assert empty.file.facts.entry_count == 0
    both = [empty, built(tmp_path, "one", {0: table([shapely.Point(1, 1)])})]
    merged = segment(tmp_path / "m", Rstar().merge(SPEC, both, [{0: 0}, {}], tmp_path / "m"))
    hits = Rstar().search(SPEC, [merged, empty], None, (0, 0), 1, everything, {})
    assert (hits.table.num_rows, hits.is_all) == (0, True)


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)
    monkeypatch.setattr("forklake.index.rstar.boxes.shapely", LazyModule("shapely"))
    with pytest.raises(MissingDependency, match=r"pip install .*\[spatial\]"):
        Rstar().check(IndexSpec("rstar", (KEY,)))
