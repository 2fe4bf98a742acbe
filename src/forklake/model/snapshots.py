"""Snapshots and the head of a catalog, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypedDict

from forklake.display import Shown
from forklake.errors import InvalidArgument
from forklake.model.history import summary_of
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_text


@dataclass(frozen=True, slots=True)
class Snapshot(Shown):
    """A snapshot: its id, timestamp, catalog, and its changes in DuckLake's notation."""

    _SHOWN: ClassVar = ("id", "time", "catalog", "summary", "author", "message", "extra")

    id: SnapshotId
    time: datetime
    catalog: str | None
    changes: str
    author: str | None = None
    message: str | None = None
    extra: Mapping[str, Any] | None = None
    schema_version: int = 0
    _footprint: str | None = field(default=None, repr=False, compare=False)
    _catalogs: Mapping[int, str] = field(default_factory=dict[int, str], repr=False, compare=False)

    @property
    def summary(self) -> str:
        """The changes in words, with the names at that time: `inserted into sales.orders`."""
        return summary_of(self.changes, self._footprint, self._catalogs)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a catalog stands: the snapshot fixes what it holds, the schema version how that is structured."""

    catalog_id: CatalogId
    snapshot_id: SnapshotId
    schema_version: int
    data_path: str
    snapshot_time: datetime


@dataclass(frozen=True, slots=True)
class Author:
    """What a commit says of itself."""

    author: str | None = None
    message: str | None = None
    extra: Mapping[str, Any] | None = None


class CommitInfo(TypedDict, total=False):
    """The keywords that every verb takes that commits: what the commit says of itself."""

    author: str | None
    message: str | None
    extra: Mapping[str, Any] | None


def author_of(
    author: str | None = None, message: str | None = None, extra: Mapping[str, Any] | None = None
) -> Author:
    """What a commit says of itself, checked before any work is done."""
    if author is not None:
        check_text(author, "author")
    if message is not None:
        check_text(message, "message")
    if extra is not None:
        if not isinstance(extra, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"the extra info of a commit is a dict: {{'run': 7}}, not {extra!r}")
        try:
            text = check_text(json.dumps(extra, ensure_ascii=False, allow_nan=False), "extra info")
            # A copy, so that what is recorded is what was checked.
            extra = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"the extra info of a commit must be plain JSON: {error}") from error
    return Author(author, message, extra)
