"""The kind of index `bm25`: text by its words, the best rows first.

Scores are those of one single index over all rows that segments have, whatever the number of segments, and
over loose rows. Rows that were deleted stay in segments until those are merged without their data file, and
count in the statistics that scores come from, as they do in Lucene; they are never found.

Parts of a segment are known by random numbers that rows carry, and the manifest says which ordinal each
number stands for. So segments merge as tantivy merges them, without a look at any row.
"""

from __future__ import annotations

import math
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from forklake.errors import InvalidIndex, InvalidQuery
from forklake.index.archive import write_archive
from forklake.index.bm25 import segments as stock
from forklake.index.bm25.analysis import TANTIVY, checked, index_format, require_tantivy
from forklake.index.bm25.searchers import FORMAT, Joint, Place, joint, linked
from forklake.index.bm25.syntax import Operator, parse
from forklake.index.bm25.terms import Words
from forklake.index.bm25.unpacked import Unpacked
from forklake.index.kind import Alive, Hits, Measure, Part, Segment, SegmentFile
from forklake.index.kind_families import SearchKind
from forklake.index.parameters import Known, one_of
from forklake.index.ranking import Numbers, hits, living, no_hits
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary
from forklake.model.types.data_types import Scalar

_SPARE = 1.2
"""More is asked for than what should be enough: asking twice takes longer."""

_OF_SEARCH = Known(
    "a search for words",
    {"operator": ("or", "'or' or 'and': what joins words side by side", one_of(("or", "and")))},
    InvalidQuery,
)


class Bm25(SearchKind):
    """Words of one or several text columns, ranked by BM25 with k1 = 1.2 and b = 0.75."""

    name = "bm25"
    maintain: Maintenance = "later"
    no_filter = "an index of words answers searches, and no conditions"

    def measures(self, spec: IndexSpec) -> Measure:
        """Higher is better."""
        return "score"

    def check(self, spec: IndexSpec) -> Parameters:
        """Text columns, and how their text becomes words."""
        require_tantivy()
        if spec.include:
            raise InvalidIndex("an index of words holds no included columns: leave out include")
        for column in spec.keys:
            if column.data_type != Scalar("varchar"):
                raise InvalidIndex(f'an index of words is of VARCHAR columns, and "{column.name}" is none')
        return checked(spec.params)

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        """Nothing is shared."""
        return None

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment; tantivy keeps words in memory up to a limit, and in files beyond."""
        require_tantivy()
        ordinals: dict[int, int] = {}

        def numbered() -> Iterator[tuple[int, Iterable[pa.RecordBatch]]]:
            for part in parts:
                number = secrets.randbits(63)
                ordinals[number] = part.ordinal
                yield number, part.rows

        with tempfile.TemporaryDirectory(prefix=".bm25-", dir=out.parent) as name:
            stock.write_rows(Path(name), spec, numbered())
            return _write(Path(name), spec, ordinals, out)

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment: rows of ordinals that are left out are deleted before."""
        require_tantivy()
        kept: dict[int, int] = {}
        dropped: list[int] = []
        unpacked = Unpacked.from_environment()
        with unpacked.work() as folder:
            found, pieces = linked(folder, segments, unpacked)
            for each, becomes in zip(found, ordinals, strict=True):
                for number, ordinal in each.parts.items():
                    if ordinal in becomes:
                        kept[number] = becomes[ordinal]
                    else:
                        dropped.append(number)
            if not pieces:
                return _write(None, spec, kept, out)
            with stock.reading(", ".join(segment.file.key for segment in segments)):
                index = next(each.archive.manifest["index"] for each in found if each.piece is not None)
                stock.join(folder, pieces, index)
                if dropped:
                    stock.delete_parts(folder, dropped)
                return _write(folder, spec, kept, out)

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
        """The best rows; of those with the same score, the ones that come first in the segments."""
        require_tantivy()
        operator = cast("Operator", _OF_SEARCH.complete(params)["operator"])
        if not isinstance(query, str):
            raise InvalidQuery(f"a query of an index of words is a string, not {type(query).__name__}")
        names = stock.fields(spec)
        tree = parse(query, names, operator)
        found = joint(spec, segments, loose)
        if found.searcher is None or found.schema is None:
            return no_hits()
        shown = ", ".join(segment.file.key for segment in segments)
        with stock.reading(shown):
            made = Words(found.schema, names, spec.params).query(tree)
            return no_hits() if made is None else _best(found, made, k, alive, share, loose)


def _best(found: Joint, query: Any, k: int, alive: Alive, share: float, loose: pa.Table | None) -> Hits:
    """Ask for more and more until `k` rows count, or there are no others."""
    searcher = found.searcher
    assert searcher is not None  # noqa: S101
    total = searcher.num_docs
    taken: list[tuple[Numbers, Numbers]] = []
    seen = count = 0
    # One more tells whether there are others.
    wanted = k + 1 if share >= 1 else math.ceil(k / max(share, 1 / total) * _SPARE) + 1
    while True:
        wanted = min(max(wanted, 1), total)
        answer = searcher.search(query, limit=wanted - seen, count=False, offset=seen).hits
        addresses = [address for _, address in answer]
        parts = searcher.fast_field_values(stock.PART, addresses)
        places = np.array([_place(found, part) for part in parts], np.int64).reshape(-1, 2)
        positions = np.array(searcher.fast_field_values(stock.POSITION, addresses), np.int64)
        is_loose = places[:, 0] < 0
        if loose is not None and is_loose.any():
            numbers = loose.column("position").combine_chunks().to_numpy(zero_copy_only=False)
            positions[is_loose] = numbers[positions[is_loose]]
        good = living(alive, places[:, 0], places[:, 1], positions)
        rows = np.column_stack((places, positions))[good]
        taken.append((rows, np.array([score for score, _ in answer])[good]))
        count += len(rows)
        is_end = len(answer) < wanted - seen or wanted == total
        if count >= k or is_end:
            break
        seen, wanted = wanted, wanted * 2
    rows = np.concatenate([rows for rows, _ in taken])[:k]
    scores = np.concatenate([scores for _, scores in taken])[:k]
    return hits(rows[:, 0], rows[:, 1], rows[:, 2], scores, is_all=is_end and count <= k)


def _place(found: Joint, part: object) -> Place:
    place = found.places.get(cast("int", part))
    if place is None:
        raise ValueError(f"a row is of part {part}, which is not listed")
    return place


def _write(folder: Path | None, spec: IndexSpec, parts: Mapping[int, int], out: Path) -> SegmentSummary:
    """The index in a folder, made one segment, as a file."""
    piece = None if folder is None else stock.make_one(folder, spec)
    index = None if folder is None else {**stock.read_meta(folder), "segments": []}
    manifest = {
        "tantivy": TANTIVY,
        "index_format": index_format(),
        "segment": None if piece is None else piece.stem,
        "meta": None if piece is None else {**piece.meta, "deletes": None},
        "index": index,
        "parts": sorted(parts.items()),
    }
    files = [] if piece is None else piece.files()
    write_archive(out, FORMAT, manifest, {file.name: file for file in files})
    return SegmentSummary(0 if piece is None else piece.documents, FORMAT.name, FORMAT.version)
