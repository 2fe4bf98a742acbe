"""The verbs of a lake that keep it small and sound: expire, collect garbage, checkpoint, check."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack

from forklake.api.handle import Handle
from forklake.data.storage.storage import Storage
from forklake.lazy import LazyModule
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo, author_of
from forklake.store.backend import Database

if TYPE_CHECKING:
    from forklake.commit import reservation_cleanup
    from forklake.commit.reservation_cleanup import Swept
    from forklake.context import lake_context
    from forklake.context.lake_context import LakeContext
    from forklake.maintenance import check as checks
    from forklake.maintenance import checkpoint as checkpoints
    from forklake.maintenance import collect as collecting
    from forklake.maintenance import expire as expiring
    from forklake.maintenance import orphans
    from forklake.maintenance.check import CheckResult
    from forklake.maintenance.checkpoint import CheckpointResult
    from forklake.maintenance.collect import GarbageResult
    from forklake.maintenance.expire import LakeExpireResult
    from forklake.maintenance.orphans import OrphansResult
else:
    # To open a lake and list its catalogs takes none of these.
    reservation_cleanup = LazyModule("forklake.commit.reservation_cleanup")
    lake_context = LazyModule("forklake.context.lake_context")
    checks = LazyModule("forklake.maintenance.check")
    checkpoints = LazyModule("forklake.maintenance.checkpoint")
    collecting = LazyModule("forklake.maintenance.collect")
    expiring = LazyModule("forklake.maintenance.expire")
    orphans = LazyModule("forklake.maintenance.orphans")


class LakeMaintenance(Handle):
    """An open lake, and the verbs that work on all of its catalogs at once."""

    def __init__(self, database: Database, storage: Storage) -> None:
        """Use `forklake.connect`."""
        self._database = database
        self._storage = storage
        self._making = Lock()
        self._made: LakeContext | None = None
        self._sql: dict[str, Any] = {}
        self.data_path = storage.data_path
        """The folder or bucket of the data files."""

    @property
    def _context(self) -> LakeContext:
        """What all handles share, made for the first of them."""
        with self._making:
            if self._made is None:
                self._made = lake_context.LakeContext(self._database, self._storage)
            return self._made

    def expire(
        self,
        *,
        older_than: timedelta | datetime,
        keep_last: int = 1,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> LakeExpireResult:
        """Expire old snapshots of every catalog, and drop the catalogs whose time to live is over.

        The latest `keep_last` snapshots of each catalog always stay. Catalogs that were dropped before that
        time can no longer be brought back. Files are removed by `collect_garbage`. `dry_run` changes nothing.
        """
        return expiring.expire_lake(
            self._database,
            self._storage,
            author_of(**info),
            older_than=older_than,
            keep_last=keep_last,
            dry_run=dry_run,
            progress=progress,
        )

    def collect_garbage(
        self,
        *,
        older_than: timedelta = timedelta(days=2),
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> GarbageResult:
        """Remove metadata that no catalog can reach, and the files that it named after `older_than`.

        A file that comes out of reach is scheduled for deletion, and removed by a collection that runs at
        least `older_than` later: until then, readers that planned a scan can finish it. Files that were
        imported are never removed. `dry_run` changes nothing and counts what would be.
        """
        return collecting.collect(
            self._database, self._storage, older_than=older_than, dry_run=dry_run, progress=progress
        )

    def remove_orphans(
        self,
        *,
        older_than: timedelta = timedelta(days=7),
        unknown: bool = False,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> OrphansResult:
        """Remove files in the data paths that no metadata names, left by writers that did not commit.

        Files younger than `older_than` stay: a running writer may still commit them. Files whose names are
        not the lake's are listed and stay, unless `unknown`. `dry_run` removes nothing.
        """
        return orphans.remove_orphans(
            self._database,
            self._storage,
            older_than=older_than,
            unknown=unknown,
            dry_run=dry_run,
            progress=progress,
        )

    def checkpoint(
        self,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CheckpointResult:
        """Do all that keeps the lake small and quick, as its options say, for every catalog that needs it.

        Inlined rows are flushed, snapshots expired, small files merged, files with many deletes rewritten,
        garbage collected and orphans removed. What fails is listed in `failures`, and stops nothing else.
        `dry_run` changes nothing and says what would be freed. `forklake.spark.checkpoint` rewrites on Spark.
        """
        return checkpoints.checkpoint(self._context, info=info, dry_run=dry_run, progress=progress)

    def check(
        self, *, repair: bool = False, data: bool = False, progress: OnProgress | None = None
    ) -> CheckResult:
        """Verify that every file is there as it was committed, and that the metadata holds together.

        Every difference is listed with catalog, table and path. Files are compared by size, footer, rows and
        statistics; `data` reads them too. `repair` corrects statistics, and nothing else: run it while nobody
        writes.
        """
        return checks.check(self._context, repair=repair, data=data, progress=progress)

    def expire_reservations(self, *, progress: OnProgress | None = None) -> list[Swept]:
        """End expired distributed snapshots, and delete their files that were not committed."""
        return reservation_cleanup.sweep(self._database, self._storage, self._database.now(), progress)
