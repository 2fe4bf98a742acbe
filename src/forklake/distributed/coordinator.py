"""The coordinator of a distributed snapshot: reserves it, and commits or cancels what others have written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from forklake.commit.catalogs import check_ttl
from forklake.commit.draft import Draft
from forklake.commit.manifests import Assembled, Staged, assemble, stage
from forklake.commit.once import Once, committed_as
from forklake.commit.publish import Published
from forklake.commit.reservation_cleanup import Traces
from forklake.commit.reservations import Taking, cancel, check_open, reserve
from forklake.commit.write_target import insert_target_of
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.data.manifests import SUFFIX, missing_files, read_manifest, read_manifests
from forklake.data.storage.storage import Storage
from forklake.errors import CommittedBefore, FileMissing, InvalidArgument, ReservationConsumed, StorageError
from forklake.model.distributed import DistributedSnapshot, TableTarget
from forklake.model.entities import Table
from forklake.model.ids import SnapshotId
from forklake.model.manifest import Manifest
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps
from forklake.model.snapshots import Author, checked_extra
from forklake.store.backend import Database

Given = Manifest | str | Path
"""A manifest as a value, as its text, or the path of its file; or a folder with the files of many."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """What begins and ends distributed snapshots of one catalog."""

    scope: CatalogScope

    @property
    def context(self) -> LakeContext:
        """The lake."""
        return self.scope.context

    @property
    def database(self) -> Database:
        """Its metadata."""
        return self.context.database

    def begin(
        self,
        tables: Iterable[str | tuple[str, str] | QualifiedName] | None,
        ttl: timedelta,
        properties: Mapping[str, Any] | None,
    ) -> DistributedSnapshot:
        """Reserve a snapshot on top of the present catalog."""
        draft = self.scope.draft()
        check_ttl(ttl)
        if isinstance(tables, str):
            raise InvalidArgument(f"the names of tables are given as a list, and {tables!r} is one name")
        extra = None if properties is None else checked_extra(properties)
        if tables is None:
            names = [QualifiedName(info.schema, info.name) for info in draft.tables()]
        else:
            names = [QualifiedName.parse(name) for name in tables]
        wanted = {table.id: table for table in map(draft.table_named, names)}
        targets = tuple(table_target(draft, table, self.context) for table in wanted.values())
        head = draft.head
        reserved = reserve(self.database, head.catalog_id, head.snapshot_id, ttl, extra)
        return DistributedSnapshot(
            reserved.reservation_id,
            reserved.commit_uuid,
            head.catalog_id,
            self.scope.name,
            reserved.snapshot_id,
            head.snapshot_id,
            reserved.expires_at,
            self.context.storage.data_path,
            head.data_path,
            targets,
            extra or {},
        )

    def commit(
        self,
        ds: DistributedSnapshot,
        manifests: Given | Iterable[Given] | None,
        parts: Iterable[str | int] | None,
        summary: Mapping[str, Any] | None,
        author: Author,
        once: str | None = None,
        progress: OnProgress | None = None,
    ) -> SnapshotId:
        """Publish what manifests say, once."""
        done = None if once is None else committed_as(self.database, ds.catalog_id, once)
        if done is not None:
            return self._superfluous(ds, done)
        now = self.database.now()
        before = check_open(self.database, ds, now)
        try:
            steps = Steps(progress, "read manifests", "manifests", _number_of(manifests))
            assembled = assemble(ds, steps.over(self._read(ds, manifests)))
        except FileMissing:
            if before is not None:
                # Its manifests have been cleared away since.
                raise before from None
            raise
        taking = Taking(ds, assembled.digest, author)
        if before is not None:
            done = taking.committed(self.database)
            if done is None:
                raise before
            return done
        _check_parts(assembled, parts)
        self._check_files(ds, assembled)
        draft = self.scope.draft_at(ds.parent_snapshot_id)
        # Delete files that the commit itself has to write are found by the same name.
        draft.prefix = f"{ds.commit_uuid}-commit-{uuid4().hex[:12]}"
        staged = stage(draft, self.context.storage, ds, assembled)
        taking = replace(taking, author=_summed_up(author, summary, assembled, staged))
        try:
            published = self._published(draft, taking, once)
        except CommittedBefore as before:
            return self._superfluous(ds, SnapshotId(before.snapshot_id))
        snapshot = (
            taking.take_nothing(self.database, now) if published is None else published.head.snapshot_id
        )
        self.context.discard(assembled.losses)
        return snapshot

    def _superfluous(self, ds: DistributedSnapshot, done: SnapshotId) -> SnapshotId:
        """The work was done before: remove what was written for it now."""
        # What was written may be what was committed then.
        with suppress(ReservationConsumed):
            self.cancel(ds)
        return done

    def _published(self, draft: Draft, taking: Taking, once: str | None) -> Published | None:
        if not draft.staged_rows():
            return None
        try:
            claim = taking if once is None else Once(taking.ds.catalog_id, once, taking.author, taking)
            return self.scope.committer.commit(draft, taking.author, claim=claim)
        except BaseException:
            self.scope.committer.discard(draft)
            raise

    def _read(self, ds: DistributedSnapshot, manifests: Given | Iterable[Given] | None) -> Iterable[Manifest]:
        storage = self.context.storage
        if manifests is None:
            yield from read_manifests(storage, ds.staging)
            return
        given = [manifests] if isinstance(manifests, Manifest | str | Path) else manifests
        for one in given:
            yield from _manifests_of(storage, one)

    def _check_files(self, ds: DistributedSnapshot, assembled: Assembled) -> None:
        """Refuse to commit files that are not there, or not whole."""
        touched = {table for manifest in assembled.taken for table in manifest.tables}
        folders = [ds.folder(table) for table in ds.tables if table.id in touched]
        files = assembled.files
        problems = list(missing_files(self.context.storage, iter(folders), files)) if files else []
        if problems:
            more = f", and {len(problems) - 1} more like it" if len(problems) > 1 else ""
            raise FileMissing(
                f"{problems[0]}{more}: a manifest names what its worker has not written, or somebody has "
                "removed it; write that part again"
            )

    def cancel(self, ds: DistributedSnapshot) -> None:
        """Give a reservation up, and remove what was written for it so far."""
        cancel(self.database, ds)
        traces = Traces(
            self.database,
            self.context.storage,
            ds.catalog_id,
            ds.catalog_path,
            ds.commit_uuid,
            ds.parent_snapshot_id,
        )
        # What cannot be removed now, and what workers still write, goes when its time is over.
        with suppress(StorageError):
            traces.remove([*traces.all(), *traces.manifests()], self.database.now())


def table_target(draft: Draft, table: Table, context: LakeContext) -> TableTarget:
    """A table of a draft as its writers have to know it."""
    name, target = draft.name_of(table), insert_target_of(draft, table, context.options)
    values = {each.name: getattr(target, each.name) for each in fields(target)}
    return TableTarget(**values, id=table.id, schema=name.schema, name=name.name)


def _manifests_of(storage: Storage, given: object) -> Iterable[Manifest]:
    match given:
        case Manifest():
            return [given]
        case str() if given.lstrip().startswith("{"):
            return [Manifest.from_json(given)]
        case str() | Path():
            path = str(given)
            if path.endswith(SUFFIX):
                return [read_manifest(storage, path)]
            return read_manifests(storage, path if path.endswith("/") else f"{path}/")
        case _:
            raise InvalidArgument(
                "a manifest is given as a value, a text, or the path of its file, not as "
                f"{type(given).__name__}"
            )


def _number_of(manifests: Given | Iterable[Given] | None) -> int | None:
    """How many manifests were given, if none of them stands for others."""
    if isinstance(manifests, list | tuple) and all(isinstance(one, Manifest) for one in manifests):
        return len(manifests)
    return None


def _check_parts(assembled: Assembled, parts: Iterable[str | int] | None) -> None:
    if parts is None:
        return
    missing = sorted({str(part) for part in parts} - assembled.parts)
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise FileMissing(
            f"{len(missing)} parts have no manifest ({shown}): wait for their workers, or write them again"
        )


def _summed_up(
    author: Author, summary: Mapping[str, Any] | None, assembled: Assembled, staged: Staged
) -> Author:
    totals = {
        "parts": len(assembled.taken),
        "files": staged.files,
        "rows": staged.rows,
        "deleted": staged.deleted,
    }
    return author.with_extra({"summary": {**totals, **(summary or {})}})
