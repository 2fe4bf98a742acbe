"""Indexes of hashes: the rows that have one of some keys, of any types, in a few bytes for each.

Entries are the hash of the key, ordinal and position, sorted by hash; with included columns also the keys and
those. Hashes are those of Spark's `xxhash64`. Two keys may have one hash: what is found is compared again.
Rows with a NULL in their key have no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from forklake.index.equal_keys import matching, wanted_keys
from forklake.index.found_rows import ascending, found
from forklake.index.key_hash import form_of, hashes
from forklake.index.keyed_segment import (
    MOST_ROWS,
    Layout,
    Written,
    check_columns,
    group_rows_of,
    groups_with,
    numbered_batches,
    parameters_of,
    summary_of,
    typed,
    write_merged,
    write_sorted,
)
from forklake.index.kind import Found, Part, Segment, SegmentFile
from forklake.index.kind_families import ConditionKind
from forklake.index.segment_parquet import ORDINAL, POSITION, Footer, footer_of, read_groups
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary, Support
from forklake.model.sql.predicate_tree import Node
from forklake.model.types.data_types import Scalar

FORMAT, VERSION = "forklake-hash", 1
HASH = "hash"
_BIGINT = Scalar("int64")
_AT_ONCE = 32
"""How many row groups are in memory at a time."""


class Hash(ConditionKind):
    """The kind `hash`."""

    name = "hash"
    maintain: Maintenance = "commit"
    no_search = "a hash index finds rows by conditions such as id = 7: it has nothing to search"
    most_rows = MOST_ROWS

    def check(self, spec: IndexSpec) -> Parameters:
        """Keys of all types whose values can be equal."""
        check_columns(spec)
        return parameters_of(self.name).complete(spec.params)

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment."""
        forms = _forms(spec)
        layout = _layout(spec)
        types = [column.data_type for column in spec.keys]

        def entries() -> Iterable[pa.Table]:
            for batch, ordinals, positions in numbered_batches(parts):
                keys = [batch.column(str(column.id)) for column in spec.keys]
                values, has = hashes(keys, types, forms)
                columns = {HASH: pa.array(values), ORDINAL: ordinals, POSITION: positions}
                columns |= {name: batch.column(name) for name, _ in layout.others}
                table = pa.table(columns)
                yield table if has.all() else table.filter(pa.array(has))

        written = write_sorted(entries(), layout, {"forms": [forms]}, out)
        return summary_of(written, layout, *_edges(written))

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment of several; where the type of a key was widened, it has keys of several forms."""
        layout = _layout(spec)
        forms = {tuple(form) for segment in segments for form in _footer(segment).facts["forms"]}
        facts = {"forms": [list(form) for form in sorted(forms)]}
        written = write_merged(segments, ordinals, layout, facts, out)
        return summary_of(written, layout, *_edges(written))

    def supports(self, spec: IndexSpec, node: Node) -> Support:
        """Conditions that list all keys that there may be."""
        return Support.NO if wanted_keys(spec, node) is None else Support.INEXACT

    def filter(
        self, spec: IndexSpec, segments: Sequence[Segment], node: Node, *, with_rows: bool = False
    ) -> Found:
        """The rows that have one of the keys of a condition."""
        keys = wanted_keys(spec, node)
        if keys is None:
            raise ValueError("a hash index was asked for what it does not support")
        return self._found(spec, segments, keys, with_rows)

    def probe(self, spec: IndexSpec, segments: Sequence[Segment], keys: pa.Table) -> Found:
        """The rows that have one of the keys of a table."""
        return self._found(spec, segments, keys, False)

    def estimate(self, spec: IndexSpec, segment: Segment, node: Node) -> int:
        """As many for each key as the commonest hash has."""
        keys = wanted_keys(spec, node)
        if keys is None:
            return segment.file.facts.entry_count
        return min(segment.file.facts.entry_count, keys.num_rows * _footer(segment).facts["most"][0])

    def _found(self, spec: IndexSpec, segments: Sequence[Segment], keys: pa.Table, with_rows: bool) -> Found:
        known: dict[tuple[str, ...], pa.Array] = {}
        columns = (*spec.keys, *spec.include) if spec.include and with_rows else None
        hits: list[tuple[int, pa.Table]] = []
        for number, segment in enumerate(segments):
            footer = _footer(segment)
            for form in map(tuple, footer.facts["forms"]):
                if form not in known:
                    known[form] = _hashes_of(spec, keys, form)
            wanted = ascending(np.concatenate([known[tuple(form)] for form in footer.facts["forms"]]))
            hits += [(number, table) for table in _hits(spec, segment, footer, wanted, columns is not None)]
        if columns is not None:
            # They hold the keys, so that what only has the same hash is known.
            hits = [(number, table.filter(matching(spec, table, keys))) for number, table in hits]
            hits = hits or [(0, _layout(spec).schema.empty_table())]
        return found(hits, columns)


def _hits(
    spec: IndexSpec, segment: Segment, footer: Footer, wanted: np.ndarray, with_rows: bool
) -> Iterable[pa.Table]:
    if len(wanted) == 0 or len(footer.rows) == 0:
        return
    groups = groups_with(footer, [pa.array(wanted)], [_BIGINT]).tolist()
    names = _layout(spec).schema.names if with_rows else [HASH, ORDINAL, POSITION]
    for first in range(0, len(groups), _AT_ONCE):
        table = read_groups(segment.file, footer, groups[first : first + _AT_ONCE], names)
        # Batch by batch, as they are in memory: there is no need to copy all columns into one piece.
        for batch in table.to_batches():
            at = _places(batch.column(HASH).to_numpy(), wanted)
            if len(at):
                yield pa.Table.from_batches([batch.take(pa.array(at))])


def _places(entries: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where entries have one of some hashes, both in order."""
    low, high = np.searchsorted(wanted, [entries[0], entries[-1]], "left")
    some = wanted[low : high + 1]
    starts, ends = (np.searchsorted(entries, some, side) for side in ("left", "right"))
    counts = ends - starts
    return np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


def _hashes_of(spec: IndexSpec, keys: pa.Table, form: Sequence[str]) -> np.ndarray:
    columns = [keys.column(str(column.id)) for column in spec.keys]
    values, has = hashes(columns, [column.data_type for column in spec.keys], form)
    return values[has]


def _forms(spec: IndexSpec) -> list[str]:
    return [form_of(column.data_type) or "" for column in spec.keys]


def _layout(spec: IndexSpec) -> Layout:
    others = typed((*spec.keys, *spec.include)) if spec.include else ()
    return Layout(FORMAT, VERSION, ((HASH, _BIGINT),), others, group_rows_of(spec))


def _footer(segment: Segment) -> Footer:
    return footer_of(segment.file, FORMAT, VERSION)


def _edges(written: Written) -> tuple[str | None, str | None]:
    """The lowest and the highest hash, as text in their order."""
    edges = [_text(edge[0].as_py()) for edge in (written.low, written.high) if len(edge)]
    return (edges[0], edges[1]) if edges else (None, None)


def _text(value: int) -> str:
    return f"{value + 2**63:016x}"
