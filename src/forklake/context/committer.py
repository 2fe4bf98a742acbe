"""From a draft to a commit: the one way that every change of a catalog's content takes."""

from __future__ import annotations

from forklake.commit.commit_plan import Plan
from forklake.commit.draft import Draft
from forklake.commit.publish import Claim, Published, publish
from forklake.commit.write_target import write_staged_rows
from forklake.context.index_new_files import index_new_files
from forklake.context.lake_context import LakeContext
from forklake.errors import ForklakeError, InvalidArgument, StoreError
from forklake.model.changes import Verb
from forklake.model.snapshots import Author


class Committer:
    """Commits drafts of any catalog of a lake, and removes the files of those that are not committed."""

    def __init__(self, context: LakeContext) -> None:
        """Do nothing yet."""
        self._context = context

    def commit(
        self, draft: Draft, author: Author, *, rebase: bool = True, claim: Claim | None = None
    ) -> Published | None:
        """Write what a draft has staged and commit it; None if it changed nothing."""
        context = self._context
        rows = write_staged_rows(draft, context.storage, context.options) if draft.staged_rows() else ()
        index_new_files(draft, rows, context.engine)
        plan = draft.plan(rows)
        if not plan.changes:
            context.discard(draft.written)
            return None
        return self.commit_plan(draft, plan, author, rebase=rebase, claim=claim)

    def commit_plan(
        self, draft: Draft, plan: Plan, author: Author, *, rebase: bool = True, claim: Claim | None = None
    ) -> Published:
        """Commit a plan whose files are written.

        If it fails, `draft.may_stand` tells whether the commit may have gone through nevertheless.
        """
        context = self._context
        if context.options.require_commit_message and not author.message:
            _check_needs_no_message(plan)
        # An interrupt may come after the commit: only a refusal of ours says for certain that there is none.
        draft.may_stand = True
        try:
            published = publish(
                context.database,
                plan,
                draft.head,
                author,
                rebase=rebase,
                statistics=context.statistics,
                claim=claim,
            )
        except ForklakeError as error:
            draft.may_stand = isinstance(error, StoreError)
            raise
        made = published.head
        context.committed[made.catalog_id] = max(
            made.snapshot_id, context.committed.get(made.catalog_id, made.snapshot_id)
        )
        if not (published.rebased or plan.burnt_columns or plan.returning or plan.merged):
            # Nobody else changed anything, so the new structure is known without reading it.
            context.states.put(draft.state.after(published.head, published.pairs), latest=True)
        # Some files were emptied again before the commit, or written by a verb that failed.
        kept = {path for table in (*plan.rows, *plan.index_files) for path in table.paths}
        context.discard([path for path in draft.written if path not in kept])
        return published

    def discard(self, draft: Draft) -> None:
        """Remove the files of a draft, unless a commit needs them."""
        if not draft.may_stand:
            self._context.discard(draft.written)


def _check_needs_no_message(plan: Plan) -> None:
    """Refuse a commit without a message, unless nothing that can be read is another afterwards."""
    if any(change.verb not in (Verb.COMPACT, Verb.FLUSH, Verb.BUILD_INDEX) for change in plan.changes):
        raise InvalidArgument(
            "commits need a message here (option require_commit_message): give message='…', or in SQL "
            "CALL set_commit_message(author, message) in a transaction"
        )
