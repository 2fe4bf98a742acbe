"""Moving inlined rows of tables into files, as a change of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forklake.commit.draft import Draft
from forklake.commit.flush_inlined import write_inlined
from forklake.commit.write_target import mover_for
from forklake.context.scope import Scope
from forklake.model.entities import Table
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress, Steps


def flush(
    scope: Scope,
    tables: Callable[[Draft], Sequence[Table]],
    progress: OnProgress | None = None,
    *,
    own: bool = False,
) -> int:
    """Write the inlined rows of some tables into files; returns how many there were.

    With `own`, rows that the catalog inherited stay where they are.
    """
    return sum(count for _, count in flush_each(scope, tables, progress, own=own))


def flush_each(
    scope: Scope,
    tables: Callable[[Draft], Sequence[Table]],
    progress: OnProgress | None = None,
    *,
    own: bool = False,
) -> list[tuple[QualifiedName, int]]:
    """The same, by table: their names, and how many rows each of them had."""
    context = scope.context

    def change(draft: Draft) -> list[tuple[QualifiedName, int]]:
        wanted = tables(draft)
        steps = Steps(progress, "flush inlined rows", "tables", len(wanted))
        # All are written before any is staged, so that a failure leaves a transaction as it was.
        written = [
            write_inlined(
                draft,
                table,
                mover_for(draft, table, context.storage, context.options, draft.written),
                own=own,
            )
            for table in steps.over(wanted)
        ]
        flushes = [each for each in written if each is not None]
        for each in flushes:
            each.stage(draft)
        return [(draft.name_of(each.table), each.count) for each in flushes]

    return scope.apply(change)[0]
