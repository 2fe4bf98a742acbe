"""Which version of the metadata schema a lake has, and what is to be done about one that is not the present.

Versions are `0.5-dev1`, `0.5-dev2` and so on. Programs of an older version refuse a lake of a newer one, and
those of a newer version refuse an older lake until it is upgraded: neither knows what the other stores.
"""

from __future__ import annotations

import re

from forklake.errors import MetadataNotFound, StoreError, UnsupportedVersion
from forklake.store.backend import Database
from forklake.store.settings import settings

PRESENT = "0.5-dev6"
"""What this code reads and writes; the schema files end by storing it."""
MADE_BY = "forklake_version"
"""The setting that says which forklake created the lake or upgraded it last."""

_VERSION = re.compile(r"0\.5-dev([1-9]\d{0,8})")
_INIT = "create a lake in an empty database or schema with `forklake --lake URL init`"


def number_of(version: str) -> int | None:
    """Where a version stands among those of forklake; None if it is none of them."""
    found = _VERSION.fullmatch(version)
    return None if found is None else int(found[1])


def check_present(url: str, version: str, made_by: str | None) -> None:
    """Refuse any version but the present one, saying what would help."""
    if is_older(url, version, made_by):
        raise UnsupportedVersion(
            f"the lake at {url} has metadata of version {version}, and this forklake needs {PRESENT}: take a "
            "backup of it, then run `forklake --lake URL upgrade`, or connect(..., upgrade=True)"
        )


def is_older(url: str, version: str, made_by: str | None) -> bool:
    """Whether a lake can be upgraded; refuse one that is newer than this code, or none of forklake's."""
    number, present = number_of(version), number_of(PRESENT)
    if number is None or present is None:
        raise UnsupportedVersion(f"the metadata at {url} has version {version!r}, not {PRESENT!r}: {_INIT}")
    if number > present:
        newer = "a newer forklake" if made_by is None else f"forklake {made_by} or newer"
        raise UnsupportedVersion(
            f"the lake at {url} has metadata of version {version}, and this forklake knows {PRESENT}: "
            f"install {newer}"
        )
    return number < present


def stored_version(database: Database) -> tuple[str, str | None]:
    """The version of a lake, and which forklake made it so; refuse what is no lake, or was never finished."""
    if not database.exists():
        raise MetadataNotFound(
            f"there is no lake at {database.url}: create it with `forklake --lake URL init`, "
            "or connect(..., create=True)"
        )
    try:
        found = settings(database)
    except StoreError as error:
        raise UnsupportedVersion(f"the metadata at {database.url} is no lake's: {_INIT}") from error
    if "version" not in found:
        raise UnsupportedVersion(f"the lake at {database.url} was never finished: {_INIT}")
    return found["version"], found.get(MADE_BY)


def check_unchanged(url: str, version: str | None) -> None:
    """Refuse to write to a lake that was upgraded since it was opened."""
    if version != PRESENT:
        raise UnsupportedVersion(
            f"the lake at {url} has metadata of version {version} since another program upgraded it: this "
            f"one knows {PRESENT} and wrote nothing; install the forklake of that program, and start again"
        )
