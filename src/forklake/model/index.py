"""Indexes as values: definitions, what a segment covers, how far an index answers a condition. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from forklake.display import Shown
from forklake.model.entities import Column, Origin
from forklake.model.ids import CatalogId, ColumnId, DataFileId, IndexFileId, IndexId, SnapshotId, TableId

Maintenance = Literal["commit", "later"]
"""When segments of new files are built: in the commit that adds the files, or by `build_indexes`."""

Parameter: TypeAlias = "bool | int | float | str | None"
Parameters: TypeAlias = "Mapping[str, Parameter]"

FileRole = Literal["segment", "model"]
"""A segment finds rows; a model is what segments of one index were trained with and share."""


INDEX_PREFIX = "index-"
"""What the names of files of indexes begin with: by its name, a file is known as one that may be removed."""


def index_file_name(stem: str, extension: str) -> str:
    """What a new file of an index is called; `stem` is a UUID in hex and a number, as of other files."""
    return f"{INDEX_PREFIX}{stem}.{extension}"


GONE = DataFileId(-(2**63))
"""In place of a data file that was gone before its segment was committed: no file has this id."""


@dataclass(frozen=True, slots=True)
class Index:
    """The definition of an index as of one snapshot."""

    id: IndexId
    uuid: str
    table_id: TableId
    name: str
    kind: str
    keys: tuple[ColumnId, ...]
    include: tuple[ColumnId, ...] = ()
    """Columns whose values segments hold beside the keys, so that some queries read no data file."""
    maintain: Maintenance = "commit"
    params: Parameters = field(default_factory=dict[str, Parameter])
    """As its kind completed and checked them."""
    origin: Origin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IndexInfo(Shown):
    """An index in a listing."""

    schema: str
    table: str
    name: str
    kind: str
    columns: tuple[str, ...]
    include: tuple[str, ...]
    """Columns whose values it holds beside those that it is of."""
    maintain: Maintenance
    params: dict[str, Parameter]
    id: IndexId


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What a kind knows of an index: columns with their present types, and parameters. Ids never change."""

    kind: str
    keys: tuple[Column, ...]
    include: tuple[Column, ...] = ()
    params: Parameters = field(default_factory=dict[str, Parameter])


class Support(Enum):
    """How far an index answers a condition."""

    NO = "no"
    INEXACT = "inexact"
    """It finds every row that matches, and maybe others."""
    EXACT = "exact"
    """It finds the rows that match and no others."""


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """What building a segment tells of it, beside the bytes themselves."""

    entry_count: int
    format: str
    format_version: int
    min_key: str | None = None
    """The smallest of its keys as order-preserving text; None where its kind has no order, or no entry."""
    max_key: str | None = None
    footer_size: int | None = None
    summary: str | None = None
    """JSON that the kind alone understands, kept in the metadata: what tells that a segment has no hit."""


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """An index file that stands in storage and belongs to nobody yet."""

    path: str
    file_size_bytes: int
    facts: SegmentSummary
    covers: tuple[DataFileId, ...]
    """The data files whose rows it has, by their ordinal in its entries. Files that the same commit adds have
    their provisional ids, which are below zero."""
    level: int = 0
    role: FileRole = "segment"
    model: IndexFileId | None = None
    path_is_relative: bool = True


@dataclass(frozen=True, slots=True)
class IndexFile:
    """An index file as one catalog sees it."""

    id: IndexFileId
    index_id: IndexId
    source: CatalogId
    begin: SnapshotId
    path: str
    path_is_relative: bool
    file_size_bytes: int
    facts: SegmentSummary
    covers: tuple[DataFileId, ...]
    """The data files whose rows it has, by their ordinal in its entries."""
    level: int = 0
    role: FileRole = "segment"
    model: IndexFileId | None = None
