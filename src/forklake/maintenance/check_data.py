"""What the rows of a Parquet file say of its columns, where the footer is not to be believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from forklake.data.conform import id_of
from forklake.data.statistics import summary
from forklake.errors import UnknownType
from forklake.lazy.arrow import pa, pc, pq
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import stats_of_both
from forklake.model.types.arrow import to_arrow
from forklake.model.types.sort_keys import LOWEST, NAN, has_key


def data_stats(
    file: pq.ParquetFile, columns: tuple[Column, ...], places: Mapping[ColumnId, int]
) -> dict[ColumnId, ColumnStats]:
    """Statistics of the columns of a file that are in no other, from its values, one row group at a time."""
    found: dict[ColumnId, ColumnStats] = {}
    paths = {column.id: file.metadata.schema.column(places[column.id]).path for column in columns}
    plain = [column for column in columns if "." not in paths[column.id] and has_key(column.data_type)]
    if not plain:
        return found
    for group in range(file.metadata.num_row_groups):
        rows = file.read_row_group(group, columns=[paths[column.id] for column in plain])
        for column in plain:
            seen = _summary(column, rows.column(paths[column.id]))
            if seen is not None:
                known = found.get(column.id)
                found[column.id] = seen if known is None else stats_of_both(known, seen)
    return found


def row_stats(rows: pa.Table, columns: Iterable[Column]) -> Iterator[ColumnStats]:
    """Statistics of columns of rows that are at hand, by their field ids."""
    places = {id_of(given): at for at, given in enumerate(rows.schema)}
    for column in columns:
        if column.id in places and has_key(column.data_type):
            seen = _summary(column, rows.column(places[column.id]))
            if seen is not None:
                yield seen


def _summary(column: Column, values: pa.ChunkedArray) -> ColumnStats | None:
    """Statistics of some values; None where Arrow cannot compare them."""
    try:
        typed = (
            values if values.type == to_arrow(column.data_type) else values.cast(to_arrow(column.data_type))
        )
        is_float = pa.types.is_floating(typed.type)
        plain = typed.filter(pc.invert(pc.is_nan(typed))) if is_float else typed
        ends = pc.min_max(plain)
    except (pa.ArrowException, UnknownType):
        return None
    known = summary(
        column.id, column.data_type, pa.array([ends["min"].as_py(), ends["max"].as_py()], typed.type)
    )
    known = replace(known, value_count=len(values), null_count=values.null_count)
    if is_float and len(plain) < len(typed) - typed.null_count:
        # Text leaves NaN out, as footers do; keys have it above all others.
        known = replace(known, min_key=known.min_key or LOWEST, max_key=NAN, contains_nan=True)
    return known


def wrong_positions(file: pq.ParquetFile, rows: int | None) -> tuple[str, str] | None:
    """What is wrong with the positions of a delete file about a data file of so many rows."""
    positions = file.read(columns=["pos"]).column("pos")
    if len(positions) != len(positions.unique()):
        return "rows", "the delete file names rows twice"
    if len(positions) and rows is not None:
        ends = pc.min_max(positions)
        if ends["min"].as_py() < 0 or ends["max"].as_py() >= rows:
            return "rows", f"the delete file names rows that the data file, of {rows} rows, does not have"
    return None
