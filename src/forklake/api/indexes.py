"""The indexes of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from forklake.api.search import SearchResult, Several, search
from forklake.commit.create_index import create_index, index_info
from forklake.commit.draft import Draft
from forklake.context.scope import Scope, look
from forklake.display import Listing
from forklake.model.ids import TableId
from forklake.model.index import IndexInfo, Maintenance, Parameter
from forklake.model.names import check_name
from forklake.model.snapshots import CommitInfo, Extra
from forklake.model.table.columns import ColumnPath
from forklake.model.time_travel import AsOf


class IndexVerbs:
    """What is done to the indexes of a table."""

    _scope: Scope
    _id: TableId

    def create_index(
        self,
        name: str,
        *,
        kind: str,
        columns: Sequence[ColumnPath],
        include: Sequence[ColumnPath] = (),
        maintain: Maintenance | None = None,
        if_not_exists: bool = False,
        author: str | None = None,
        message: str | None = None,
        extra: Extra | None = None,
        **params: Parameter,
    ) -> None:
        """Create an index: `create_index("by_id", kind="hash", columns=["id"])`.

        `include` names columns whose values the index holds too. With `maintain="commit"`, it is built of new
        files by the commit that adds them; with `"later"`, by `build_indexes`. `params` are for the kind.
        """
        check_name(name, "index")

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            if not (if_not_exists and draft.find_index(table, name) is not None):
                create_index(draft, table, name, kind, columns, include, maintain, params)

        self._scope.with_commit_info(author=author, message=message, extra=extra).apply(change)

    def indexes(self) -> list[IndexInfo]:
        """List the indexes of the table, in the order in which they were created."""

        def listed(draft: Draft) -> list[IndexInfo]:
            table = draft.table(self._id)
            return Listing(index_info(draft, table, index) for index in draft.indexes(table))

        return look(self._scope, listed, every=True)

    def search(
        self,
        name: str | Several,
        query: object = None,
        *,
        k: int = 10,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        at: AsOf | None = None,
        **params: Parameter,
    ) -> SearchResult:
        """Search by an index that ranks rows: `search("by_text", "red bicycle")` gives the best `k`.

        Deleted rows, and those that do not match `where`, are left out before the best are chosen; rows that
        the index has no segment of take part. Beside its columns, each row has `row_id` and `_score`, or
        `_distance`. `params` are for the kind: `operator="and"`, `nprobe=32`.

        By several indexes, ranks are fused: `search([("by_text", "red bicycle"), ("by_vector", vector)])`.
        """
        scope = self._scope if at is None else self._scope.at(at)
        return look(
            scope,
            lambda draft: search(
                draft, draft.table(self._id), scope.context, name, query, k, where, columns, params
            ),
        )

    def drop_index(self, name: str, *, if_exists: bool = False, **info: Unpack[CommitInfo]) -> None:
        """Drop an index. Past snapshots still show it."""
        check_name(name, "index")

        def change(draft: Draft) -> None:
            table = draft.table(self._id)
            if not (if_exists and draft.find_index(table, name) is None):
                draft.drop_index(draft.index_named(table, name))

        self._scope.with_commit_info(**info).apply(change)
