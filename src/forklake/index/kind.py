"""What a kind of index has to offer.

Packages outside of this one offer theirs by the entry point group `forklake.index_kinds`: a name, and a class
of this shape.

A segment is a pure function of data files, which never change: it is right in every catalog, fork and
snapshot that sees those files. Its entries say (ordinal of a data file, position in it); the metadata
says which file each ordinal is. Rows whose key is NULL have no entry unless the kind says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from forklake.lazy.arrow import pa
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary, Support
from forklake.model.sql.predicate_tree import Node

Positions: TypeAlias = "pa.Array"
"""Positions of rows in one data file: int64, ascending, each once."""


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one data file, for building: every row, deleted ones too, in the order of the file."""

    ordinal: int
    rows: Iterable[pa.RecordBatch]
    """Columns are the keys and then the included ones, each named by its column id as text (`"7"`), in
    their present types: what the file lacks is filled with initial defaults."""


class SegmentFile(Protocol):
    """A segment to be read."""

    @property
    def key(self) -> str:
        """Its path: what is kept in memory of a file is kept under it, and holds for ever."""
        ...

    @property
    def file_size_bytes(self) -> int:
        """How many there are: with `facts.footer_size` it tells where its end is to be read."""
        ...

    @property
    def facts(self) -> SegmentSummary:
        """What the metadata knows of it."""
        ...

    def open(self) -> pa.NativeFile:
        """A file to read ranges of, on disk or in a bucket."""
        ...

    def local(self) -> Path:
        """A copy on the local disk, for libraries that want one; kept in a cache folder of limited size."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment with what it shares with others of its index."""

    file: SegmentFile
    model: SegmentFile | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of the segments that a condition may hold for."""

    positions: Mapping[tuple[int, int], Positions]
    """By number of the segment in what was given, and ordinal in it; those without hits are left out."""
    rows: pa.Table | None = None
    """If asked for and the index covers: keys and included columns of all hits, with the columns
    `segment`, `ordinal` and `position` before them."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The best rows for a query, best first."""

    table: pa.Table
    """The columns `segment`, `ordinal`, `position` and `score`. Higher scores are better: a distance is given
    as its negative."""
    is_all: bool = False
    """Whether there are no others: asking for more finds nothing."""


Alive: TypeAlias = Callable[[int, int, "pa.Array"], "pa.Array"]
"""Of a segment's number, an ordinal and positions: which of them count, as booleans. Others are deleted, of
data files that the scan does not read, or do not meet its condition."""

Measure = Literal["score", "distance"]


class Kind(Protocol):
    """A kind of index. It has no state: all that it needs is handed over."""

    name: str
    maintain: Maintenance
    """When segments are built unless the definition says so: `commit` for kinds that are cheap to build."""
    most_rows: int
    """Segments of so many entries are not merged any more; `MOST_ROWS` of `coverage.py` suits most kinds."""

    def check(self, spec: IndexSpec) -> Parameters:
        """The parameters, completed with defaults.

        Raises `InvalidIndex` for what cannot be, `MissingDependency` if its library is not there.
        """
        ...

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        """Write a model that segments will share, from a sample of rows; None for kinds without one."""
        ...

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment for some data files. Memory does not grow with the rows, if possible."""
        ...

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment with the entries of several.

        For each, `ordinals` says what its ordinals become; entries of others are left out.
        """
        ...

    def supports(self, spec: IndexSpec, node: Node) -> Support:
        """How far `filter` answers a condition. Called for whole conditions and for parts of an AND."""
        ...

    def filter(
        self, spec: IndexSpec, segments: Sequence[Segment], node: Node, *, with_rows: bool = False
    ) -> Found:
        """The rows that may match: every one that does, and others unless `supports` says EXACT.

        Raises `UnreadableIndex` for a segment that is torn or of a newer format, `MissingDependency` without
        its library: the files are scanned then. So they are for any other `StorageError`.
        """
        ...

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
        """The `k` best rows for a query, of those that count.

        `loose` has rows that no segment covers, as `position` and columns named by column id: they take part
        as segment -1 with ordinal 0, with scores as if there were one index. `share` is about how many of the
        rows count. Raises `InvalidQuery` for a query that does not parse, with the place. Kinds that do not
        search raise it too.
        """
        ...


class KeyedKind(Kind, Protocol):
    """A kind that finds rows by the values of its keys: `hash`, `btree`."""

    def probe(self, spec: IndexSpec, segments: Sequence[Segment], keys: pa.Table) -> Found:
        """The rows whose keys are among the rows of a table, and maybe others.

        Columns are named by column id, as in a part, and have the present types of the keys. Nothing is NULL
        that is found. For upserts and joins: no value goes through Python.
        """
        ...

    def estimate(self, spec: IndexSpec, segment: Segment, node: Node) -> int:
        """About how many rows `filter` will find at most, from what is kept in memory of the segment.

        What finds too many is better scanned: ask before `filter` reads most of an index for `id > 0`.
        """
        ...


class OrderedKind(KeyedKind, Protocol):
    """A kind that has its entries in the order of their keys: `btree`."""

    def first(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        k: int,
        alive: Alive,
        *,
        node: Node = ...,
        descending: bool = False,
    ) -> pa.Table:
        """The first `k` rows that count in the order of the keys, for ORDER BY with LIMIT.

        NULL lies above everything: it is last, or first if the order is descending, which turns that of all
        keys around. `node` is a condition that `supports` calls EXACT, or nothing. The table has the columns
        `segment`, `ordinal` and `position`, and the keys by column id.
        """
        ...


class SearchKind(Kind, Protocol):
    """A kind that searches: `bm25`, `vector`, `rstar`."""

    def measures(self, spec: IndexSpec) -> Measure:
        """What the scores of its hits are shown as: `_score`, or `_distance` with the opposite sign."""
        ...
