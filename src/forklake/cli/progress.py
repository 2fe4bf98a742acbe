"""The bar that shows how far a command is, to whoever looks at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from forklake.cli.options import Settings
from forklake.cli.render import Output, is_terminal
from forklake.display import literal
from forklake.model.progress import OnProgress, Progress


@contextmanager
def progress_bar(settings: Settings) -> Generator[OnProgress | None]:
    """A bar on stderr while somebody looks at it, and none for programs; stdout is for the result."""
    if settings.output is Output.JSON or not is_terminal(sys.stderr):
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}", markup=False),
    )
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, visible=False, unit="")

        def show(step: Progress) -> None:
            bar.update(
                task,
                description=literal(step.what),
                completed=step.done,
                total=step.total,
                unit=step.unit,
                visible=True,
            )

        yield show
