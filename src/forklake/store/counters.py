"""Drawing numbers where a database has no sequences: from a table, inside the write lock."""

from __future__ import annotations

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Allocation, Row, Session, utc_now


class TableCounters:
    """The part of a session that draws numbers from `ducklake_counter`."""

    def allocate(self: Session, *, catalog_ids: int = 0, file_ids: int = 0) -> Allocation:
        """Draw the number of a snapshot, and numbers for what it creates."""
        after: dict[str, int] = dict(self.rows("allocate", catalog_ids=catalog_ids, file_ids=file_ids))
        return Allocation(
            SnapshotId(after["snapshot_id"] - 1),
            utc_now(),
            tuple(range(after["catalog_id"] - catalog_ids, after["catalog_id"])),
            tuple(range(after["file_id"] - file_ids, after["file_id"])),
            after["catalog_id"],
            after["file_id"],
        )

    def lock_head(
        self: Session, catalog: CatalogId, *, catalog_ids: int = 0, file_ids: int = 0
    ) -> tuple[Row | None, Allocation]:
        """The whole database is locked for writing already."""
        found = self.rows("lock_head", catalog=catalog)
        return (found[0] if found else None), self.allocate(catalog_ids=catalog_ids, file_ids=file_ids)
