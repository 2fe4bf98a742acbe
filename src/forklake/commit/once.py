"""Commits under a name: whoever comes with it again adds nothing."""

from __future__ import annotations

from dataclasses import dataclass

from forklake.commit.publish import Claim
from forklake.errors import CommittedBefore, InvalidArgument
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_text
from forklake.model.snapshots import Author
from forklake.store.backend import Allocation, Database, Session
from forklake.store.commits_once import add_committed, committed_as


@dataclass(frozen=True, slots=True)
class Once:
    """The name of a commit, taken in the same database transaction."""

    catalog: CatalogId
    work: str
    author: Author
    other: Claim | None = None
    """What has to be taken hold of besides."""

    def take(self, session: Session, at: SnapshotId, numbers: Allocation) -> tuple[Allocation, Author]:
        """Take the name, or raise `CommittedBefore`. The catalog's head is locked, so nobody is beside us."""
        done = committed_as(session, self.catalog, self.work)
        if done is not None:
            raise CommittedBefore(f'"{self.work}" was committed before, as snapshot {done}', done)
        author = self.author
        if self.other is not None:
            numbers, author = self.other.take(session, at, numbers)
        add_committed(session, self.catalog, self.work, numbers.snapshot_id)
        return numbers, author

    def stands(self, reader: Database | Session, snapshot: SnapshotId) -> bool:
        """Whether this was committed as a snapshot whose number was drawn for it."""
        return committed_as(reader, self.catalog, self.work) == snapshot


def check_work(work: str | None) -> str | None:
    """Refuse what is no name of work."""
    if work is None:
        return None
    if not check_text(work, "name of work that is done once"):
        raise InvalidArgument("work that is done once needs a name, such as the load of a day")
    return work
