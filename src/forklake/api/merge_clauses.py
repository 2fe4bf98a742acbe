"""Merges with conditions: each row takes the first clause whose condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forklake.api.arrived_rows import Arrived, counted_rows
from forklake.api.assignments import Assignments
from forklake.api.staged_rows import replace_rows, take_rows
from forklake.api.upsert import RowsMerged, matched_values, qualified, unmatched_values, values_of
from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.engine.dml import Found, Places, rewritten
from forklake.engine.merge_clauses import Clause, changed_rows, chosen_by, new_rows
from forklake.engine.upsert import SOURCE, TARGET, Join
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.progress import OnProgress
from forklake.model.table.columns import Columns
from forklake.scan.scan_plan import ScanPlan

Action = str | Assignments
"""`update`, `insert`, `delete` or `ignore`, or values by column."""
Clauses = Action | tuple[str, Action] | list[Action | tuple[str, Action]]
"""An action, a condition with an action, or a list of these, of which the first that holds counts."""

_Values = Callable[[object, Join, Columns], dict[str, str] | None]
_IGNORED = "ignore"


def has_clauses(*asked: object) -> bool:
    """Whether there is more than one action for all rows of a kind."""
    return any(isinstance(one, list | tuple) for one in asked)


def reads_source(*asked: object) -> bool:
    """Whether columns of the source may be read that the table does not have."""
    return any(
        condition is not None or isinstance(action, Mapping)
        for one in asked
        for condition, action in _listed("a merge", one)
    )


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """The clauses of a merge, checked."""

    matched: tuple[Clause, ...]
    not_matched: tuple[Clause, ...]
    by_source: tuple[Clause, ...]

    @classmethod
    def read(
        cls, join: Join, columns: Columns, matched: object, not_matched: object, by_source: object
    ) -> MergeClauses:
        """What was asked for; refused if it makes no sense."""
        both = (SOURCE, TARGET)
        return cls(
            tuple(_clauses("when_matched", matched, matched_values, join, columns, both)),
            tuple(_clauses("when_not_matched", not_matched, unmatched_values, join, columns, (SOURCE,))),
            tuple(_clauses("when_not_matched_by_source", by_source, _kept_values, join, columns, (TARGET,))),
        )


def _kept_values(asked: object, join: Join, columns: Columns) -> dict[str, str] | None:
    match asked:
        case "delete" | "ignore":
            return None
        case Mapping():
            return values_of(asked, join, columns, (TARGET,))
        case _:
            raise InvalidArgument(
                f"when_not_matched_by_source is delete, ignore or new values, not {asked!r}"
            )


def _clauses(
    what: str, asked: object, values: _Values, join: Join, columns: Columns, sides: tuple[str, ...]
) -> Iterator[Clause]:
    is_last = False
    for condition, action in _listed(what, asked):
        if is_last:
            raise InvalidArgument(
                f"{what} has a clause after one without a condition, which all rows take: put that one last"
            )
        is_last = condition is None
        found = values(action, join, columns)
        sql = None if condition is None else qualified(condition, join, columns, sides)
        kind = action if isinstance(action, str) else "insert" if what == "when_not_matched" else "update"
        yield Clause(kind, sql, found or {})


def _listed(what: str, asked: object) -> Iterator[tuple[str | None, Any]]:
    if isinstance(asked, list) and not asked:
        raise InvalidArgument(f"{what} lists no clause: {_IGNORED!r} leaves rows alone")
    for one in asked if isinstance(asked, list) else [asked]:
        match one:
            case (str() as condition, action):
                yield condition, action
            case tuple():
                raise InvalidArgument(f"a clause of {what} is an action, or (condition, action), not {one!r}")
            case action:
                yield None, action


def merge_by_clauses(
    context: LakeContext,
    draft: Draft,
    table: Table,
    plan: ScanPlan,
    join: Join,
    clauses: MergeClauses,
    progress: OnProgress | None,
) -> RowsMerged:
    """Find what becomes of each row, and stage it."""
    engine = context.engine
    arrived = Arrived()
    if _matters(clauses.not_matched):
        fresh = new_rows(engine, plan, join, clauses.not_matched)
        arrived = take_rows(context, draft, table, counted_rows(fresh, progress, "insert into", draft, table))
    found = [
        changed_rows(engine, plan, join, ones, is_matched=ones is clauses.matched)
        for ones in (clauses.matched, clauses.by_source)
        if _matters(ones)
    ]
    updated = deleted = 0
    if found:
        places = Places(found[0][0])
        gone = Places(places.places)

        def split() -> Iterator[pa.RecordBatch]:
            for (_, batches), ones in zip(found, _mattering(clauses), strict=True):
                for batch in counted_rows(batches, progress, "update", draft, table):
                    deletes = chosen_by(batch, ones, "delete")
                    if deletes.num_rows:
                        gone.add(deletes)
                    updates = chosen_by(batch, ones, "update")
                    if updates.num_rows:
                        yield updates

        def replaced() -> Found:
            # A row that gets new values must not be deleted as well.
            Places(places.places, [*places.parts, *gone.parts]).found(twice="refused")
            return places.found(twice="refused")

        new = rewritten(split(), table.columns, places)
        updated = replace_rows(context, draft, table, new, replaced)
        deleted = draft.staged(table).delete(gone.found(twice="allowed"))
    arrived.stage(draft, table)
    draft.staged(table).looked |= bool(arrived.count)
    return RowsMerged(updated, deleted, arrived.count)


def _matters(clauses: tuple[Clause, ...]) -> bool:
    return any(clause.action != _IGNORED for clause in clauses)


def _mattering(clauses: MergeClauses) -> list[tuple[Clause, ...]]:
    return [ones for ones in (clauses.matched, clauses.by_source) if _matters(ones)]
