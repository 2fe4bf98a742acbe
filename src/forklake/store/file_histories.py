"""Data files as several catalogs have or had them: when they ended there, and what they lost when."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from forklake.model.ids import CatalogId, DataFileId, SnapshotId
from forklake.model.table.files import DeleteFile
from forklake.store.backend import Database
from forklake.store.file_values import delete_file


@dataclass(frozen=True, slots=True)
class FileHistory:
    """A file in one catalog."""

    record_count: int
    end: SnapshotId | None
    deletes: list[DeleteFile] = field(default_factory=list[DeleteFile])
    """Every delete file that it ever had, in order."""
    inlined: dict[SnapshotId, list[int]] = field(default_factory=dict[SnapshotId, list[int]])
    """The positions that each commit deleted inline."""


def file_histories(
    database: Database, catalogs: Collection[CatalogId], files: Collection[DataFileId]
) -> dict[tuple[CatalogId, DataFileId], FileHistory]:
    """Some files in some catalogs."""
    listed = json.dumps([(catalog, 0, 0) for catalog in sorted(catalogs)])
    wanted = json.dumps(sorted(files))
    found: dict[tuple[CatalogId, DataFileId], FileHistory] = {}
    for catalog, file, records, _, end in database.rows("file_histories", catalogs=listed, files=wanted):
        found[catalog, file] = FileHistory(records, end)
    for catalog, *row in database.rows("delete_histories", catalogs=listed, files=wanted):
        deletes = delete_file(row)
        # What a file has lost may be there for longer than the file: it is collected on its own.
        if (catalog, deletes.data_file_id) in found:
            found[catalog, deletes.data_file_id].deletes.append(deletes)
    for catalog, file, position, begin in database.rows(
        "inlined_delete_histories", catalogs=listed, files=wanted
    ):
        if (catalog, file) in found:
            found[catalog, file].inlined.setdefault(begin, []).append(position)
    return found
