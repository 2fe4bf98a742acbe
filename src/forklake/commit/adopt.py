"""Taking over what another catalog did: its files are the same files here, so no row of data is read."""

from __future__ import annotations

from collections.abc import Sequence

from forklake.commit.commit_plan import Merged
from forklake.commit.inlining import TableWrites
from forklake.model.snapshots import Head
from forklake.store.backend import Session
from forklake.store.copied_rows import add_defaults, adopt_columns, adopt_files
from forklake.store.file_writes import add_inlined_deletes
from forklake.store.merges import add_merge


def adopt(session: Session, merged: Merged, writes: Sequence[TableWrites], head: Head) -> None:
    """Store what a merge brings beside changed definitions, and that it was merged."""
    adopted = [table.adopted for table in writes]
    adopt_files(
        session,
        head,
        merged.source,
        [file for table in adopted for file in table.files],
        [file for table in adopted for file in table.delete_files],
        [mapping for table in adopted for mapping in table.mappings],
        merged.index_files,
    )
    for table in adopted:
        if table.files:
            add_defaults(session, head, table.files, table.defaults)
    add_inlined_deletes(session, head, [(table.table_id, table.adopted.positions) for table in writes])
    if merged.reshaped:
        adopt_columns(session, head.catalog_id, merged.source, merged.reshaped, merged.snapshot)
    add_merge(session, head.catalog_id, head.snapshot_id, merged.seen)
