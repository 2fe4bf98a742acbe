"""Snapshots and the head of a catalog, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, TypedDict, cast

from forklake.display import Shown
from forklake.errors import InvalidArgument
from forklake.model.history import summary_of
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_text

Extra = Mapping[str, Any] | str
"""What a commit says of itself beside its message: an object of JSON, or text as other clients write it."""


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
    extra: Extra | None = None
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
    extra: Extra | None = None

    @property
    def stored_extra(self) -> str | None:
        """The extra info as it is stored."""
        extra = self.extra
        return extra if extra is None or isinstance(extra, str) else json.dumps(extra, ensure_ascii=False)

    def with_extra(self, more: Mapping[str, Any]) -> Author:
        """The same with more extra info; text becomes a part of it."""
        given = {"text": self.extra} if isinstance(self.extra, str) else (self.extra or {})
        return replace(self, extra={**given, **more})


class CommitInfo(TypedDict, total=False):
    """The keywords that every verb takes that commits: what the commit says of itself."""

    author: str | None
    message: str | None
    extra: Extra | None


def author_of(author: str | None = None, message: str | None = None, extra: Extra | None = None) -> Author:
    """What a commit says of itself, checked before any work is done."""
    if author is not None:
        check_text(author, "author")
    if message is not None:
        check_text(message, "message")
    if isinstance(extra, str):
        check_text(extra, "extra info")
    elif extra is not None:
        extra = checked_extra(extra)
    return Author(author, message, extra)


def checked_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of extra info, so that what is recorded is what was checked."""
    if not isinstance(extra, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"the extra info of a commit is a dict: {{'run': 7}}, not {extra!r}")
    try:
        return json.loads(check_text(json.dumps(extra, ensure_ascii=False, allow_nan=False), "extra info"))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the extra info of a commit must be plain JSON: {error}") from error


def read_extra(text: str | None) -> Extra | None:
    """Stored extra info: a dict if it is an object of JSON, and the text itself otherwise."""
    if text is None:
        return None
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) else text
