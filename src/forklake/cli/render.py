"""What commands print: text for people or one JSON document for programs, from the same values."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

from forklake.display import literal

_GAP = "  "


class Output(StrEnum):
    """The two forms of everything that is printed."""

    TEXT = "text"
    JSON = "json"


def render(value: object, output: Output, *, last: str | None = None) -> None:
    """Print a value, or a list of values as a table. `last` names a column that text puts at the end."""
    plain = to_plain(value)
    if output is Output.JSON:
        write_json(plain)
    elif isinstance(plain, list):
        write_table(plain, last)
    else:
        write_record(plain)


def to_plain(value: Any) -> Any:
    """A value in JSON's types: fields become keys in their order, times become ISO 8601."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): to_plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [to_plain(item) for item in value]
        case frozenset():
            return sorted(value)
        case _:
            return value


def write_json(plain: object) -> None:
    """Print one document. It is plain ASCII, so that any locale can print it and no terminal obeys it."""
    typer.echo(json.dumps(plain, indent=2))


def write_record(record: Mapping[str, Any]) -> None:
    """Print names and values below each other, leaving out what is not set."""
    from rich.text import Text

    known = {name: value for name, value in record.items() if value is not None}
    width = max(map(len, known), default=0)
    console = terminal()
    for name, value in known.items():
        line = Text(name.ljust(width), style="bold").append(_GAP + cell(value), style="not bold")
        console.print(line, soft_wrap=True)


def write_table(rows: Sequence[Mapping[str, Any]], last: str | None = None) -> None:
    """Print rows below their names, leaving out columns in which nothing is set."""
    names = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
    names.sort(key=lambda name: name == last)
    cells = [[cell(row[name]) for name in names] for row in rows]
    if not rows:
        terminal().print("(none)")
    elif is_terminal(sys.stdout):
        _write_fitted(names, cells)
    else:
        # Whoever reads a pipe wants a row on one line, however long.
        typer.echo("\n".join(_aligned([names, *cells])))


def _write_fitted(names: Sequence[str], cells: Iterable[Sequence[str]]) -> None:
    """A table that folds long cells rather than cutting them."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    terminal().print(table)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True))
        yield _GAP.join(padded).rstrip()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end; None is a stream that was closed before we started."""
    return stream is not None and stream.isatty()


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes. It is asked on stderr, since stdout is for the result."""
    typer.echo(f"{literal(question)} [y/N] ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def terminal() -> Console:
    """A console that takes no text for markup, and styles it only if a person is looking."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def cell(value: object) -> str:
    """A value as text on one line."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Mapping() | list():
            return literal(json.dumps(value, ensure_ascii=False) if value else "")
        case _:
            return literal(str(value))
