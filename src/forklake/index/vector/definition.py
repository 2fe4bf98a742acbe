"""What an index of vectors is told, and vectors of Arrow as a matrix that distances are taken of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from forklake.errors import InvalidIndex, InvalidQuery
from forklake.extras import missing
from forklake.index.parameters import Known, number, one_of, optional, whole
from forklake.index.ranking import Numbers
from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.faiss import faiss
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Parameter, Parameters
from forklake.model.types.arrow import one_array
from forklake.model.types.data_types import List, Scalar

Metric = Literal["l2", "cosine", "ip"]
Encoding = Literal["half", "single"]

_METRICS = ("l2", "cosine", "ip")
_ENCODINGS = ("half", "single")
_LONGEST = 65_536
# A square of a distance between two such vectors is still a number in single precision.
_LARGEST_SQUARE = 8e37

_RECALL = "the share of the nearest rows that a search finds, above 0 and up to 1"

_OF_INDEX = Known(
    "vector",
    {
        "dimension": (None, "how many numbers a vector has", whole(1, _LONGEST)),
        "metric": ("l2", f"one of {', '.join(_METRICS)}", one_of(_METRICS)),
        "recall": (0.95, _RECALL, number(0, 1)),
        "lists": (None, "how many lists there are, or None", optional(whole(2, 1_000_000))),
        "encoding": ("half", f"the precision of numbers: one of {', '.join(_ENCODINGS)}", one_of(_ENCODINGS)),
    },
)
_OF_SEARCH = Known(
    "a search for vectors",
    {
        "nprobe": (None, "how many lists are looked at", optional(whole(1, 1_000_000))),
        "recall": (None, _RECALL, optional(number(0, 1))),
    },
    InvalidQuery,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What all vectors of an index have in common."""

    dimension: int
    metric: Metric
    encoding: Encoding = "half"

    @classmethod
    def of(cls, spec: IndexSpec) -> Shape:
        """That of a checked definition."""
        params = spec.params
        dimension = cast("int", params["dimension"])
        return cls(dimension, cast("Metric", params["metric"]), cast("Encoding", params["encoding"]))


def require_faiss() -> None:
    """Raise `MissingDependency` without faiss."""
    try:
        _ = faiss.__version__
    except ModuleNotFoundError:
        raise missing("indexes of vectors need faiss, which is not installed", "vector") from None


def checked(spec: IndexSpec) -> dict[str, Parameter]:
    """The parameters, completed; `InvalidIndex` for what cannot be."""
    if spec.include:
        raise InvalidIndex("an index of vectors holds no included columns: leave out include")
    if len(spec.keys) != 1:
        raise InvalidIndex(f"an index of vectors is of one column, not {len(spec.keys)}")
    column = spec.keys[0]
    if column.data_type not in (List(Scalar("float32")), List(Scalar("float64"))):
        raise InvalidIndex(f'an index of vectors is of FLOAT[] or DOUBLE[], and "{column.name}" is neither')
    if spec.params.get("dimension") is None:
        raise InvalidIndex("an index of vectors is told how many numbers a vector has: dimension=768")
    return _OF_INDEX.complete(spec.params)


def of_search(given: Parameters) -> dict[str, Parameter]:
    """What a search is told; `InvalidQuery` for what cannot be."""
    found = _OF_SEARCH.complete(given)
    if found["nprobe"] is not None and found["recall"] is not None:
        raise InvalidQuery("nprobe and recall both say how many lists are looked at: give one of them")
    return found


def matrix(column: pa.Array | pa.ChunkedArray, shape: Shape) -> tuple[Numbers, Numbers]:
    """Vectors that have distances, ready for the metric, and the numbers of their rows.

    Left out are NULL, other lengths, NULL, NaN and infinity inside, numbers too large for single precision,
    and for cosines the vector of zeros, which has no direction.
    """
    array: Any = one_array(column)
    lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(lengths == shape.dimension)
    values = pc.list_flatten(array.take(pa.array(rows)))
    if not kind.is_float32(values.type):
        values = values.cast(pa.float32(), safe=False)
    found = values.to_numpy(zero_copy_only=False).reshape(len(rows), shape.dimension)
    good, vectors = prepared(found, shape)
    return vectors, rows[good]


def prepared(vectors: Numbers, shape: Shape) -> tuple[Numbers, Numbers]:
    """Which of some vectors have distances, and those, of length one if only directions matter."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    good = (squares < _LARGEST_SQUARE) & ((squares > 0) | (shape.metric != "cosine"))
    kept = vectors if good.all() else vectors[good]
    if shape.metric == "cosine":
        kept = kept / np.sqrt(squares[good])[:, None]
    return good, np.ascontiguousarray(kept, np.float32)


def query_vector(query: object, shape: Shape) -> Numbers:
    """What is searched for, as a matrix of one row."""
    # A value of Arrow, such as one that was read from the table.
    given: Any = query
    if isinstance(query, pa.Scalar):
        scalar: Any = query
        given = scalar.as_py()
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise InvalidQuery("a query of an index of vectors is a list of numbers") from None
    if vector.ndim != 1 or isinstance(query, str | bytes):
        raise InvalidQuery("a query of an index of vectors is a list of numbers")
    if len(vector) != shape.dimension:
        raise InvalidQuery(f"the vector has {len(vector)} numbers, and those of the index {shape.dimension}")
    wrong = np.flatnonzero(~np.isfinite(vector))
    if len(wrong):
        raise InvalidQuery(f"number {wrong[0] + 1} of the vector is {vector[wrong[0]]}: it has no distance")
    good, found = prepared(vector[None, :], shape)
    if not good[0]:
        raise InvalidQuery("the vector is too large, or has no direction, so it has no distance")
    return found


def distances(query: Numbers, vectors: Numbers, metric: Metric) -> Numbers:
    """Those of some vectors, exactly."""
    if metric == "ip":
        return -(vectors @ query[0]).astype(np.float64)
    difference = vectors - query
    return shown(np.einsum("ij,ij->i", difference, difference, dtype=np.float64), metric)


def shown(found: Numbers, metric: Metric) -> Numbers:
    """Distances of what faiss finds: squares, of directions for cosines, or inner products."""
    values = found.astype(np.float64)
    if metric == "ip":
        return -values
    values = np.maximum(values, 0)
    return np.sqrt(values) if metric == "l2" else values / 2


def faiss_metric(metric: Metric) -> int:
    """What faiss compares by."""
    return faiss.METRIC_INNER_PRODUCT if metric == "ip" else faiss.METRIC_L2
