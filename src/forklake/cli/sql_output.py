"""What becomes of the results of statements: a grid, JSON, CSV, or a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from forklake.cli.grid import Grid, block_lines, csv_lines, grid_lines
from forklake.cli.render import Output, render
from forklake.cli.rows import Exported
from forklake.cli.rows_shown import write_json_rows, write_lines
from forklake.engine.export_rows import export_format, export_rows
from forklake.engine.row_values import text_rows
from forklake.lazy.arrow import pa
from forklake.sql.parser.tokens import TOKEN

if TYPE_CHECKING:
    from forklake.api.sql_result import SqlResult
    from forklake.engine.local import Engine

Form = Literal["text", "json", "csv"]


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What a script prints. As text, every result; in the other forms, that of the last that has one."""

    form: Form = "text"
    file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a file that nobody knows how to write, before anything is run."""
        if self.file is not None:
            export_format(self.file)

    @property
    def is_text(self) -> bool:
        """Whether every result is printed."""
        return self.form == "text" and self.file is None

    def write_last(self, engine: Engine, result: SqlResult | None) -> None:
        """Write the result of the last statement that has one."""
        if self.file is not None:
            reader = pa.table({}).to_reader() if result is None else result.to_reader()
            exported = Exported(str(self.file), export_rows(engine, reader, self.file))
            render(exported, Output.JSON if self.form == "json" else Output.TEXT)
        elif self.form == "json":
            write_json_rows(engine, pa.table({}) if result is None else result.to_arrow())
        elif result is not None:
            write_lines(_csv(engine, result))


def _csv(engine: Engine, result: SqlResult) -> Iterator[str]:
    """Batch by batch: what is written need not fit into memory."""
    rows = chain.from_iterable(text_rows(engine, batch) for batch in result.to_batches())
    return csv_lines(result.columns, rows)


def result_lines(
    engine: Engine, statement: str, result: SqlResult, *, most: int | None = None, blocks: bool = False
) -> Iterator[str]:
    """A result for people. `most` bounds the rows, `blocks` shows a row as a block of lines."""
    if not result.columns:
        yield done_line(statement)
    elif result.is_count:
        yield changed_line(result.rows_affected or 0)
    else:
        grid = grid_of(engine, result, most)
        yield from (block_lines if blocks else grid_lines)(grid)


def grid_of(engine: Engine, result: SqlResult, most: int | None) -> Grid:
    """The rows as texts, so many at most."""
    rows: list[tuple[str | None, ...]] = []
    names, types = result.columns, result.types
    for batch in result.to_batches():
        rows += text_rows(engine, batch)
        if most is not None and len(rows) > most:
            result.close()
            return Grid(names, types, rows[:most], more=True)
    return Grid(names, types, rows)


def done_line(statement: str) -> str:
    """What a statement without rows was, by its first words: CREATE TABLE."""
    words: list[str] = []
    at = 0
    while len(words) < 2 and (found := TOKEN.match(statement, at)) and found.lastgroup == "word":
        words.append(found["word"].upper())
        at = found.end()
    return " ".join(words) or "done"


def changed_line(count: int) -> str:
    """How many rows were changed, in brackets."""
    return f"({count:,} {'row' if count == 1 else 'rows'} changed)"
