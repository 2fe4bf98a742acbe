"""Data paths of forks: one may have its own, as long as nobody else's files lie there."""

from __future__ import annotations

from pathlib import Path

from forklake.data.address import S3, split_data_path
from forklake.errors import DataPathOverlap, InvalidUrl
from forklake.store.backend import Session


def own_data_path(text: str) -> str:
    """The data path of a fork as it is stored."""
    stored, options = split_data_path(text)
    if options:
        raise InvalidUrl("options of a bucket belong to the data path of the lake, and serve its forks too")
    return stored


def refuse_overlap(session: Session, data_path: str, lake: str) -> None:
    """Refuse a data path that lies in another one, or around it: nobody could tell whose files are whose."""
    taken = [lake, *(row[0] for row in session.rows("own_data_paths"))]
    wanted = _canonical(data_path)
    for other in taken:
        found = _canonical(other)
        if wanted.startswith(found) or found.startswith(wanted):
            raise DataPathOverlap(
                f"{data_path} overlaps {other}, where other files of the lake are: choose a place apart"
            )


def _canonical(data_path: str) -> str:
    return data_path if data_path.startswith(S3) else f"{Path(data_path).resolve()}".rstrip("/") + "/"
