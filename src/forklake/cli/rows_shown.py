"""Rows as commands print them: a grid for people, a list of objects for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from forklake.cli.grid import Grid, grid_lines
from forklake.cli.render import Output
from forklake.cli.values import json_text, objects_of
from forklake.engine.row_values import python_rows, text_rows
from forklake.lazy.arrow import kind, pa

if TYPE_CHECKING:
    from forklake.engine.local import Engine


def render_rows(engine: Engine, rows: pa.Table, types: Sequence[str], output: Output) -> None:
    """Print rows, and nothing else."""
    if output is Output.JSON:
        write_json_rows(engine, rows)
    else:
        write_lines(grid_lines(Grid(rows.column_names, types, text_rows(engine, rows))))


def write_json_rows(engine: Engine, rows: pa.Table) -> None:
    """Print rows as one document: a list of objects."""
    typer.echo(json_text(objects_of(rows.column_names, python_rows(engine, _with_short_floats(rows)))))


def _with_short_floats(rows: pa.Table) -> pa.Table:
    """0.1 as a FLOAT is written 0.1, not with the digits that it has as a DOUBLE."""
    for at, field in enumerate(rows.schema):
        if kind.is_float32(field.type):
            column = rows.column(at).cast(pa.string()).cast(pa.float64())
            rows = rows.set_column(at, pa.field(field.name, pa.float64()), column)
    return rows


def write_lines(lines: Iterable[str]) -> None:
    """Print lines, many at a time."""
    kept: list[str] = []
    for line in lines:
        kept.append(line)
        if len(kept) == 1000:
            typer.echo("\n".join(kept))
            kept.clear()
    if kept:
        typer.echo("\n".join(kept))
