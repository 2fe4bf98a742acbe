"""Data files as parts of segments: the columns of an index, of all rows in their order, deleted ones too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from forklake.engine.local import Engine
from forklake.engine.plain_files import PlainFile, plain_file
from forklake.engine.scan_sql import POSITION, Relation, Wanted, relation
from forklake.engine.select import ALIAS
from forklake.engine.sql_text import shown, shown_as
from forklake.errors import StorageError
from forklake.index.kind import Part
from forklake.lazy.arrow import pa
from forklake.lazy.numpy import np
from forklake.model.names import quoted
from forklake.model.table.columns import Columns
from forklake.model.types.arrow import to_arrow
from forklake.scan.scan_plan import ScanFile, ScanPlan

SAMPLE_ROWS = 131_072
"""How many rows a model is trained with at most."""


def parts(engine: Engine, plan: ScanPlan, columns: Columns) -> Iterator[Part]:
    """The files of a plan, numbered as they come. Rows are read as they are asked for, file by file."""
    for ordinal, file in enumerate(plan.files):
        yield Part(ordinal, _rows(engine, _whole(plan, [file]), columns))


def sample(engine: Engine, plan: ScanPlan, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Some rows of all files of a plan, the same ones each time; all of them if there are few."""
    whole = _whole(plan, plan.files)
    source = relation(whole, engine.storage, Wanted(columns))
    some = ""
    if sum(file.file.record_count for file in plan.files) > SAMPLE_ROWS:
        some = f" USING SAMPLE reservoir({SAMPLE_ROWS} ROWS) REPEATABLE (42)"
    sql = f"SELECT {_selected(columns)} FROM ({source.sql}) AS {ALIAS}{some}"
    for batch in engine.stream(sql, source.tables, whole):
        yield _named(batch, columns)


def _whole(plan: ScanPlan, files: tuple[ScanFile, ...] | list[ScanFile]) -> ScanPlan:
    """Files without what was deleted from them: a segment holds for every snapshot that sees them."""
    kept = tuple(ScanFile(replace(file.file, deletes=None)) for file in files)
    return replace(plan, files=kept, rows=(), predicate=None)


def _rows(engine: Engine, plan: ScanPlan, columns: Columns) -> Iterator[pa.RecordBatch]:
    file, count = plan.files[0].file, 0
    engine.verify(plan)
    with plain_file(engine.storage, file, columns) as plain:
        for batch in _queried(engine, plan, columns) if plain is None else _read(plain, columns):
            count += batch.num_rows
            yield batch
    if count != file.record_count:
        raise StorageError(
            f"{file.path} has {count} rows, and {file.record_count} were committed: restore it"
        )


def _read(plain: PlainFile, columns: Columns) -> Iterator[pa.RecordBatch]:
    for group in range(plain.parquet.metadata.num_row_groups):
        rows = plain.read(group).select([plain.names[str(column.id)] for column in columns])
        yield from rows.rename_columns([str(column.id) for column in columns]).to_batches()


def _queried(engine: Engine, plan: ScanPlan, columns: Columns) -> Iterator[pa.RecordBatch]:
    source = relation(plan, engine.storage, Wanted(columns, place=True))
    count = 0
    for batch in engine.stream(_in_order(source, columns), source.tables, plan):
        positions = batch.column(len(columns)).to_numpy()
        if not np.array_equal(positions, np.arange(count, count + batch.num_rows)):
            path = plan.files[0].file.path
            raise StorageError(f"rows of {path} did not come in the order of the file: run it again")
        count += batch.num_rows
        yield _named(batch, columns)


def _in_order(source: Relation, columns: Columns) -> str:
    # One file is read from its beginning to its end; a join with what its path says need not keep that.
    order = f" ORDER BY {POSITION}" if source.tables else ""
    return f"SELECT {_selected(columns)}, {POSITION} FROM ({source.sql}) AS {ALIAS}{order}"


def _selected(columns: Columns) -> str:
    return ", ".join(
        f"{shown(quoted(column.name), column.data_type)} AS {quoted(column.name)}" for column in columns
    )


def _named(batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """The columns of a result in their types, named by their ids."""
    fields = [pa.field(str(column.id), to_arrow(shown_as(column.data_type))) for column in columns]
    arrays = [batch.column(at) for at in range(len(columns))]
    return pa.RecordBatch.from_arrays(arrays, names=[one.name for one in fields]).cast(pa.schema(fields))
