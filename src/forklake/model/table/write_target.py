"""Where and how new files of a table are written. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from forklake.model.entities import Column
from forklake.model.options import Options
from forklake.model.table.layout import Partitioning, SortKey


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What a writer of a table has to know, in whichever process it runs."""

    folder: str
    """Where new files go, relative to the data path of the lake or absolute."""
    columns: tuple[Column, ...]
    options: Options = field(default_factory=Options)
    partitioning: Partitioning | None = None
    sort: tuple[SortKey, ...] = ()
    macros: tuple[str, ...] = ()
    """What the sort order calls, as statements that make macros in DuckDB."""

    def stays_inline(self, rows: int) -> bool:
        """Whether so many rows, or deletes of one file, stay in the metadata database."""
        return rows <= self.options.data_inlining_row_limit
