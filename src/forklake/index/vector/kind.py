"""The kind of index `vector`: rows by the distance of their vectors.

Vectors lie in lists around centroids, and a search looks at the nearest lists: as many as the recall takes
that the index, or the search, was told. What share of the nearest rows so many lists have was measured when
the centroids were trained, for queries like the rows of the sample: of queries that are unlike them, less is
found, unless the recall is 1, which looks at all lists. Numbers have half precision unless the index says
otherwise, so distances of rows in lists are those of rounded vectors; small segments and loose rows have
exact ones.

Without an entry, and never found: NULL, vectors of another length, with NULL, NaN or infinity inside, or so
large that distances are no numbers, and for `cosine` those of zeros alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from forklake.index.kind import Alive, Hits, Measure, Part, Segment, SegmentFile
from forklake.index.kind_families import SearchKind
from forklake.index.ranking import Numbers
from forklake.index.vector.definition import (
    Shape,
    checked,
    matrix,
    of_search,
    query_vector,
    require_faiss,
)
from forklake.index.vector.model import read_model, train
from forklake.index.vector.search import Effort, search
from forklake.index.vector.segments import Writer, merge
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary


class Vector(SearchKind):
    """Vectors by the metrics `l2`, `cosine` and `ip`, whose distance is the negative inner product."""

    name = "vector"
    maintain: Maintenance = "later"
    no_filter = "an index of vectors answers searches, and no conditions"

    def measures(self, spec: IndexSpec) -> Measure:
        """Lower is better."""
        return "distance"

    def check(self, spec: IndexSpec) -> Parameters:
        """A column of vectors, and how long they are."""
        require_faiss()
        return checked(spec)

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        """Write centroids; None for so few rows that looking at all is faster."""
        require_faiss()
        shape = Shape.of(spec)
        name = str(spec.keys[0].id)
        parts: list[Numbers] = [matrix(batch.column(name), shape)[0] for batch in sample]
        vectors = np.concatenate(parts) if parts else np.empty((0, shape.dimension), np.float32)
        return train(shape, vectors, cast("int | None", spec.params["lists"]), out)

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment; its bytes are on the disk meanwhile, and memory has some twenty for each row."""
        require_faiss()
        shape = Shape.of(spec)
        name = str(spec.keys[0].id)
        skipped = 0
        with Writer(out, shape, None if model is None else read_model(model, shape)) as writer:
            for part in parts:
                first = 0
                for batch in part.rows:
                    vectors, rows = matrix(batch.column(name), shape)
                    writer.add_vectors(vectors, np.full(len(rows), part.ordinal), rows + first)
                    first += batch.num_rows
                    skipped += batch.num_rows - len(rows)
            return writer.finish(skipped)

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment. Its model is that of the first segment that was built with one."""
        require_faiss()
        return merge(Shape.of(spec), segments, ordinals, out)

    def search(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        loose: pa.Table | None,
        query: object,
        k: int,
        alive: Alive,
        params: Parameters,
        share: float = 1.0,
    ) -> Hits:
        """The nearest rows. Where few rows count, more lists are looked at, in the end all."""
        require_faiss()
        told = of_search(params)
        shape = Shape.of(spec)
        vector = query_vector(query, shape)
        recall = told["recall"] if told["recall"] is not None else spec.params["recall"]
        effort = Effort(cast("int | None", told["nprobe"]), cast("float", recall))
        outside = None
        if loose is not None:
            positions = loose.column("position").combine_chunks().to_numpy(zero_copy_only=False)
            outside = loose.column(str(spec.keys[0].id)), positions
        return search(shape, segments, outside, vector, k, alive, effort, share)
