"""Moving inlined rows into Parquet files. They keep their ids, and the snapshots that inserted them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forklake.commit.draft import Draft
from forklake.data.parquet.schema import ROW_ID_NAME, SNAPSHOT_ID_NAME, arrow_schema
from forklake.data.parquet.table_writer import TableWriter
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.ids import SnapshotId
from forklake.model.table.columns import Columns
from forklake.model.table.files import WrittenFile
from forklake.scan.inlined_rows import gather
from forklake.scan.scan_plan import ScanRows, plan_files


@dataclass(frozen=True, slots=True)
class Flush:
    """Inlined rows of a table, and the files that hold them from now on."""

    table: Table
    moved: list[ScanRows]
    files: list[WrittenFile]
    newest_row: SnapshotId

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(file.record_count for file in self.files)

    def stage(self, draft: Draft) -> None:
        """Let the files take the place of the inlined rows."""
        staged = draft.staged(self.table)
        for part in self.moved:
            staged.retire(part, moved=True)
        for file in self.files:
            staged.add_file(file, newest_row=self.newest_row)


def write_inlined(draft: Draft, table: Table, writer: TableWriter, *, own: bool = False) -> Flush | None:
    """Write every inlined row of a table that is committed into files; None if there is none.

    With `own`, only rows that the catalog has not inherited.
    """
    plan = plan_files(draft.source(table), [])
    mine = draft.head.catalog_id
    stored = [part for part in plan.rows if part.file.id >= 0 and (not own or part.file.source == mine)]
    if not stored:
        return None
    rows = _moved(stored, table.columns)
    newest = SnapshotId(max(part.file.begin for part in stored))
    return Flush(table, stored, writer.write(rows) if rows.num_rows else [], newest)


def _moved(parts: Sequence[ScanRows], columns: Columns) -> pa.Table:
    schema = arrow_schema(columns, row_ids=True, snapshot_ids=True)
    rows = gather(parts, columns)
    names = [*(f"c{column.id}" for column in columns), ROW_ID_NAME, SNAPSHOT_ID_NAME]
    return pa.table([rows.column(name) for name in names], schema=schema)
