"""Segments of indexes for tests: built of chosen data files with the kind itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

import forklake
from forklake.commit.draft import Draft
from forklake.commit.write_target import folder_of
from forklake.engine.scan_sql import POSITION, Wanted, relation
from forklake.index.kind import Part
from forklake.index.registry import kind_of
from forklake.index.specs import spec_of
from forklake.model.entities import Column
from forklake.model.ids import DataFileId
from forklake.model.index import WrittenSegment, index_file_name
from forklake.model.table.files import DataFile
from forklake.scan.change_plan import plan_of
from forklake.scan.scan_plan import ScanFile, Source


def build_segment(table: forklake.Table, index: str, files: Sequence[int] | None = None) -> str:
    """Commit a segment of some data files of a table, or of all; gives its path."""

    def change(draft: Draft) -> str:
        return stage_segment(table, draft, index, files)

    return table._scope.apply(change)[0]


def stage_segment(table: forklake.Table, draft: Draft, index: str, files: Sequence[int] | None = None) -> str:
    """Stage a segment of some data files; those of an open transaction may be among them."""
    definition = draft.table(table.id)
    source = draft.source(definition)
    known = [*source.reader.files(), *(place.file for place in source.uncommitted.files)]
    chosen = [file for file in known if files is None or file.id in files]
    found = draft.index_named(definition, index)
    kind, spec = kind_of(found.kind), spec_of(found, definition.columns)
    parts = [
        Part(at, _rows(table, source, file, (*spec.keys, *spec.include))) for at, file in enumerate(chosen)
    ]
    storage = table._scope.context.storage
    path = folder_of(draft.head, definition) + index_file_name(f"{uuid4().hex}-0", found.kind)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "segment"
        facts = kind.build(spec, parts, out)
        data = out.read_bytes()
    with storage.open_output(path) as file:
        file.write(data)
    draft.written.append(path)
    covers = tuple(DataFileId(file.id) for file in chosen)
    draft.add_index_file(found, WrittenSegment(path, len(data), facts, covers))
    return path


def _rows(
    table: forklake.Table, source: Source, file: DataFile, columns: Iterable[Column]
) -> Iterator[pa.RecordBatch]:
    engine = table._scope.context.engine
    wanted = tuple(columns)
    plan = plan_of(source, [ScanFile(file)])
    found = relation(plan, engine.storage, Wanted(wanted, place=True))
    shown = ", ".join(f'"{column.name}" AS "{column.id}"' for column in wanted)
    sql = f"SELECT {shown} FROM ({found.sql}) ORDER BY {POSITION}"
    yield from engine.table(sql, found.tables, plan).to_batches()
