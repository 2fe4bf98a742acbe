"""Changes that Spark makes to a table, published: one snapshot each, or a part of a transaction's.

On a catalog that is a distributed snapshot: it is reserved first, so that files of a job that failed can be
told from others. In a transaction there is nothing to reserve: what was written is staged with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from forklake.api.scoped import Name
from forklake.api.upsert import RowsMerged
from forklake.commit.draft import Draft
from forklake.commit.manifests import assemble, stage
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Scope
from forklake.data.storage.storage import Storage
from forklake.distributed.coordinator import Coordinator, table_target
from forklake.errors import CommitConflict, ForklakeError, StorageError
from forklake.model.distributed import DistributedSnapshot, TableTarget
from forklake.model.entities import Table
from forklake.model.manifest import Manifest
from forklake.model.names import QualifiedName, is_absolute
from forklake.spark.task_results import DAY, Done

ATTEMPTS = 5
"""How often a change is made again on what others have committed meanwhile."""
_NEVER = datetime(9999, 12, 31, tzinfo=UTC)
"""Nothing is reserved for what a transaction writes, so nothing runs out."""


@dataclass(frozen=True, slots=True)
class Writing:
    """One change of one table: what writers see, and where they write."""

    ds: DistributedSnapshot
    draft: Draft
    table: Table
    context: LakeContext
    inside: bool
    """Whether it is a part of a transaction, which sees files that nobody else does."""

    @property
    def target(self) -> TableTarget:
        """The table as workers know it."""
        return self.ds.tables[0]

    @property
    def name(self) -> QualifiedName:
        """The table."""
        return self.target.full_name

    @property
    def options(self) -> Mapping[str, str]:
        """How workers get into the storage."""
        return self.context.storage.s3.options.given()


Work = Callable[[Writing], Iterable[Done]]


def write_and_commit(
    scope: Scope,
    table: Name,
    work: Work,
    *,
    operation: str,
    ttl: timedelta = DAY,
    before: Callable[[], object] | None = None,
) -> RowsMerged:
    """Let work be done on a table, and what it did become visible all at once; gives how many rows.

    In a transaction, `before` is done to the table before anything new is staged.
    """
    if isinstance(scope, CatalogScope):
        return _reserved(scope, table, work, operation, ttl)
    return _staged(scope, table, work, before)


def _reserved(scope: CatalogScope, name: Name, work: Work, operation: str, ttl: timedelta) -> RowsMerged:
    coordinator = Coordinator(scope)
    for attempt in range(1, ATTEMPTS + 1):
        ds = coordinator.begin([QualifiedName.parse(name)], ttl, None)
        try:
            draft = scope.at(ds.parent_snapshot_id).read()
            table = draft.table(ds.tables[0].id)
            done = list(work(Writing(ds, draft, table, scope.context, inside=False)))
            summary = {"engine": "spark", "operation": operation}
            coordinator.commit(ds, [one.manifest for one in done], None, summary, scope.author())
            return _total(done)
        except BaseException as error:
            # One that was committed after all stays, and what cannot be removed now goes in its time.
            with suppress(ForklakeError):
                coordinator.cancel(ds)
            if not isinstance(error, CommitConflict) or attempt == ATTEMPTS:
                raise
    raise AssertionError


def _staged(scope: Scope, name: Name, work: Work, before: Callable[[], object] | None) -> RowsMerged:
    draft, context = scope.read(), scope.context
    table = draft.table_named(QualifiedName.parse(name))
    head = draft.head
    ds = DistributedSnapshot(
        str(uuid4()),
        uuid4().hex,
        head.catalog_id,
        "",
        head.snapshot_id,
        head.snapshot_id,
        _NEVER,
        context.storage.data_path,
        head.data_path,
        (table_target(draft, table, context),),
    )
    try:
        done = list(work(Writing(ds, draft, table, context, inside=True)))
        assembled = assemble(ds, [Manifest.from_json(one.manifest) for one in done])
        if before is not None:
            before()
    except BaseException:
        discard(context.storage, ds.folder(ds.tables[0]))
        raise
    scope.apply(lambda draft: stage(draft, context.storage, ds, assembled), written=list(assembled.files))
    return _total(done)


def discard(storage: Storage, folder: str) -> None:
    """Remove a folder that only we write to."""
    relative = not is_absolute(folder)
    # The error that led here says more than one of cleaning up.
    with suppress(StorageError):
        storage.delete([file.path for file in storage.files(folder, relative)], relative)


def _total(done: Iterable[Done]) -> RowsMerged:
    updated = deleted = added = 0
    for one in done:
        updated, deleted, added = updated + one.updated, deleted + one.deleted, added + one.added
    return RowsMerged(updated, deleted, added)
