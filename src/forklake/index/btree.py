"""Indexes of sorted keys: the rows whose keys are in a range, begin with a text, are listed, or are NULL.

Entries are the keys themselves, ordinal and position, sorted by the keys in their order. Of several columns,
a condition has to limit the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from forklake.index.btree_conditions import NULL_KEY, Fences, answered, holds, limits
from forklake.index.btree_order import Source, first_rows
from forklake.index.equal_keys import matching, wanted_keys
from forklake.index.found_rows import SEGMENT, as_rows, found
from forklake.index.key_values import name_of, plain
from forklake.index.keyed_segment import (
    MOST_ROWS,
    Layout,
    Written,
    check_columns,
    group_rows_of,
    groups_with,
    numbered_batches,
    parameters_of,
    plain_fence,
    summary_of,
    typed,
    write_merged,
    write_sorted,
)
from forklake.index.kind import Alive, Found, Part, Segment, SegmentFile
from forklake.index.kind_families import ConditionKind
from forklake.index.segment_parquet import ORDINAL, POSITION, Footer, footer_of, kept, read_groups
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.index import IndexSpec, Maintenance, Parameters, SegmentSummary, Support
from forklake.model.sql.predicate_tree import Always, Node, ranges
from forklake.model.types.data_types import DataType
from forklake.model.types.sort_keys import HIGHEST, LOWEST, has_nan, key_of, max_key, min_key

FORMAT, VERSION = "forklake-btree", 1
_AT_ONCE = 32
"""How many row groups are in memory at a time."""


_EVERYTHING = Always(True)


class Btree(ConditionKind):
    """The kind `btree`."""

    name = "btree"
    maintain: Maintenance = "commit"
    no_search = "a B-tree finds rows by conditions such as id > 7: it has nothing to search"
    most_rows = MOST_ROWS

    def check(self, spec: IndexSpec) -> Parameters:
        """Keys of all types that have an order."""
        check_columns(spec)
        return parameters_of(self.name).complete(spec.params)

    def build(
        self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: SegmentFile | None = None
    ) -> SegmentSummary:
        """Write a segment. NULL has entries too."""
        layout = _layout(spec)
        names = [name for name, _ in (*layout.keys, *layout.others)]

        def entries() -> Iterable[pa.Table]:
            for batch, ordinals, positions in numbered_batches(parts):
                columns = {name: batch.column(name) for name in names}
                yield pa.table({**columns, ORDINAL: ordinals, POSITION: positions})

        written = write_sorted(entries(), layout, {}, out)
        return summary_of(written, layout, *_bounds(spec, written))

    def merge(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        ordinals: Sequence[Mapping[int, int]],
        out: Path,
    ) -> SegmentSummary:
        """Write one segment of several."""
        layout = _layout(spec)
        written = write_merged(segments, ordinals, layout, {}, out)
        return summary_of(written, layout, *_bounds(spec, written))

    def supports(self, spec: IndexSpec, node: Node) -> Support:
        """Conditions on the keys that limit the first of them."""
        part, support = answered(spec, node)
        return support if support is Support.NO or limits(part, spec.keys[0].id) else Support.NO

    def filter(
        self, spec: IndexSpec, segments: Sequence[Segment], node: Node, *, with_rows: bool = False
    ) -> Found:
        """The rows for which a condition is TRUE, as far as it speaks of the keys."""
        part, _ = answered(spec, node)
        names = _names(spec, with_rows)
        hits: list[tuple[int, pa.Table]] = []
        ends = _range_of(spec, part)
        for number, segment in enumerate(segments):
            if _is_outside(segment, *ends):
                continue
            footer = _footer(segment)
            groups = np.flatnonzero(_groups(spec, segment, footer, part)).tolist()
            for first in range(0, len(groups), _AT_ONCE):
                entries = read_groups(segment.file, footer, groups[first : first + _AT_ONCE], names)
                hits.append((number, entries.filter(holds(part, spec.keys, entries))))
        return _found(spec, hits, with_rows)

    def probe(self, spec: IndexSpec, segments: Sequence[Segment], keys: pa.Table) -> Found:
        """The rows that have one of the keys of a table."""
        types = [column.data_type for column in spec.keys]
        wanted = [plain(keys.column(str(column.id)), column.data_type) for column in spec.keys]
        whole = pa.table(wanted, [str(column.id) for column in spec.keys]).drop_null()
        values = [column.combine_chunks() for column in whole.columns]
        hits: list[tuple[int, pa.Table]] = []
        ends = _ends(values[0], types[0])
        for number, segment in enumerate(segments):
            if not len(whole) or _is_outside(segment, *ends):
                continue
            footer = _footer(segment)
            groups = groups_with(footer, values, types).tolist() if footer.rows else []
            for first in range(0, len(groups), _AT_ONCE):
                chunk = groups[first : first + _AT_ONCE]
                entries = read_groups(segment.file, footer, chunk, _names(spec, False))
                hits.append((number, entries.filter(matching(spec, entries, whole))))
        return _found(spec, hits, False)

    def estimate(self, spec: IndexSpec, segment: Segment, node: Node) -> int:
        """The entries of the row groups to read; for keys that are listed, what the commonest has."""
        part, _ = answered(spec, node)
        if _is_outside(segment, *_range_of(spec, part)):
            return 0
        footer = _footer(segment)
        mask = _groups(spec, segment, footer, part)
        rows = int(np.array(footer.rows, np.int64)[mask].sum())
        for count in range(1, len(spec.keys) + 1):
            keys = wanted_keys(IndexSpec(spec.kind, spec.keys[:count]), part)
            if keys is not None:
                rows = min(rows, keys.num_rows * footer.facts["most"][count - 1])
        return rows

    def first(
        self,
        spec: IndexSpec,
        segments: Sequence[Segment],
        k: int,
        alive: Alive,
        *,
        node: Node = _EVERYTHING,
        descending: bool = False,
    ) -> pa.Table:
        """The first rows in the order of the keys, NULL above everything, for which a condition is TRUE."""
        part, support = answered(spec, node)
        if support is not Support.EXACT:
            raise ValueError("the first rows can only be told of a condition that is answered exactly")
        layout = Layout(FORMAT, VERSION, typed(spec.keys))
        names = layout.schema.names

        def source(segment: Segment) -> Source:
            footer = _footer(segment)
            fences = _fences_of(spec, segment, footer)
            groups = fences.where(part, [column.id for column in spec.keys])

            def read(group: int) -> pa.Table:
                entries = read_groups(segment.file, footer, [group], names)
                return layout.conformed(entries.filter(holds(part, spec.keys, entries)))

            return Source(fences, np.flatnonzero(groups).tolist(), read)

        first = spec.keys[0].data_type

        def text(value: pa.Array) -> str:
            return _text(_raw(plain(value, first), first)[0], first, key_of)

        sources = [source(segment) for segment in segments]
        rows = first_rows(sources, layout.key_names, text, k, alive, descending=descending)
        if rows is None:
            rows = layout.schema.append(pa.field(SEGMENT, pa.int64())).empty_table()
        return as_rows(rows, rows.column(SEGMENT), spec.keys)


def _found(spec: IndexSpec, hits: list[tuple[int, pa.Table]], with_rows: bool) -> Found:
    columns = (*spec.keys, *spec.include) if with_rows else None
    return found(hits or [(0, _layout(spec).schema.empty_table())], columns)


def _layout(spec: IndexSpec) -> Layout:
    return Layout(FORMAT, VERSION, typed(spec.keys), typed(spec.include), group_rows_of(spec))


def _names(spec: IndexSpec, with_rows: bool) -> list[str]:
    layout = _layout(spec)
    return layout.schema.names if with_rows else [*layout.key_names, ORDINAL, POSITION]


def _footer(segment: Segment) -> Footer:
    return footer_of(segment.file, FORMAT, VERSION)


def _range_of(spec: IndexSpec, node: Node) -> tuple[str, str]:
    """Between which keys of the first column rows lie that match; anywhere if NULL may be among them."""
    found = (one for one in ranges(node) if one.column_id == spec.keys[0].id)
    return next(((one.low, one.high) for one in found), (LOWEST, HIGHEST))


def _ends(values: pa.Array, type: DataType) -> tuple[str, str]:
    """The lowest and the highest key of plain values."""
    # NaN lies above all, and Arrow leaves it out.
    if len(values) == 0 or (has_nan(type) and pc.any(pc.is_nan(values)).as_py()):
        return LOWEST, HIGHEST
    ends = pc.min_max(values)
    low, high = (_raw(pa.array([end.as_py()], values.type), type)[0] for end in (ends["min"], ends["max"]))
    return _text(low, type, min_key), _text(high, type, max_key)


def _is_outside(segment: Segment, low: str, high: str) -> bool:
    """Whether all that a segment has lies outside of a range: it is not opened then."""
    if (low, high) == (LOWEST, HIGHEST):
        return False
    facts = segment.file.facts
    if facts.min_key is None or facts.max_key is None:
        return False
    return facts.min_key > high or facts.max_key < low


def _fences_of(spec: IndexSpec, segment: Segment, footer: Footer) -> Fences:
    key = ("fences", *(column.type for column in spec.keys))
    return kept(segment.file, key, lambda: _fences(spec, footer))


def _groups(spec: IndexSpec, segment: Segment, footer: Footer, node: Node) -> np.ndarray:
    fences = _fences_of(spec, segment, footer)
    return fences.where(node, [column.id for column in spec.keys])


def _fences(spec: IndexSpec, footer: Footer) -> tuple[Fences, int]:
    """Fences as text, whose order holds whatever types the keys had and have."""
    lows: list[list[str]] = []
    highs: list[list[str]] = []
    for at, column in enumerate(spec.keys):
        values = _raw(plain_fence(footer.fences.column(at), column.data_type), column.data_type)
        lows.append([_text(value, column.data_type, min_key) for value in values[0::2]])
        highs.append([_text(value, column.data_type, max_key) for value in values[1::2]])
    size = sum(len(key) + 50 for keys in (*lows, *highs) for key in keys)
    return Fences(lows, highs), size


def _raw(values: pa.Array, type: DataType) -> list[object]:
    """Values as `key_of` takes them."""
    if name_of(type) == "uuid":
        return [None if value is None else UUID(bytes=value) for value in values.to_pylist()]
    if name_of(type) in ("int128", "uint128"):
        return [None if value is None else int(value) for value in values.to_pylist()]
    return values.to_pylist()


def _text(value: Any, type: DataType, bound: Callable[[Any, DataType], str | None]) -> str:
    if value is None:
        return NULL_KEY
    return bound(value, type) or LOWEST


def _bounds(spec: IndexSpec, written: Written) -> tuple[str | None, str | None]:
    """The lowest and the highest key in the first column, as order-preserving text."""
    type = spec.keys[0].data_type
    low, high = (_raw(plain(edge, type), type) for edge in (written.low, written.high))
    return (_text(low[0], type, min_key), _text(high[0], type, max_key)) if low and high else (None, None)
