"""The commands that keep a lake in shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Unpack

import typer

from forklake.api.connect import upgrade as upgrade_lake
from forklake.cli.options import Settings
from forklake.cli.progress import progress_bar
from forklake.cli.render import Output, literal, render
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
            help="Instead, rewrite files of which at least this share of rows is deleted; 0 for any.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show an estimate of what would happen.")
    ] = False,
    **info: Unpack[CommitInfo],
) -> None:
    """Merge small files and write inlined rows to files. No row changes, now or in the past."""
    with settings.connect() as lake, progress_bar(settings) as progress:
        catalog = settings.find_catalog(lake)
        if deletes is None:
            result = catalog.compact(table, dry_run=dry_run, progress=progress, **info)
        else:
            result = catalog.rewrite_deletes(table, deletes, dry_run=dry_run, progress=progress, **info)
    render(result.tables, settings.output)


@dataclass(frozen=True, slots=True)
class LakeVersion:
    """A lake and the version of its metadata."""

    lake: str
    from_version: str
    to_version: str
    done: bool


def upgrade(
    settings: Settings,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the statements, which are run and taken back, and stop."),
    ] = False,
) -> None:
    """Bring a lake that an earlier version made to the present version of the metadata, all or nothing.

    End the programs that have it open and take a backup of the metadata first: there is no way back. No file
    is touched. A lake that has the present version already is left alone.
    """
    result = upgrade_lake(settings.url, dry_run=dry_run)
    if settings.output is Output.JSON:
        render(result, settings.output)
    elif dry_run and result.statements:
        for statement in result.statements:
            typer.echo("\n".join(map(literal, f"{statement};".splitlines())))
    else:
        shown = LakeVersion(result.lake, result.from_version, result.to_version, result.done)
        render(shown, settings.output)
