"""Finding a row by its id."""

from __future__ import annotations

from dataclasses import dataclass

from forklake.engine.local import Engine
from forklake.engine.scan_sql import PLACE, POSITION, ROW_ID, Wanted, relation
from forklake.model.ids import ROW_ID_COLUMN, DataFileId
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import key_of
from forklake.scan.scan_plan import Source, plan_files


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The file and position of a row."""

    row_id: int
    data_file_id: DataFileId
    path: str | None
    """The file, relative to the data path of the lake unless it is absolute; None for an inlined row."""
    position: int
    """Which row of the file, counted from 0."""


def locate_row(engine: Engine, source: Source, row_id: int) -> RowPlace | None:
    """Look into the few files that can hold the row: by the ids given to them, or that their rows carry."""
    reader = source.reader
    key = key_of(row_id, Scalar("int64")) or ""
    files = reader.files_with_row(row_id) + (reader.files_by_key(ROW_ID_COLUMN, key, key) or [])
    plan = plan_files(source, list({file.id: file for file in files}.values()))
    found = relation(plan, engine.storage, Wanted((), row_id=True, place=True))
    sql = f"SELECT {PLACE} AS place, {POSITION} AS position FROM ({found.sql}) WHERE {ROW_ID} = {int(row_id)}"
    rows = engine.table(sql, found.tables, plan)
    if not rows.num_rows:
        return None
    file = found.places[rows.column("place")[0].as_py()].file
    path = None if file.inlined else file.path
    return RowPlace(row_id, file.id, path, rows.column("position")[0].as_py())
