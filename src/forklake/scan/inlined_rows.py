"""Rows that came with a plan, put together: as the table has them now, without those that were deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forklake.data.conform import conform
from forklake.data.inlined import InlinedRows, decode
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME
from forklake.data.statistics import summarise
from forklake.lazy.arrow import pa, pc
from forklake.model.table.columns import Columns
from forklake.model.table.files import ColumnStats, DataFile
from forklake.scan.scan_plan import ScanRows
from forklake.store.files import FileReader

AMONG, WITHIN, BEGIN = "among", "within", "begin"
"""Which part a row comes from, where it is there, and when that part began."""


def gather(parts: Sequence[ScanRows], columns: Columns) -> pa.Table:
    """The rows: columns named by their ids (`c7`), ids and snapshots of rows, and where they come from."""
    # DuckDB has work to do for each chunk, and every small write is one.
    return pa.concat_tables([_together(alike, columns) for alike in _alike(parts)]).combine_chunks()


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


def _alike(parts: Sequence[ScanRows]) -> Iterator[list[tuple[int, ScanRows]]]:
    """Parts in a row that have the same columns: many small writes then cost little more than one."""
    group: list[tuple[int, ScanRows]] = []
    for place, part in enumerate(parts):
        if group and not _has_columns_of(part, group[0][1]):
            yield group
            group = []
        group.append((place, part))
    yield group


def _has_columns_of(part: ScanRows, other: ScanRows) -> bool:
    one, two = part.content.whole, other.content.whole
    return one is two or one.schema.equals(two.schema, check_metadata=True)


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


def _together(parts: Sequence[tuple[int, ScanRows]], columns: Columns) -> pa.Table:
    rows = conform(_joined([part.content for _, part in parts]), columns)
    counts = [part.content.length for _, part in parts]
    positions = pa.array([at for count in counts for at in range(count)], pa.int64())
    row_ids = pc.add(_each([part.file.row_id_start for _, part in parts], counts), positions)
    begins = snapshots = _each([part.file.begin for _, part in parts], counts)
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
            AMONG: _each([place for place, _ in parts], counts),
            WITHIN: positions,
        }
    )
    if all(part.deleted is None for _, part in parts):
        return table
    return table.filter(pa.array(list(_kept([part for _, part in parts])), pa.bool_()))


def _each(values: Sequence[int | None], counts: Sequence[int]) -> pa.Array:
    pairs = zip(values, counts, strict=True)
    return pa.array([value for value, count in pairs for _ in range(count)], pa.int64())


def _kept(parts: Sequence[ScanRows]) -> Iterator[bool]:
    for part in parts:
        gone = set[int]() if part.deleted is None else set(part.deleted.to_pylist())
        yield from (at not in gone for at in range(part.content.length))
