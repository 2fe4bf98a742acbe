"""Upserts: rows of a source that meet rows of a table, and those that meet none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from forklake.engine.dml import Places, assigned, rewritten
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.sql_text import guarded, text
from forklake.engine.value_errors import computed_rows
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows

SOURCE, TARGET = "source", "target"
SOURCE_ROWS = "forklake_source"


@dataclass(frozen=True, slots=True)
class Join:
    """Which rows of the source belong to which rows of the table."""

    rows: pa.Table
    keys: Sequence[Column]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the source calls the columns of the table."""

    @property
    def source(self) -> str:
        """The rows of the source as a sub-select."""
        columns = [f"{guarded(quoted(name))} AS {quoted(name)}" for name in self.rows.column_names]
        return f"(SELECT {', '.join(columns)} FROM {SOURCE_ROWS})"

    @property
    def condition(self) -> str:
        """As SQL; NULL meets nothing."""
        return " AND ".join(
            f"{TARGET}.{quoted(key.name)} = {SOURCE}.{quoted(self.names[key.name])}" for key in self.keys
        )

    @property
    def key_values(self) -> pa.Table:
        """The keys of the source, in columns named by column id."""
        columns = [self.rows.column(self.names[key.name]) for key in self.keys]
        return pa.table(columns, [str(key.id) for key in self.keys])

    def among(self, places: Sequence[ScanFile | ScanRows]) -> Self:
        """The same where rows of the table come from these places, for joins that have to know them."""
        return self


def matched_rows(
    engine: Engine, plan: ScanPlan, join: Join, assignments: Mapping[str, str]
) -> tuple[Places, Iterator[pa.RecordBatch]]:
    """Rows of the table that meet one of the source, with new values and the ids that they had."""
    columns = plan.table.columns
    read = columns_read(columns, join, assignments)
    source = relation(plan, engine.storage, Wanted(read, row_id=True, place=True))
    values = {
        column.name: assigned(column, assignments.get(column.name, f"{TARGET}.{quoted(column.name)}"))
        for column in columns
    }
    extras = [f"{TARGET}.{name}" for name in (ROW_ID, PLACE, POSITION)]
    join = join.among(source.places)
    rest = f"FROM ({source.sql}) AS {TARGET} JOIN {join.source} AS {SOURCE} ON {join.condition}"
    rows = computed_rows(engine, plan, values, extras, rest, {**source.tables, SOURCE_ROWS: join.rows})
    places = Places(source.places)
    return places, rewritten(rows, columns, places)


def matched_places(engine: Engine, plan: ScanPlan, join: Join) -> tuple[Places, Iterator[pa.RecordBatch]]:
    """The places of rows of the table that meet one of the source, complete when they have been read."""
    source = relation(plan, engine.storage, Wanted(tuple(join.keys), place=True))
    join = join.among(source.places)
    rest = f"FROM ({source.sql}) AS {TARGET} JOIN {join.source} AS {SOURCE} ON {join.condition}"
    extras = [f"{TARGET}.{name}" for name in (PLACE, POSITION)]
    rows = computed_rows(engine, plan, {}, extras, rest, {**source.tables, SOURCE_ROWS: join.rows})
    places = Places(source.places)

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            places.add(batch)
            yield batch

    return places, noted()


def columns_read(columns: Columns, join: Join, assignments: Mapping[str, str]) -> Columns:
    """The columns of the table that a merge reads: of those that it replaces only what expressions name."""
    texts = list(assignments.values())
    keys = {key.name for key in join.keys}
    return tuple(
        column
        for column in columns
        if column.name in keys
        or column.name not in assignments
        or any(f"{TARGET}.{quoted(column.name)}" in text for text in texts)
    )


def unmatched_rows(
    engine: Engine, plan: ScanPlan, join: Join, values: Mapping[str, str], columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Rows of the source that meet none of the table, as values for some columns of it."""
    source = relation(plan, engine.storage, Wanted(tuple(join.keys)))
    selected = {column.name: assigned(column, values[column.name]) for column in columns}
    rest = f"FROM {join.source} AS {SOURCE} ANTI JOIN ({source.sql}) AS {TARGET} ON {join.condition}"
    return computed_rows(engine, plan, selected, (), rest, {**source.tables, SOURCE_ROWS: join.rows})


def bounds_of(engine: Engine, join: Join, key: Column) -> tuple[str, str] | None:
    """The lowest and highest key of the source, as SQL literals; None if there are none."""
    column = quoted(join.names[key.name])
    sql = f"SELECT min({column})::VARCHAR AS low, max({column})::VARCHAR AS high FROM {SOURCE_ROWS}"
    found = engine.table(sql, {SOURCE_ROWS: join.rows})
    low, high = found.column("low")[0].as_py(), found.column("high")[0].as_py()
    # SQL has no way to write NUL inside of a text.
    return None if low is None or "\0" in low + high else (text(low), text(high))
