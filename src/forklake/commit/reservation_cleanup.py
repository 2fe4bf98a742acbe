"""Removing what reservations left behind: manifests, and files that no commit has taken.

A file is removed only if its path says that it was written for a reservation which can no longer be
committed, and which did not commit that file. Where that is not certain, it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from forklake.commit.reservations import expire, mark_swept
from forklake.data.storage.storage import Storage
from forklake.errors import StorageError
from forklake.model.distributed import STAGING, commit_folder
from forklake.model.ids import CatalogId, SnapshotId, TableId
from forklake.model.names import is_absolute, own_folder
from forklake.model.progress import OnProgress, Steps
from forklake.store.backend import Database
from forklake.store.catalogs import stood_at_own
from forklake.store.garbage import (
    abandoned_files,
    begin_cleaning,
    known_files,
    schedule_abandoned,
    unschedule_files,
)
from forklake.store.paths import paths_of_commit, table_paths
from forklake.store.reservations import unswept_reservations


@dataclass(frozen=True, slots=True)
class Swept:
    """A distributed snapshot whose files were deleted."""

    reservation_id: str
    state: str
    files: int
    """The number of deleted files."""


def sweep(
    database: Database, storage: Storage, now: datetime, progress: OnProgress | None = None
) -> list[Swept]:
    """End what has expired, and remove the files of all reservations whose time is over."""
    if not unswept_reservations(database, now):
        return []
    # First nobody can commit them any more, then their files go.
    expire(database, now)
    swept: list[Swept] = []
    found = unswept_reservations(database, now)
    steps = Steps(progress, "expire reservations", "reservations", len(found))
    for over in steps.over(found):
        traces = Traces(database, storage, over.catalog, over.data_path, over.commit_uuid, over.parent)
        if over.state == "committed":
            committed = None if over.is_dropped else over.committed
            known = committed is not None and stood_at_own(database, over.catalog, committed) is not None
            # Without the commit nobody can say which of the files it took.
            files = traces.lost(committed) if committed is not None and known else []
        else:
            files = traces.all()
        removed = traces.remove([*files, *traces.manifests()], now)
        if removed is not None:
            mark_swept(database, over.catalog, over.reservation_id, now)
            swept.append(Swept(over.reservation_id, over.state, removed))
    return swept


@dataclass(frozen=True, slots=True)
class Traces:
    """What was written for one reservation."""

    database: Database
    storage: Storage
    catalog: CatalogId
    data_path: str
    commit_uuid: str
    parent: SnapshotId

    def all(self) -> list[str]:
        """Every file of every table."""
        return [path for _, path in self._files()]

    def lost(self, committed: SnapshotId) -> list[str]:
        """The files that the commit did not take."""
        kept: dict[TableId, set[str]] = {}
        lost: list[str] = []
        for table, path in self._files():
            if table not in kept:
                kept[table] = paths_of_commit(self.database, self.catalog, table, committed)
            if path not in kept[table]:
                lost.append(path)
        return lost

    def manifests(self) -> list[str]:
        """Every file in the folder of the manifests."""
        folder = f"{self.data_path}{STAGING}{self.commit_uuid}/"
        return [found.path for found in self.storage.files(folder, not is_absolute(folder))]

    def remove(self, files: list[str], now: datetime) -> int | None:
        """Remove files; gives how many, or None if some have to be tried again.

        They are scheduled first: what a crash or a refusal leaves, a collection removes or reports.
        """
        # Rows of the commit may be expired, and others may have taken its files over by merges.
        with begin_cleaning(self.database) as session:
            known = known_files(session, files)
            fresh = [path for path in files if path not in known]
            going = [*fresh, *abandoned_files(session, known)]
            schedule_abandoned(session, self.catalog, fresh, now)
            session.commit()
        failed: dict[str, StorageError] = {}
        for relative in (True, False):
            failed |= self.storage.delete_each(
                [path for path in going if relative != is_absolute(path)], relative
            )
        with begin_cleaning(self.database) as session:
            unschedule_files(session, [path for path in going if path not in failed])
            session.commit()
        return None if failed else len(going)

    def _files(self) -> Iterator[tuple[TableId, str]]:
        for table, path in table_paths(self.database, self.catalog, self.parent).items():
            folder = commit_folder(own_folder(self.data_path, path), self.commit_uuid)
            for found in self.storage.files(folder, not is_absolute(folder)):
                yield table, found.path
