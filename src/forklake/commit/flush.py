"""Moving inlined rows into Parquet files. They keep their ids, and the snapshots that inserted them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from forklake.commit.draft import Draft
from forklake.commit.output import TableOutput
from forklake.data.conform import conform
from forklake.data.schema import ROW_ID_NAME, arrow_schema
from forklake.model.columns import Columns
from forklake.model.entities import Table
from forklake.model.ids import SnapshotId
from forklake.model.kernels import pc
from forklake.scan.plan import ScanRows, plan_files


def flush_rows(draft: Draft, table: Table, output: TableOutput) -> int:
    """Stage the move of every inlined row of a table that is committed; returns how many there are."""
    plan = plan_files(draft.source(table), [])
    stored = [part for part in plan.rows if part.file.id >= 0]
    if not stored:
        return 0
    staged = draft.staged(table)
    rows = pa.concat_tables(list(_moved(stored, table.columns)))
    newest = SnapshotId(max(part.file.begin for part in stored))
    for part in stored:
        staged.retire(part, moved=True)
    for file in output.write(rows) if rows.num_rows else ():
        staged.add_file(file, newest_row=newest)
    return rows.num_rows


def _moved(parts: Sequence[ScanRows], columns: Columns) -> Iterator[pa.Table]:
    schema = arrow_schema(columns, row_ids=True, snapshot_ids=True)
    for part in parts:
        rows = conform(part.rows, columns)
        count = rows.num_rows
        positions = pa.array(range(count), pa.int64())
        ids = pc.add(positions, pa.scalar(part.file.row_id_start, pa.int64()))
        if ROW_ID_NAME in rows.column_names:
            ids = pc.coalesce(rows.column(ROW_ID_NAME), ids)
        snapshots = pa.repeat(pa.scalar(part.file.begin, pa.int64()), count)
        kept = [rows.column(at) for at in range(len(columns))]
        table = pa.table([*kept, ids, snapshots], schema=schema)
        if part.deleted is not None:
            table = table.filter(pc.invert(pc.is_in(positions, value_set=part.deleted)))
        yield table
