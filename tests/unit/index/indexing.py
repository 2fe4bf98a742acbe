"""What tests of kinds that search hand over, without a lake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from forklake.index.kind import Alive, Part, Segment
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import SegmentSummary
from tests.unit.index.segments import LocalFile as LocalFile


def segment(path: Path, facts: SegmentSummary, model: LocalFile | None = None) -> Segment:
    return Segment(LocalFile(path, facts), model)


def column(id: int, name: str, type: str = "varchar", *children: Column) -> Column:
    return Column(ColumnId(id), name, type, children=children)


def part(ordinal: int, table: pa.Table, batch: int = 7) -> Part:
    return Part(ordinal, table.to_batches(max_chunksize=batch))


def everything(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
    return pa.array([True] * len(positions))


def only(kept: set[tuple[int, int, int]]) -> Alive:
    """These count and no others; positions are asked about in order."""

    def alive(segment: int, ordinal: int, positions: pa.Array) -> pa.Array:
        asked = positions.to_pylist()
        assert asked == sorted(set(asked))
        return pa.array([(segment, ordinal, position) in kept for position in asked], pa.bool_())

    return alive


def places(table: pa.Table) -> list[tuple[int, int, int]]:
    columns: Sequence[list[int]] = [
        table.column(name).to_pylist() for name in ("segment", "ordinal", "position")
    ]
    return list(zip(*columns, strict=True))
