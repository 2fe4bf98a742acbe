"""The commands that bring catalogs together: merge one into another, replay one on another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, Unpack

import typer

from forklake.api.lake import Lake
from forklake.cli.options import Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import Output, render, terminal, to_plain, write_record, write_table
from forklake.display import literal
from forklake.errors import MergeConflict
from forklake.fork.merge import MergeResult
from forklake.fork.replay import ReplayResult
from forklake.model.changes import Change, Conflict
from forklake.model.snapshots import CommitInfo

MOST_ROWS = 100
"""How many rows of a conflict are shown."""


class Preferred(StrEnum):
    """Whose version of a row counts that both changed."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that was made, would be, or cannot be."""

    source: str
    into: str
    source_snapshot: int
    base_snapshot: int
    snapshot: int | None
    files_added: int
    files_retired: int
    rows_added: int
    rows_removed: int
    changes: int
    merged: bool
    conflicts: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """Something that both changed, in one line."""

    name: str
    ours: str
    ours_snapshot: int | None
    theirs: str
    theirs_snapshot: int
    files: int
    rows: int | None
    rule: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A fork that stands on another catalog now, and what it lost by that."""

    fork: str
    onto: str
    onto_snapshot: int
    snapshot: int | None
    refused: list[dict[str, Any]]


def merge(
    settings: Settings,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The catalog to merge.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The catalog to merge into.")],
    prefer: Annotated[
        Preferred | None, typer.Option(help="Which version of a row wins if both changed it.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="Merge this table only; may be given several times."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Merge a catalog into another one, as one commit. With conflicts, list them and write nothing."""
    with settings.connect() as lake:
        wanted: dict[str, Any] = {"prefer": None if prefer is None else prefer.value, "tables": table or None}
        with progress_bar(settings) as progress:
            wanted["progress"] = progress
            result, refusal = _merge(lake, source, into, wanted, info, dry_run=dry_run)
        if settings.output is Output.JSON:
            render(_merged(result), settings.output)
        elif refusal is None and not result.changes:
            line = literal(f'nothing to merge: "{into}" has all that "{source}" did')
            terminal().print(line, soft_wrap=True)
        else:
            write_record({**to_plain(_merged(result)), "conflicts": None})
        if refusal is not None:
            if settings.output is Output.TEXT:
                terminal().print()
                _write_conflicts(result.conflicts)
            raise refusal


def replay(
    settings: Settings,
    fork: Annotated[str, typer.Argument(metavar="FORK", help="The fork to bring up to date.")],
    onto: Annotated[str, typer.Option(metavar="NAME", help="The catalog to replay it on.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Replay the changes of a fork on top of another catalog's current state; list what conflicts."""
    with settings.connect() as lake:
        with progress_bar(settings) as progress:
            result = lake.replay(fork, onto, dry_run=dry_run, progress=progress, **info)
        shown = _replayed(result)
        if settings.output is Output.JSON:
            render(shown, settings.output)
            return
        write_record({**to_plain(shown), "refused": None})
        if result.refused:
            terminal().print()
            _write_conflicts(result.refused)


def _write_conflicts(conflicts: Iterable[Conflict]) -> None:
    write_table([to_plain(_conflict(conflict)) for conflict in conflicts])


def _merge(
    lake: Lake, source: str, into: str, wanted: dict[str, Any], info: CommitInfo, *, dry_run: bool
) -> tuple[MergeResult, MergeConflict | None]:
    """What came of it; with conflicts, what would have come, and the refusal."""
    try:
        result = lake.merge(source, into, dry_run=dry_run, **wanted, **info)
    except MergeConflict as refusal:
        if not refusal.conflicts:
            raise
        shown = lake.merge(source, into, dry_run=True, **wanted)
        return replace(shown, conflicts=refusal.conflicts), refusal
    if not result.conflicts:
        return result, None
    counted = (
        "1 conflict stands" if len(result.conflicts) == 1 else f"{len(result.conflicts)} conflicts stand"
    )
    refusal = f'"{source}" cannot be merged into "{into}": {counted} in the way'
    return result, MergeConflict(refusal, result.conflicts)


def _merged(result: MergeResult) -> Merged:
    return Merged(
        result.source,
        result.into,
        result.source_snapshot,
        result.base_snapshot,
        result.snapshot,
        sum(table.files_added for table in result.tables),
        sum(table.files_retired for table in result.tables),
        sum(table.rows_added for table in result.tables),
        sum(table.rows_removed for table in result.tables),
        len(result.changes),
        result.snapshot is not None,
        [_values(conflict) for conflict in result.conflicts],
    )


def _replayed(result: ReplayResult) -> Replayed:
    refused = [_values(conflict) for conflict in result.refused]
    return Replayed(result.fork, result.onto, result.onto_snapshot, result.snapshot, refused)


def _values(conflict: Conflict) -> dict[str, Any]:
    """A conflict with the first of its rows."""
    entry = {
        field.name: to_plain(getattr(conflict, field.name)) for field in fields(conflict) if field.compare
    }
    rows = conflict.rows()[:MOST_ROWS] if conflict.row_count else []
    return entry | {"rows": [_in_json(to_plain(row)) for row in rows]}


def _in_json(value: Any) -> Any:
    """A value of a row; what JSON has no type for is shown as text."""
    match value:
        case dict():
            return {name: _in_json(inner) for name, inner in value.items()}
        case list():
            return [_in_json(inner) for inner in value]
        case float() if not isfinite(value):
            return str(value)
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)


def _conflict(conflict: Conflict) -> ConflictLine:
    return ConflictLine(
        _name(conflict.ours) or _name(conflict.theirs) or f"id {conflict.ours.object_id}",
        conflict.ours.verb,
        conflict.ours_snapshot,
        conflict.theirs.verb,
        conflict.snapshot,
        len(conflict.files),
        conflict.row_count or None,
        conflict.rule,
    )


def _name(change: Change) -> str | None:
    return f"{change.schema}.{change.name}" if change.schema and change.name else change.name
