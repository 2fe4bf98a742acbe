"""What a catalog counts of its tables: rows, bytes, the next row id, and the bounds of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forklake.commit.inlining import TableWrites
from forklake.model.ids import CatalogId, SnapshotId, TableId
from forklake.model.snapshots import Head
from forklake.model.table.statistics import TableStatistics
from forklake.store.backend import Session
from forklake.store.table_statistics import stored_statistics

SPACE = 2**32
"""A fork numbers the rows that it adds to an inherited table from a multiple of this on."""
FIRST_SPACE = 2**16
"""Below, there is room for the rows of tables in the catalogs that made them."""

MOST_CATALOGS = 4096
MOST_TABLES = 1024


class StatisticsCache:
    """Statistics that our own last commits led to: while nobody else commits, they need not be read again."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._known: dict[CatalogId, tuple[SnapshotId, dict[TableId, TableStatistics]]] = {}

    def clear(self) -> None:
        """Know nothing: what is stored was repaired."""
        self._known.clear()

    def at(self, catalog: CatalogId, snapshot: SnapshotId) -> dict[TableId, TableStatistics]:
        """What is known of a catalog that stands at a snapshot."""
        known = self._known.get(catalog)
        return known[1] if known is not None and known[0] == snapshot else {}

    def put(
        self,
        catalog: CatalogId,
        base: SnapshotId,
        snapshot: SnapshotId,
        statistics: Mapping[TableId, TableStatistics],
    ) -> None:
        """Remember what a commit led from one snapshot to another has counted."""
        kept = self.at(catalog, base)
        if len(self._known) >= MOST_CATALOGS:
            self._known.clear()
        self._known[catalog] = (snapshot, {**(kept if len(kept) < MOST_TABLES else {}), **statistics})


def read_statistics(
    session: Session,
    head: Head,
    base: SnapshotId,
    writes: Sequence[TableWrites],
    spaces: Sequence[int],
    known: StatisticsCache,
) -> dict[TableId, TableStatistics]:
    """The statistics of the tables that a commit writes to, as they stand under the lock."""
    tables = [table.table_id for table in writes if table.table_id >= 0]
    remembered = known.at(head.catalog_id, base)
    found = {table: remembered[table] for table in tables if table in remembered}
    missing = [table for table in tables if table not in found]
    if missing:
        found |= stored_statistics(session, head.catalog_id, missing)
    free = iter(spaces)
    for table in writes:
        if table.table_id not in found:
            found[table.table_id] = TableStatistics()
            if table.is_inherited:
                # A fork numbers its rows in a space of its own.
                found[table.table_id] = TableStatistics(None, (FIRST_SPACE + next(free)) * SPACE, None)
    return found
