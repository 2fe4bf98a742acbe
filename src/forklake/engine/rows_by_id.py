"""Rows that are named by their ids."""

from __future__ import annotations

from collections.abc import Iterator

from forklake.engine.change_feed import KIND, ROW_COLUMN, SNAPSHOT_COLUMN, feed_query
from forklake.engine.dml import Found, Places, assigned, rewritten
from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.select import ALIAS
from forklake.engine.value_errors import computed_rows
from forklake.lazy.arrow import pa
from forklake.model.names import quoted
from forklake.scan.change_plan import ChangePlan
from forklake.scan.scan_plan import ScanPlan

IDS = "forklake_ids"
_WANTED = f"{ROW_ID} IN (SELECT id FROM {IDS})"


def find_ids(engine: Engine, plan: ScanPlan, ids: pa.Array) -> Found:
    """Where those of some rows are that a plan reads."""
    source = relation(plan, engine.storage, Wanted((), row_id=True, place=True))
    sql = f"SELECT {PLACE}, {POSITION} FROM ({source.sql}) WHERE {_WANTED}"
    places = Places(source.places)
    for batch in engine.stream(sql, {**source.tables, IDS: pa.table({"id": ids})}, plan):
        places.add(batch)
    return places.found()


def rows_with_ids(engine: Engine, plan: ScanPlan, ids: pa.Array) -> Iterator[pa.RecordBatch]:
    """Those of some rows that a plan reads, as files hold them, with their ids."""
    columns = plan.table.columns
    source = relation(plan, engine.storage, Wanted(columns, row_id=True, place=True))
    values = {column.name: assigned(column, quoted(column.name)) for column in columns}
    rest = f"FROM ({source.sql}) AS {ALIAS} WHERE {_WANTED}"
    tables = {**source.tables, IDS: pa.table({"id": ids})}
    rows = computed_rows(engine, plan, values, (ROW_ID, PLACE, POSITION), rest, tables)
    return rewritten(rows, columns, Places(source.places))


def changed_ids(engine: Engine, plan: ChangePlan, lost: ScanPlan) -> pa.Table:
    """Which rows changed, when and how, without their values; `lost` are files that lost rows."""
    found = feed_query(engine, plan, lost, None)
    sql = f"SELECT {KIND}, {SNAPSHOT_COLUMN}, {ROW_COLUMN} FROM ({found.sql})"
    return engine.table(sql, found.tables, plan.inserted)


def changed_since(engine: Engine, done: pa.Table, then: ScanPlan, now: ScanPlan) -> list[int]:
    """Rows that are not what some changes made of them, of which `then` reads the outcome; the first few.

    One that was inserted may be gone: nothing is left of the change then.
    """
    columns = now.table.columns
    tables = {"forklake_done": done, IDS: pa.table({"id": done.column(ROW_COLUMN)})}
    values = ", ".join(f"{quoted(column.name)} AS v{at}" for at, column in enumerate(columns))
    parts: list[str] = []
    for name, plan in (("made", then), ("found", now)):
        engine.verify(plan)
        source = relation(plan, engine.storage, Wanted(columns, row_id=True, prefix=f"forklake_{name}"))
        tables |= source.tables
        rows = f"SELECT {ROW_ID} AS id, {values} FROM ({source.sql}) WHERE {_WANTED}"
        parts.append(f"{name} AS MATERIALIZED ({rows})")
    other = " OR ".join(f"made.v{at} IS DISTINCT FROM found.v{at}" for at, _ in enumerate(columns))
    sql = (
        f"WITH {', '.join(parts)} SELECT DISTINCT d.{ROW_COLUMN} AS id FROM forklake_done AS d "
        f"LEFT JOIN made ON made.id = d.{ROW_COLUMN} LEFT JOIN found ON found.id = d.{ROW_COLUMN} "
        f"WHERE CASE d.{KIND} WHEN 'update_preimage' THEN false WHEN 'delete' THEN found.id IS NOT NULL "
        f"WHEN 'insert' THEN found.id IS NOT NULL AND ({other}) ELSE found.id IS NULL OR {other} END "
        "ORDER BY id LIMIT 10"
    )
    return engine.table(sql, tables).column("id").to_pylist()
