"""What is known of a table without reading it: its files, statistics and history, as values for listings."""

from __future__ import annotations

from dataclasses import dataclass

from forklake.commit.draft import Draft
from forklake.data.statistics import summarise
from forklake.model.changes import from_footprint
from forklake.model.entities import Table
from forklake.model.ids import ColumnId, SnapshotId, TableId
from forklake.model.snapshots import Snapshot
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import stats_of_both
from forklake.scan.scan_plan import ScanRows, plan_files, plan_scan
from forklake.store.files import TableSize, sizes_of_tables
from forklake.store.snapshots import footprints_between, snapshots


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table, or a batch of inlined rows."""

    path: str | None
    """Relative to the data path of the lake unless it is absolute; None for inlined rows."""
    record_count: int
    deleted_count: int
    """How many of its rows are deleted."""
    file_size_bytes: int
    row_id_start: int | None
    begin: SnapshotId
    """The snapshot that added it."""
    partition_values: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Statistics of a column over all files; deleted rows may be included."""

    null_count: int | None
    min: str | None
    max: str | None
    contains_nan: bool | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class TableStats:
    """Statistics of a table."""

    record_count: int
    file_count: int
    file_size_bytes: int
    inlined_rows: int
    columns: dict[str, ColumnFacts]


def files_of(draft: Draft, table: Table) -> list[TableFile]:
    """Every file of a table, oldest first, then inlined rows."""
    source = draft.source(table)
    plan = plan_scan(source)
    parted = [place.file for place in plan.files if place.file.partition_id is not None]
    values = source.reader.partition_values(parted) if parted and source.is_stored else {}
    return [
        TableFile(
            None if isinstance(place, ScanRows) else place.file.path,
            place.file.record_count,
            place.file.record_count - place.live_rows,
            place.file.file_size_bytes,
            place.file.row_id_start,
            place.file.begin,
            values.get(place.file.id, ()),
        )
        for place in (*plan.files, *plan.rows)
    ]


def sizes_of(draft: Draft) -> dict[TableId, TableSize]:
    """How many files, rows and bytes each table has, for a transaction too; empty ones are left out."""
    head = draft.head
    sizes = sizes_of_tables(draft.state.database, head.catalog_id, head.snapshot_id)
    for table, _ in draft.staged_rows():
        plan = plan_scan(draft.source(table))
        files = [place.file for place in plan.files]
        deletes = [file.deletes for file in files if file.deletes is not None]
        sizes[table.id] = TableSize(
            len(files),
            sum(file.file_size_bytes for file in files),
            len(deletes),
            sum(delete.file_size_bytes for delete in deletes),
            sum(place.live_rows for place in (*plan.files, *plan.rows)),
        )
    return sizes


def stats_of(draft: Draft, table: Table) -> TableStats:
    """The statistics of a table: rows exactly, bounds of columns as its files have them."""
    source = draft.source(table)
    rows = plan_files(source, []).rows
    totals = source.reader.totals() if source.is_stored else None
    known: dict[ColumnId, ColumnStats] = source.reader.column_totals() if source.is_stored else {}
    for part in rows:
        for entry in summarise(part.rows, table.columns):
            before = known.get(entry.column_id)
            known[entry.column_id] = entry if before is None else stats_of_both(before, entry)
    columns = {column.name: known[column.id] for column in table.columns if column.id in known}
    return TableStats(
        0 if totals is None else totals.record_count,
        0 if totals is None else totals.files - sum(part.file.id >= 0 for part in rows),
        0 if totals is None else totals.file_size_bytes,
        sum(part.live_rows for part in rows),
        {
            name: ColumnFacts(
                entry.null_count, entry.min_value, entry.max_value, entry.contains_nan, entry.size_bytes
            )
            for name, entry in columns.items()
        },
    )


def history_of(draft: Draft, table: Table) -> list[Snapshot]:
    """The commits that touched a table or its rows, oldest first."""
    database, catalog = draft.state.database, draft.head.catalog_id
    found = footprints_between(database, catalog, -1, draft.head.snapshot_id)
    touched = {
        snapshot
        for snapshot, footprint in found
        if footprint is not None and any(change.object_id == table.id for change in from_footprint(footprint))
    }
    return [snapshot for snapshot in snapshots(database, catalog) if snapshot.id in touched]
