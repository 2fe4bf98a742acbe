"""Merging: rows of a source that meet rows of a table, and those that meet none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from forklake.engine.dml import Places, as_written, assigned
from forklake.engine.local import Engine
from forklake.engine.relation import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.text import computed, text
from forklake.model.columns import Columns
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.scan.plan import ScanPlan

SOURCE, TARGET = "source", "target"
_TABLE = "forklake_source"


@dataclass(frozen=True, slots=True)
class Join:
    """Which rows of the source belong to which rows of the table."""

    rows: pa.Table
    keys: Sequence[Column]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the source calls the columns of the table."""

    @property
    def condition(self) -> str:
        """As SQL; NULL meets nothing."""
        return " AND ".join(
            f"{TARGET}.{quoted(key.name)} = {SOURCE}.{quoted(self.names[key.name])}" for key in self.keys
        )


def matched_rows(
    engine: Engine, plan: ScanPlan, join: Join, assignments: Mapping[str, str]
) -> tuple[Places, Iterator[pa.RecordBatch]]:
    """Rows of the table that meet one of the source, with new values and the ids that they had."""
    columns = plan.table.columns
    source = relation(plan, engine.storage, Wanted(columns, row_id=True, place=True))
    selected = [
        assigned(column, assignments.get(column.name, f"{TARGET}.{quoted(column.name)}"))
        for column in columns
    ]
    extras = f"{TARGET}.{ROW_ID}, {TARGET}.{PLACE}, {TARGET}.{POSITION}"
    sql = (
        f"SELECT {', '.join(selected)}, {extras} FROM ({source.sql}) AS {TARGET} "
        f"JOIN {_TABLE} AS {SOURCE} ON {join.condition}"
    )
    places = Places(source.places)

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in engine.stream(sql, {**source.tables, _TABLE: join.rows}, plan):
            places.add(batch)
            yield as_written(batch, columns)

    return places, rows()


def unmatched_rows(
    engine: Engine, plan: ScanPlan, join: Join, values: Mapping[str, str], columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Rows of the source that meet none of the table, as values for some columns of it."""
    source = relation(plan, engine.storage, Wanted(tuple(join.keys)))
    selected = ", ".join(
        f"{computed(values[column.name], column.data_type)} AS {quoted(column.name)}" for column in columns
    )
    sql = (
        f"SELECT {selected} FROM {_TABLE} AS {SOURCE} "
        f"ANTI JOIN ({source.sql}) AS {TARGET} ON {join.condition}"
    )
    return engine.stream(sql, {**source.tables, _TABLE: join.rows}, plan)


def bounds_of(engine: Engine, join: Join, key: Column) -> tuple[str, str] | None:
    """The lowest and highest key of the source, as SQL literals; None if there is none."""
    column = quoted(join.names[key.name])
    sql = f"SELECT min({column})::VARCHAR AS low, max({column})::VARCHAR AS high FROM {_TABLE}"
    found = engine.table(sql, {_TABLE: join.rows})
    low, high = found.column("low")[0].as_py(), found.column("high")[0].as_py()
    return None if low is None else (text(low), text(high))
