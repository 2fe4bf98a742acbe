"""The commands that make forks and show what they did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Unpack

import typer

from forklake.api.diff import CatalogDiff
from forklake.cli.options import Settings, StartAt, span
from forklake.cli.progress import progress_bar
from forklake.cli.render import Output, render, terminal, to_plain, write_record, write_table
from forklake.fork.diff import ObjectDiff, TableChanges
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


def fork(
    settings: Settings,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="The catalog to fork.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the fork.")],
    at: StartAt = None,
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Another folder or bucket for the fork's new files.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the parent's metadata instead of referring to it.")
    ] = False,
    if_not_exists: Annotated[
        bool,
        typer.Option("--if-not-exists", help="Do nothing if this fork of the parent exists."),
    ] = False,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to live: 90s, 30m, 12h, 7d from now.")
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Fork a catalog: the fork starts with everything the parent has; later commits are separate."""
    lifetime = None if ttl is None else span(ttl)
    with settings.connect() as lake:
        with progress_bar(settings) as progress:
            made = lake.fork(
                parent,
                name,
                at=at,
                data_path=data_path,
                mode="copy" if copy else "reference",
                if_not_exists=if_not_exists,
                ttl=lifetime,
                progress=progress,
                **info,
            )
        (about,) = [catalog for catalog in lake.catalogs() if catalog.id == made.id]
        result = ForkMade(about.name, about.id, about.parent, about.fork_snapshot, about.expires_at)
        render(result, settings.output)


def diff(
    settings: Settings,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="Another catalog; by default the fork point of --catalog."),
    ] = None,
) -> None:
    """Show what --catalog changed since it was forked, or what it changed that OTHER has not seen."""
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
    names = [field.name for field in fields(TableChanges)]
    tables = [{name: getattr(table, name) for name in names} for table in found.tables]
    return DiffShown(found.catalog, found.snapshot, found.base_snapshot, found.objects, tables)
