"""Finding rows to delete, update or merge: their places, and what is to be written instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from forklake.data.input.lossless import fit
from forklake.data.parquet.schema import arrow_schema
from forklake.engine.condition import naming
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.select import ALIAS, where
from forklake.engine.sql_text import computed
from forklake.engine.value_errors import computed_rows
from forklake.errors import InvalidData, NullNotAllowed
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.entities import Column
from forklake.model.ids import DataFileId
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan, ScanRows

_BITS = 40
"""How many of a number are the position in a file; the others are the file."""

Found = Mapping[DataFileId, tuple[ScanFile | ScanRows, Positions]]
"""Rows by the file that they are in."""


@dataclass(slots=True)
class Places:
    """Rows that were found, collected while a result streams by."""

    places: tuple[ScanFile | ScanRows, ...]
    parts: list[pa.Table] = field(default_factory=list[Any])
    """What was noted so far."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Note the places of the rows of a batch."""
        self.parts.append(pa.Table.from_batches([batch.select([PLACE, POSITION])]))

    def found(self, *, twice: Literal["never", "refused", "allowed"] = "never") -> Found:
        """Every row, by its file; a join may find one twice."""
        if not self.parts:
            return {}
        table = pa.concat_tables(self.parts)
        places, positions = (table.column(name).to_numpy() for name in (PLACE, POSITION))
        # As one number each they are sorted far quicker; no file has so many rows.
        both = np.sort(places.astype(np.int64) << _BITS | positions)
        if twice != "never":
            is_new = np.diff(both, prepend=-1) != 0
            if twice == "refused" and not is_new.all():
                raise InvalidData(
                    "several rows of the source match one row of the table: make its keys unique"
                )
            both = both[is_new]
        numbers, sorted_positions = both >> _BITS, pa.array(both & ((1 << _BITS) - 1))
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        found: dict[DataFileId, tuple[ScanFile | ScanRows, Positions]] = {}
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            place = self.places[numbers[start]]
            found[place.file.id] = (place, sorted_positions.slice(start, end - start))
        return found


def find_rows(engine: Engine, plan: ScanPlan, count: Callable[[int], None] | None = None) -> Found:
    """The rows that meet the condition of a plan; `count` hears of each batch how many it found."""
    needed = plan.predicate.columns if plan.predicate is not None else frozenset[str]()
    columns = tuple(column for column in plan.table.columns if column.name in needed)
    source = relation(plan, engine.storage, Wanted(columns, place=True))
    sql = f"SELECT {PLACE}, {POSITION} FROM ({source.sql}) AS {ALIAS}{where(plan)}"
    places = Places(source.places)
    with naming(plan.predicate):
        for batch in engine.stream(sql, source.tables, plan):
            places.add(batch)
            if count is not None:
                count(batch.num_rows)
    return places.found()


def updated_rows(
    engine: Engine, plan: ScanPlan, assignments: Mapping[str, str]
) -> tuple[Places, Iterator[pa.RecordBatch]]:
    """The rows that meet the condition of a plan with new values, keeping their ids.

    Each assignment is an expression over the old row. The places are complete when the rows have been read.
    """
    source = relation(plan, engine.storage, Wanted(plan.table.columns, row_id=True, place=True))
    values = {
        column.name: assigned(column, assignments.get(column.name, quoted(column.name)))
        for column in plan.table.columns
    }
    rest = f"FROM ({source.sql}) AS {ALIAS}{where(plan)}"
    rows = computed_rows(engine, plan, values, (ROW_ID, PLACE, POSITION), rest, source.tables)
    places = Places(source.places)
    return places, rewritten(rows, plan.table.columns, places)


def assigned(column: Column, expression: str) -> str:
    """A new value of a column, in its type."""
    return f"{computed(expression, column.data_type)} AS {quoted(column.name)}"


def rewritten(
    batches: Iterator[pa.RecordBatch], columns: Columns, places: Places
) -> Iterator[pa.RecordBatch]:
    """Rows with new values as files hold them; their places are noted on the way."""
    for batch in batches:
        places.add(batch)
        yield as_written(batch, columns)


def as_written(batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """A result as files hold it; rows whose id is only provisional get theirs from the commit."""
    arrays = fitted(batch, columns)
    ids = batch.column(batch.schema.get_field_index(ROW_ID))
    arrays.append(pc.if_else(pc.less(ids, 0), pa.scalar(None, pa.int64()), ids))
    return pa.record_batch(arrays, schema=arrow_schema(columns, row_ids=True))


def fitted(batch: pa.RecordBatch, columns: Columns) -> list[pa.Array]:
    """The columns that a batch begins with, as files hold them."""
    arrays = [fit(batch.column(at), column) for at, column in enumerate(columns)]
    for array, column in zip(arrays, columns, strict=True):
        if array.null_count and not column.nullable:
            raise NullNotAllowed(
                f'column "{column.name}" is NOT NULL, and {array.null_count} rows would be NULL'
            )
    return arrays
