"""Manifests as files: one for each attempt, in a folder that only one distributed snapshot has."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

from forklake.data.storage.storage import Storage
from forklake.errors import FileMissing, InvalidManifest
from forklake.model.manifest import Manifest
from forklake.model.names import is_absolute

SUFFIX = ".manifest.jsonl"
_THREADS = 16


def write_manifest(storage: Storage, folder: str, manifest: Manifest) -> Manifest:
    """Keep a manifest in a folder, relative to the data path or absolute; gives it with its address."""
    path = f"{folder}{manifest.piece}-{manifest.attempt}{SUFFIX}"
    with storage.open_output(path, not is_absolute(path)) as sink:
        sink.write(manifest.to_json().encode())
    return manifest.at(storage.address(path, not is_absolute(path)))


def read_manifest(storage: Storage, path: str) -> Manifest:
    """A manifest that is kept in a file, if it is whole."""
    content = storage.read_bytes(path, not is_absolute(path))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise InvalidManifest(f"{path} is not a manifest: {error}") from error
    return Manifest.from_json(text, path=path)


def read_manifests(storage: Storage, folder: str) -> list[Manifest]:
    """Every manifest in a folder, in the order of their names.

    One that was cut off belongs to a worker that died: it does not count if another attempt at the same
    piece of work has come to its end.
    """
    names = sorted(
        found.path for found in storage.files(folder, not is_absolute(folder)) if found.path.endswith(SUFFIX)
    )
    if not names:
        raise FileMissing(f"there are no manifests in {folder}: have the workers written theirs as files?")
    with ThreadPoolExecutor(_THREADS, "forklake-manifest") as pool:
        found = list(pool.map(lambda name: _attempt(storage, name), names))
    whole = [manifest for manifest in found if isinstance(manifest, Manifest)]
    done = {manifest.piece for manifest in whole}
    for name, torn in zip(names, found, strict=True):
        if isinstance(torn, InvalidManifest) and _piece(name) not in done:
            raise torn
    return whole


def _attempt(storage: Storage, name: str) -> Manifest | InvalidManifest:
    try:
        return read_manifest(storage, name)
    except InvalidManifest as error:
        return error


def _piece(name: str) -> str:
    return PurePosixPath(name).name.partition("-")[0]


def missing_files(storage: Storage, folders: Iterator[str], files: dict[str, int]) -> Iterator[str]:
    """What is wrong with files that should be there with these sizes, all of them in some folders."""
    there: dict[str, int] = {}
    for folder in folders:
        there |= {found.path: found.size for found in storage.files(folder, not is_absolute(folder))}
    for path, size in files.items():
        if path not in there:
            yield f"{path} is missing"
        elif there[path] != size:
            yield f"{path} has {there[path]} bytes and should have {size}"
