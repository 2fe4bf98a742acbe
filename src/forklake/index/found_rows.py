"""What a kind found, as positions by data file. No row passes through Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forklake.index.key_values import shown
from forklake.index.kind import Found, Positions
from forklake.index.segment_parquet import ORDINAL, POSITION
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.entities import Column

SEGMENT = "segment"
_BITS = 40
"""How many of a number are the position in a file; the others are the file."""


def found(hits: Sequence[tuple[int, pa.Table]], columns: Sequence[Column] | None) -> Found:
    """Entries of segments, by the number of each; with the columns that entries hold if they are wanted."""
    positions: dict[tuple[int, int], Positions] = {}
    by_segment: dict[int, list[pa.Table]] = {}
    for number, table in hits:
        by_segment.setdefault(number, []).append(table)
    for number, tables in by_segment.items():
        table = pa.concat_tables(each.select([ORDINAL, POSITION]) for each in tables)
        positions |= {(number, ordinal): found for ordinal, found in by_ordinal(table).items()}
    return Found(positions, None if columns is None else _rows(hits, columns))


def by_segment(rows: pa.Table) -> dict[tuple[int, int], Positions]:
    """Positions by the number of a segment and the ordinal of a data file in it."""
    numbers = rows.column(SEGMENT).to_numpy()
    return {
        (number, ordinal): positions
        for number in np.unique(numbers).tolist()
        for ordinal, positions in by_ordinal(rows.filter(pa.array(numbers == number))).items()
    }


def by_ordinal(table: pa.Table) -> Mapping[int, Positions]:
    """Positions by ordinal, ascending and each once."""
    ordinals, positions = (table.column(name).to_numpy() for name in (ORDINAL, POSITION))
    # As one number each they are sorted far quicker; no data file has so many rows.
    both = ascending(ordinals.astype(np.int64) << _BITS | positions)
    ordinals, positions = both >> _BITS, both & ((1 << _BITS) - 1)
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
    present = ordinals[starts]
    ends = [*starts.tolist(), len(ordinals)][1:]
    return {
        ordinal: pa.array(positions[start:end], pa.int64())
        for ordinal, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True)
    }


def ascending(values: np.ndarray) -> np.ndarray:
    """Numbers in order, each once: quicker than `np.unique`, which hashes them before."""
    values = np.sort(values)
    return values[np.diff(values, prepend=~values[:1]) != 0]


def _rows(hits: Sequence[tuple[int, pa.Table]], columns: Sequence[Column]) -> pa.Table:
    return pa.concat_tables(
        as_rows(table, pa.array(np.full(table.num_rows, number, np.int64)), columns) for number, table in hits
    )


def as_rows(entries: pa.Table, segments: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> pa.Table:
    """Entries of segments as the table has their columns, with where they were found."""
    shown_columns = {
        str(column.id): shown(entries.column(str(column.id)), column.data_type) for column in columns
    }
    places = {
        SEGMENT: segments,
        ORDINAL: entries.column(ORDINAL).cast(pa.int64()),
        POSITION: entries.column(POSITION),
    }
    return pa.table({**places, **shown_columns})
