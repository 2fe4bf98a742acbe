"""Making Parquet files that exist part of a table, without copying them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from glob import glob
from itertools import takewhile
from pathlib import Path

from forklake.commit.draft import Draft
from forklake.commit.import_partitions import partition_of
from forklake.commit.staged import NewMappings
from forklake.commit.stored_mappings import StoredMappings
from forklake.data.parquet.foreign_files import Existing, Inspection
from forklake.data.storage.storage import Storage
from forklake.errors import FileMissing, InvalidArgument, InvalidData, StorageError, raise_alone
from forklake.lazy.arrow import fs
from forklake.model.entities import Table
from forklake.model.names import in_user_folder
from forklake.model.progress import Steps
from forklake.model.table.files import DataFile, WrittenFile

_THREADS = 8
_KINDS = ("field_id", "by_name", "by_position")
_WILD = re.compile(r"[*?\[]")


def check_mapping(mapping: object) -> None:
    """Refuse what is no way to find columns."""
    if isinstance(mapping, dict) and all(isinstance(name, str) for pair in mapping.items() for name in pair):
        targets = [str(target).lower() for target in mapping.values()]
        if len(set(targets)) < len(targets):
            raise InvalidArgument("the mapping names a column of the table twice: give each one source")
    elif mapping not in _KINDS:
        kinds = ", ".join(map(repr, _KINDS))
        raise InvalidArgument(f"mapping is {kinds} or a dict of names in files to columns, not {mapping!r}")


def find_files(storage: Storage, paths: str | Path | Sequence[str | Path]) -> list[tuple[str, bool]]:
    """Every file that is meant, as a path and whether it is relative to the data path of the lake."""
    listed = _listed(paths)
    if not listed:
        raise InvalidArgument("no file is named: give a path, or several")
    with ThreadPoolExecutor(_THREADS, "forklake-list") as pool:
        expanded = pool.map(lambda path: _expanded(storage, path), listed)
        # A file that is named twice is meant once.
        return list(dict.fromkeys(_placed(storage, file) for files in expanded for file in files))


def _listed(paths: object) -> list[str]:
    match paths:
        case str() | Path():
            return [str(paths)]
        case list() | tuple() if all(isinstance(path, str | Path) for path in paths):
            return [str(path) for path in paths]
        case _:
            raise InvalidArgument(
                f"files are given as a path or a list of paths, not as {type(paths).__name__}"
            )


def _expanded(storage: Storage, path: str) -> list[str]:
    """A file itself, every file of a folder, or what a pattern finds."""
    if "://" in path:
        return _in_bucket(storage, path)
    path = in_user_folder(path)
    if _WILD.search(path) and not Path(path).exists():
        root = _plain_folders(path)
        # A Path refuses some patterns.
        files = [file for file in sorted(glob(path, recursive=True)) if Path(file).is_file()]  # noqa: PTH207
        return _found(path, [str(_absolute(file)) for file in files if _is_data(file.removeprefix(root))])
    local = _absolute(path)
    if not local.is_dir():
        return [str(local)]
    below = sorted(local.rglob("*.parquet"))
    return _checked(path, [str(file) for file in below if _is_data(file.relative_to(local).as_posix())])


def _absolute(path: str) -> Path:
    local = Path(path).absolute()
    return local.resolve() if ".." in local.parts else local


def _plain_folders(pattern: str) -> str:
    """The folders that a pattern begins with, up to the first that is one itself."""
    plain = list(takewhile(lambda part: not _WILD.search(part), pattern.split("/")))
    return "".join(f"{part}/" for part in plain)


def _found(pattern: str, files: list[str]) -> list[str]:
    if not files:
        raise FileMissing(f"no file matches {pattern}")
    return files


def _in_bucket(storage: Storage, path: str) -> list[str]:
    filesystem, key = storage.resolve(path.rstrip("/"), relative=False)
    try:
        if _WILD.search(key) and filesystem.get_file_info(key).type == fs.FileType.NotFound:
            return _matching(filesystem, path, key)
        if filesystem.get_file_info(key).type != fs.FileType.Directory:
            return [path]
        below = sorted(info.path for info in filesystem.get_file_info(fs.FileSelector(key, recursive=True)))
    except OSError as error:
        reason = storage.s3.options.hidden(str(error))
        raise_alone(StorageError(f"looking at {path} failed: {reason}"))
    named = [file for file in below if file.endswith(".parquet") and _is_data(file.removeprefix(f"{key}/"))]
    return _checked(path, [f"s3://{file}" for file in named])


def _matching(filesystem: fs.FileSystem, path: str, pattern: str) -> list[str]:
    """The objects whose keys match a pattern; only those below its first plain folders are listed."""
    root = _plain_folders(pattern)
    selector = fs.FileSelector(root.rstrip("/"), allow_not_found=True, recursive=True)
    matches = re.compile(_expression(pattern)).fullmatch
    keys = sorted(
        info.path
        for info in filesystem.get_file_info(selector)
        if info.type == fs.FileType.File and matches(info.path)
    )
    return _found(path, [f"s3://{key}" for key in keys if _is_data(key.removeprefix(root))])


def _expression(pattern: str) -> str:
    """A pattern as a regular expression: `**` goes through folders, and nothing else does."""
    parts = re.split(r"(\*\*/|\*|\?|\[!?[^\]/]+\])", pattern)
    known = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]", "": ""}
    return "".join(
        known[part] if part in known else (part.replace("[!", "[^", 1) if at % 2 else re.escape(part))
        for at, part in enumerate(parts)
    )


def _is_data(path: str) -> bool:
    """Names that begin so are bookkeeping of other writers, unless they are values as in `_day=1/`."""
    parts = path.split("/")
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _checked(folder: str, files: list[str]) -> list[str]:
    if not files:
        raise FileMissing(f"there are no Parquet files in {folder}: their names end with .parquet")
    return files


def _placed(storage: Storage, path: str) -> tuple[str, bool]:
    """A file as it is stored; one below the data path has one name, whatever links lead to it."""
    root = storage.data_path
    if storage.is_local and "://" not in path:
        try:
            real = str(Path(path).resolve())
        except (OSError, RuntimeError, ValueError):
            # Whoever opens it will say why that is no file.
            real = path
        for folder in (root, f"{Path(root).resolve()}/"):
            if real.startswith(folder):
                return real.removeprefix(folder), True
    if path.startswith(root):
        return path.removeprefix(root), True
    return path, False


def inspect(inspection: Inspection, files: Sequence[tuple[str, bool]], steps: Steps) -> list[Existing]:
    """Look into every file; the first that does not fit refuses all."""
    with ThreadPoolExecutor(_THREADS, "forklake-import") as pool:
        return list(steps.over(pool.map(lambda file: inspection.inspect(*file), files)))


def stage(draft: Draft, table: Table, storage: Storage, found: Iterable[Existing]) -> int:
    """Make files part of a table; returns how many rows they have."""
    files = [existing for existing in found if existing.written.record_count]
    source = draft.source(table)
    known = source.reader.files() if source.is_stored else []
    known += [scanned.file for scanned in source.uncommitted.files]
    # All are looked at before anything is staged: a transaction may go on after a refusal.
    _refuse_known(storage, known, [existing.written for existing in files])
    staged = draft.staged(table)
    mappings = NewMappings(staged, StoredMappings(draft, table, storage, known).find)
    partitioning = draft.partitioning(table)
    for existing in files:
        written = existing.written
        values = None if partitioning is None else partition_of(partitioning.fields, written.stats)
        if partitioning is not None and values is not None:
            written = replace(written, partition_id=partitioning.id, partition_values=values)
        staged.add_file(written, mapping_id=mappings.of(existing.names, existing.signature))
        # Two who import one file under different names at the same time have its real name in common.
        staged.imported |= {written.path, _real(storage, written) or written.path}
    return sum(existing.written.record_count for existing in files)


def _refuse_known(storage: Storage, known: Iterable[DataFile], files: Sequence[WrittenFile]) -> None:
    """Refuse files that the table has, and those that are given twice, under whatever names."""
    paths = {file.path for file in known}
    sizes = {file.file_size_bytes for file in files}
    # A file that is the same has the same size: others need not be looked at.
    alike = [file for file in known if file.file_size_bytes in sizes and not file.inlined]
    places = {place: file.path for file in alike if (place := _place(storage, file)) is not None}
    given: dict[tuple[int, int], str] = {}
    for file in files:
        place = _place(storage, file)
        other = None if place is None else places.get(place)
        if file.path in paths or other == file.path:
            raise InvalidData(f"{file.path} is part of the table already")
        if other is not None:
            raise InvalidData(f"{file.path} is part of the table already: it is the same file as {other}")
        if place is not None and given.setdefault(place, file.path) != file.path:
            raise InvalidData(f"{file.path} is the same file as {given[place]}: name one of them")


def _place(storage: Storage, file: DataFile | WrittenFile) -> tuple[int, int] | None:
    """What tells a file on a disk from all others, whatever links lead to it."""
    address = storage.address(file.path, file.path_is_relative)
    if "://" in address:
        return None
    try:
        found = Path(address).stat()
    except OSError:
        # Whoever reads the table will hear of it.
        return None
    return found.st_dev, found.st_ino


def _real(storage: Storage, file: WrittenFile) -> str | None:
    """The path of a file on a disk without links, as others would store it."""
    address = storage.address(file.path, file.path_is_relative)
    return None if "://" in address else _placed(storage, str(Path(address).resolve()))[0]
