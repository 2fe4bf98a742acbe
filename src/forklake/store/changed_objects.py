"""What is not the same at two snapshots of a catalog: objects, files, and what was dropped."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from forklake.model.ids import CatalogId, DataFileId, SnapshotId, TableId
from forklake.model.snapshots import Head
from forklake.store.backend import Database


class FileOrigin(NamedTuple):
    """The commit that made a file: others have it from there, by merges or as copies."""

    file: DataFileId
    table: TableId
    begin: SnapshotId


def changed_objects(database: Database, catalog: CatalogId, start: SnapshotId, end: SnapshotId) -> set[int]:
    """The schemas, tables, views and macros that changed in between, or came and went; ids are of one series.

    Neither rows of tables are meant by that, nor files.
    """
    return {number for _, number in database.rows("objects_changed", catalog=catalog, start=start, end=end)}


def changed_files(
    database: Database, catalog: CatalogId, tables: Collection[int], start: SnapshotId, end: SnapshotId
) -> list[DataFileId]:
    """The files of some tables that came, went or lost rows after one snapshot and up to another."""
    found = database.rows(
        "files_changed_in_tables",
        catalog=catalog,
        tables=json.dumps(sorted(tables)),
        start=start,
        end=end,
    )
    return [file for (file,) in found]


def added_files(
    database: Database, catalog: CatalogId, tables: Iterable[int], since: SnapshotId, at: SnapshotId
) -> list[DataFileId]:
    """The files that some tables gained after a snapshot, whether they are still there or not."""
    found = database.rows(
        "files_added_since", catalog=catalog, tables=json.dumps(list(tables)), since=since, at=at
    )
    return [file for (file,) in found]


def origins_of_files(database: Database, files: Iterable[DataFileId]) -> list[FileOrigin]:
    """The commits that made some files, in whichever catalog."""
    return [FileOrigin(*row) for row in database.rows("origins_of_files", files=json.dumps(sorted(files)))]


def catalogs_with_files(
    database: Database, files: Iterable[DataFileId]
) -> list[tuple[DataFileId, CatalogId, SnapshotId]]:
    """The catalogs that have or had some files themselves, and the commits by which they got them."""
    found = database.rows("files_in_catalogs", files=json.dumps(sorted(files)))
    return [(DataFileId(file), CatalogId(catalog), SnapshotId(begin)) for file, catalog, begin in found]


def dropped_table(
    database: Database, head: Head, schema: str, name: str
) -> tuple[TableId, SnapshotId] | None:
    """The table of a name that was dropped last up to a head, and the snapshot that dropped it."""
    for table, end in database.rows(
        "dropped_table", catalog=head.catalog_id, schema=schema, name=name, at=head.snapshot_id
    ):
        return TableId(table), SnapshotId(end)
    return None
