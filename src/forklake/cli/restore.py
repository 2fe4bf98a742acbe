"""The commands that go back: restore what was, undo a commit, bring back a catalog that was dropped."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from forklake.cli.catalogs import CatalogNow
from forklake.cli.options import GoBackTo, Settings, span
from forklake.cli.progress import progress_bar
from forklake.cli.render import render
from forklake.model.snapshots import CommitInfo


def restore(
    settings: Settings,
    at: GoBackTo,
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="The table, by its name at that time; it may be dropped now."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Restore the whole catalog.")] = False,
    as_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Another name for the table.")
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Restore a table, or the whole catalog, to a snapshot or timestamp, as a new commit."""
    if (table is None) != everything:
        raise typer.BadParameter("name the table to restore, or pass --all")
    if everything and as_name is not None:
        raise typer.BadParameter("--as names one table")
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake)
        if table is None:
            with progress_bar(settings) as progress:
                catalog.restore(at, progress=progress, **info)
        else:
            catalog.restore_table(table, at, as_name=as_name, **info)
        render(CatalogNow.of(catalog), settings.output)


def undo(
    settings: Settings,
    snapshot: Annotated[int, typer.Argument(metavar="SNAPSHOT", help="The snapshot id of the commit.")],
    **info: Unpack[CommitInfo],
) -> None:
    """Revert one commit of --catalog, as a new commit, if no later commit conflicts."""
    with settings.connect() as lake:
        catalog = settings.find_catalog(lake)
        with progress_bar(settings) as progress:
            catalog.undo(snapshot, progress=progress, **info)
        render(CatalogNow.of(catalog), settings.output)


def undrop(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that the catalog had.")],
    as_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Another name, if that one is taken.")
    ] = None,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to live: 90s, 30m, 12h, 7d from now.")
    ] = None,
    **info: Unpack[CommitInfo],
) -> None:
    """Bring back the catalog of this name that was dropped last, with its history."""
    lifetime = None if ttl is None else span(ttl)
    with settings.connect() as lake:
        back = lake.undrop_catalog(name, as_name=as_name, ttl=lifetime, **info)
        render(CatalogNow.of(back), settings.output)
