"""Rows as text: a grid with names, types and a count, or a block of lines for each row. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from forklake.display import literal

NULL = "NULL"
_NUMBERS = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "DOUBLE", "FLOAT", "BIGNUM"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    }
)


@dataclass(frozen=True, slots=True)
class Grid:
    """A result, as texts."""

    names: Sequence[str]
    types: Sequence[str]
    rows: Sequence[Sequence[str | None]]
    more: bool = False
    """Whether there are more rows than these."""

    def count(self) -> str:
        """How many rows there are, in brackets."""
        number = len(self.rows)
        if self.more:
            return f"(the first {number:,} rows; there are more)"
        return f"({number:,} {'row' if number == 1 else 'rows'})"


def grid_lines(grid: Grid) -> Iterator[str]:
    """Rows below the names and types of their columns."""
    # rich is loaded by commands anyway, and by nothing else.
    from rich.cells import cell_len

    cells = [[_cell(value) for value in row] for row in grid.rows]
    heads = [[literal(name) for name in grid.names], [kind.lower() for kind in grid.types]]
    widths = [max(map(cell_len, column)) for column in zip(*heads, *cells, strict=True)]
    right = [is_number(kind) for kind in grid.types]

    def line(row: Sequence[str], to_right: Sequence[bool]) -> str:
        padded = [
            " " * (width - cell_len(text)) + text if flag else text + " " * (width - cell_len(text))
            for text, width, flag in zip(row, widths, to_right, strict=True)
        ]
        return f" {' | '.join(padded)}".rstrip()

    for head in heads:
        yield line(head, [False] * len(widths))
    yield "-+-".join("-" * width for width in widths).join("--")
    for row in cells:
        yield line(row, right)
    yield grid.count()


def block_lines(grid: Grid) -> Iterator[str]:
    """Each row as a block of lines, a name and a value on each: for rows that are too wide for a terminal."""
    from rich.cells import cell_len

    names = [literal(name) for name in grid.names]
    width = max(map(cell_len, names), default=0)
    for number, row in enumerate(grid.rows, 1):
        yield f"-- row {number} --"
        for name, value in zip(names, row, strict=True):
            yield f"{name}{' ' * (width - cell_len(name))} | {_cell(value)}".rstrip()
    yield grid.count()


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> Iterator[str]:
    """Rows as CSV below their names; NULL is nothing, and an empty text a pair of quotes."""
    yield ",".join(map(_quoted, names))
    for row in rows:
        yield ",".join("" if value is None else _quoted(value) for value in row)


def is_number(kind: str) -> bool:
    """Whether values of a type stand to the right."""
    return not kind.endswith("]") and kind.upper().partition("(")[0] in _NUMBERS


def _cell(value: str | None) -> str:
    return NULL if value is None else literal(value)


def _quoted(value: str) -> str:
    if value and not any(mark in value for mark in ',"\r\n') and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'
