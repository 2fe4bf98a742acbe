"""What kinds of indexes have in common: those that answer conditions, and those that answer searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from forklake.errors import InvalidIndex, InvalidQuery
from forklake.index.coverage import MOST_ROWS
from forklake.index.kind import Alive, Found, Hits, Segment
from forklake.lazy.arrow import pa
from forklake.model.index import IndexSpec, Parameters, SegmentSummary, Support
from forklake.model.sql.predicate_tree import Node


class ConditionKind:
    """A kind that finds rows by conditions of SQL: it has no model, and nothing to search."""

    most_rows = MOST_ROWS
    no_search: str
    """What a search is told."""

    def train(self, spec: IndexSpec, sample: Iterable[pa.RecordBatch], out: Path) -> SegmentSummary | None:
        """There is nothing to train."""
        return None

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
        """Nothing is searched here."""
        raise InvalidQuery(self.no_search)


class SearchKind:
    """A kind that ranks rows: no condition of SQL means what its searches do."""

    most_rows = MOST_ROWS
    no_filter: str
    """What a condition would be told."""

    def supports(self, spec: IndexSpec, node: Node) -> Support:
        """No condition at all."""
        return Support.NO

    def filter(
        self, spec: IndexSpec, segments: Sequence[Segment], node: Node, *, with_rows: bool = False
    ) -> Found:
        """Never asked for."""
        raise InvalidIndex(self.no_filter)
