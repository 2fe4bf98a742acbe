"""The lowest and highest value of a column: from statistics if they are exact, or by reading."""

from __future__ import annotations

from typing import Any

from forklake.engine.condition import naming
from forklake.engine.local import Engine
from forklake.engine.scan_sql import Wanted, relation
from forklake.engine.select import ALIAS, where
from forklake.engine.sql_text import shown, text
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.types.data_types import to_sql
from forklake.model.types.sort_keys import has_key, has_nan
from forklake.scan.scan_plan import ScanPlan, Source, plan_files, plan_scan


def bound(
    engine: Engine, source: Source, predicate: Predicate | None, column: Column, *, highest: bool
) -> Any:
    """The lowest or highest value as Python has it, None if there is no value."""
    known = _from_statistics(source, column, highest=highest) if predicate is None else None
    if known is not None:
        # What is not in files comes along: inlined rows, and those of the transaction.
        plan = plan_files(source, [])
        if not plan.files:
            rows = relation(plan, engine.storage, Wanted((column,)))
            values = [text(value) for value in known]
            type = to_sql(column.data_type)
            listed = " UNION ALL ".join(f"SELECT CAST({value} AS {type})" for value in values)
            sql = f"SELECT {quoted(column.name)} AS v FROM ({rows.sql})"
            sql = f"{sql} UNION ALL {listed}" if values else sql
            return _outermost(engine, sql, rows.tables, column, plan, highest=highest)
    plan = plan_scan(source, predicate, engine.storage)
    columns = tuple(
        c
        for c in source.table.columns
        if c.name == column.name or (predicate is not None and c.name in predicate.columns)
    )
    rows = relation(plan, engine.storage, Wanted(columns))
    sql = f"SELECT {quoted(column.name)} AS v FROM ({rows.sql}) AS {ALIAS}{where(plan)}"
    with naming(predicate):
        return _outermost(engine, sql, rows.tables, column, plan, highest=highest)


def _outermost(
    engine: Engine, sql: str, tables: Any, column: Column, plan: ScanPlan, *, highest: bool
) -> Any:
    function = "max" if highest else "min"
    found: pa.Table = engine.table(
        f"SELECT {shown(f'{function}(v)', column.data_type)} AS v FROM ({sql})", tables, plan
    )
    return found.column("v")[0].as_py()


_ZEROS = ("0.0", "-0.0")
"""Writers give either for both: only the rows know which zero it is."""


def _from_statistics(source: Source, column: Column, *, highest: bool) -> list[str] | None:
    """The outermost values of all files as text; None if statistics do not say exactly."""
    if not source.is_stored:
        return []
    untouched = not (source.uncommitted.retired or source.uncommitted.deleted)
    if not (untouched and has_key(column.data_type)) or source.reader.has_deletes():
        return None
    best: tuple[str, str] | None = None
    for begin, stats in source.reader.bounds(column.id):
        if stats is None and begin < source.begins.get(column.id, begin):
            return None
        if stats is None or (has_nan(column.data_type) and stats.contains_nan is not False):
            # NaN lies above all that statistics know of, and files of others do not say whether it is there.
            return None
        key, value = (stats.max_key, stats.max_value) if highest else (stats.min_key, stats.min_value)
        if key is None:
            continue
        if value is None or value in _ZEROS:
            return None
        if best is None or (key > best[0] if highest else key < best[0]):
            best = key, value
    return [] if best is None else [best[1]]
