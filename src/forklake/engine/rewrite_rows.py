"""Rows as they are, on their way into other files: with their ids and the snapshots that inserted them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from forklake.data.parquet.schema import arrow_schema
from forklake.engine.dml import assigned, fitted
from forklake.engine.local import Engine
from forklake.engine.scan_sql import ROW_ID, SNAPSHOT, Wanted, relation
from forklake.engine.select import ALIAS
from forklake.lazy.arrow import pa
from forklake.model.names import quoted
from forklake.model.table.layout import SortKey
from forklake.scan.scan_plan import ScanPlan

_FEW = 1_000_000
"""So many rows are put into the order in which they came, if files are not read in it; more stream by."""


def moved_rows(
    engine: Engine, plan: ScanPlan, sort: Sequence[SortKey] = (), macros: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of a plan as files hold them, in the order of the table. DuckDB sorts on disk if it must."""
    columns = plan.table.columns
    source = relation(plan, engine.storage, Wanted(columns, row_id=True, snapshot=True))
    values = [assigned(column, f"{ALIAS}.{quoted(column.name)}") for column in columns]
    # Values that rows are sorted by are not those that files hold: a time with a zone would have lost it.
    named = [(f"{ALIAS}_key_{at}", key) for at, key in enumerate(sort)]
    keys = [replace(key, name=f"{ALIAS}.{name}", is_expression=True).term for name, key in named]
    if not keys and sum(place.live_rows for place in (*plan.files, *plan.rows)) <= _FEW:
        keys = [] if _comes_in_order(plan) else [ROW_ID]
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    sorted_by = "".join(f", {key.sql} AS {name}" for name, key in named)
    rows = f"(SELECT *{sorted_by} FROM ({source.sql}))" if named else f"({source.sql})"
    sql = f"SELECT {', '.join((*values, ROW_ID, SNAPSHOT))} FROM {rows} AS {ALIAS}{order}"
    schema = arrow_schema(columns, row_ids=True, snapshot_ids=True)
    for batch in engine.stream(sql, source.tables, plan, macros):
        arrays = [*fitted(batch, columns), *(batch.column(len(columns) + at) for at in range(2))]
        yield pa.record_batch(arrays, schema=schema)


def _comes_in_order(plan: ScanPlan) -> bool:
    """Whether files are read one after another; those with deletes, for one, come after all others."""
    kinds = {(one.deleted is None and one.file.deletes is None, one.file.mapping_id) for one in plan.files}
    return len(kinds) + bool(plan.rows) == 1 and not plan.has_old_names
