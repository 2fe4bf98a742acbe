"""The commands that keep a lake in shape."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from forklake.cli.options import Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import render
from forklake.model.snapshots import CommitInfo


def compact(
    settings: Settings,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The table; every table of the catalog by default.")
    ] = None,
    deletes: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Instead, rewrite files that have lost at least this share of their rows; 0 for any.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say about what would happen, and stop.")
    ] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Merge small files and move inlined rows into files. No row changes, now or in the past."""
    with settings.connect() as lake, progress_bar(settings) as progress:
        catalog = settings.find_catalog(lake)
        if deletes is None:
            result = catalog.compact(table, dry_run=dry_run, progress=progress, **info)
        else:
            result = catalog.rewrite_deletes(table, deletes, dry_run=dry_run, progress=progress, **info)
    render(result.tables, settings.output)
