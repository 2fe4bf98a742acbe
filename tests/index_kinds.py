"""A kind of index for tests of what all kinds have in common: it finds nothing and has files all the same."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import forklake
from forklake.commit.draft import Draft
from forklake.commit.write_target import folder_of
from forklake.errors import InvalidIndex
from forklake.index.coverage import MOST_ROWS
from forklake.index.kind import Part
from forklake.model.ids import DataFileId, IndexFileId
from forklake.model.index import (
    IndexFile,
    IndexSpec,
    Maintenance,
    Parameters,
    SegmentSummary,
    Support,
    WrittenSegment,
    index_file_name,
)
from forklake.model.sql.predicate_tree import Node


class Shelf:
    """Takes columns without fields, and the parameter `height`."""

    name = "shelf"
    maintain: Maintenance = "later"
    most_rows = MOST_ROWS

    def check(self, spec: IndexSpec) -> Parameters:
        for column in spec.keys:
            if column.children:
                raise InvalidIndex(f'a shelf cannot hold "{column.name}": it is a {column.type}')
        unknown = spec.params.keys() - {"height"}
        if unknown:
            raise InvalidIndex(f"a shelf has no {min(unknown)}")
        return {"height": 3, **spec.params}

    def supports(self, spec: IndexSpec, node: Node) -> Support:
        return Support.NO

    def train(self, *_: object) -> None:
        return None

    def build(self, spec: IndexSpec, parts: Iterable[Part], out: Path, model: object) -> SegmentSummary:
        rows = sum(batch.num_rows for part in parts for batch in part.rows)
        out.write_bytes(b"books")
        return SegmentSummary(rows, "shelf", 1)


def written(
    table: forklake.Table, draft: Draft, name: str, covers: Iterable[int], level: int = 0
) -> WrittenSegment:
    """A segment that stands in storage."""
    file_name = index_file_name(f"{uuid4().hex}-{name}-0", "shelf")
    path = folder_of(draft.head, draft.table(table.id)) + file_name
    with table._scope.context.storage.open_output(path) as file:
        file.write(b"books")
    draft.written.append(path)
    facts = SegmentSummary(5, "shelf", 1, "a", "b", 2, '{"books": 5}')
    return WrittenSegment(path, 5, facts, tuple(map(DataFileId, covers)), level)


def build(
    table: forklake.Table,
    index: str,
    name: str,
    covers: Iterable[int] | None = None,
    replaces: Iterable[IndexFileId] = (),
) -> None:
    """Commit a segment of some files of a table, or of all."""

    def change(draft: Draft) -> None:
        definition = draft.table(table.id)
        files = [file.id for file in draft.source(definition).reader.files()] if covers is None else covers
        draft.add_index_file(draft.index_named(definition, index), written(table, draft, name, files))
        draft.replace_index_files(definition, replaces)

    table._scope.apply(change)


def segments(table: forklake.Table) -> dict[str, IndexFile]:
    """The segments of the indexes of a table by their names."""
    draft = table._scope.read()
    files = draft.index_files(draft.table(table.id))
    return {name_in(file.path): file for file in files}


def name_in(path: str) -> str:
    """The name of a segment, of its path."""
    return path.split("-")[-2]


def data_files(table: forklake.Table) -> list[int]:
    """The ids of the data files of a table."""
    draft = table._scope.read()
    return [file.id for file in draft.source(draft.table(table.id)).reader.files()]
