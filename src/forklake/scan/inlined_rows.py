"""Rows that came with a plan, put together: as the table has them now, without those that were deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from forklake.data.conform import conform
from forklake.data.inlined import InlinedRows, decode
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME
from forklake.data.statistics import summarise
from forklake.lazy.arrow import pa, pc
from forklake.model.table.columns import Columns
from forklake.model.table.files import ColumnStats, DataFile
from forklake.scan.scan_plan import InlinedParts, Positions, ScanRows
from forklake.store.files import FileReader

AMONG, WITHIN, BEGIN = "among", "within", "begin"
"""Which part a row comes from, where it is there, and when that part began."""


def gather(parts: Sequence[ScanRows], columns: Columns) -> pa.Table:
    """The rows: columns named by their ids (`c7`), ids and snapshots of rows, and where they come from."""
    among = _Parts.of(parts)
    # DuckDB has work to do for each chunk, and every small write is one.
    return pa.concat_tables(
        [_together(among, start, end, columns) for start, end in _alike(among.contents)]
    ).combine_chunks()


class _Parts(NamedTuple):
    """What is needed of each part, part by part."""

    contents: Sequence[InlinedRows]
    row_id_starts: Sequence[int | None]
    begins: Sequence[int]
    deleted: Sequence[Positions | None] | None

    @classmethod
    def of(cls, parts: Sequence[ScanRows]) -> Self:
        if isinstance(parts, InlinedParts):
            return cls(parts.contents, parts.files.row_id_starts, parts.files.begins, parts.deleted)
        deleted = [part.deleted for part in parts]
        return cls(
            [part.content for part in parts],
            [part.file.row_id_start for part in parts],
            [part.file.begin for part in parts],
            None if all(positions is None for positions in deleted) else deleted,
        )


def stats_of_inlined(
    reader: FileReader, files: Sequence[DataFile], columns: Columns
) -> tuple[ColumnStats, ...]:
    """What is known of the columns in rows that live in the metadata database, where nobody keeps it."""
    contents = reader.contents([file for file in files if file.inlined])
    return tuple(
        entry
        for content in contents.values()
        for entry in summarise(conform(decode(content), columns), columns)
    )


def _alike(contents: Sequence[InlinedRows]) -> Iterator[tuple[int, int]]:
    """Parts in a row that have the same columns: many small writes then cost little more than one."""
    start = 0
    for at, part in enumerate(contents):
        if part.whole is not contents[start].whole and not part.whole.schema.equals(
            contents[start].whole.schema, check_metadata=True
        ):
            yield start, at
            start = at
    yield start, len(contents)


def _joined(parts: Sequence[InlinedRows]) -> pa.Table:
    """The rows of all parts, one after the other; those that lie in one table side by side are not copied."""
    stretches = list(_stretches(parts))
    if len(stretches) == 1:
        return stretches[0].table()
    return pa.concat_tables([stretch.table() for stretch in stretches]).combine_chunks()


def _stretches(parts: Sequence[InlinedRows]) -> Iterator[InlinedRows]:
    whole, start, length = parts[0]
    for part in parts[1:]:
        if part.whole is whole and part.start == start + length:
            length += part.length
        else:
            yield InlinedRows(whole, start, length)
            whole, start, length = part
    yield InlinedRows(whole, start, length)


def _together(among: _Parts, start: int, end: int, columns: Columns) -> pa.Table:
    """The rows of parts that are alike."""
    contents = among.contents[start:end]
    rows = conform(_joined(contents), columns)
    counts = [part.length for part in contents]
    positions = pa.array([at for count in counts for at in range(count)], pa.int64())
    row_ids = pc.add(_each(among.row_id_starts[start:end], counts), positions)
    begins = snapshots = _each(among.begins[start:end], counts)
    if ROW_ID_NAME in rows.column_names:
        row_ids = pc.coalesce(rows.column(ROW_ID_NAME), row_ids)
    if SNAPSHOT_ID_NAME in rows.column_names:
        snapshots = pc.coalesce(rows.column(SNAPSHOT_ID_NAME), snapshots)
    table = pa.table(
        {
            **{f"c{column.id}": rows.column(at) for at, column in enumerate(columns)},
            ROW_ID_NAME: row_ids,
            SNAPSHOT_ID_NAME: snapshots,
            BEGIN: begins,
            AMONG: _each(range(start, end), counts),
            WITHIN: positions,
        }
    )
    if among.deleted is None:
        return table
    return table.filter(pa.array(list(_kept(among.deleted[start:end], counts)), pa.bool_()))


def _each(values: Sequence[int | None], counts: Sequence[int]) -> pa.Array:
    pairs = zip(values, counts, strict=True)
    return pa.array([value for value, count in pairs for _ in range(count)], pa.int64())


def _kept(deleted: Sequence[Positions | None], counts: Sequence[int]) -> Iterator[bool]:
    for lost, count in zip(deleted, counts, strict=True):
        gone = set[int]() if lost is None else set(lost.to_pylist())
        yield from (at not in gone for at in range(count))
