"""Collecting garbage: rows that nobody can reach are removed, and after a while the files that they named.

First it is worked out what somebody can reach, while nobody forks or expires. Rows out of reach are removed
in the transaction that schedules their files, so a crash neither loses a file nor forgets one. A file that
has been scheduled for long enough is looked for once more, claimed, removed from storage, and then forgotten:
if a crash comes between, the next collection goes on there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forklake.data.parquet.file_names import is_ours
from forklake.data.storage.storage import Storage
from forklake.display import Shown
from forklake.errors import InvalidArgument, StorageError
from forklake.model.progress import OnProgress, Steps
from forklake.store.backend import Database
from forklake.store.garbage import (
    Scheduled,
    claim_files,
    clear_reach,
    count_out_of_reach,
    drop_definitions,
    drop_history,
    due_files,
    named_files,
    note_reach,
    open_commit_uuids,
    schedule_files,
    unschedule_files,
)
from forklake.store.lineages import hold_lineages
from forklake.store.paths import own_data_paths

_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was scheduled for deletion and has to stay, or could not be removed."""

    path: str
    why: str
    failed: bool = False
    """Whether it is to be removed, and could not be."""


@dataclass(frozen=True, slots=True)
class GarbageResult(Shown):
    """The result of a collection of garbage."""

    scheduled: int
    """How many files came out of reach since the last collection."""
    scheduled_bytes: int
    removed: int
    """How many files were removed, or with `dry_run` would be."""
    kept: tuple[KeptFile, ...]
    """Files that could not be removed: they are tried again; and those that are not the lake's to remove."""
    dry_run: bool


@dataclass(slots=True)
class _Removed:
    count: int = 0
    kept: list[KeptFile] = field(default_factory=list[KeptFile])


def collect(
    database: Database,
    storage: Storage,
    *,
    older_than: object,
    dry_run: bool,
    progress: OnProgress | None,
) -> GarbageResult:
    """Remove rows that nobody can reach, and files that were scheduled for deletion long enough ago."""
    age = check_age(older_than)
    database.check_writable()
    steps = Steps(progress, "collect garbage", "steps", 5)
    files, size = _mark(database, steps, dry_run=dry_run)
    before = database.now() - age
    removed = _Removed()
    for batch in _due(database, before):
        _sweep(database, storage, batch, removed, dry_run=dry_run)
    steps.add(1)
    steps.end()
    return GarbageResult(files, size, removed.count, tuple(removed.kept), dry_run)


def check_age(older_than: object) -> timedelta:
    """How long something has to be out of use before it is removed."""
    if not isinstance(older_than, timedelta) or older_than < timedelta(0):
        raise InvalidArgument(f"older_than is an age such as timedelta(days=2), not {older_than!r}")
    return older_than


def _mark(database: Database, steps: Steps, *, dry_run: bool) -> tuple[int, int]:
    """Schedule the files of rows that nobody can reach, and remove the rows."""
    with database.transaction() as session:
        hold_lineages(session)
        note_reach(session)
        found = count_out_of_reach(session)
        if not dry_run:
            session.commit()
    steps.add(1)
    if dry_run:
        return found
    for work in (
        lambda session: schedule_files(session, database.now()),
        drop_definitions,
        drop_history,
    ):
        with database.transaction() as session:
            work(session)
            session.commit()
        steps.add(1)
    with database.transaction() as session:
        clear_reach(session)
        session.commit()
    return found


def _due(database: Database, before: datetime) -> Iterator[list[Scheduled]]:
    after = ""
    while batch := due_files(database, before, after, _AT_ONCE):
        yield batch
        after = batch[-1].path


def _sweep(
    database: Database, storage: Storage, batch: Sequence[Scheduled], removed: _Removed, *, dry_run: bool
) -> None:
    """Remove those of some files that nobody refers to."""
    with database.transaction() as session:
        # Whoever is about to refer to one of these files has done so, or will find that it goes.
        hold_lineages(session)
        named = named_files(session, [file.path for file in batch])
        folders = own_data_paths(session)
        writing = open_commit_uuids(session)
        going: list[Scheduled] = []
        unscheduled: list[str] = []
        for file in batch:
            if file.path in named:
                unscheduled.append(file.path)
            elif not _is_own(file, folders):
                unscheduled.append(file.path)
                removed.kept.append(KeptFile(file.path, "it was imported, and is not the lake's to remove"))
            elif any(uuid in file.path for uuid in writing):
                removed.kept.append(KeptFile(file.path, "a distributed snapshot may still commit it"))
            else:
                going.append(file)
        if dry_run:
            removed.count += len(going)
            return
        unschedule_files(session, unscheduled)
        claim_files(session, [file.path for file in going], database.now())
        session.commit()
    gone = [file.path for file in going if _remove(storage, file, removed)]
    with database.transaction() as session:
        unschedule_files(session, gone)
        session.commit()
    removed.count += len(gone)


def _is_own(file: Scheduled, folders: Sequence[str]) -> bool:
    """Whether the lake wrote a file: by its name, below the data path of the lake or of a fork."""
    inside = file.path_is_relative or any(file.path.startswith(folder) for folder in folders)
    return inside and is_ours(file.path, True)


def _remove(storage: Storage, file: Scheduled, removed: _Removed) -> bool:
    try:
        storage.delete([file.path], file.path_is_relative)
    except StorageError as error:
        removed.kept.append(KeptFile(file.path, str(error), failed=True))
        return False
    return True
