"""The commands about forks: make one, look at what it did, merge it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Annotated

import typer

from forklake.cli.options import At, Settings
from forklake.cli.render import Output, render
from forklake.diffing import CatalogDiff
from forklake.errors import InvalidArgument
from forklake.fork.diff import ObjectDiff, TableFacts
from forklake.fork.merge import MergeResult

_SPAN = re.compile(r"(\d+)\s*(s|m|h|d)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


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
class TableLine:
    """A table in a diff, in one line."""

    table: str
    change: str
    files_added: int
    files_retired: int
    rows_added: int
    rows_removed: int
    schema_changes: str | None


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that was made, or would be."""

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
    conflicts: list[str]


def fork(
    settings: Settings,
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="The catalog to fork.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the fork.")],
    at: At = None,
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Another folder or bucket for the fork's own files.")
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the parent's metadata instead of referring to it.")
    ] = False,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Be content with a fork of that parent that is there.")
    ] = False,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="Let it expire: 90s, 30m, 12h, 7d from now.")
    ] = None,
) -> None:
    """Fork a catalog: the fork begins as the parent is, and neither sees what the other does then."""
    with settings.connect() as lake:
        made = lake.fork(
            parent,
            name,
            at=at,
            data_path=data_path,
            mode="copy" if copy else "reference",
            if_not_exists=if_not_exists,
            ttl=None if ttl is None else _span(ttl),
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
    """Show what --catalog did since it was forked, or since it was last like another catalog."""
    with settings.connect() as lake:
        found = settings.find_catalog(lake, None).diff(other)
        if settings.output is Output.JSON:
            render(_shown(found), settings.output)
        else:
            render([*_objects(found), *_tables(found)], settings.output)


def merge(
    settings: Settings,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The catalog whose changes are taken.")],
    into: Annotated[str, typer.Option(metavar="NAME", help="The catalog that gets them.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and stop.")] = False,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="What the commit says.")] = None,
) -> None:
    """Bring what a catalog did into another one, as one commit."""
    with settings.connect() as lake:
        render(_merged(lake.merge(source, into, dry_run=dry_run, message=message)), settings.output)


def _span(text: str) -> timedelta:
    found = _SPAN.match(text.strip())
    if found is None:
        raise InvalidArgument(f"{text!r} is no time to live: write 90s, 30m, 12h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _objects(found: CatalogDiff) -> list[TableLine]:
    return [TableLine(f"{item.kind} {item.name}", item.change, 0, 0, 0, 0, None) for item in found.objects]


def _tables(found: CatalogDiff) -> list[TableLine]:
    return [
        TableLine(
            table.name,
            table.change,
            len(table.files_added),
            len(table.files_retired),
            table.rows_added,
            table.rows_removed,
            "; ".join(table.schema_changes) or None,
        )
        for table in found.tables
    ]


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
        [str(conflict) for conflict in result.conflicts],
    )
