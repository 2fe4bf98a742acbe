"""The commands that keep a lake in shape."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Unpack

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from forklake.cli.options import Settings
from forklake.cli.render import is_terminal, literal, render
from forklake.compact.compaction import CompactProgress
from forklake.compact.compaction import Progress as Report
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
    with settings.connect() as lake, _bar() as progress:
        catalog = settings.find_catalog(lake)
        if deletes is None:
            result = catalog.compact(table, dry_run=dry_run, progress=progress, **info)
        else:
            result = catalog.rewrite_deletes(table, deletes, dry_run=dry_run, progress=progress, **info)
    render(result.tables, settings.output)


@contextmanager
def _bar() -> Generator[Report | None]:
    """A bar on stderr while somebody looks at it; stdout is for the result."""
    if not is_terminal(sys.stderr):
        yield None
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(step: CompactProgress) -> None:
            progress.update(task, description=literal(step.table), completed=step.files, total=step.of)

        yield show
