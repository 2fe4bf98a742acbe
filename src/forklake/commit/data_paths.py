"""Whose files are in a data path: each belongs to one lake, and is cleaned by that lake alone.

A lake marks its data paths when it gets them. Where another's marker is found beside its own, it removes only
files that its metadata name, and no orphans; where a copy of its metadata wrote a marker, nothing at all.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from forklake.data.storage.lake_markers import (
    Marker,
    has_files,
    markers_above,
    markers_in,
    path_of,
    read_marker,
    remove_markers,
    write_marker,
)
from forklake.data.storage.storage import Storage
from forklake.errors import DataPathOverlap, StorageError
from forklake.model.names import is_absolute
from forklake.store.backend import Database, UniqueViolation
from forklake.store.home import stored_home
from forklake.store.open import LAKE_UUID
from forklake.store.settings import add_setting, setting

_KEY = LAKE_UUID


def lake_uuid(database: Database) -> str:
    """What tells the lake from all others; copies of its metadata have the same."""
    found = setting(database, _KEY)
    if found is not None:
        return found
    with suppress(UniqueViolation), database.transaction() as session:
        if setting(session, _KEY) is None:
            add_setting(session, _KEY, str(uuid4()))
            session.commit()
    return lake_uuid(database)


def refuse_taken(storage: Storage, folder: str, ours: str | None = None) -> None:
    """Refuse to move where another lake has its files, or below that."""
    there = [(folder, marker) for marker in markers_in(storage, folder)]
    for place, marker in (*there, *markers_above(storage, folder)):
        if marker.lake != ours:
            raise DataPathOverlap(
                f"{folder} cannot be a data path: {_whose(marker)} has its files in {place}, and each would "
                "remove those of the other as orphans. Choose a place apart; if that lake is gone, remove "
                f"{path_of(place, marker)}"
            )


def mark(
    database: Database, storage: Storage, folder: str, *, moved: bool = False, force: bool = False
) -> Marker:
    """Say in a data path that the files there are of this lake, if it does not say so yet.

    If the lake has `moved`, it says so also where a copy of the metadata did. With `force`, it takes the
    place of other lakes too: they are gone.
    """
    ours = lake_uuid(database)
    found = markers_in(storage, folder)
    others = [marker for marker in found if marker.lake != ours]
    own = next((marker for marker in found if marker.lake == ours), Marker(ours, 0))
    is_new = own.url is None
    if not is_new and not (moved and not _is_here(own, database)) and not (force and others):
        return own
    since = own.since
    if others or (is_new and has_files(storage, folder)):
        since = database.now()
    made = replace(own, number=own.number + 1, url=database.url, home=stored_home(database), since=since)
    try:
        write_marker(storage, folder, made)
    except StorageError:
        # Another process may have been quicker.
        if not is_new or (there := read_marker(storage, folder, made)) is None:
            raise
        return there
    if force:
        for marker in others:
            remove_markers(storage, folder, marker.lake)
    return made


def unmark(database: Database, storage: Storage, folder: str) -> None:
    """Say no longer that files of this lake are in a folder, unless a copy of its metadata says so."""
    ours = lake_uuid(database)
    if any(marker.lake == ours and _is_here(marker, database) for marker in markers_in(storage, folder)):
        remove_markers(storage, folder, ours)


@dataclass(frozen=True, slots=True)
class Owned:
    """Whether the files in a data path are of one lake alone."""

    copied: str | None = None
    """What says that a copy of the metadata is the lake now: it may use any of the files."""
    shared: str | None = None
    """What says that another lake has files there too, which nobody names in this one."""
    since: datetime | None = None
    """Older files may be of others, who were there before."""


class DataPaths:
    """The data paths of a lake that is being cleaned: each is looked at once."""

    def __init__(self, database: Database, storage: Storage, *, dry_run: bool) -> None:
        """Look at nothing yet. A dry run marks nothing."""
        self._database = database
        self._storage = storage
        self._dry_run = dry_run
        self._known: dict[str, Owned] = {}
        self._others: dict[str, str | None] = {}

    def owned(self, folder: str) -> Owned:
        """Whether a data path is this lake's alone; that of the lake is an empty text."""
        if folder not in self._known:
            self._known[folder] = self._look(folder if is_absolute(folder) else self._storage.data_path)
        return self._known[folder]

    def other_inside(self, folder: str) -> str | None:
        """Why files in a folder below a data path are not this lake's: another one marked it."""
        if folder not in self._others:
            ours = setting(self._database, _KEY)
            others = [marker for marker in markers_in(self._storage, folder) if marker.lake != ours]
            self._others[folder] = f"{_whose(others[0])} has its files there" if others else None
        return self._others[folder]

    def _look(self, folder: str) -> Owned:
        own = None if self._dry_run else mark(self._database, self._storage, folder)
        ours = setting(self._database, _KEY)
        found = markers_in(self._storage, folder)
        shared: str | None = None
        for marker in found:
            is_copied = marker.lake == ours and not _is_here(marker, self._database)
            if marker.lake == ours and not is_copied:
                continue
            why = (
                f"{_whose(marker)} has its files there too, and files that one of them does not name may "
                "be the other's: copy the files of one to a place apart, and connect to it once with "
                'data_path=… and moved=True; if that lake is gone, connect once with moved="force"'
            )
            if is_copied:
                return Owned(copied=why)
            shared = shared or why
        own = own or next((marker for marker in found if marker.lake == ours), None)
        # Without a marker, who was there before is not known.
        return Owned(shared=shared, since=self._database.now() if own is None else own.since)


def _is_here(marker: Marker, database: Database) -> bool:
    """Whether a marker was written where the metadata are now, and by no copy of them."""
    home = stored_home(database)
    # Not every server tells where it is.
    return home is None or marker.home is None or home[0] == marker.home[0] or home[1] == marker.home[1]


def _whose(marker: Marker) -> str:
    return f"the lake {marker.lake}" if marker.url is None else f"the lake at {marker.url}"
