"""The commands: each parses, calls, renders."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Unpack

import typer

from forklake.api.connect import connect
from forklake.api.connect import init as init_lake
from forklake.cli.catalogs import CatalogNow
from forklake.cli.options import At, Settings
from forklake.cli.render import agreed, is_terminal, render
from forklake.errors import InvalidArgument
from forklake.model.entities import CatalogInfo
from forklake.model.snapshots import CommitInfo
from forklake.store.url import parse_url


@dataclass(frozen=True, slots=True)
class LakeThere:
    """A lake that was created or moved, and where its files are."""

    lake: str
    data_path: str


@dataclass(frozen=True, slots=True)
class CatalogListed(CatalogInfo):
    """A catalog of the lake, and whether its time is over."""

    expired: bool | None
    """None for one that does not expire."""


def init(
    settings: Settings,
    data_path: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder or bucket for data files; beside the database by default. PostgreSQL needs one.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Create the folder of the database too, without asking.")
    ] = False,
) -> None:
    """Create a lake. Refused if it exists.

    If the folder of the database does not exist, it asks first on a terminal, and needs --yes elsewhere.
    """
    if not yes:
        _confirm_folder(settings.url)
    with init_lake(settings.url, data_path=data_path) as lake:
        render(LakeThere(lake.url, lake.data_path), settings.output)


def _confirm_folder(url: str) -> None:
    """Ask before a folder is made for an embedded database: its name may be a slip."""
    path = parse_url(url).path
    if path is None or path.parent.exists():
        return
    if not is_terminal(sys.stdin):
        raise InvalidArgument(
            f"there is no folder {path.parent}: make it, or run the command again with --yes, which does"
        )
    if not agreed(f"There is no folder {path.parent}. Make it?"):
        raise InvalidArgument("nothing was created: the answer was not yes")


def moved(
    settings: Settings,
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="The new data path; unchanged by default.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Do not check that the data files are there.")
    ] = False,
) -> None:
    """Declare that the lake was moved: its metadata to --lake, its files to --data-path, or both.

    Until then, a lake whose metadata was copied or moved is read-only. A copy needs data files of its own.
    """
    with connect(settings.url, data_path=data_path, moved="force" if force else True) as lake:
        render(LakeThere(lake.url, lake.data_path), settings.output)


def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new catalog.")],
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing if the catalog exists.")
    ] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Create an empty catalog."""
    with settings.connect() as lake:
        catalog = lake.create_catalog(name, if_not_exists=if_not_exists, **info)
        render(CatalogNow.of(catalog), settings.output)


def catalogs(settings: Settings, at: At = None) -> None:
    """List the catalogs of the lake, with those that have expired."""
    with settings.connect() as lake:
        now = lake.now()
        render([_listed(info, now) for info in lake.catalogs(at=at)], settings.output)


def _listed(info: CatalogInfo, now: datetime) -> CatalogListed:
    known = [getattr(info, field.name) for field in fields(info)]
    return CatalogListed(*known, expired=None if info.expires_at is None else info.expires_at <= now)


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
    from forklake.cli.describe import describe_table, render_description

    with settings.connect() as lake:
        render_description(describe_table(settings.find_catalog(lake, at), table), settings.output)


def snapshots(settings: Settings) -> None:
    """List the snapshots of the lake, or with --catalog those of one catalog, oldest first."""
    from forklake.cli.history import render_history

    with settings.connect() as lake:
        render_history(lake.snapshots(settings.catalog or None), settings.output)
