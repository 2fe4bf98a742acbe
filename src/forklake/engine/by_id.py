"""Rows that are named by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from forklake.engine.blame import computed_rows
from forklake.engine.changes import KIND, ROW_COLUMN, SNAPSHOT_COLUMN, feed_query
from forklake.engine.dml import Found, Places, assigned, rewritten
from forklake.engine.local import Engine
from forklake.engine.relation import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.engine.select import ALIAS
from forklake.model.names import quoted
from forklake.scan.changes import ChangePlan
from forklake.scan.plan import ScanPlan

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


def first_met(engine: Engine, done: pa.Table, later: pa.Table) -> dict[str, Any] | None:
    """The first change of a row that was changed before; rows that came and went again do not count."""
    sql = (
        f"SELECT l.* FROM later AS l JOIN done AS d ON l.{ROW_COLUMN} = d.{ROW_COLUMN} "
        f"WHERE NOT (d.{KIND} = 'insert' AND l.{KIND} = 'delete') "
        f"ORDER BY l.{SNAPSHOT_COLUMN}, l.{ROW_COLUMN} LIMIT 1"
    )
    found = engine.table(sql, {"done": done, "later": later}).to_pylist()
    return found[0] if found else None
