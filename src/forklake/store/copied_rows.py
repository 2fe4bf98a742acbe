"""Rows about files that are copied inside the database: from another catalog, or from the past of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from forklake.model.ids import (
    CatalogId,
    DataFileId,
    DeleteFileId,
    IndexFileId,
    MappingId,
    SnapshotId,
    TableId,
)
from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.store.backend import Session
from forklake.store.built_statements import ADOPTED, RETURNED


@dataclass(frozen=True, slots=True)
class Copy:
    """A row about a file that is stored again."""

    key: Literal["data_file_id", "delete_file_id"]
    past: int
    now: int
    data_file: int
    """The id that the data file has now."""


def adopt_files(
    session: Session,
    head: Head,
    source: CatalogId,
    files: Sequence[DataFileId],
    delete_files: Sequence[DeleteFileId],
    mappings: Sequence[MappingId],
    index_files: Sequence[IndexFileId],
) -> None:
    """Store what another catalog has about files of all kinds and mappings, as rows that begin now."""
    ids = {
        "data_file_id": files,
        "delete_file_id": delete_files,
        "mapping_id": mappings,
        "index_file_id": index_files,
    }
    listed = {key: json.dumps(numbers) for key, numbers in ids.items() if numbers}
    for table, key in ADOPTED.items():
        if key in listed:
            session.execute(
                f"adopt_{table}",
                catalog=head.catalog_id,
                source=source,
                ids=listed[key],
                snapshot=head.snapshot_id,
            )


def adopt_columns(
    session: Session, catalog: CatalogId, source: CatalogId, tables: Sequence[TableId], at: SnapshotId
) -> None:
    """Store versions of columns that only another catalog had up to a snapshot, never to be seen here."""
    session.execute("adopt_columns", catalog=catalog, source=source, tables=json.dumps(tables), at=at)


def return_files(session: Session, head: Head, copies: Sequence[Copy]) -> None:
    """Store what a catalog has about files of its past again, under other ids.

    The number of statements is that of the kinds of rows, whatever the number of files.
    """
    for table, key in RETURNED.items():
        listed = [(copy.past, copy.now, copy.data_file) for copy in copies if copy.key == key]
        if listed:
            session.execute(
                f"return_{table}",
                catalog=head.catalog_id,
                files=json.dumps(listed),
                snapshot=head.snapshot_id,
            )


def add_defaults(session: Session, head: Head, files: Sequence[int], defaults: Iterable[ColumnStats]) -> None:
    """Files may lack a column that is older here than they are: an index of keys has to find them too."""
    for default in defaults:
        session.execute(
            "adopt_default",
            catalog=head.catalog_id,
            files=json.dumps(files),
            column=default.column_id,
            low=default.min_value,
            high=default.max_value,
            low_key=default.min_key,
            high_key=default.max_key,
            nan=default.contains_nan,
        )
