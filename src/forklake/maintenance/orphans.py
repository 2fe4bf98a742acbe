"""Orphans: files in the data paths of a lake that no row of its metadata names.

They are left by writers that were ended before they committed. A file that may still be committed is left
alone: one that is younger than a grace period, or was written for a distributed snapshot that is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from forklake.data.parquet.file_names import is_ours
from forklake.data.storage.file_info import StoredFile
from forklake.data.storage.storage import Storage
from forklake.display import Shown
from forklake.maintenance.collect import KeptFile, check_age, remove_folders
from forklake.maintenance.expire import ago
from forklake.model.distributed import STAGING
from forklake.model.names import folders_of_forks, is_absolute
from forklake.model.progress import OnProgress, Steps
from forklake.store.backend import Database
from forklake.store.garbage import known_files, open_commit_uuids
from forklake.store.paths import own_data_paths

_AT_ONCE = 20_000
_MOST_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class OrphansResult(Shown):
    """The result of removing orphans."""

    files: int
    """How many files were removed, or with `dry_run` would be."""
    bytes: int
    unknown: tuple[str, ...]
    """Files that nothing names and that do not look like the lake's, the first thousand: they stay."""
    kept: tuple[KeptFile, ...]
    """Files that could not be removed."""
    dry_run: bool


@dataclass(slots=True)
class _Found:
    files: int = 0
    bytes: int = 0
    unknown: list[str] = field(default_factory=list[str])
    kept: list[KeptFile] = field(default_factory=list[KeptFile])
    paths: list[str] | None = None
    """Addresses of the files, if somebody asks for them."""


def remove_orphans(
    database: Database,
    storage: Storage,
    *,
    older_than: object,
    unknown: bool,
    dry_run: bool,
    progress: OnProgress | None,
) -> OrphansResult:
    """Remove files that nothing names, in the data paths of the lake and of its forks."""
    age = check_age(older_than)
    database.check_writable()
    found = _Found()
    steps = Steps(progress, "look for orphans", "files", None)
    for folder in ("", *own_data_paths(database)):
        _look(database, storage, folder, age, found, steps, unknown=unknown, dry_run=dry_run)
    steps.end()
    return OrphansResult(found.files, found.bytes, tuple(found.unknown), tuple(found.kept), dry_run)


def orphans_in(
    database: Database,
    storage: Storage,
    folder: str,
    *,
    older_than: object,
    dry_run: bool,
    unknown: bool = True,
    progress: OnProgress | None = None,
) -> list[str]:
    """Remove Parquet files that nothing names in the folder of one catalog, whoever wrote them there.

    Unless `unknown`, only those of the lake. Gives their addresses; a dry run gives those that would be
    removed.
    """
    age = check_age(older_than)
    database.check_writable()
    paths: list[str] = []
    steps = Steps(progress, "look for orphans", "files", None)
    _look(database, storage, folder, age, _Found(paths=paths), steps, unknown=unknown, dry_run=dry_run)
    steps.end()
    return paths


def _look(
    database: Database,
    storage: Storage,
    folder: str,
    age: timedelta,
    found: _Found,
    steps: Steps,
    *,
    unknown: bool,
    dry_run: bool,
) -> None:
    """Remove orphans in one folder, or below the data path of the lake."""
    relative = not is_absolute(folder)
    for batch in _batches(storage.files(folder, relative)):
        orphans = _orphans(database, storage, batch, age, found, relative=relative, unknown=unknown)
        if found.paths is not None:
            orphans = (file for file in orphans if _is_listed(file.path))
        gone = list(orphans) if dry_run else _removed(storage, orphans, found, relative=relative)
        if not dry_run and relative:
            own = (file.path for file in gone if is_ours(file.path, True))
            found.kept += remove_folders(database, storage, folders_of_forks(own))
        found.files += len(gone)
        found.bytes += sum(file.size for file in gone)
        if found.paths is not None:
            found.paths += [storage.address(file.path, relative) for file in gone]
        steps.add(len(batch))


def _is_listed(path: str) -> bool:
    """Whether a file is one that lakes have: others may keep anything else beside them."""
    return path.endswith(".parquet") or is_ours(path, True)


def _batches(files: Iterable[StoredFile]) -> Iterator[list[StoredFile]]:
    stream = iter(files)
    while batch := list(islice(stream, _AT_ONCE)):
        yield batch


def _orphans(
    database: Database,
    storage: Storage,
    batch: list[StoredFile],
    age: timedelta,
    found: _Found,
    *,
    relative: bool,
    unknown: bool,
) -> Iterator[StoredFile]:
    """Those of some files that nobody names, now that they were listed, nor may come to name."""
    before = ago(database, age)
    old = [file for file in batch if file.modified <= before]
    # A file that was imported from inside of the data path may be named by its full address.
    addresses = {file.path: storage.address(file.path, relative) for file in old}
    writing = open_commit_uuids(database)
    known = known_files(database, {*addresses, *addresses.values()})
    for file in old:
        if file.path in known or addresses[file.path] in known or any(uuid in file.path for uuid in writing):
            continue
        if unknown or is_ours(file.path, True) or f"/{STAGING}" in f"/{file.path}":
            yield file
        elif len(found.unknown) < _MOST_SHOWN:
            found.unknown.append(addresses[file.path])


def _removed(
    storage: Storage, orphans: Iterable[StoredFile], found: _Found, *, relative: bool
) -> list[StoredFile]:
    """Remove files; gives those that are gone."""
    going = list(orphans)
    failures = storage.delete_each((file.path for file in going), relative)
    found.kept += [KeptFile(path, str(error), failed=True) for path, error in failures.items()]
    return [file for file in going if file.path not in failures]
