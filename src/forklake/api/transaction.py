"""Many changes of one catalog, published as one snapshot or not at all."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar, Unpack

from forklake.api.verbs import CatalogVerbs
from forklake.commit.draft import Draft
from forklake.commit.publish import Published
from forklake.context.lake_context import Workbench
from forklake.context.scope import Ids, Scope
from forklake.errors import InvalidArgument, StoreError, TransactionClosed
from forklake.model.ids import SnapshotId
from forklake.model.snapshots import Author, CommitInfo, author_of
from forklake.store.read_catalogs import Moment

T = TypeVar("T")

Publish = Callable[[Draft, Author], Published | None]


class Transaction(CatalogVerbs):
    """A block of changes: `with catalog.transaction() as tx`. Leaving it commits; an exception rolls back.

    It reads the catalog as it was when it began, with its own changes on top, and holds no lock: others may
    commit meanwhile, and only what really collides with them is refused. Without `with`, call `commit` or
    `rollback`; a transaction that is forgotten leaves nothing behind.
    """

    def __init__(self, catalog: Scope, draft: Draft, author: Author, publish: Publish) -> None:
        """Use `Catalog.transaction`."""
        self._catalog = catalog
        self.name = catalog.name
        """The name of the catalog."""
        self._draft = draft
        self._author = author
        self._publish = publish
        self._end: str | None = None
        self.base: SnapshotId = draft.head.snapshot_id
        """The snapshot that the transaction reads."""
        self.snapshot: SnapshotId | None = None
        """The snapshot that it became; None before the commit, and if it changed nothing."""

    def _stays(self) -> str:
        return (
            "lives in the process that began it and cannot be pickled: to write one snapshot from several "
            "processes, use Catalog.begin_distributed"
        )

    def __repr__(self) -> str:
        """The catalog, the snapshot that is read, and what became of the transaction."""
        end = "" if self._end is None else f", {self._end}"
        made = "" if self.snapshot is None else f" as snapshot {self.snapshot}"
        return f"<Transaction on catalog {self.name!r} at snapshot {self.base}{end}{made}>"

    @property
    def workbench(self) -> Workbench:
        """What verbs work with: the storage, the engine and the settings of the lake."""
        return self._catalog.workbench

    def at(self, moment: Moment) -> Scope:
        """The catalog as it was at a snapshot or a time, without the changes of this transaction."""
        return self._catalog.at(moment)

    def read(self) -> Draft:
        """The catalog with the changes of this transaction."""
        if self._end is not None:
            raise TransactionClosed(f"this transaction was {self._end}: begin a new one")
        return self._draft

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> Transaction:
        """Refuse what is said of a part: the transaction is one commit, and has said it."""
        author_of(**info)
        if any(value is not None for value in info.values()):
            raise InvalidArgument(
                f"{' and '.join(info)} of a transaction are said where it begins: "
                f"catalog.transaction({', '.join(f'{name}=…' for name in info)})"
            )
        return self

    def apply(
        self, change: Callable[[Draft], T], *, written: list[str] | None = None, present: bool = False
    ) -> tuple[T, Ids]:
        """Change the draft; it counts when the transaction commits."""
        draft = self.read()
        try:
            return change(draft), int
        except StoreError:
            # The database failed half-way through a change: what is staged now may not be what was meant.
            self._end = "ended by a failure of the database"
            self.workbench.discard(draft.written)
            raise
        finally:
            draft.written.extend(written or ())

    def commit(self) -> SnapshotId | None:
        """Publish everything as one snapshot; None if nothing was changed."""
        draft = self.read()
        # Whatever happens next, this draft is not committed a second time.
        self._end = "refused"
        try:
            published = self._publish(draft, self._author)
        except BaseException:
            # A commit that may have gone through needs its files.
            if not draft.may_stand:
                self.workbench.discard(draft.written)
            raise
        self._end = "committed"
        self.snapshot = None if published is None else published.head.snapshot_id
        return self.snapshot

    def rollback(self) -> None:
        """Forget every change."""
        draft = self.read()
        self._end = "rolled back"
        self.workbench.discard(draft.written)

    def __enter__(self) -> Self:
        """Begin the block."""
        self.read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back after an exception; a block that ended the transaction itself has done so."""
        if self._end is not None:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()
