"""Merges with conditions: rows with the clause that each takes, the first whose condition holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from forklake.engine.dml import assigned
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.sql_text import computed, default_sql
from forklake.engine.upsert import SOURCE, SOURCE_ROWS, TARGET, Join
from forklake.engine.value_errors import computed_rows
from forklake.lazy.arrow import pa, pc
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.scan.scan_plan import ScanFile, ScanPlan, ScanRows

_CLAUSE = "forklake_clause"


@dataclass(frozen=True, slots=True)
class Clause:
    """What becomes of rows for which a condition holds."""

    action: str
    """`update`, `delete`, `insert` or `ignore`."""
    condition: str | None = None
    """As SQL over `source` and `target`."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """New values of columns, as SQL."""


def changed_rows(
    engine: Engine, plan: ScanPlan, join: Join, clauses: Sequence[Clause], *, is_matched: bool
) -> tuple[tuple[ScanFile | ScanRows, ...], Iterator[pa.RecordBatch]]:
    """Rows of the table that take a clause, with new values, their places and the clause.

    They meet a row of the source, or they meet none.
    """
    columns = plan.table.columns
    source = relation(plan, engine.storage, Wanted(columns, row_id=True, place=True))
    values = {
        column.name: _by_clause(column, clauses, f"{TARGET}.{quoted(column.name)}") for column in columns
    }
    extras = [*(f"{TARGET}.{name} AS {name}" for name in (ROW_ID, PLACE, POSITION)), _CLAUSE]
    # Rows as values keep the names of both sides, outside of what chooses the clause too.
    rows, how = (f"{TARGET}, {SOURCE}", "JOIN") if is_matched else (TARGET, "ANTI JOIN")
    joined = f"({source.sql}) AS {TARGET} {how} {join.source} AS {SOURCE} ON {join.condition}"
    tables = {**source.tables, SOURCE_ROWS: join.rows}
    batches = computed_rows(engine, plan, values, extras, _chosen(rows, clauses, joined), tables)
    return source.places, batches


def new_rows(
    engine: Engine, plan: ScanPlan, join: Join, clauses: Sequence[Clause]
) -> Iterator[pa.RecordBatch]:
    """Rows of the source that meet none of the table, as the clause that each takes inserts them."""
    source = relation(plan, engine.storage, Wanted(tuple(join.keys)))
    values = {
        column.name: _by_clause(column, clauses, "NULL", default_sql(column)) for column in plan.table.columns
    }
    joined = f"{join.source} AS {SOURCE} ANTI JOIN ({source.sql}) AS {TARGET} ON {join.condition}"
    tables = {**source.tables, SOURCE_ROWS: join.rows}
    rest = _chosen(SOURCE, clauses, joined)
    for batch in computed_rows(engine, plan, values, [_CLAUSE], rest, tables):
        inserted = chosen_by(batch, clauses, "insert")
        if inserted.num_rows:
            yield inserted.select(range(inserted.num_columns - 1))


def chosen_by(batch: pa.RecordBatch, clauses: Sequence[Clause], action: str) -> pa.RecordBatch:
    """The rows of a batch whose clause does this."""
    numbers = batch.column(_CLAUSE)
    wanted = pa.array([at for at, clause in enumerate(clauses) if clause.action == action], numbers.type)
    return batch.filter(pc.is_in(numbers, value_set=wanted))


def _chosen(rows: str, clauses: Sequence[Clause], joined: str) -> str:
    cases = [
        f"WHEN {'true' if clause.condition is None else f'({clause.condition})'} "
        f"THEN {'NULL' if clause.action == 'ignore' else at}"
        for at, clause in enumerate(clauses)
    ]
    case = f"CASE {' '.join(cases)} ELSE NULL END"
    return f"FROM (SELECT {rows}, {case} AS {_CLAUSE} FROM {joined}) WHERE {_CLAUSE} IS NOT NULL"


def _by_clause(column: Column, clauses: Sequence[Clause], old: str, default: str | None = None) -> str:
    """The value of a column by the clause that a row takes."""
    cases: list[str] = []
    for at, clause in enumerate(clauses):
        value = clause.values.get(column.name, default if clause.action == "insert" else None)
        if value is not None:
            cases.append(f"WHEN {at} THEN {computed(value, column.data_type)}")
    if not cases:
        return assigned(column, old)
    kept = computed(old, column.data_type)
    return f"CASE {_CLAUSE} {' '.join(cases)} ELSE {kept} END AS {quoted(column.name)}"
