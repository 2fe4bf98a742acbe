"""Centroids that the segments of an index share: trained from a sample, with the recall that was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from forklake.errors import InvalidIndex
from forklake.index.archive import Format, open_archive, torn, write_archive
from forklake.index.kind import SegmentFile
from forklake.index.ranking import Numbers
from forklake.index.recent import Recent
from forklake.index.vector.definition import Shape, faiss_metric
from forklake.lazy.faiss import faiss
from forklake.lazy.numpy import np
from forklake.model.index import SegmentSummary

FORMAT = Format("vector-model", 1)

_SMALL = 5_000
"""Of fewer vectors, all are looked at."""
_PER_LIST = 39
_SEED = 42
_ROUNDS = 10
_QUERIES = 200
_NEIGHBOURS = 10
_MARGIN = 0.5
"""Of what a recall may miss, this part is kept for other data than the sample."""
_LEAST = 8
"""Queries that are unlike the rows of the sample need more lists than those did."""
_KEPT = 64 << 20

_models: Recent[Model]


@dataclass(frozen=True, slots=True)
class Model:
    """Centroids, and what share of the nearest rows lies in the nearest lists."""

    id: str
    shape: Shape
    centroids: Numbers
    recalls: Numbers
    """By number of lists, less one."""

    @property
    def lists(self) -> int:
        """How many there are."""
        return len(self.centroids)

    def nprobe(self, recall: float) -> int:
        """How many lists to look at for a recall."""
        wanted = recall + (1 - recall) * _MARGIN
        if recall >= 1 or self.recalls[-1] < wanted:
            return self.lists
        return min(self.lists, max(_LEAST, int(np.searchsorted(self.recalls, wanted)) + 1))

    def encode(self, vectors: Numbers) -> tuple[Numbers, Numbers]:
        """The list of each vector, and its bytes: for half precision those of the way from the centroid."""
        if not len(vectors):
            return np.empty(0, np.int64), np.empty((0, code_size(self.shape)), np.uint8)
        nearest = faiss.knn(vectors, self.centroids, 1, metric=faiss.METRIC_L2)[1][:, 0]
        if self.shape.encoding == "single":
            return nearest, vectors.view(np.uint8)
        with np.errstate(over="ignore"):
            half = (vectors - self.centroids[nearest]).astype(np.float16)
        if not np.isfinite(half).all():
            raise InvalidIndex(
                "some vectors have numbers that are too large for half precision: "
                "create the index with encoding='single'"
            )
        return nearest, half.view(np.uint8)

    def decode(self, lists: Numbers, codes: Numbers) -> Numbers:
        """The vectors again, as near as their precision allows."""
        if self.shape.encoding == "single":
            return np.ascontiguousarray(codes).view(np.float32)
        return np.ascontiguousarray(codes).view(np.float16).astype(np.float32) + self.centroids[lists]


def code_size(shape: Shape) -> int:
    """How many bytes a vector takes in lists."""
    return shape.dimension * (2 if shape.encoding == "half" else 4)


def train(shape: Shape, vectors: Numbers, lists: int | None, out: Path) -> SegmentSummary | None:
    """Write a model; None for so few vectors that lists would not pay."""
    if lists is None and len(vectors) < _SMALL:
        return None
    count = min(lists or math.isqrt(len(vectors)), len(vectors) // _PER_LIST)
    if count < 2:
        return None
    means = faiss.Kmeans(shape.dimension, count, niter=_ROUNDS, seed=_SEED, min_points_per_centroid=1)
    means.train(vectors)
    model = Model(uuid4().hex, shape, np.ascontiguousarray(means.centroids, np.float32), np.ones(1))
    # Numbers that do not fit are refused here, before any segment is built.
    model.encode(vectors)
    members = {"centroids": model.centroids.tobytes(), "recalls": _measured(model, vectors).tobytes()}
    manifest = {
        "id": model.id,
        "dimension": shape.dimension,
        "metric": shape.metric,
        "encoding": shape.encoding,
    }
    write_archive(out, FORMAT, {**manifest, "lists": count}, members)
    return SegmentSummary(count, FORMAT.name, FORMAT.version)


def _measured(model: Model, vectors: Numbers) -> Numbers:
    """What share of the nearest ones lies in the nearest list, in the nearest two, and so on."""
    chosen = np.random.default_rng(_SEED).choice(len(vectors), min(_QUERIES, len(vectors)), replace=False)
    queries = vectors[chosen]
    metric = faiss_metric(model.shape.metric)
    found = faiss.knn(queries, vectors, min(_NEIGHBOURS + 1, len(vectors)), metric=metric)[1]
    others = found != chosen[:, None]
    ranked = faiss.knn(queries, model.centroids, model.lists, metric=metric)[1]
    ranks = np.argsort(ranked, axis=1)
    at = model.encode(vectors[found.ravel()])[0].reshape(found.shape)
    looked = np.take_along_axis(ranks, at, axis=1)[others]
    return np.cumsum(np.bincount(looked, minlength=model.lists)) / len(looked)


def read_model(file: SegmentFile, shape: Shape) -> Model:
    """A model, kept in memory for some time."""
    return _models.get((file.key, shape), lambda: _read(file, shape))


def _read(file: SegmentFile, shape: Shape) -> Model:
    archive = open_archive(file, FORMAT)
    manifest = archive.manifest
    try:
        told = Shape(manifest["dimension"], manifest["metric"], manifest["encoding"])
        lists, id = int(manifest["lists"]), str(manifest["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise torn(archive.key, f"its description lacks {error}") from error
    if told != shape or lists < 1:
        raise torn(archive.key, "it is of another index")
    centroids = np.array(archive.array("centroids", "<f4", (lists, shape.dimension)))
    recalls = np.array(archive.array("recalls", "<f8", (lists,)))
    if not np.isfinite(centroids).all():
        raise torn(archive.key, "its centroids are no numbers")
    return Model(id, shape, centroids, recalls)


_models = Recent(_KEPT, lambda model: model.centroids.nbytes)
