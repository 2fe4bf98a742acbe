"""Work on one catalog, now or at a past snapshot: what is read, and changes that are commits of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, Unpack

from forklake.commit.draft import Draft
from forklake.context.committer import Committer
from forklake.context.lake_context import LakeContext
from forklake.context.scope import Ids
from forklake.errors import ForklakeError, InvalidArgument, StoreBusy, StoreError
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.snapshots import Author, CommitInfo, Head, author_of
from forklake.model.time_travel import AsOf
from forklake.store.catalogs import head_at, head_of
from forklake.store.retention import check_retained, is_retained

ATTEMPTS = 1000

T = TypeVar("T")


@dataclass(slots=True)
class CatalogScope:
    """A catalog as a handle shows it. Every change is committed at once."""

    context: LakeContext
    id: CatalogId
    name: str
    as_of: AsOf | None = None
    """The snapshot id or as_of that this handle reads; None for the current state."""
    info: CommitInfo = field(default_factory=CommitInfo)
    """The author, message and extra info of its commits."""
    _past: Head | None = None
    """Where the catalog stood then, once somebody has asked."""

    @property
    def committer(self) -> Committer:
        """What commits drafts of the catalog."""
        return Committer(self.context)

    def at(self, as_of: AsOf) -> CatalogScope:
        """The same catalog at a snapshot or timestamp, read-only."""
        past = replace(self, as_of=as_of, _past=None)
        past.head()
        return past

    def present(self) -> CatalogScope:
        """The same catalog as it is now."""
        return self if self.as_of is None else replace(self, as_of=None, _past=None)

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> CatalogScope:
        """The same catalog, with an author, a message and extra info for its commits."""
        if not info:
            return self
        self.author(info)
        return replace(self, info=self.info | info)

    def author(self, info: CommitInfo | None = None) -> Author:
        """What commits say of themselves, checked."""
        return author_of(**(self.info if info is None else self.info | info))

    def head(self) -> Head:
        """Where the catalog stands, or stood."""
        if self.as_of is None:
            return head_of(self.context.database, self.id)
        if self._past is None:
            # Where a catalog stood does not change, so it is looked for once.
            head = head_of(self.context.database, self.id, or_dropped=True)
            self._past = head_at(self.context.database, head, self.as_of)
        else:
            # It may have been expired since, and its rows be gone.
            check_retained(self.context.database, self.id, self._past.snapshot_id)
        return self._past

    def read(self) -> Draft:
        """The catalog as it is now, or as it was."""
        head = self.head()
        draft = Draft(self.context.states.get(head), head)
        draft.is_past = self.as_of is not None
        return draft

    def is_overtaken(self, draft: Draft) -> bool:
        """Whether the present that a draft shows is in the past, and expired: some of it may be gone."""
        if self.as_of is not None:
            self.head()
            return False
        return not is_retained(self.context.database, self.id, draft.head.snapshot_id)

    def draft(self) -> Draft:
        """The present catalog, to be changed."""
        if self.as_of is not None:
            raise InvalidArgument(
                f'catalog "{self.name}" is shown as it was at {self.as_of}, and the past cannot change'
            )
        self.context.database.check_writable()
        return self._draft_of(self.head())

    def draft_at(self, snapshot: SnapshotId) -> Draft:
        """The catalog as it was at a snapshot, to be changed on top of what others did since."""
        return self._draft_of(head_at(self.context.database, self.head(), snapshot))

    def _draft_of(self, head: Head) -> Draft:
        state = self.context.states.get(head)
        # The structure may have been read at an earlier snapshot; the base of the draft is the present one.
        return Draft(state if state.head == head else state.after(head, ()))

    def apply(
        self, change: Callable[[Draft], T], *, written: list[str] | None = None, present: bool = False
    ) -> tuple[T, Ids]:
        """Change the catalog and commit, as often as others get in between.

        Nobody has seen what the change was based on, so a conflict is no reason to refuse it: it is made
        again on the newer catalog. It may start from the state that our last commit led to, which saves a
        look; but then it counts only if nobody else has committed since, for a name may mean something else
        by now.
        """
        drafts: list[Draft] = []
        try:
            return self._apply(change, drafts, present, self.author())
        except BaseException:
            if not any(draft.may_stand for draft in drafts):
                self.context.discard(written or ())
            raise

    def _apply(
        self, change: Callable[[Draft], T], drafts: list[Draft], present: bool, author: Author
    ) -> tuple[T, Ids]:
        committer = self.committer
        known = None if present or self.as_of is not None else self.context.states.latest(self.id)
        draft, present = (Draft(known), False) if known is not None else (self.draft(), True)
        for _ in range(ATTEMPTS):
            refusal = None
            drafts.append(draft)
            try:
                result = change(draft)
                published = committer.commit(draft, author, rebase=present)
                if published is not None:
                    return result, published.final_id
                if present:
                    return result, int
            except StoreError:
                # The commit may have gone through or not: making the change again could make it twice.
                raise
            except ForklakeError as error:
                committer.discard(draft)
                refusal = error
            except BaseException:
                committer.discard(draft)
                raise
            newer = self.draft()
            if present and refusal is not None and newer.head == draft.head:
                raise refusal
            draft, present = newer, True
        raise StoreBusy(
            f'catalog "{self.name}" changed {ATTEMPTS} times while this change was made: try again'
        )
