"""Random files for indexes: few values, often, and NULL; and the same rows after columns were widened."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

from forklake.model.sql.predicate import Predicate
from tests.unit.index.segments import VALUES, array, matching

TYPES = st.sampled_from(sorted(VALUES))
WIDER = {
    "TINYINT": ("BIGINT", "HUGEINT", "REAL", "DOUBLE", "DECIMAL(30,3)"),
    "INTEGER": ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(30,3)"),
    "BIGINT": ("HUGEINT", "DECIMAL(30,3)"),
    "UBIGINT": ("HUGEINT",),
    "REAL": ("DOUBLE",),
    "DECIMAL(9,2)": ("DECIMAL(30,3)",),
    "DATE": ("TIMESTAMP", "TIMESTAMPTZ"),
    "TIMESTAMP_S": ("TIMESTAMP_MS", "TIMESTAMP"),
}


@st.composite
def files(draw: st.DrawFn, types: tuple[str, ...]) -> dict[int, pa.Table]:
    """Some files of some columns by ordinal, with few values, often, and NULL."""

    def values(type: str, size: int) -> pa.Array:
        known = st.sampled_from((None, *VALUES[type]))
        return array(draw(st.lists(known, min_size=size, max_size=size)), type)

    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
    return {
        at: pa.table({f"c{number}": values(type, size) for number, type in enumerate(types)})
        for at, size in enumerate(sizes)
    }


def widened(files: dict[int, pa.Table], types: tuple[str, ...]) -> dict[int, pa.Table]:
    """The same rows as the table shows them once its columns have other types."""
    targets = [array([], type).type for type in types]
    return {
        at: pa.table(
            [
                values if values.type == target else values.cast(target)
                for values, target in zip(table.columns, targets, strict=True)
            ],
            table.column_names,
        )
        for at, table in files.items()
    }


def with_more(files: dict[int, pa.Table]) -> dict[int, pa.Table]:
    """The same rows with a column of which each value is another."""
    return {
        at: table.append_column("more", pa.array([f"{at}-{n}" for n in range(len(table))], pa.string()))
        for at, table in files.items()
    }


def rows_that_match(
    present: tuple[dict[int, pa.Table], ...], predicate: Predicate
) -> dict[tuple[int, int], list[int]]:
    """By segment and ordinal the positions of the rows that meet a condition, as DuckDB says."""
    return {
        (number, at): positions
        for number, files in enumerate(present)
        for at, table in files.items()
        if (positions := matching(table, predicate))
    }


def picked(present: tuple[dict[int, pa.Table], ...], positions: dict[tuple[int, int], list[int]]) -> pa.Table:
    """The rows at these positions."""
    return pa.concat_tables(
        [
            table.take(pa.array(positions.get((number, at), []), pa.int64()))
            for number, files in enumerate(present)
            for at, table in files.items()
        ]
    )
