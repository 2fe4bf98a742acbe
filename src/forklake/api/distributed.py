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
        """Begin a distributed snapshot, for some `tables` or all; other processes write it.

        They need the returned descriptor and the storage. After `ttl` it cannot be committed.
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
        """Commit the parts of a distributed snapshot as one snapshot. Returns its id.

        Manifests are values, JSON strings, paths, or a folder; without any, all that workers stored as
        files. `parts` names the parts that must be there. Other commits meanwhile are fine unless they
        conflict. The same call again returns the same id; a different one gets `ReservationConsumed`. If the
        commit is refused, nothing has changed. `once` names the work: if it was committed before under that
        name, this commit adds nothing, its files are deleted, and the id of that commit is returned.
        """
        if not isinstance(ds, DistributedSnapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"what begin_distributed gave is committed, not {type(ds).__name__}")
        author_of(extra=summary)
        author = self._scope.author(info)
        self._check_ours(ds)
        work = check_work(once)
        return Coordinator(self._scope).commit(ds, manifests, parts, summary, author, work, progress)

    def cancel_distributed(self, ds: DistributedSnapshot) -> None:
        """Cancel a distributed snapshot and delete its files. A committed one stays."""
        self._check_ours(ds)
        Coordinator(self._scope).cancel(ds)

    def reservations(self) -> list[ReservationInfo]:
        """List the distributed snapshots of the catalog, oldest first."""
        return reservations(self._scope.context.database, self._scope.draft().head.catalog_id)

    def _check_ours(self, ds: DistributedSnapshot) -> None:
        if ds.catalog_id != self._scope.draft().head.catalog_id:
            raise InvalidArgument(
                f'the distributed snapshot {ds.reservation_id} belongs to catalog "{ds.catalog}", not to '
                f'"{self._scope.name}"'
            )
