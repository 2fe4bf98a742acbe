"""Many changes of one catalog, published as one snapshot or not at all."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from forklake.api.notebook import shown, transaction_html
from forklake.api.sql import Parameters, SqlKeywords, lake_of, run_sql
from forklake.api.verbs import CatalogVerbs
from forklake.context.transaction_scope import TransactionScope
from forklake.model.ids import SnapshotId
from forklake.model.snapshots import CommitInfo

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.sql_result import SqlResult


class Transaction(CatalogVerbs):
    """A transaction: `with catalog.transaction() as tx`. Leaving it commits; an exception rolls back.

    It reads the catalog as it was when it began, with its own changes, and holds no lock: other commits may
    be made meanwhile, and only real conflicts are refused. Without `with`, call `commit` or `rollback`.
    """

    def __init__(self, scope: TransactionScope, catalog: Catalog) -> None:
        """Use `Catalog.transaction`."""
        self._begun = scope
        self._catalog = catalog
        self._sql: dict[str, Any] = {}
        self.base: SnapshotId = scope.base
        """The snapshot that the transaction reads."""
        self.snapshot: SnapshotId | None = None
        """The snapshot that it became; None before the commit, and if it changed nothing."""

    @property
    def _scope(self) -> TransactionScope:
        return self._begun

    def _stays(self) -> str:
        return (
            "lives in the process that began it and cannot be pickled: to write one snapshot from several "
            "processes, use Catalog.begin_distributed"
        )

    def __repr__(self) -> str:
        """The catalog, the snapshot that is read, and what became of the transaction."""
        end = "" if self._scope.end is None else f", {self._scope.end}"
        made = "" if self.snapshot is None else f" as snapshot {self.snapshot}"
        return f"<Transaction on catalog {self.name!r} at snapshot {self.base}{end}{made}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it reads, what it has changed so far, and what became of it."""
        scope = self._scope
        facts: dict[str, object] = {"reads snapshot": self.base, "ended": scope.end, "became": self.snapshot}
        return shown(
            self, lambda: transaction_html(scope.read() if scope.end is None else None, facts, self.name)
        )

    def with_commit_info(self, **info: Unpack[CommitInfo]) -> Self:
        """Refuse an author or a message of a part: the transaction is one commit."""
        self._scope.with_commit_info(**info)
        return self

    def set_commit_info(self, **info: Unpack[CommitInfo]) -> None:
        """Say who commits the transaction, and why; what is not given stays as it was said before."""
        self._scope.set_commit_info(**info)

    def sql(self, text: str, params: Parameters = None, **options: Unpack[SqlKeywords]) -> SqlResult:
        """Run SQL inside this transaction; see `Catalog.sql`."""
        return run_sql(self._sql, lake_of(self._catalog), self._catalog, self, text, params, options)

    def commit(self) -> SnapshotId | None:
        """Commit all changes as one snapshot. Returns its id, or None if nothing was changed."""
        published = self._scope.commit()
        self.snapshot = None if published is None else published.head.snapshot_id
        return self.snapshot

    def rollback(self) -> None:
        """Discard all changes."""
        self._scope.rollback()

    def __enter__(self) -> Self:
        """Begin the block."""
        self._scope.read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back after an exception; a block that ended the transaction itself has done so."""
        if self._scope.end is not None:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()
