"""Segments of kinds that sort entries by keys: how they are written, and which row groups may have a key."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from forklake.errors import InvalidIndex
from forklake.index.key_values import plain, storage_type, widened
from forklake.index.kind import Part, Segment, SegmentFile
from forklake.index.parameters import Known, whole
from forklake.index.segment_parquet import (
    GROUP_ROWS,
    ORDINAL,
    POSITION,
    Footer,
    SegmentWriter,
    footer_of,
    groups_of,
    read_groups,
)
from forklake.index.sorted_entries import merged, sorted_tables, with_ordinals
from forklake.lazy.arrow import kind, pa, pc
from forklake.lazy.numpy import np
from forklake.model.entities import Column
from forklake.model.index import IndexSpec, SegmentSummary
from forklake.model.types.data_types import DataType, Scalar, to_sql
from forklake.model.types.sort_keys import has_key

FENCE_BYTES = 256
"""How much of a text the footer keeps: what begins like it is not told apart."""
MOST_ROWS = 1 << 30
"""How many entries segments that are merged have together at most: a key is looked for in each of them."""
_MOST_GROUPS = 8_192
"""How many row groups a segment has, about, before they grow: the footer is read, and kept, as a whole."""
_BIGINT = Scalar("int64")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a segment."""

    format: str
    version: int
    keys: tuple[tuple[str, DataType], ...]
    """What entries are sorted by."""
    others: tuple[tuple[str, DataType], ...] = ()
    """What else they hold beside ordinal and position."""
    group_rows: int = GROUP_ROWS

    @property
    def key_names(self) -> list[str]:
        """The columns that entries are sorted by."""
        return [name for name, _ in self.keys]

    @property
    def schema(self) -> pa.Schema:
        """Keys first, in the types that the table has now."""
        keys = [(name, storage_type(type)) for name, type in self.keys]
        others = [(name, storage_type(type)) for name, type in self.others]
        return pa.schema([*keys, (ORDINAL, pa.int32()), (POSITION, pa.int64()), *others])

    def conformed(self, table: pa.Table) -> pa.Table:
        """Entries in the present types."""
        schema = self.schema
        types = dict((*self.keys, *self.others))
        columns = [
            widened(table.column(name), types[name]) if name in types else table.column(name)
            for name in schema.names
        ]
        return pa.table(columns, schema=schema)


class Written(NamedTuple):
    """What is known of a segment that was written."""

    entry_count: int
    footer_size: int
    low: pa.Array
    """The lowest value of the first key beside NULL; nothing if there is none."""
    high: pa.Array


def check_columns(spec: IndexSpec, most: int = 32) -> None:
    """Refuse keys whose values cannot be compared, and included columns that no segment can hold."""
    if not 1 <= len(spec.keys) <= most:
        raise InvalidIndex(f"an index of the kind {spec.kind} has 1 to {most} columns, not {len(spec.keys)}")
    for column in spec.keys:
        if column.children or not has_key(column.data_type):
            raise InvalidIndex(
                f'column "{column.name}" is {to_sql(column.data_type)}: '
                f"an index of the kind {spec.kind} has numbers, texts, blobs, dates, times, timestamps, "
                "UUIDs and truth values"
            )
    check_included(spec)


def check_included(spec: IndexSpec) -> None:
    """Refuse included columns that no segment can hold."""
    for column in spec.include:
        for part in column.walk():
            if part.type in ("interval", "timetz", "variant"):
                raise InvalidIndex(
                    f'column "{column.name}" has values of type {to_sql(Scalar(part.type))}, '
                    "which no index holds: include other columns"
                )
    seen = [column.id for column in (*spec.keys, *spec.include)]
    for column in (*spec.keys, *spec.include):
        if seen.count(column.id) > 1:
            raise InvalidIndex(f'an index has each column once: "{column.name}" is there twice')


def parameters_of(kind: str) -> Known:
    """The parameters of a kind that sorts keys."""
    words = "a number from 1,024 to 1,048,576"
    return Known(
        f"an index of the kind {kind}", {"row_group_rows": (GROUP_ROWS, words, whole(1_024, 1 << 20))}
    )


def group_rows_of(spec: IndexSpec) -> int:
    """How many entries row groups have."""
    rows = spec.params.get("row_group_rows", GROUP_ROWS)
    return rows if isinstance(rows, int) else GROUP_ROWS


def numbered_batches(parts: Iterable[Part]) -> Generator[tuple[pa.RecordBatch, pa.Array, pa.Array]]:
    """The rows of parts, with the ordinal and the position of each."""
    for part in parts:
        position = 0
        for batch in part.rows:
            count = batch.num_rows
            ordinals = pa.array(np.full(count, part.ordinal), pa.int32())
            yield batch, ordinals, pa.array(np.arange(position, position + count), pa.int64())
            position += count


def write_sorted(tables: Iterable[pa.Table], layout: Layout, facts: dict[str, Any], out: Path) -> Written:
    """Write a segment of entries in any order."""
    conformed = (layout.conformed(table) for table in tables if table.num_rows)
    return _write(sorted_tables(conformed, layout.key_names, out), layout, facts, out)


def write_merged(
    segments: Sequence[Segment],
    ordinals: Sequence[Mapping[int, int]],
    layout: Layout,
    facts: dict[str, Any],
    out: Path,
) -> Written:
    """Write one segment of several."""
    inputs = [
        _Input(segment.file, footer_of(segment.file, layout.format, layout.version), layout, kept)
        for segment, kept in zip(segments, ordinals, strict=True)
    ]
    count = sum(segment.file.facts.entry_count for segment in segments)
    while count > layout.group_rows * _MOST_GROUPS:
        layout = replace(layout, group_rows=2 * layout.group_rows)
    return _write(merged(inputs, layout.key_names), layout, facts, out)


def _write(tables: Iterable[pa.Table], layout: Layout, facts: dict[str, Any], out: Path) -> Written:
    writer = SegmentWriter(out, layout.schema, layout.group_rows)
    names = layout.key_names
    edges: list[pa.Table] = []
    tops: list[pa.Array] = []
    longest = _LongestRun(names)
    try:
        for group in groups_of(tables, layout.group_rows):
            writer.write(group)
            longest.add(group)
            edges.append(group.select(names).take(pa.array([0, group.num_rows - 1])))
            # NULL is last, so that a group without other values is the end of them.
            values = group.column(0).combine_chunks().drop_null()
            if len(values):
                tops = [tops[0] if tops else values.slice(0, 1), values.slice(len(values) - 1)]
        empty = layout.schema.empty_table().select(names)
        whole = pa.concat_tables([empty, *edges]).combine_chunks()
        fences = pa.table([_cut(column) for column in whole.columns], names)
        size = writer.close({**facts, "most": longest.found}, fences)
    except BaseException:
        writer.abandon()
        raise
    nothing = pa.array([], layout.schema.field(0).type)
    return Written(writer.entry_count, size, *(tops or (nothing, nothing)))


class _LongestRun:
    """How many entries have equal keys at most, by how many of the keys are compared."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.found = [0] * len(names)
        self._open = [0] * len(names)
        self._last: pa.Table | None = None

    def add(self, group: pa.Table) -> None:
        keys = group.select(self.names)
        count = keys.num_rows
        joined = keys if self._last is None else pa.concat_tables([self._last, keys]).combine_chunks()
        differs = np.zeros(max(0, joined.num_rows - 1), bool)
        for at, name in enumerate(self.names):
            differs |= _differs(joined.column(name))
            # With the last row of the group before, a run that goes on is one.
            starts = np.flatnonzero(differs) + (1 if self._last is None else 0)
            edges = np.concatenate([[0], starts, [count]])
            lengths = np.diff(edges)
            lengths[0] += self._open[at]
            self.found[at] = max(self.found[at], int(lengths.max()))
            self._open[at] = int(lengths[-1])
        self._last = keys.slice(count - 1)


def _differs(column: pa.ChunkedArray) -> np.ndarray:
    """Whether each value but the first is another than that before it."""
    if column.null_count == 0 and kind.is_integer(column.type):
        values = column.to_numpy()
        return values[1:] != values[:-1]
    before, after = column.slice(0, len(column) - 1), column.slice(1)
    other = pc.fill_null(pc.not_equal(before, after), False).to_numpy(zero_copy_only=False)
    nulls = pc.not_equal(before.is_null(), after.is_null()).to_numpy(zero_copy_only=False)
    return other | nulls


def _is_text(type: pa.DataType) -> bool:
    return kind.is_string(type) or kind.is_binary(type)


def _cut(column: pa.ChunkedArray) -> pa.Array:
    if not _is_text(column.type):
        return column.combine_chunks()
    return pc.binary_slice(column.combine_chunks().cast(pa.binary()), 0, FENCE_BYTES)


@dataclass(frozen=True, slots=True)
class _Input:
    """A segment that is merged."""

    file: SegmentFile
    footer: Footer
    layout: Layout
    ordinals: Mapping[int, int]

    @property
    def lows(self) -> pa.Table:
        lows = self.footer.fences.take(pa.array(np.arange(0, self.footer.fences.num_rows, 2)))
        columns = [
            # Sorting looks at bytes alone, so the end of a text may be missing.
            lows.column(name).cast(pa.string(), safe=False)
            if type == Scalar("varchar")
            else widened(lows.column(name), type)
            for name, type in self.layout.keys
        ]
        return pa.table(columns, self.layout.key_names)

    def read(self, group: int) -> pa.Table:
        table = read_groups(self.file, self.footer, [group], self.layout.schema.names, keep=False)
        return with_ordinals(self.layout.conformed(table), self.ordinals)


def groups_with(footer: Footer, keys: Sequence[pa.Array], types: Sequence[DataType]) -> np.ndarray:
    """The row groups that may have one of some keys, ascending. Keys are plain values without NULL."""
    last = next((at for at, key in enumerate(keys) if _is_text(key.type)), len(keys) - 1)
    # Of texts, the footer has the beginning: what follows them tells nothing.
    fences = [plain_fence(footer.fences.column(at), types[at]) for at in range(last + 1)]
    wanted = [_cut(pa.chunked_array([key])) for key in keys[: last + 1]]
    count = len(footer.rows)
    every = np.arange(count) * 2
    lows = [fence.take(pa.array(every)) for fence in fences]
    highs = [fence.take(pa.array(every + 1)) for fence in fences]
    after = _before(lows, wanted, True)
    first = _before(highs, wanted, False)
    marks = np.zeros(count + 1, np.int64)
    some = first < after
    np.add.at(marks, first[some], 1)
    np.add.at(marks, after[some], -1)
    return np.flatnonzero(np.cumsum(marks[:count]) > 0)


def plain_fence(column: pa.ChunkedArray, type: DataType) -> pa.Array:
    """A column of fences as values are compared; texts as bytes."""
    return column.combine_chunks() if type in (Scalar("varchar"), Scalar("blob")) else plain(column, type)


def _before(fences: list[pa.Array], keys: list[pa.Array], with_equal: bool) -> np.ndarray:
    """For each key the number of fences below it, and of those that equal it if they count too."""
    if len(keys) == 1 and kind.is_integer(keys[0].type) and fences[0].null_count == 0:
        side = "right" if with_equal else "left"
        return np.searchsorted(fences[0].to_numpy(), keys[0].to_numpy(), side)
    number, count = len(fences[0]), len(keys[0])
    is_key = np.concatenate([np.zeros(number, np.int8), np.ones(count, np.int8)])
    turn = is_key if with_equal else 1 - is_key
    columns = [pa.concat_arrays([fence, key]) for fence, key in zip(fences, keys, strict=True)]
    table = pa.table([*columns, pa.array(turn)], [*(str(at) for at in range(len(columns))), "turn"])
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]).to_numpy()
    passed = np.cumsum(1 - is_key[order])
    below = np.empty(number + count, np.int64)
    below[order] = passed
    return below[number:]


def typed(columns: Sequence[Column]) -> tuple[tuple[str, DataType], ...]:
    """Columns by their names in segments."""
    return tuple((str(column.id), column.data_type) for column in columns)


def summary_of(written: Written, layout: Layout, low: str | None, high: str | None) -> SegmentSummary:
    """What the metadata keeps of a segment."""
    return SegmentSummary(
        entry_count=written.entry_count,
        format=layout.format,
        format_version=layout.version,
        min_key=low,
        max_key=high,
        footer_size=written.footer_size,
    )
