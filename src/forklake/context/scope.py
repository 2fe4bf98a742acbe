"""Where the verbs of a handle take effect: at once, inside a transaction, or nowhere in the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, Unpack

from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.errors import FileMissing, ForklakeError, NotFound
from forklake.model.snapshots import CommitInfo
from forklake.model.time_travel import AsOf

T = TypeVar("T")

Ids = Callable[[int], int]
"""What became of the ids of new objects: a commit replaces provisional ones."""


class Scope(Protocol):
    """What a table handle needs to know of the catalog or transaction that it came from."""

    @property
    def name(self) -> str:
        """The name of the catalog."""
        ...

    @property
    def context(self) -> LakeContext:
        """The lake."""
        ...

    def read(self) -> Draft:
        """The catalog as it is to be seen now."""
        ...

    def is_overtaken(self, draft: Draft) -> bool:
        """Whether the present that a draft shows is in the past, and expired: some of it may be gone.

        A past snapshot that was expired meanwhile is refused.
        """
        ...

    def at(self, as_of: AsOf) -> Scope:
        """The catalog as it was, for reading."""
        ...

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> Scope:
        """The same, with an author, a message and extra info for its commits."""
        ...

    def apply(
        self, change: Callable[[Draft], T], *, written: list[str] | None = None, present: bool = False
    ) -> tuple[T, Ids]:
        """Change the catalog; returns what the change returned, and the ids that new objects got.

        The change may be run again on a newer draft, so it must do nothing but look at it and change it.
        Files that it writes once for all drafts are collected in `written`: if it does not stand, they go.
        One that cannot be run twice asks for the `present` catalog, not for what is remembered of it.
        """
        ...


def look(scope: Scope, find: Callable[[Draft], T], *, every: bool = False) -> T:
    """What there is in a catalog now; as it is a moment later, if this state of it was expired meanwhile.

    Nobody has asked for a snapshot by its number, so none is refused. Where `every` thing of a kind is asked
    for, nobody would miss one that is gone.
    """
    while True:
        draft = scope.read()
        try:
            found = find(draft)
        except (NotFound, FileMissing):
            if not scope.is_overtaken(draft):
                raise
        else:
            if not (every and scope.is_overtaken(draft)):
                return found


def seen_at(scope: Scope) -> str:
    """The snapshot that a handle shows, for its `repr`; nothing if the lake does not answer."""
    try:
        return f" at snapshot {scope.read().head.snapshot_id}"
    except ForklakeError:
        return ""
