"""Vectors: what segments find, against distances to all rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from forklake.errors import InvalidIndex, InvalidQuery, MissingDependency, UnreadableIndex
from forklake.index.archive import Format, write_archive
from forklake.index.kind import Alive, Hits, Segment
from forklake.index.registry import kind_of
from forklake.index.vector import Vector
from forklake.index.vector import search as searching
from forklake.index.vector.model import read_model
from forklake.lazy import LazyModule
from forklake.model.index import IndexSpec, Parameter
from tests.unit.index.indexing import LocalFile, column, everything, only, part, places, segment

KIND = Vector()
Place = tuple[int, int, int]
Matrix = np.ndarray[Any, np.dtype[Any]]


def spec_of(dimension: int, element: str = "float32", **params: Parameter) -> IndexSpec:
    keys = (column(4, "embedding", "list", column(5, "element", element)),)
    found = IndexSpec("vector", keys, (), {"dimension": dimension, **params})
    return replace(found, params=KIND.check(found))


def table(
    vectors: Matrix | Sequence[Sequence[float | None] | None], element: pa.DataType | None = None
) -> pa.Table:
    rows = vectors.tolist() if isinstance(vectors, np.ndarray) else vectors
    return pa.table({"4": pa.array(rows, pa.list_(element or pa.float32()))})


def loose_of(vectors: Matrix) -> pa.Table:
    return table(vectors).append_column("position", pa.array(np.arange(len(vectors)) * 3 + 1))


def built(
    folder: Path, name: str, spec: IndexSpec, parts: dict[int, Matrix], model: LocalFile | None = None
) -> Segment:
    path = folder / name
    facts = KIND.build(spec, [part(o, table(each), 1000) for o, each in parts.items()], path, model)
    return segment(path, facts, model)


def trained(folder: Path, spec: IndexSpec, vectors: Matrix, name: str = "model") -> LocalFile:
    facts = KIND.train(spec, table(vectors).to_batches(max_chunksize=999), folder / name)
    assert facts is not None
    return LocalFile(folder / name, facts)


def search(
    spec: IndexSpec,
    segments: Sequence[Segment],
    query: object,
    k: int = 10,
    *,
    loose: pa.Table | None = None,
    alive: Alive = everything,
    share: float = 1.0,
    **params: Parameter,
) -> Hits:
    return KIND.search(spec, segments, loose, query, k, alive, params, share)


def exact(metric: str, query: Matrix, vectors: Matrix) -> Matrix:
    query, vectors = query.astype(np.float64), vectors.astype(np.float64)
    match metric:
        case "l2":
            return np.sqrt(((vectors - query) ** 2).sum(1))
        case "ip":
            return -(vectors @ query)
        case _:
            return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)


def clustered(rng: np.random.Generator, count: int, dimension: int, spread: float = 0.4) -> Matrix:
    centers = rng.standard_normal((50, dimension))
    return (centers[rng.integers(0, 50, count)] + spread * rng.standard_normal((count, dimension))).astype(
        "f4"
    )


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.data(),
    st.sampled_from(["l2", "cosine", "ip"]),
    st.sampled_from(["half", "single"]),
    st.integers(0, 99),
)
def test_all_lists_have_what_distances_to_all_rows_have(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, metric: str, encoding: str, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    rng = np.random.default_rng(seed)
    spec = spec_of(6, metric=metric, encoding=encoding)
    spec = replace(spec, params={**spec.params, "lists": 5})
    model = trained(folder, spec, clustered(rng, 300, 6)) if data.draw(st.booleans()) else None
    vectors: dict[Place, Matrix] = {}
    segments: list[Segment] = []
    for number in range(data.draw(st.integers(0, 3))):
        parts = {
            o: clustered(rng, data.draw(st.integers(0, 60)), 6) for o in data.draw(st.sets(st.integers(0, 4)))
        }
        # Segments from before there was a model stay.
        one = model if data.draw(st.booleans()) else None
        segments.append(built(folder, f"{number}", spec, parts, one))
        assert segments[-1].file.facts.entry_count == sum(map(len, parts.values()))
        vectors |= {(number, o, p): row for o, each in parts.items() for p, row in enumerate(each)}
    outside = clustered(rng, data.draw(st.integers(0, 9)), 6)
    loose = loose_of(outside) if len(outside) else None
    vectors |= {(-1, 0, 3 * p + 1): row for p, row in enumerate(outside)}
    query = clustered(rng, 1, 6)[0]
    k = data.draw(st.integers(1, 30))
    kept = {place for place in vectors if rng.random() < data.draw(st.sampled_from([0.05, 0.5, 1.0]))}
    share = data.draw(st.sampled_from([1.0, 0.3, 0.001]))

    def is_right(found: Hits, vectors: dict[Place, Matrix], count: int) -> None:
        far = dict(
            zip(vectors, exact(metric, query, np.array(list(vectors.values())).reshape(-1, 6)), strict=True)
        )
        hits = list(zip(places(found.table), found.table.column("score").to_pylist(), strict=True))
        assert len({place for place, _ in hits}) == len(hits) == min(count, len(vectors))
        assert all(score == pytest.approx(-far[place], abs=0.02) for place, score in hits)
        assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
        nearest = sorted(far.values())[: len(hits)]
        assert np.allclose(sorted(far[place] for place, _ in hits), nearest, atol=0.02)
        assert found.is_all <= (len(vectors) <= count)

    is_right(search(spec, segments, query, k, loose=loose, recall=1), vectors, k)
    living = {place: row for place, row in vectors.items() if place in kept}
    is_right(
        search(spec, segments, query, k, loose=loose, alive=only(kept), share=share, recall=1), living, k
    )
    everyone = search(spec, segments, query, len(vectors) + 1, loose=loose, nprobe=5)
    assert set(places(everyone.table)) == set(vectors)
    assert everyone.is_all
    first = search(spec, segments, query, k, loose=loose, nprobe=5)
    assert first.table == everyone.table.slice(0, k)

    # Merged: the same rows, but for ordinals that are left out.
    becomes = [{o: 10 * n + o for o in range(5) if data.draw(st.booleans())} for n in range(len(segments))]
    facts = KIND.merge(spec, segments, becomes, folder / "merged")
    shared = next((each.model for each in segments if each.model), None)
    moved = {(0, becomes[n][o], p): row for (n, o, p), row in vectors.items() if n >= 0 and o in becomes[n]}
    assert facts.entry_count == len(moved)
    is_right(search(spec, [segment(folder / "merged", facts, shared)], query, k, recall=1), moved, k)


@pytest.mark.parametrize(
    ("metric", "spread", "least", "most"),
    # Without clusters, the nearest rows lie in many lists, and the sample tells so.
    [("l2", 0.4, 8, 8), ("cosine", 0.4, 8, 8), ("ip", 0.4, 8, 8), ("l2", 5.0, 9, 88)],
)
def test_the_recall_that_was_asked_for_is_reached(
    tmp_path: Path, metric: str, spread: float, least: int, most: int
) -> None:
    rng = np.random.default_rng(7)
    # Queries are like the rows, and none of them: a recall is promised for such.
    everything_drawn = clustered(rng, 12_030, 24, spread)
    vectors, queries = everything_drawn[:12_000], everything_drawn[12_000:]
    spec = spec_of(24, metric=metric)
    model = trained(tmp_path, spec, vectors[:8_000])
    halves = {0: vectors[:5_000], 3: vectors[5_000:]}
    segments = [built(tmp_path, "one", spec, halves, model)]
    nprobe = read_model(model, searching.Shape.of(spec)).nprobe(0.95)
    assert least <= nprobe <= most
    rows = [(0, 0, p) for p in range(5_000)] + [(0, 3, p) for p in range(7_000)]
    kept = {place for place in rows if rng.random() < 0.1}
    few = {place for place in kept if rng.random() < 0.1}

    def recall(counted: set[Place], told: float = 1.0) -> float:
        mask = np.array([place in counted for place in rows])

        def alive(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
            assert segment == 0
            return pa.array(mask[positions.to_numpy() + (5_000 if ordinal else 0)])

        shares: list[float] = []
        for query in queries:
            far = np.where(mask, exact(metric, query, vectors), np.inf)
            best = {rows[row] for row in np.argsort(far)[:10]}
            found = places(search(spec, segments, query, alive=alive, share=told).table)
            assert len(found) == 10
            shares.append(len(best & set(found)) / 10)
        return float(np.mean(shares))

    assert recall(set(rows)) >= 0.95
    assert recall(kept, 0.1) >= 0.95
    # Of a hundredth, all lists are looked at, whether that was told before or not.
    assert recall(few, 0.01) >= 0.99
    assert recall(few) >= 0.95
    # Of other queries nothing is promised but for all lists.
    for query in clustered(rng, 20, 24):
        best = set(np.argsort(exact(metric, query, vectors))[:10])
        hits = places(search(spec, segments, query, recall=1).table)
        assert len(best & {rows.index(place) for place in hits}) >= 9
    with pytest.raises(InvalidQuery, match="give one of them"):
        search(spec, segments, queries[0], nprobe=3, recall=0.5)
    with pytest.raises(InvalidQuery, match="how many lists are looked at, not '0'"):
        search(spec, segments, queries[0], nprobe=0)
    expected = [places(search(spec, segments, query).table) for query in queries]
    searching.forget()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: places(search(spec, segments, query).table), queries))
    assert found == expected


def test_rows_without_a_distance_have_no_entry(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    rows = [
        [1.0, 2],
        None,
        [1, 2, 3],
        [],
        [nan, 1],
        [1, inf],
        [1, None],
        [0, 0],
        [3e19, 3e19],
        [1e300, 1],
        [5, 6],
    ]
    for metric, found in [("l2", [0, 7, 10]), ("ip", [10, 0, 7]), ("cosine", [10, 0])]:
        for element in (pa.float32(), pa.float64()):
            spec = spec_of(2, "float64", metric=metric)
            given = [
                part(0, table(rows, pa.float64()).cast(pa.schema({"4": pa.list_(element)}), safe=False), 2)
            ]
            facts = KIND.build(spec, given, tmp_path / "one")
            assert facts.entry_count == len(found)
            assert facts.summary == f'{{"model": null, "skipped": {11 - len(found)}}}'
            searching.forget()
            hits = search(spec, [segment(tmp_path / "one", facts)], [1, 1])
            assert [position for _, _, position in places(hits.table)] == found
            loose = table(rows, pa.float64()).append_column("position", pa.array(range(11), pa.int64()))
            assert [p for _, _, p in places(search(spec, [], [1, 1], loose=loose).table)] == found
    fixed = pa.table({"4": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2))})
    facts = KIND.build(spec_of(2), [part(0, fixed.slice(1), 1)], tmp_path / "fixed")
    assert places(search(spec_of(2), [segment(tmp_path / "fixed", facts)], [0, 0]).table) == [(0, 0, 1)]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ([1, 2], "has 2 numbers, and those of the index 3"),
        ([1, float("nan"), 2], "number 2 of the vector is nan"),
        ([1, 2, 1e300], "number 3 of the vector is inf"),
        ([1e19, 1e19, 1e19], "too large"),
        ([0, 0, 0], "no direction"),
        ("[1, 2, 3]", "a list of numbers"),
        (["a", "b", "c"], "a list of numbers"),
        ([[1, 2, 3]], "a list of numbers"),
        (None, "a list of numbers"),
        (7, "a list of numbers"),
        ([1, None, 3], "number 2 of the vector is nan"),
        (pa.scalar([1.0, 2.0]), "has 2 numbers"),
    ],
)
def test_a_query_without_distances_is_refused(query: object, why: str) -> None:
    with pytest.raises(InvalidQuery, match=why):
        search(spec_of(3, metric="cosine"), [], query)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"dimension": None}, "dimension=768"),
        ({"dimension": 0}, "how many numbers"),
        ({"metric": "manhattan"}, "one of l2, cosine, ip"),
        ({"recall": 0}, "above 0 and up to 1"),
        ({"lists": 1}, "how many lists"),
        ({"encoding": "int8"}, "one of half, single"),
        ({"metrics": "l2"}, 'did you mean "metric"'),
    ],
)
def test_parameters_that_cannot_be_are_refused(params: dict[str, Parameter], why: str) -> None:
    with pytest.raises(InvalidIndex, match=why):
        spec_of(**{"dimension": 3, **params})  # type: ignore[arg-type]


def test_one_column_of_vectors_is_indexed() -> None:
    vectors = column(4, "v", "list", column(5, "element", "float32"))
    params = {"dimension": 3}
    for spec, why in [
        (IndexSpec("vector", (vectors, vectors), (), params), "of one column, not 2"),
        (IndexSpec("vector", (column(4, "n", "float32"),), (), params), r'FLOAT\[\] or DOUBLE\[\], and "n"'),
        (IndexSpec("vector", (vectors,), (vectors,), params), "leave out include"),
    ]:
        with pytest.raises(InvalidIndex, match=why):
            KIND.check(spec)
    assert KIND.measures(spec_of(3)) == "distance"
    assert type(kind_of("vector")) is Vector


def test_numbers_that_half_precision_does_not_hold_are_refused_or_kept_in_single(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    vectors = (clustered(rng, 400, 4) * 1e6).astype("f4")
    with pytest.raises(InvalidIndex, match="create the index with encoding='single'"):
        trained(tmp_path, spec_of(4, lists=4), vectors)
    spec = spec_of(4, lists=4, encoding="single")
    found = built(tmp_path, "one", spec, {0: vectors}, trained(tmp_path, spec, vectors))
    far = exact("l2", vectors[5], vectors)
    hits = search(spec, [found], vectors[5], recall=1).table
    assert [position for _, _, position in places(hits)] == np.argsort(far)[:10].tolist()
    assert -np.array(hits.column("score").to_pylist()) == pytest.approx(np.sort(far)[:10], rel=1e-5, abs=1)


def test_of_few_rows_no_model_is_trained(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    assert KIND.train(spec_of(4), table(clustered(rng, 4_999, 4)).to_batches(), tmp_path / "model") is None
    assert KIND.train(spec_of(4), [], tmp_path / "model") is None
    assert (
        KIND.train(spec_of(4, lists=9), table(clustered(rng, 70, 4)).to_batches(), tmp_path / "model") is None
    )
    assert not (tmp_path / "model").exists()


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def newer(path: Path) -> None:
    write_archive(path, Format("vector", 2), {}, {})


def without_description(path: Path) -> None:
    write_archive(path, Format("vector", 1), {}, {})


def lists_of_other_sizes(path: Path) -> None:
    members = {"sizes": b"\1" + bytes(7), "codes": b"", "ordinals": b"", "positions": b""}
    told = {"dimension": 4, "metric": "l2", "model": None, "count": 0, "lists": 1}
    write_archive(path, Format("vector", 1), told, members)


def another_metric(path: Path) -> None:
    members = {"sizes": bytes(8), "codes": b"", "ordinals": b"", "positions": b""}
    told = {"dimension": 4, "metric": "ip", "model": None, "count": 0, "lists": 1}
    write_archive(path, Format("vector", 1), told, members)


@pytest.mark.parametrize("damage", [torn, newer, without_description, lists_of_other_sizes, another_metric])
def test_a_damaged_segment_is_told(tmp_path: Path, damage: object) -> None:
    spec = spec_of(4)
    found = built(tmp_path, "one", spec, {0: clustered(np.random.default_rng(1), 300, 4)})
    assert callable(damage)
    damage(tmp_path / "one")
    with pytest.raises(UnreadableIndex, match="one"):
        search(spec, [found], [1, 2, 3, 4])


def test_a_segment_is_read_with_the_model_that_it_was_built_with(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    spec = spec_of(4, lists=4)
    vectors = clustered(rng, 300, 4)
    models = [trained(tmp_path, spec, vectors, name) for name in ("first", "second")]
    found = built(tmp_path, "one", spec, {0: vectors}, models[0])
    for other in (models[1], None):
        with pytest.raises(UnreadableIndex, match="was made with another model"):
            search(spec, [replace(found, model=other)], [1, 2, 3, 4])
    # Merged with a segment of another model, all vectors come into the lists of the first one.
    second = built(tmp_path, "two", spec, {0: vectors}, models[1])
    facts = KIND.merge(spec, [found, second], [{0: 0}, {0: 1}], tmp_path / "merged")
    merged = segment(tmp_path / "merged", facts, models[0])
    hits = search(spec, [merged], vectors[7], 2, recall=1).table
    assert sorted(places(hits)) == [(0, 0, 7), (0, 1, 7)]


def test_without_its_library_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(3)
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("forklake.index.vector.definition.faiss", LazyModule("faiss"))
    with pytest.raises(MissingDependency, match=r"faiss, .* not installed: run pip install .*\[vector\]"):
        KIND.check(spec)
    with pytest.raises(MissingDependency, match="faiss"):
        search(spec, [], [1, 2, 3])
