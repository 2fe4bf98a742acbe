"""Whether indexes have what the data files of their table have: each row once, and no other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from forklake.engine.index_parts import SAMPLE_ROWS, parts, sample
from forklake.model.index import GONE, IndexFile
from forklake.scan.whole_files import plan_whole_files, visible_files

Row = dict[str, Any]


def rows_of_files(table: forklake.Table, *names: str) -> list[list[Row]]:
    """The rows of each data file, as segments are built of them."""
    draft = table._scope.read()
    definition = draft.table(table.id)
    columns = tuple(column for name in names for column in definition.columns if column.name == name)
    source = draft.source(definition)
    plan, engine = plan_whole_files(source, visible_files(source)), table._scope.context.engine

    def named(batch: pa.RecordBatch) -> list[Row]:
        assert batch.schema.names == [str(column.id) for column in columns]
        return [dict(zip(names, row.values(), strict=True)) for row in batch.to_pylist()]

    found: list[list[Row]] = []
    for ordinal, part in enumerate(parts(engine, plan, columns)):
        assert part.ordinal == ordinal
        found.append([row for batch in part.rows for row in named(batch)])
    every = [row for batch in sample(engine, plan, columns) for row in named(batch)]
    whole = Counter(str(row) for rows in found for row in rows)
    assert len(every) == min(whole.total(), SAMPLE_ROWS)
    assert Counter(map(str, every)) <= whole
    return found


def segments_of(table: forklake.Table, index: str) -> list[IndexFile]:
    """The live segments of an index."""
    draft = table._scope.read()
    definition = draft.table(table.id)
    number = draft.index_named(definition, index).id
    files = draft.index_files(definition)
    return [file for file in files if file.index_id == number and file.role == "segment"]


def uncovered_files(table: forklake.Table, index: str) -> int:
    """How many data files have no segment. None has two."""
    draft = table._scope.read()
    files = [file.id for file in visible_files(draft.source(draft.table(table.id)))]
    counts = Counter(file for segment in segments_of(table, index) for file in segment.covers)
    assert {file: count for file, count in counts.items() if count > 1 and file in files} == {}
    return sum(file not in counts for file in files)


def check_entries(table: forklake.Table, index: str, key: str, include: str) -> None:
    """Compare the entries of an index of the kind `hash`, which includes a column, with the rows of files."""
    draft = table._scope.read()
    files = [file.id for file in visible_files(draft.source(draft.table(table.id)))]
    wanted = {
        (file, position): (row[key], row[include])
        for file, rows in zip(files, rows_of_files(table, key, include), strict=True)
        for position, row in enumerate(rows)
        if row[key] is not None
    }
    found: Counter[object] = Counter()
    for segment in segments_of(table, index):
        address = table._scope.context.storage.address(segment.path, segment.path_is_relative)
        entries = pq.read_table(address)
        assert entries.num_rows == segment.facts.entry_count
        for _, ordinal, position, *values in zip(*entries.to_pydict().values(), strict=True):
            file = segment.covers[ordinal]
            assert file != GONE
            if file in files:
                found[(file, position), tuple(values)] += 1
    assert found == Counter(wanted.items())
