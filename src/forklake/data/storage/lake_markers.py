"""Markers: small files that say which lake has its files in a folder, so that no two lakes clean it.

A lake that gets a data path puts a marker there, and another one when its metadata have moved. Markers are
written once, like all files: of several of one lake, that with the highest number holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from forklake.data.storage.paths import S3
from forklake.data.storage.storage import Storage
from forklake.errors import FileMissing, StorageError

FOLDER = "_lakes/"
"""No catalog has a folder of this name: those begin with a letter or a digit."""
_NAME = re.compile(r"(?:.*/)?([0-9a-f-]{36})\.(\d+)\.json")


@dataclass(frozen=True, slots=True)
class Marker:
    """What a lake says of a folder."""

    lake: str
    """The lake's UUID."""
    number: int
    url: str | None = None
    """Where its metadata are, without a password; None if the file was not written to its end."""
    home: tuple[str, str] | None = None
    """The same by name and identity, as the metadata have it."""
    since: datetime | None = None
    """If other files were in the folder before: when the lake came."""


def is_marker(path: str) -> bool:
    """Whether a file is a marker, of whatever lake."""
    return f"/{FOLDER}" in f"/{path}" and _NAME.fullmatch(path) is not None


def path_of(folder: str, marker: Marker) -> str:
    """The file that a marker is."""
    return f"{folder}{FOLDER}{marker.lake}.{marker.number}.json"


def markers_in(storage: Storage, folder: str) -> list[Marker]:
    """The markers in a folder that is given by its address: of each lake the one that holds."""
    found: dict[str, int] = {}
    for file in storage.files(f"{folder}{FOLDER}", relative=False):
        named = _NAME.fullmatch(file.path)
        if named is not None:
            found[named[1]] = max(found.get(named[1], 0), int(named[2]))
    read = (read_marker(storage, folder, Marker(lake, number)) for lake, number in sorted(found.items()))
    return [marker for marker in read if marker is not None]


def read_marker(storage: Storage, folder: str, marker: Marker) -> Marker | None:
    """What a marker says whose name is known; None if it is not there."""
    try:
        content = storage.read_bytes(path_of(folder, marker), relative=False)
    except FileMissing:
        return None
    try:
        found = json.loads(content)
        home, since = found["home"], found["since"]
        return Marker(
            marker.lake,
            marker.number,
            str(found["url"]),
            None if home is None else (str(home[0]), str(home[1])),
            None if since is None else datetime.fromisoformat(since),
        )
    except (ValueError, KeyError, TypeError, IndexError):
        # Its name says whose it is.
        return marker


def write_marker(storage: Storage, folder: str, marker: Marker) -> None:
    """Put a marker into a folder."""
    since = None if marker.since is None else marker.since.isoformat()
    content = {"lake": marker.lake, "url": marker.url, "home": marker.home, "since": since}
    with storage.open_output(path_of(folder, marker), relative=False) as sink:
        sink.write(f"{json.dumps(content, indent=2)}\n".encode())


def remove_markers(storage: Storage, folder: str, lake: str) -> None:
    """Remove all markers of a lake from a folder."""
    files = storage.files(f"{folder}{FOLDER}", relative=False)
    storage.delete([file.path for file in files if f"/{FOLDER}{lake}." in file.path], relative=False)
    for failure in storage.remove_folders([f"{folder}{FOLDER}"], relative=False).values():
        raise failure


def markers_above(storage: Storage, folder: str) -> Iterator[tuple[str, Marker]]:
    """The markers in all folders in which one lies, and these folders, as far as they can be read."""
    root = "/" if folder.startswith("/") else S3
    above = folder.removesuffix("/")
    while "/" in (inside := above.removeprefix(root)):
        above = root + inside.rpartition("/")[0]
        with suppress(StorageError):
            yield from ((f"{above}/", marker) for marker in markers_in(storage, f"{above}/"))


def has_files(storage: Storage, folder: str) -> bool:
    """Whether files are in a folder, other than markers."""
    return any(not is_marker(file.path) for file in storage.files(folder, relative=False))
