"""The command that draws the tree of forks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from forklake.cli.options import Settings
from forklake.cli.render import Output, render
from forklake.store.fork_tree import MOST_FORKS


@dataclass(frozen=True, slots=True)
class PictureWritten:
    """A file with a picture of the tree."""

    svg: str
    catalogs: int


def tree(
    settings: Settings,
    root: Annotated[
        str | None,
        typer.Argument(metavar="CATALOG", help="The catalog to begin with; all of the lake by default."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Go so many levels down; all by default.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Show so many forks of each catalog.")
    ] = MOST_FORKS,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Show dropped catalogs too, not only those with live forks.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture to a file instead, as SVG.")
    ] = None,
) -> None:
    """Draw catalogs with their forks below them: fork point, time, own commits, merges, time to live."""
    with settings.connect() as lake:
        found = lake.tree(root, depth=depth, limit=limit, dropped=dropped)
    if svg is not None:
        svg.write_text(found.svg(), encoding="utf-8")
        render(PictureWritten(str(svg), len(found)), settings.output)
    elif settings.output is Output.JSON:
        render(found, settings.output)
    else:
        typer.echo(str(found))
