"""What a kind knows of an index, from its definition and the columns that its table has now. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from forklake.errors import InvalidIndex
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import Index, IndexSpec


def spec_of(index: Index, columns: Sequence[Column]) -> IndexSpec:
    """An index with the present types of its columns; `InvalidIndex` if one of them is gone."""
    known = {column.id: column for column in columns}

    def found(ids: tuple[ColumnId, ...]) -> tuple[Column, ...]:
        for number in ids:
            if number not in known:
                raise InvalidIndex(f'index "{index.name}" has a column that the table has no more: drop it')
        return tuple(known[number] for number in ids)

    return IndexSpec(index.kind, found(index.keys), found(index.include), index.params)
