"""Which versions of Spark forklake runs on."""

from __future__ import annotations

from forklake.errors import MissingDependency

OLDEST, NEWEST = (4, 0), (4, 3)
"""The versions that tests run on."""


def check_version(version: str, what: str) -> None:
    """Refuse a Spark that is too old or too new."""
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if found < OLDEST or found[:1] > NEWEST[:1]:
        raise MissingDependency(
            f"{what} {version} is too {'old' if found < OLDEST else 'new'}: forklake runs on Spark "
            f"{_shown(OLDEST)} to {_shown(NEWEST)}"
        )


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
