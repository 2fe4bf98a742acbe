"""What the command line shows of commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Self

import typer

from forklake.cli.options import At, Settings
from forklake.cli.render import Output, render, to_plain, write_table
from forklake.model.snapshots import Extra, Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotListed:
    """A commit: what it did in DuckLake's notation, and in words."""

    id: int
    time: datetime
    catalog: str | None
    changes: str
    author: str | None
    message: str | None
    extra: Extra | None
    schema_version: int
    summary: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """What a snapshot shows."""
        return cls(*(getattr(snapshot, field.name) for field in fields(cls)))


def history(
    settings: Settings,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table: orders, or sales.orders.")],
    at: At = None,
) -> None:
    """List the snapshots that changed a table, its rows or its definition, oldest first."""
    with settings.connect() as lake:
        render_history(settings.find_catalog(lake, at).table(table).history(), settings.output)


def render_history(snapshots: Sequence[Snapshot], output: Output) -> None:
    """Print commits: names for people, and for programs DuckLake's notation too."""
    listed = [SnapshotListed.of(snapshot) for snapshot in snapshots]
    if output is Output.JSON:
        render(listed, output)
    else:
        write_history(listed)


def write_history(listed: Sequence[SnapshotListed]) -> None:
    """Print commits as text, without DuckLake's notation."""
    write_table([{**to_plain(one), "changes": None} for one in listed], last="summary")
