"""The commands: each parses, calls, renders."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from forklake.cli.describe import describe_table, render_description
from forklake.cli.options import At, Settings
from forklake.cli.render import is_terminal, literal, render
from forklake.errors import InvalidArgument
from forklake.lake import init as init_lake


@dataclass(frozen=True, slots=True)
class LakeCreated:
    """A new lake."""

    lake: str
    data_path: str


@dataclass(frozen=True, slots=True)
class CatalogCreated:
    """A catalog that is there now."""

    name: str
    id: int
    snapshot: int


@dataclass(frozen=True, slots=True)
class CatalogDropped:
    """A catalog that was dropped, or would be, and the last snapshot that shows it."""

    name: str
    id: int
    snapshot: int
    tables: int
    dropped: bool


def init(
    settings: Settings,
    data_path: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder or bucket for data files; beside the database by default. PostgreSQL needs one.",
        ),
    ] = None,
) -> None:
    """Create a lake. One that exists is left alone, and the command refused."""
    with init_lake(settings.url, data_path=data_path) as lake:
        render(LakeCreated(lake.url, lake.data_path), settings.output)


def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new catalog.")],
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Be content with a catalog that has the name already.")
    ] = False,
) -> None:
    """Create an empty catalog."""
    with settings.connect() as lake:
        catalog = lake.create_catalog(name, if_not_exists=if_not_exists)
        render(CatalogCreated(catalog.name, catalog.id, catalog.snapshot), settings.output)


def catalogs(settings: Settings, at: At = None) -> None:
    """List the catalogs of the lake."""
    with settings.connect() as lake:
        render(lake.catalogs(at=at), settings.output)


def drop(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the catalog.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be dropped, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, even at a terminal.")] = False,
) -> None:
    """Drop a catalog. Older snapshots still show it, and no other catalog loses anything."""
    with settings.connect() as lake:
        catalog = lake.catalog(name)
        found = CatalogDropped(name, catalog.id, catalog.snapshot, len(catalog.tables()), dropped=False)
        if not dry_run:
            if is_terminal(sys.stdin) and not yes:
                _ask(f'Drop catalog "{name}" with {found.tables} tables?')
            lake.drop_catalog(name)
        render(replace(found, dropped=not dry_run), settings.output)


def tables(
    settings: Settings,
    at: At = None,
    schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the tables of this schema.")
    ] = None,
) -> None:
    """List the tables of a catalog."""
    with settings.connect() as lake:
        render(settings.find_catalog(lake, at).tables(schema=schema), settings.output)


def describe(
    settings: Settings,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help='The table: orders (in schema main), sales.orders, or with odd names \'"a.b"."c d"\'.',
        ),
    ],
    at: At = None,
) -> None:
    """Show a table: its columns with nested fields, types, defaults, comments and tags."""
    with settings.connect() as lake:
        render_description(describe_table(settings.find_catalog(lake, at), table), settings.output)


def snapshots(settings: Settings) -> None:
    """List the commits of the lake, or with --catalog those of one catalog, oldest first."""
    with settings.connect() as lake:
        render(lake.snapshots(settings.catalog or None), settings.output, last="changes")


def _ask(question: str) -> None:
    # On stderr, since stdout is for the result.
    typer.echo(f"{literal(question)} [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidArgument("nothing was dropped: the answer was not yes")
