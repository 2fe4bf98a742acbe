"""Searching segments of vectors: lists by faiss, loose rows one by one, and only rows that count."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forklake.index.kind import Alive, Hits, Segment
from forklake.index.ranking import Numbers, hits, living, no_hits
from forklake.index.recent import Recent
from forklake.index.vector.definition import Shape, distances, faiss_metric, matrix, shown
from forklake.index.vector.segments import Stored, stored
from forklake.lazy.arrow import pa
from forklake.lazy.faiss import faiss
from forklake.lazy.numpy import np

_KEPT = 2 << 30
_FEW = 0.02
"""Where a smaller share of the rows counts, all lists are looked at, and only those rows."""
_SPARE = 1.2
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Effort:
    """How many lists to look at: so many, or as many as a recall takes."""

    nprobe: int | None
    recall: float


@dataclass(frozen=True, slots=True)
class Loaded:
    """A segment in memory."""

    data: Stored
    index: Any
    """That of faiss, of a segment with a model."""
    quantizer: Any
    """It must live as long as the index."""

    @property
    def weight(self) -> int:
        """How many bytes of memory it takes."""
        # faiss keeps a copy of the bytes, and a number of eight bytes for each vector.
        return self.data.codes.nbytes + self.data.count * 20

    def nearest(
        self, query: Numbers, fetch: int, nprobe: int, mask: Numbers | None, shape: Shape
    ) -> tuple[Numbers, Numbers]:
        """Distances and entries of the nearest ones."""
        if self.index is None:
            return self._nearest_of_all(query, fetch, mask, shape)
        chosen = {}
        if mask is not None:
            chosen["sel"] = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        params = faiss.SearchParametersIVF(nprobe=nprobe, **chosen)
        found, entries = self.index.search(query, min(fetch, self.data.count), params=params)
        real = entries[0] >= 0
        return shown(found[0][real], shape.metric), entries[0][real]

    def _nearest_of_all(
        self, query: Numbers, fetch: int, mask: Numbers | None, shape: Shape
    ) -> tuple[Numbers, Numbers]:
        vectors = self.data.codes.view(np.float32)
        entries = np.arange(self.data.count) if mask is None else np.flatnonzero(mask)
        if mask is not None:
            vectors = np.ascontiguousarray(vectors[entries])
        if not len(entries):
            return np.empty(0), entries
        metric = faiss_metric(shape.metric)
        found, places = faiss.knn(query, vectors, min(fetch, len(entries)), metric=metric)
        return shown(found[0], shape.metric), entries[places[0]]


_loaded: Recent[Loaded] = Recent(_KEPT, lambda each: each.weight)


def forget() -> None:
    """Let go of all segments in memory."""
    _loaded.clear()


def search(
    shape: Shape,
    segments: Sequence[Segment],
    loose: tuple[pa.Array | pa.ChunkedArray, Numbers] | None,
    query: Numbers,
    k: int,
    alive: Alive,
    effort: Effort,
    share: float,
) -> Hits:
    """The nearest rows that count."""
    found = [(n, _get(segment, shape)) for n, segment in enumerate(segments)]
    found = [(n, each) for n, each in found if each.data.count]
    outside = _none() if loose is None else _outside(*loose, query, shape, alive)
    with _one_thread():
        inside, is_all = _inside(found, query, k, alive, effort, share, shape)
    far, segment, ordinal, position = (np.concatenate(each) for each in zip(outside, inside, strict=True))
    if not len(far):
        return no_hits()
    # Of equal distances, those of the first segment come first.
    order = np.lexsort((position, ordinal, segment, far))
    best = order[:k]
    return hits(segment[best], ordinal[best], position[best], -far[best], is_all=is_all and len(order) <= k)


_Rows = tuple[Numbers, Numbers, Numbers, Numbers]
"""Distances, segments, ordinals and positions."""


def _none() -> _Rows:
    return np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)


def _outside(
    column: pa.Array | pa.ChunkedArray, positions: Numbers, query: Numbers, shape: Shape, alive: Alive
) -> _Rows:
    vectors, rows = matrix(column, shape)
    segment, ordinal, position = np.full(len(rows), -1), np.zeros(len(rows), np.int64), positions[rows]
    good = living(alive, segment, ordinal, position)
    far = distances(query, vectors, shape.metric)
    return far[good], segment[good], ordinal[good], position[good]


def _inside(
    found: Sequence[tuple[int, Loaded]],
    query: Numbers,
    k: int,
    alive: Alive,
    effort: Effort,
    share: float,
    shape: Shape,
) -> tuple[_Rows, bool]:
    """The `k` nearest ones that count, all that are as near as the last of them, and whether that is all.

    More and more are asked for until no segment can have a nearer one in the lists that are looked at, and
    more lists are looked at until there are enough.
    """
    if not found:
        return _none(), True
    total = sum(each.data.count for _, each in found)
    most = max(each.data.model.lists if each.data.model else 1 for _, each in found)
    masks: dict[int, Numbers] | None = None
    widening = 1 / max(share, 1e-9)
    fetch = min(total, math.ceil(k * min(widening, total) * _SPARE) + k + 16)
    if share < _FEW:
        masks, fetch = _masks(found, alive), 2 * k + 16
    while True:
        far: list[_Rows] = []
        ends: list[float] = []
        for n, each in found:
            mask = None if masks is None else masks[n]
            nprobe = _nprobe(each, effort, widening if masks is None else math.inf)
            near, entries = each.nearest(query, fetch, nprobe, mask, shape)
            if len(near) >= fetch and fetch < each.data.count:
                ends.append(float(near[-1]))
            segment, ordinal = np.full(len(entries), n), each.data.ordinals[entries]
            position = each.data.positions[entries]
            good = slice(None) if masks is not None else living(alive, segment, ordinal, position)
            far.append((near[good], segment[good], ordinal[good], position[good]))
        taken = tuple(np.concatenate(each) for each in zip(*far, strict=True))
        count = len(taken[0])
        last = float(np.partition(taken[0], k - 1)[k - 1]) if count >= k else math.inf
        looked = masks is not None or all(
            _nprobe(each, effort, widening) >= (each.data.model.lists if each.data.model else 1)
            for _, each in found
        )
        if any(end <= last for end in ends):
            fetch *= _GROWTH
            if masks is None and fetch * 8 > total:
                # Few of them count, more than what was told.
                masks, fetch = _masks(found, alive), 2 * k + 16
        elif count < k and not looked:
            widening = min(widening * _GROWTH, float(most) * _GROWTH)
        else:
            return (taken[0], taken[1], taken[2], taken[3]), looked and not ends


def _nprobe(each: Loaded, effort: Effort, widening: float) -> int:
    model = each.data.model
    if model is None:
        return 1
    least = effort.nprobe or model.nprobe(effort.recall)
    return math.ceil(min(model.lists, least * widening))


def _masks(found: Sequence[tuple[int, Loaded]], alive: Alive) -> dict[int, Numbers]:
    return {
        n: living(alive, np.full(each.data.count, n), each.data.ordinals, each.data.positions)
        for n, each in found
    }


def _get(segment: Segment, shape: Shape) -> Loaded:
    return _loaded.get((segment.file.key, shape), lambda: _load(segment, shape))


def _load(segment: Segment, shape: Shape) -> Loaded:
    data = stored(segment, shape)
    if data.model is None or not data.count:
        return Loaded(data, None, None)
    metric = faiss_metric(shape.metric)
    quantizer = faiss.IndexFlat(shape.dimension, metric)
    quantizer.add(data.model.centroids)
    lists = data.model.lists
    if shape.encoding == "half":
        precision = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexIVFScalarQuantizer(quantizer, shape.dimension, lists, precision, metric, True)
    else:
        index = faiss.IndexIVFFlat(quantizer, shape.dimension, lists, metric)
    index.own_fields = False
    index.is_trained = True
    numbers = np.arange(data.count, dtype=np.int64)
    starts = data.starts
    for number in np.flatnonzero(data.sizes):
        rows = slice(starts[number], starts[number + 1])
        codes = np.ascontiguousarray(data.codes[rows])
        pointers = faiss.swig_ptr(numbers[rows]), faiss.swig_ptr(codes)
        index.invlists.add_entries(int(number), len(codes), *pointers)
    index.ntotal = data.count
    return Loaded(data, index, quantizer)


@contextmanager
def _one_thread() -> Generator[None]:
    """A query is too small for several threads, and others run beside it. What is set is of this thread."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
