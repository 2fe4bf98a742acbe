"""Rows at positions that indexes found, read by Arrow: a query would look at all the others too."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from forklake.data.parquet.schema import ROW_ID_NAME
from forklake.data.storage.storage import Storage
from forklake.engine.local import Engine
from forklake.engine.plain_files import PlainFile, plain_file
from forklake.lazy.arrow import pa, pc
from forklake.lazy.numpy import np
from forklake.model.ids import DataFileId
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import Positions, ScanFile, ScanPlan

_THREADS, _THREADS_FAR = 2, 16
"""How many files are read at a time, of a disk and of a bucket."""
_MOST_ROWS = 4_000_000
"""How many rows are in memory at most."""
_POSITION = "position"


def with_rows_found(engine: Engine, plan: ScanPlan, columns: Columns) -> ScanPlan:
    """The plan with the rows at hand that indexes found, in these columns and with their ids.

    Files that Arrow would read otherwise than a query does are left to the query.
    """
    files = [file for file in plan.files if file.file.id in plan.found]
    if not files or sum(len(plan.found[file.file.id]) for file in files) > _MOST_ROWS:
        return plan
    engine.verify(plan)

    def read(file: ScanFile) -> pa.Table | None:
        return _rows(engine.storage, file, plan.found[file.file.id], columns)

    if len(files) == 1:
        tables = [read(files[0])]
    else:
        threads = _THREADS if engine.storage.is_local else _THREADS_FAR
        with ThreadPoolExecutor(threads, "forklake-rows") as pool:
            tables = list(pool.map(read, files))
    held: dict[DataFileId, pa.Table] = dict(plan.held)
    for file, table in zip(files, tables, strict=True):
        if table is not None:
            held[file.file.id] = table
    return replace(plan, held=held)


def _rows(storage: Storage, file: ScanFile, positions: Positions, columns: Columns) -> pa.Table | None:
    with plain_file(storage, file.file, columns, row_ids=True) as plain:
        if plain is None:
            return None
        rows = pa.concat_tables(_parts(plain, positions))
        found = {name: rows.column(inside) for name, inside in plain.names.items()}
    ids = pc.add(positions, pa.scalar(file.file.row_id_start, pa.int64()))
    if ROW_ID_NAME in found:
        ids = pc.coalesce(found[ROW_ID_NAME], ids)
    return pa.table({**found, _POSITION: positions, ROW_ID_NAME: ids})


def _parts(plain: PlainFile, positions: Positions) -> Iterator[pa.Table]:
    """Rows at positions, which ascend, by the row groups that have some."""
    metadata = plain.parquet.metadata
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    ends = np.cumsum([0, *counts])
    wanted = positions.to_numpy()
    at = np.searchsorted(wanted, ends)
    # What would lie behind the last row group is refused there.
    at[-1] = len(wanted)
    for group in range(len(counts)):
        some = wanted[at[group] : at[group + 1]] - ends[group]
        if len(some):
            yield plain.read(group).take(pa.array(some))
