"""Taking over what another catalog did: its files are the same files here, so no row of data is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from forklake.commit.commit_plan import Merged
from forklake.commit.inlining import TableWrites
from forklake.commit.restored_files import write_defaults
from forklake.model.snapshots import Head
from forklake.store.backend import Session
from forklake.store.built_statements import ADOPTED


def adopt(session: Session, merged: Merged, writes: Sequence[TableWrites], head: Head) -> None:
    """Store what a merge brings beside changed definitions, and that it was merged."""
    numbers = {
        "data_file_id": _numbers(file for table in writes for file in table.adopted.files),
        "delete_file_id": _numbers(file for table in writes for file in table.adopted.delete_files),
        "mapping_id": _numbers(mapping for table in writes for mapping in table.adopted.mappings),
    }
    for table, key in ADOPTED.items():
        if numbers[key] is not None:
            session.execute(
                f"adopt_{table}",
                catalog=head.catalog_id,
                source=merged.source,
                ids=numbers[key],
                snapshot=head.snapshot_id,
            )
    for table in writes:
        if table.adopted.files:
            write_defaults(session, head, table.adopted.files, table.adopted.defaults)
    session.insert(
        "ducklake_inlined_delete",
        ("catalog_id", "table_id", "data_file_id", "position", "begin_snapshot"),
        [
            (head.catalog_id, table.table_id, file, position, head.snapshot_id)
            for table in writes
            for file, position in table.adopted.positions
        ],
    )
    if merged.reshaped:
        session.execute(
            "adopt_columns",
            catalog=head.catalog_id,
            source=merged.source,
            tables=json.dumps(merged.reshaped),
            at=merged.snapshot,
        )
    session.insert(
        "ducklake_catalog_merge",
        (
            "catalog_id",
            "merge_snapshot",
            "source_catalog_id",
            "table_id",
            "base_snapshot",
            "source_snapshot",
        ),
        [
            (head.catalog_id, head.snapshot_id, catalog, table, after, up_to)
            for catalog, after, up_to, table in merged.seen
        ],
    )


def _numbers(found: Iterable[int]) -> str | None:
    numbers = list(found)
    return json.dumps(numbers) if numbers else None
