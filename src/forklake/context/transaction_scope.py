"""Work inside a transaction: changes of one draft, which becomes one snapshot or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, Unpack

from forklake.commit.draft import Draft
from forklake.commit.once import Once
from forklake.commit.publish import Published
from forklake.context.catalog_scope import CatalogScope
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Ids
from forklake.errors import CommittedBefore, InvalidArgument, StoreError, TransactionClosed
from forklake.model.snapshots import Author, CommitInfo, author_of
from forklake.model.time_travel import AsOf

T = TypeVar("T")


class TransactionScope:
    """A draft of a catalog that handles read and change until it ends."""

    def __init__(self, catalog: CatalogScope, author: Author, once: str | None) -> None:
        """Begin on the present catalog. `once` names the work: it takes effect at most once."""
        self._catalog = catalog
        self._draft = catalog.draft()
        self._author = author
        self._once = once
        self.end: str | None = None
        """What became of the transaction."""
        self.base = self._draft.head.snapshot_id
        """The snapshot that it reads."""

    @property
    def name(self) -> str:
        """The name of the catalog."""
        return self._catalog.name

    @property
    def context(self) -> LakeContext:
        """The lake."""
        return self._catalog.context

    def read(self) -> Draft:
        """The catalog with the changes of this transaction."""
        if self.end is not None:
            raise TransactionClosed(f"this transaction was {self.end}: begin a new one")
        return self._draft

    def is_overtaken(self, draft: Draft) -> bool:
        """Never: a transaction shows the state that it began with, and is refused if that is expired."""
        return False

    def at(self, as_of: AsOf) -> CatalogScope:
        """The catalog at a snapshot or as_of, without the changes of this transaction."""
        return self._catalog.at(as_of)

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> TransactionScope:
        """Refused in a transaction: it is one commit, and takes author and message when it begins."""
        author_of(**info)
        if any(value is not None for value in info.values()):
            raise InvalidArgument(
                f"{' and '.join(info)} of a transaction are said where it begins: "
                f"catalog.transaction({', '.join(f'{name}=…' for name in info)})"
            )
        return self

    def set_commit_info(self, **info: Unpack[CommitInfo]) -> None:
        """Say who commits it, and why."""
        self.read()
        self._author = replace(self._author, **{name: getattr(author_of(**info), name) for name in info})

    def apply(
        self, change: Callable[[Draft], T], *, written: list[str] | None = None, present: bool = False
    ) -> tuple[T, Ids]:
        """Change the draft; it counts when the transaction commits."""
        draft = self.read()
        try:
            result = change(draft), int
            self._discard_unneeded(draft)
            return result
        except StoreError:
            # The database failed half-way through a change: what is staged now may not be what was meant.
            self.end = "ended by a failure of the database"
            self.context.discard(draft.written)
            raise
        finally:
            draft.written.extend(written or ())

    def _discard_unneeded(self, draft: Draft) -> None:
        """Remove files of tables that were made and dropped again in this transaction."""
        if draft.unneeded:
            gone, draft.unneeded = set(draft.unneeded), []
            self.context.discard(gone)
            draft.written[:] = [path for path in draft.written if path not in gone]

    def commit(self) -> Published | None:
        """Commit everything as one snapshot; None if nothing was changed, or the work was done before."""
        draft, committer = self.read(), self._catalog.committer
        claim = None if self._once is None else Once(self._catalog.id, self._once, self._author)
        # Whatever happens next, this draft is not committed a second time.
        self.end = "refused"
        published = None
        try:
            published = committer.commit(draft, self._author, claim=claim)
        except CommittedBefore:
            committer.discard(draft)
        except BaseException:
            committer.discard(draft)
            raise
        self.end = "committed"
        return published

    def rollback(self) -> None:
        """Discard all changes."""
        draft = self.read()
        self.end = "rolled back"
        self.context.discard(draft.written)
