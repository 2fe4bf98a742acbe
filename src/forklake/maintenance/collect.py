"""Collecting garbage: rows that nobody can reach are removed, and after a while the files that they named.

First it is worked out what somebody can reach, while nobody forks or expires. Rows out of reach are removed
in the transaction that schedules their files, so a crash neither loses a file nor forgets one. A file that
has been scheduled for long enough is looked for once more, claimed, removed from storage, and then forgotten:
if a crash comes between, the next collection goes on there.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forklake.data.parquet.file_names import is_ours
from forklake.data.storage.storage import Storage
from forklake.display import Shown
from forklake.errors import InvalidArgument, StorageError
from forklake.maintenance.expire import Expiry, ago
from forklake.model.names import folders_of_forks
from forklake.model.progress import OnProgress, Steps
from forklake.store.backend import Database, Session
from forklake.store.garbage import (
    ABANDONED,
    DEAD_KINDS,
    FIRST,
    DeadKind,
    Scheduled,
    begin_cleaning,
    claim_files,
    count_out_of_reach,
    dead_files,
    drop_definitions,
    drop_forgotten,
    drop_history,
    due_files,
    end_collection,
    forgotten_data_paths,
    leave_out_ancestors,
    named_files,
    needless_ancestors,
    note_reach,
    open_commit_uuids,
    schedule_files,
    unschedule_files,
    unused_folders,
)
from forklake.store.lineages import hold_lineages
from forklake.store.paths import own_data_paths

_AT_ONCE = 5_000
_LOOKING_THREADS = 16
_SHORT, _REST, _LONGEST_REST = 0.2, 2.0, 10.0
"""Seconds of work that nobody minds; how many times as long as more than that a rest is, and at most."""


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
    removed_bytes: int
    kept: tuple[KeptFile, ...]
    """Files that could not be removed: they are tried again; and those that are not the lake's to remove."""
    dry_run: bool


@dataclass(slots=True)
class _Removed:
    count: int = 0
    bytes: int = 0
    kept: list[KeptFile] = field(default_factory=list[KeptFile])
    paths: list[str] | None = None
    """Addresses of the files, if somebody asks for them."""
    folders: set[str] = field(default_factory=set[str])
    """Folders of forks in which files were."""


def collect(
    database: Database,
    storage: Storage,
    *,
    older_than: object,
    dry_run: bool,
    progress: OnProgress | None,
    before: Expiry | None = None,
) -> GarbageResult:
    """Remove rows that nobody can reach, and files that were scheduled for deletion long enough ago.

    A dry run may ask what would be, were some snapshots expired `before`.
    """
    age = check_age(older_than)
    database.check_writable()
    steps = _steps(progress)
    files, size = _mark(database, storage, steps, before, dry_run=dry_run)
    removed = _Removed()
    for batch in _due(database, ago(database, age)):
        with _rested():
            _sweep(database, storage, batch, removed, dry_run=dry_run)
    removed.kept += remove_folders(database, storage, removed.folders)
    steps.add(1)
    steps.end()
    return GarbageResult(files, size, removed.count, removed.bytes, tuple(removed.kept), dry_run)


def schedule(database: Database, storage: Storage, progress: OnProgress | None = None) -> None:
    """Remove rows that nobody can reach, and schedule the files that they named."""
    database.check_writable()
    steps = _steps(progress)
    _mark(database, storage, steps, None, dry_run=False)
    steps.end()


def collect_folder(
    database: Database,
    storage: Storage,
    folder: str,
    *,
    older_than: object,
    dry_run: bool,
    progress: OnProgress | None = None,
) -> list[str]:
    """Collect garbage, and remove only files in the folder of one catalog. Gives the addresses of these.

    A dry run gives those that would be removed.
    """
    age = check_age(older_than)
    database.check_writable()
    paths: list[str] = []
    removed = _Removed(paths=paths)
    if dry_run:
        with begin_cleaning(database) as session:
            # What is scheduled here is taken back.
            note_reach(session, _number())
            for kind in DEAD_KINDS:
                while dead := dead_files(session, kind, FIRST, _AT_ONCE):
                    schedule_files(session, kind, dead, database.now())
            for batch in _due(session, ago(database, age), folder):
                paths += _addresses(storage, _sorted_out(session, batch, removed)[0])
        return paths
    steps = _steps(progress)
    _mark(database, storage, steps, None, dry_run=False)
    for batch in _due(database, ago(database, age), folder):
        with _rested():
            _sweep(database, storage, batch, removed, dry_run=False)
    remove_folders(database, storage, removed.folders)
    steps.add(1)
    steps.end()
    return paths


def _steps(progress: OnProgress | None) -> Steps:
    return Steps(progress, "collect garbage", "steps", 5)


@contextmanager
def _rested() -> Generator[None]:
    """Rest after work that took long: a collection has time, and those who commit meanwhile have none."""
    began = time.perf_counter()
    yield
    worked = time.perf_counter() - began
    if worked > _SHORT:
        time.sleep(min(_REST * worked, _LONGEST_REST))


def _number() -> int:
    """A number for a collection."""
    return -1 - secrets.randbits(62)


def _addresses(storage: Storage, files: Sequence[Scheduled]) -> list[str]:
    return [storage.address(file.path, file.path_is_relative) for file in files]


def remove_folders(database: Database, storage: Storage, folders: Iterable[str]) -> list[KeptFile]:
    """Remove the folders of forgotten forks that are empty now; gives those that could not be removed.

    No other catalog gets them. A writer that has not heard that its catalog is gone makes them again.
    """
    found, kept = sorted(folders), list[KeptFile]()
    for start in range(0, len(found), _AT_ONCE):
        with begin_cleaning(database) as session:
            unused = unused_folders(session, found[start : start + _AT_ONCE])
        failures = storage.remove_folders(unused)
        kept += [KeptFile(path, str(error)) for path, error in failures.items()]
    return kept


def check_age(older_than: object) -> timedelta:
    """How long something has to be out of use before it is removed."""
    if not isinstance(older_than, timedelta) or older_than < timedelta(0):
        raise InvalidArgument(f"older_than is an age such as timedelta(days=2), not {older_than!r}")
    return older_than


def _mark(
    database: Database, storage: Storage, steps: Steps, before: Expiry | None, *, dry_run: bool
) -> tuple[int, int]:
    """Schedule the files of rows that nobody can reach, and remove the rows, batch by batch."""
    collection = _number()
    with _rested(), begin_cleaning(database) as session:
        if before is not None and dry_run:
            before(session, None)
        note_reach(session, collection)
        if dry_run:
            return count_out_of_reach(session)
        session.commit()
    steps.add(1)
    found, size = 0, 0
    for kind in DEAD_KINDS:
        for files, freed in _scheduled(database, kind):
            found, size = found + files, size + freed
    steps.add(1)
    with _rested(), begin_cleaning(database) as session:
        drop_definitions(session)
        session.commit()
    steps.add(1)
    with _rested():
        _shorten(database)
    with _rested(), begin_cleaning(database) as session:
        drop_history(session)
        session.commit()
    filled = [path for path in forgotten_data_paths(database) if _has_files(storage, path)]
    with _rested(), begin_cleaning(database) as session:
        drop_forgotten(session, filled)
        session.commit()
    steps.add(1)
    with begin_cleaning(database) as session:
        end_collection(session, collection)
        session.commit()
    return found, size


def _shorten(database: Database) -> None:
    """Shorten chains of forks whose middle is dropped, while nobody forks who would copy only a part."""
    with begin_cleaning(database) as session:
        # Mostly there is nothing to do, and then no fork has to wait.
        if not needless_ancestors(session):
            return
    with begin_cleaning(database) as session:
        hold_lineages(session)
        leave_out_ancestors(session, needless_ancestors(session))
        session.commit()


def _scheduled(database: Database, kind: DeadKind) -> Iterator[tuple[int, int]]:
    """How many files each batch has scheduled, and their bytes."""
    last = FIRST
    while True:
        with _rested(), begin_cleaning(database) as session:
            dead = dead_files(session, kind, last, _AT_ONCE)
            if not dead:
                return
            scheduled = schedule_files(session, kind, dead, database.now())
            session.commit()
        last = dead[-1]
        yield scheduled
        if len(dead) < _AT_ONCE:
            return


def _has_files(storage: Storage, folder: str) -> bool:
    """Whether files are in a folder, or may be."""
    try:
        return any(True for _ in storage.files(folder, relative=False))
    except StorageError:
        return True


def _due(reader: Database | Session, before: datetime, folder: str = "") -> Iterator[list[Scheduled]]:
    after = ""
    while batch := due_files(reader, before, after, _AT_ONCE):
        inside = [file for file in batch if file.path.startswith(folder)]
        if inside:
            yield inside
        after = batch[-1].path


def _sweep(
    database: Database, storage: Storage, batch: Sequence[Scheduled], removed: _Removed, *, dry_run: bool
) -> None:
    """Remove those of some files that nobody refers to.

    They are claimed first, when everybody has committed who was about to refer to one of them: from then on
    nobody does. So whoever does is found afterwards, and nobody has to wait for that. What is referred to is
    forgotten only while no other collection removes the last row that does: that one relies on the queue.
    """
    going, named, foreign = _looked_up(database, batch, removed)
    if dry_run:
        removed.count += len(going)
        removed.bytes += sum(_sizes(storage, going))
        return
    with begin_cleaning(database) as session:
        unschedule_files(session, [*foreign, *named_files(session, named)])
        hold_lineages(session)
        claim_files(session, [file.path for file in going], database.now())
        session.commit()
    with begin_cleaning(database) as session:
        known = named_files(session, [file.path for file in going])
    going = [file for file in going if file.path not in known]
    sizes = dict(zip((file.path for file in going), _sizes(storage, going), strict=True))
    failures: dict[str, StorageError] = {}
    for relative in (True, False):
        failures |= storage.delete_each(
            (file.path for file in going if file.path_is_relative is relative), relative
        )
    removed.kept += [KeptFile(path, str(error), failed=True) for path, error in failures.items()]
    gone = [file.path for file in going if file.path not in failures]
    removed.folders |= folders_of_forks(gone)
    removed.bytes += sum(sizes[path] for path in gone)
    if removed.paths is not None:
        removed.paths += _addresses(storage, [file for file in going if file.path not in failures])
    with begin_cleaning(database) as session:
        unschedule_files(session, [*gone, *named_files(session, known)])
        session.commit()
    removed.count += len(gone)


def _looked_up(
    database: Database, batch: Sequence[Scheduled], removed: _Removed
) -> tuple[list[Scheduled], list[str], list[str]]:
    with begin_cleaning(database) as session:
        return _sorted_out(session, batch, removed)


def _sorted_out(
    reader: Database | Session, batch: Sequence[Scheduled], removed: _Removed
) -> tuple[list[Scheduled], list[str], list[str]]:
    """Those of some files that may go, the paths that rows name, and those that are not the lake's."""
    known = named_files(reader, [file.path for file in batch])
    folders = own_data_paths(reader)
    writing = open_commit_uuids(reader)
    going: list[Scheduled] = []
    named: list[str] = []
    foreign: list[str] = []
    for file in batch:
        if file.path in known:
            named.append(file.path)
        elif not _is_own(file, folders):
            foreign.append(file.path)
            removed.kept.append(KeptFile(file.path, "it was imported, and is not the lake's to remove"))
        elif file.reason != ABANDONED and any(uuid in file.path for uuid in writing):
            removed.kept.append(KeptFile(file.path, "a distributed snapshot may still commit it"))
        else:
            going.append(file)
    return going, named, foreign


def _sizes(storage: Storage, files: Sequence[Scheduled]) -> list[int]:
    """How large files are; one that is gone, or cannot be looked at, takes nothing."""

    def size(file: Scheduled) -> int:
        try:
            return storage.info(file.path, file.path_is_relative).size
        except StorageError:
            return 0

    with ThreadPoolExecutor(_LOOKING_THREADS, "forklake-collect") as pool:
        return list(pool.map(size, files))


def _is_own(file: Scheduled, folders: Sequence[str]) -> bool:
    """Whether the lake wrote a file: by its name, below the data path of the lake or of a fork.

    What was written for a distributed snapshot was found where nobody else writes, and may have any name.
    """
    inside = file.path_is_relative or any(file.path.startswith(folder) for folder in folders)
    abandoned = file.reason == ABANDONED and ".." not in file.path.split("/")
    return inside and (abandoned or is_ours(file.path, True))
