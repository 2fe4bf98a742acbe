"""The first of many: how many catalogs or tables there are, and a bounded number of them for display."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from forklake.model.ids import SnapshotId
from forklake.model.snapshots import Head
from forklake.store.backend import Database, as_time

CatalogRow = tuple[str, str | None, SnapshotId | None, datetime, datetime | None]
"""Name, parent, fork point, creation and expiry."""


def first_catalogs(database: Database, most: int) -> tuple[int, list[CatalogRow]]:
    """How many catalogs there are, and the first of them."""
    total = database.rows("count_catalogs")[0][0]
    return total, [
        (name, parent, point, as_time(created), None if expires is None else as_time(expires))
        for name, parent, point, created, expires in database.rows("first_catalogs", most=most)
    ]


def first_tables(database: Database, head: Head, most: int) -> tuple[int, Sequence[tuple[str, str]]]:
    """How many tables a catalog has, and the first of them, with their schemas."""
    at = {"catalog": head.catalog_id, "at": head.snapshot_id}
    total = database.rows("count_tables", **at)[0][0]
    found = database.rows("first_tables", **at, most=most)
    return total, [(schema, table) for schema, table in found]
