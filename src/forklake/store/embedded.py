"""What embedded databases do alike: all is locked for writing, and numbers come from a table."""

from __future__ import annotations

from forklake.model.ids import CatalogId, SnapshotId
from forklake.store.backend import Allocation, Record, Row, Session, utc_now


class EmbeddedWrites:
    """The part of a session that draws numbers and records snapshots."""

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
        self: Session,
        catalog: CatalogId,
        *,
        only_at: SnapshotId | None = None,
        catalog_ids: int = 0,
        file_ids: int = 0,
    ) -> tuple[Row, Allocation] | None:
        """The whole database is locked for writing already."""
        found = self.rows("lock_head", catalog=catalog)
        if not found or only_at not in (None, found[0][0]):
            return None
        return found[0], self.allocate(catalog_ids=catalog_ids, file_ids=file_ids)

    def record(self: Session, record: Record) -> None:
        """Add a snapshot with what it did, and move the catalog's head to it."""
        self.execute(
            "add_snapshot",
            snapshot=record.snapshot,
            time=record.time,
            schema_version=record.schema_version,
            next_catalog_id=record.next_catalog_id,
            next_file_id=record.next_file_id,
        )
        self.execute(
            "add_changes",
            snapshot=record.snapshot,
            catalog=record.catalog,
            changes=record.changes,
            author=record.author,
            message=record.message,
            extra=record.extra,
            footprint=record.footprint,
        )
        self.execute(
            "move_head",
            catalog=record.catalog,
            snapshot=record.snapshot,
            time=record.time,
            schema_version=record.schema_version,
        )
