"""The handle on one catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from forklake.api.diff import CatalogDiff, catalog_diff
from forklake.api.table import Table
from forklake.api.transaction import Transaction
from forklake.api.verbs import CatalogVerbs, Name
from forklake.commit.draft import Draft
from forklake.commit.once import Once, check_work
from forklake.commit.publish import Claim, Published, publish
from forklake.commit.write_target import settle_rows
from forklake.context.lake_context import Workbench
from forklake.context.scope import Ids, seen_at
from forklake.distributed.coordinator import Coordinator, DistributedVerbs
from forklake.errors import CommittedBefore, ForklakeError, InvalidArgument, StoreBusy, StoreError
from forklake.fork.catalog_state import Side
from forklake.fork.copy import materialize
from forklake.fork.create import Mode
from forklake.fork.definition_changes import net_changes, own_events
from forklake.fork.diff import Sides
from forklake.fork.merge import MergeOptions, MergeResult, Merging
from forklake.fork.row_changes import Prefer, RowComparison
from forklake.model.entities import MacroInfo, Schema, TableInfo, ViewInfo
from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import check_name
from forklake.model.snapshots import Author, CommitInfo, Head, Snapshot, author_of
from forklake.store.backend import Database
from forklake.store.cache import StateCache
from forklake.store.read_catalogs import Moment, catalog_named, dropped, head_at, head_of, snapshots

if TYPE_CHECKING:
    from forklake.api.lake import Lake

ATTEMPTS = 1000

T = TypeVar("T")


class ForkKeywords(CommitInfo, total=False):
    """The options of `Lake.fork`."""

    at: Moment | None
    data_path: str | Path | None
    mode: Mode
    if_not_exists: bool
    ttl: timedelta | None


class MergeKeywords(CommitInfo, total=False):
    """The options of `Lake.merge`."""

    prefer: Prefer | None
    tables: Iterable[str] | None
    dry_run: bool


class Catalog(DistributedVerbs, CatalogVerbs):
    """A catalog of a lake. Every change is one snapshot of its own; `transaction` puts many into one."""

    def __init__(
        self,
        database: Database,
        states: StateCache,
        catalog_id: CatalogId,
        name: str,
        workbench: Workbench,
        lake: Lake,
        at: Moment | None = None,
    ) -> None:
        """Use `Lake.catalog`."""
        self._lake = lake
        self._workbench = workbench
        self._database = database
        self._states = states
        self._at = at
        self._info = CommitInfo()
        self._past: Head | None = None
        """Where the catalog stood at that moment, once somebody has asked."""
        self.id = catalog_id
        self.name = name

    def __repr__(self) -> str:
        """The name, and the snapshot that it stands at or is shown at."""
        return f"<Catalog {self.name!r}{seen_at(self)}>"

    @property
    def workbench(self) -> Workbench:
        """What verbs work with: the storage, the engine and the settings of the lake."""
        return self._workbench

    def _twin(self) -> Catalog:
        """Another handle on the same catalog, to be shown or used otherwise."""
        twin = object.__new__(Catalog)
        vars(twin).update(vars(self), _past=None)
        return twin

    @property
    def moment(self) -> Moment | None:
        """The snapshot or time at which the catalog is shown; None for the present."""
        return self._at

    @property
    def snapshot(self) -> int:
        """The number of the snapshot that the catalog stands at."""
        return self._head().snapshot_id

    def at(self, moment: Moment) -> Catalog:
        """The same catalog as it was at a snapshot or a time, for reading."""
        past = self._twin()
        past._at = moment
        past._head()
        return past

    @property
    def parent(self) -> Catalog | None:
        """The catalog that this one was forked from; None if it was not forked.

        One that was dropped is named too: asking it for more raises `CatalogNotFound`.
        """
        found = self._database.rows("parent_catalog", catalog=self.id)
        if not found:
            return None
        parent = self._twin()
        parent.id, parent.name, parent._at = CatalogId(found[0][0]), found[0][1], None
        return parent

    def fork(self, name: str, **options: Unpack[ForkKeywords]) -> Catalog:
        """Make a catalog that begins as this one is now, or as it is shown; see `Lake.fork`."""
        present = self._twin()
        present._at = None
        if self._at is not None:
            options.setdefault("at", self._at)
        return self._lake.fork(present, name, **{**self._info, **options})

    def merge_into(self, target: str | Catalog, **options: Unpack[MergeKeywords]) -> MergeResult:
        """Bring what this catalog did into another one; see `Lake.merge`."""
        return self._lake.merge(self, target, **{**self._info, **options})

    def snapshots(self) -> list[Snapshot]:
        """The history of the catalog, with what it inherited, oldest first."""
        return snapshots(self._database, self.id)

    def materialize(self, **info: Unpack[CommitInfo]) -> None:
        """Copy what the catalog inherits, so that it no longer depends on its ancestors.

        That is a snapshot of its own, after which all that the catalog and its forks hold is as it was.
        """
        said = self._said(info)
        materialize(self._database, self._draft_to_change().head, self.name, said)

    def diff(self, other: str | Catalog | None = None) -> CatalogDiff:
        """What this catalog did since it was forked, or what it did that another one does not know of.

        It is one-sided: what the other did is no part of it. Counts and files come at once; the rows of
        a table when they are asked for, by `.rows()`.
        """
        head = self._head()
        if other is None:
            return self._diff_with_fork_point(head)
        name = name_of(self._database, self._workbench, other)
        _, _, theirs = catalog_named(self._database, name)
        if theirs.catalog_id == self.id:
            raise InvalidArgument(f'"{name}" cannot be compared with itself')
        merging = merging_of(self._database, self._states, self._workbench)
        found = merging.compare(self.name, head, name, theirs, MergeOptions())
        parted = Side.at(self._database, head, found.relation.since)
        sides = Sides(found.ours, found.theirs, parted)
        return catalog_diff(self._database, self._workbench, self.name, sides, found.net, found.rows)

    def _diff_with_fork_point(self, head: Head) -> CatalogDiff:
        ours, since = Side(self._states.get(head), head), self._fork_point(head)
        base = Side.at(self._database, head, since)
        done = own_events(self._database, ours, since)
        rows = RowComparison(self._database, self._workbench.engine, ours, base, done, since).changes()
        sides = Sides(ours, base, base)
        net = net_changes(ours, base, done)
        return catalog_diff(self._database, self._workbench, self.name, sides, net, list(rows))

    def _fork_point(self, head: Head) -> SnapshotId:
        found = self._database.rows("fork_point", catalog=self.id)
        if not found:
            raise InvalidArgument(
                f'"{self.name}" was not forked from another catalog: say what to compare it with'
            )
        point = SnapshotId(found[0][0])
        if head.snapshot_id < point:
            raise InvalidArgument(
                f'"{self.name}" is shown as it was at snapshot {head.snapshot_id}, before it was forked at '
                f"{point}: it had done nothing of its own yet"
            )
        return point

    def transaction(
        self,
        *,
        once: str | None = None,
        **info: Unpack[CommitInfo],
    ) -> Transaction:
        """Begin a block of changes that becomes one snapshot.

        `once` names the work: if a commit of that name stands already, nothing of the block takes effect.
        """
        said = self._said(info)
        work = check_work(once)

        def publish_once(draft: Draft, author: Author) -> Published | None:
            claim = None if work is None else Once(self.id, work, author)
            try:
                return self._publish(draft, author, claim=claim)
            except CommittedBefore:
                self._discard(draft)
                return None

        return Transaction(self, self._draft_to_change(), said, publish_once)

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> Catalog:
        """The same catalog, with an author, a message and extra info for all that it commits.

        Every verb that commits takes the same keywords, for its own commit.
        """
        if not info:
            return self
        told = self._twin()
        told._info = self._info | info
        told._said()
        return told

    def _said(self, info: CommitInfo | None = None) -> Author:
        return author_of(**(self._info if info is None else self._info | info))

    def read(self) -> Draft:
        """The catalog as it is now, or as it was."""
        head = self._head()
        return Draft(self._states.get(head), head)

    def apply(
        self,
        change: Callable[[Draft], T],
        *,
        written: list[str] | None = None,
        present: bool = False,
    ) -> tuple[T, Ids]:
        """Change the catalog and commit, as often as others get in between.

        Nobody has seen what the change was based on, so a conflict is no reason to refuse it: it is made
        again on the newer catalog. It may start from the state that our last commit led to, which saves a
        look; but then it counts only if nobody else has committed since, for a name may mean something else
        by now.
        """
        drafts: list[Draft] = []
        try:
            return self._apply(change, drafts, present, self._said())
        except BaseException:
            if not any(draft.may_stand for draft in drafts):
                self._workbench.discard(written or ())
            raise

    def _apply(
        self, change: Callable[[Draft], T], drafts: list[Draft], present: bool, author: Author
    ) -> tuple[T, Ids]:
        known = None if present or self._at is not None else self._states.latest(self.id)
        draft, present = (Draft(known), False) if known is not None else (self._draft_to_change(), True)
        for _ in range(ATTEMPTS):
            refusal = None
            drafts.append(draft)
            try:
                result = change(draft)
                published = self._publish(draft, author, rebase=present)
                if published is not None:
                    return result, published.final_id
                if present:
                    return result, int
            except StoreError:
                # The commit may have gone through or not: making the change again could make it twice.
                raise
            except ForklakeError as error:
                self._discard(draft)
                refusal = error
            except BaseException:
                self._discard(draft)
                raise
            newer = self._draft_to_change()
            if present and refusal is not None and newer.head == draft.head:
                raise refusal
            draft, present = newer, True
        raise StoreBusy(
            f'catalog "{self.name}" changed {ATTEMPTS} times while this change was made: try again'
        )

    # Listings and look-ups take `at`, for those who want to see the past without a second handle.

    def schemas(self, *, at: Moment | None = None) -> list[Schema]:
        """Every schema."""
        return super().schemas() if at is None else self.at(at).schemas()

    def tables(self, *, schema: str | None = None, at: Moment | None = None) -> list[TableInfo]:
        """Every table, or those of one schema."""
        return super().tables(schema=schema) if at is None else self.at(at).tables(schema=schema)

    def table(self, name: Name, *, at: Moment | None = None) -> Table:
        """The handle on a table, as it is now or as it was."""
        return super().table(name) if at is None else self.at(at).table(name)

    def views(self, *, at: Moment | None = None) -> list[ViewInfo]:
        """Every view."""
        return super().views() if at is None else self.at(at).views()

    def macros(self, *, at: Moment | None = None) -> list[MacroInfo]:
        """Every macro with its overloads."""
        return super().macros() if at is None else self.at(at).macros()

    def _head(self) -> Head:
        if self._at is None:
            return head_of(self._database, self.id)
        if self._past is None:
            # Where a catalog stood does not change, so it is looked for once.
            head = head_of(self._database, self.id, or_dropped=True)
            self._past = head_at(self._database, head, self._at)
        return self._past

    def _draft_to_change(self) -> Draft:
        if self._at is not None:
            raise InvalidArgument(
                f'catalog "{self.name}" is shown as it was at {self._at}, and the past cannot change'
            )
        self._database.check_writable()
        return self._draft_of(self._head())

    def _draft_of(self, head: Head) -> Draft:
        state = self._states.get(head)
        # The structure may have been read at an earlier snapshot; the transaction's base is the present one.
        return Draft(state if state.head == head else state.after(head, ()))

    def _discard(self, draft: Draft) -> None:
        """Remove the files of a draft, unless a commit needs them."""
        if not draft.may_stand:
            self._workbench.discard(draft.written)

    def _coordinator(self) -> Coordinator:
        def draft_at(snapshot: SnapshotId) -> Draft:
            return self._draft_of(head_at(self._database, self._head(), snapshot))

        def publish(draft: Draft, author: Author, claim: Claim) -> Published | None:
            return self._publish(draft, author, claim=claim)

        return Coordinator(self._database, self._workbench, draft_at, publish)

    def _publish(
        self, draft: Draft, author: Author, *, rebase: bool = True, claim: Claim | None = None
    ) -> Published | None:
        workbench = self._workbench
        rows = settle_rows(draft, workbench.storage, workbench.options) if draft.staged_rows() else ()
        plan = draft.plan(rows)
        if not plan.changes:
            workbench.discard(draft.written)
            return None
        # An interrupt may come after the commit: only a refusal of ours says for certain that there is none.
        draft.may_stand = True
        try:
            published = publish(
                self._database,
                plan,
                draft.head,
                author,
                rebase=rebase,
                figures=workbench.figures,
                claim=claim,
            )
        except ForklakeError as error:
            draft.may_stand = isinstance(error, StoreError)
            raise
        if not (published.rebased or plan.burnt_columns or plan.returning):
            # Nobody else changed anything, so the new structure is known without reading it.
            self._states.put(draft.state.after(published.head, published.pairs), latest=True)
        # Some files were emptied again before the commit, or written by a verb that failed.
        kept = {path for table in rows for path in table.paths}
        workbench.discard([path for path in draft.written if path not in kept])
        return published


def merging_of(database: Database, states: StateCache, workbench: Workbench) -> Merging:
    """What merges catalogs of a lake."""
    return Merging(
        database, states, workbench.figures, workbench.engine, workbench.options, workbench.discard
    )


def name_of(database: Database, workbench: Workbench, catalog: object) -> str:
    """The name of a live catalog of a lake, given by its name or by a handle on it."""
    if not isinstance(catalog, Catalog):
        return check_name(catalog, "catalog")
    if catalog.workbench is not workbench:
        raise InvalidArgument(
            f'"{catalog.name}" is a catalog of a lake that was opened otherwise: pass its name'
        )
    if catalog.moment is not None:
        raise InvalidArgument(
            f'"{catalog.name}" is shown as it was at {catalog.moment}: pass it as it is now, or its name'
        )
    # It may have been renamed since the handle was made.
    name, ended = database.rows("catalog_name", catalog=catalog.id)[0]
    if ended is not None:
        raise dropped(database, catalog.id)
    return name
