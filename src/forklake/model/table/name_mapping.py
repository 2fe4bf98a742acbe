"""How columns are found in files that carry no field ids. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from forklake.model.ids import ColumnId, MappingId


@dataclass(frozen=True, slots=True)
class MappedName:
    """A column or nested field of a table, and the name that it has in the files."""

    column_id: ColumnId
    source_name: str
    parent: ColumnId | None = None
    """The column that it is nested in, by the id in the table; not read back from the metadata."""
    is_partition: bool = False
    """Whether the value stands in the path of the file, as in `region=eu/`, and not inside it."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The names that one set of imported files has for the columns of a table."""

    id: MappingId
    names: tuple[MappedName, ...]
    kind: str = "map_by_name"
