"""What a disk or bucket knows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that lies in the storage, whoever wrote it."""

    path: str
    size: int
    modified: datetime
    """With time zone."""


def modified_at(seconds: float) -> datetime:
    """The timestamp that many seconds after 1970."""
    return datetime.fromtimestamp(seconds, UTC)
