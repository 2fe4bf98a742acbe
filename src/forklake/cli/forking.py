"""The commands about forks: make one, look at what it did, merge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Unpack

import typer

from forklake.cli.options import Settings, StartAt, span
from forklake.cli.render import Output, literal, render, terminal, to_plain, write_record, write_table
from forklake.diffing import CatalogDiff
from forklake.errors import MergeConflict
from forklake.fork.diff import ObjectDiff, TableFacts
from forklake.fork.merge import MergeResult
from forklake.lake import Lake
from forklake.model.changes import Change, Conflict
from forklake.model.snapshots import CommitInfo


@dataclass(frozen=True, slots=True)
class ForkMade:
    """A fork that is there now."""

    name: str
    id: int
    parent: str | None
    fork_snapshot: int | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class DiffShown:
    """What is known of a difference at once; rows are for programs that open the lake themselves."""

    catalog: str
    snapshot: int
    base_snapshot: int
    objects: tuple[ObjectDiff, ...]
    tables: list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """Something that is different, in one line; only tables have files and rows."""

    kind: str
    name: str
    change: str
    files_added: int | None = None
    files_retired: int | None = None
    files_with_deletes: int | None = None
    rows_added: int | None = None
    rows_removed: int | None = None
    schema_changes: str | None = None


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
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """Something that both changed, in one line."""

    name: str
    ours: str
    ours_snapshot: int | None
    theirs: str
    theirs_snapshot: int
    files: int
    rule: str


def fork(
    settings: Settings,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="The catalog to fork.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the fork.")],
    at: StartAt = None,
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Another folder or bucket for the fork's own files.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the parent's metadata instead of referring to it.")
    ] = False,
    if_not_exists: Annotated[
        bool,
        typer.Option(
            "--if-not-exists", help="Be content with a fork of that parent that is there, as it is."
        ),
    ] = False,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="Let it expire: 90s, 30m, 12h, 7d from now.")
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Fork a catalog: the fork begins as the parent is, and neither sees what the other does then."""
    lifetime = None if ttl is None else span(ttl)
    with settings.connect() as lake:
        made = lake.fork(
            parent,
            name,
            at=at,
            data_path=data_path,
            mode="copy" if copy else "reference",
            if_not_exists=if_not_exists,
            ttl=lifetime,
            **info,
        )
        (about,) = [catalog for catalog in lake.catalogs() if catalog.id == made.id]
        result = ForkMade(about.name, about.id, about.parent, about.fork_snapshot, about.expires_at)
        render(result, settings.output)


def diff(
    settings: Settings,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="Another catalog; by default where --catalog was forked."),
    ] = None,
) -> None:
    """Show what --catalog did since it was forked, or what it did that another one does not know of."""
    with settings.connect() as lake:
        found = settings.find_catalog(lake, None).diff(other)
        if settings.output is Output.JSON:
            render(_shown(found), settings.output)
            return
        write_record(
            {"catalog": found.catalog, "snapshot": found.snapshot, "base_snapshot": found.base_snapshot}
        )
        terminal().print()
        write_table([to_plain(line) for line in _lines(found)])


def merge(
    settings: Settings,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The catalog whose changes are taken.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The catalog that gets them.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and stop.")] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Bring what a catalog did into another one, as one commit. Conflicts are listed, and nothing is done."""
    with settings.connect() as lake:
        result, refusal = _merge(lake, source, into, info, dry_run=dry_run)
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
                write_table([to_plain(_conflict(conflict)) for conflict in result.conflicts])
            raise refusal


def _merge(
    lake: Lake, source: str, into: str, info: CommitInfo, *, dry_run: bool
) -> tuple[MergeResult, MergeConflict | None]:
    """What came of it; with conflicts, what would have come, and the refusal."""
    try:
        result = lake.merge(source, into, dry_run=dry_run, **info)
    except MergeConflict as refusal:
        if not refusal.conflicts:
            raise
        return replace(lake.merge(source, into, dry_run=True), conflicts=refusal.conflicts), refusal
    if not result.conflicts:
        return result, None
    counted = (
        "1 conflict stands" if len(result.conflicts) == 1 else f"{len(result.conflicts)} conflicts stand"
    )
    refusal = f'"{source}" cannot be merged into "{into}": {counted} in the way'
    return result, MergeConflict(refusal, result.conflicts)


def _lines(found: CatalogDiff) -> Iterator[DiffLine]:
    for item in found.objects:
        yield DiffLine(item.kind, item.name, item.change)
    for table in found.tables:
        yield DiffLine(
            "table",
            table.name,
            table.change,
            len(table.files_added),
            len(table.files_retired),
            len(table.files_with_deletes),
            table.rows_added,
            table.rows_removed,
            "; ".join(table.schema_changes) or None,
        )


def _shown(found: CatalogDiff) -> DiffShown:
    names = [field.name for field in fields(TableFacts)]
    tables = [{name: getattr(table, name) for name in names} for table in found.tables]
    return DiffShown(found.catalog, found.snapshot, found.base_snapshot, found.objects, tables)


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
        result.conflicts,
    )


def _conflict(conflict: Conflict) -> ConflictLine:
    return ConflictLine(
        _name(conflict.ours) or _name(conflict.theirs) or f"id {conflict.ours.object_id}",
        conflict.ours.verb,
        conflict.ours_snapshot,
        conflict.theirs.verb,
        conflict.snapshot,
        len(conflict.files),
        conflict.rule,
    )


def _name(change: Change) -> str | None:
    return f"{change.schema}.{change.name}" if change.schema and change.name else change.name
