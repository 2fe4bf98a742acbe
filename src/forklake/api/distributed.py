"""Snapshots that many processes write together: begin, commit, cancel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Unpack

from forklake.commit.once import check_work
from forklake.context.catalog_scope import CatalogScope
from forklake.distributed.coordinator import Coordinator, Given
from forklake.errors import InvalidArgument
from forklake.model.distributed import DistributedSnapshot, ReservationInfo
from forklake.model.ids import SnapshotId
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo, author_of
from forklake.store.reservations import reservations

HOUR = timedelta(hours=1)


class DistributedVerbs:
    """Snapshots that many processes write together; see `forklake.distributed`."""

    @property
    def _scope(self) -> CatalogScope:
        raise NotImplementedError

    def begin_distributed(
        self,
        tables: Iterable[str | tuple[str, str] | QualifiedName] | None = None,
        *,
        ttl: timedelta = HOUR,
        properties: Mapping[str, Any] | None = None,
    ) -> DistributedSnapshot:
        """Reserve a snapshot that other processes write; they need what is returned, and the storage.

        It is for some `tables`, or for all. When the time to live is over it cannot be committed any more.
        """
        return Coordinator(self._scope).begin(tables, ttl, properties)

    def commit_distributed(
        self,
        ds: DistributedSnapshot,
        manifests: Given | Iterable[Given] | None = None,
        *,
        parts: Iterable[str | int] | None = None,
        summary: Mapping[str, Any] | None = None,
        once: str | None = None,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> SnapshotId:
        """Publish the parts of a distributed snapshot as one commit; gives its number.

        Manifests are values, texts, paths, or a folder of them; without any, all that workers have kept
        as files. `parts` names every part that must be there. What others committed meanwhile is no
        obstacle unless it collides. The same call again gives the same number; anybody else gets
        `ReservationConsumed`. If it is refused nothing has changed, and the files go with the reservation.
        `once` names the work: if a commit of that name stands, by whomever, this one adds nothing, its files
        are removed, and the number of that commit is given.
        """
        if not isinstance(ds, DistributedSnapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"what begin_distributed gave is committed, not {type(ds).__name__}")
        author_of(extra=summary)
        author = self._scope.author(info)
        self._check_ours(ds)
        work = check_work(once)
        return Coordinator(self._scope).commit(ds, manifests, parts, summary, author, work, progress)

    def cancel_distributed(self, ds: DistributedSnapshot) -> None:
        """Give a distributed snapshot up; its files are removed. One that was committed stays."""
        self._check_ours(ds)
        Coordinator(self._scope).cancel(ds)

    def reservations(self) -> list[ReservationInfo]:
        """Every distributed snapshot that was begun here, oldest first."""
        return reservations(self._scope.context.database, self._scope.draft().head.catalog_id)

    def _check_ours(self, ds: DistributedSnapshot) -> None:
        if ds.catalog_id != self._scope.draft().head.catalog_id:
            raise InvalidArgument(
                f'the distributed snapshot {ds.reservation_id} belongs to catalog "{ds.catalog}", not to '
                f'"{self._scope.name}"'
            )
