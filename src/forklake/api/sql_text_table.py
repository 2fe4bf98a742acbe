"""A result as a table of text, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from forklake.api.python_values import python_rows
from forklake.lazy.arrow import pa

MOST_SHOWN = 40
_WIDEST = 60


def as_text(table: pa.Table, types: Sequence[str], most: int = MOST_SHOWN) -> str:
    """The first rows, with names and types of the columns, and how many rows there are."""
    names = table.column_names
    rows = [tuple(map(_cell, values)) for values in python_rows(table.slice(0, most))]
    kinds = [kind.lower() for kind in types]
    widths = [
        max([len(name), len(kind), *(len(row[at]) for row in rows)])
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    lines = [_line(names, widths), _line(kinds, widths), "-+-".join("-" * width for width in widths)]
    lines += [_line(row, widths) for row in rows]
    count = table.num_rows
    shown = f", the first {most} of them shown" if count > most else ""
    lines.append(f"({count:,} {'row' if count == 1 else 'rows'}{shown})")
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
