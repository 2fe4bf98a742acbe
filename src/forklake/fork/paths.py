"""Data paths of forks: one may have its own, as long as nobody else's files lie there."""

from __future__ import annotations

import os
from pathlib import Path

from forklake.data.storage.paths import S3, split_data_path
from forklake.errors import DataPathOverlap, InvalidUrl
from forklake.store.backend import Session
from forklake.store.paths import own_data_paths


def own_data_path(given: object) -> str:
    """The data path of a fork as it is stored."""
    if not isinstance(given, str | Path):
        raise InvalidUrl(f"a data path is given as a string or as a Path, not as {type(given).__name__}")
    stored, options = split_data_path(str(given))
    if options:
        raise InvalidUrl("options of a bucket belong to the data path of the lake, and serve its forks too")
    if not stored.startswith(S3):
        _refuse_file(Path(stored))
    return stored


def _refuse_file(folder: Path) -> None:
    """Refuse a place where no folder can be: something else is there, or on the way."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            if not place.is_dir():
                raise InvalidUrl(f"{place} is not a folder: choose another place for the fork's files")
            return


def refuse_overlap(session: Session, data_path: str, lake: str | None = None) -> None:
    """Refuse a data path that lies in another one, or around it: nobody could tell whose files are whose."""
    taken = own_data_paths(session) + ([] if lake is None else [lake])
    wanted = _canonical(data_path)
    for other in taken:
        found = _canonical(other)
        if wanted.startswith(found) or found.startswith(wanted):
            raise DataPathOverlap(
                f"{data_path} overlaps {other}, where other files of the lake are: choose a place apart. "
                "That of a dropped fork stays taken, since others may read its files"
            )


def _canonical(data_path: str) -> str:
    return data_path if data_path.startswith(S3) else f"{Path(data_path).resolve()}".rstrip("/") + "/"
