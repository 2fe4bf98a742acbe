"""Rows that a change takes in once: few are kept in memory, many are written to files as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forklake.commit.draft import Draft
from forklake.commit.write_target import writer_for
from forklake.context.lake_context import LakeContext
from forklake.data.conform import conform
from forklake.data.input.arrow_streams import Rows
from forklake.data.input.batches import rows_of
from forklake.data.input.rows import Given
from forklake.data.parquet.table_writer import TableWriter
from forklake.errors import InvalidArgument, NullNotAllowed
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.progress import ROWS_AT_ONCE, OnProgress, Steps
from forklake.model.table.columns import Columns
from forklake.model.table.files import WrittenFile


@dataclass(slots=True)
class Arrived:
    """Rows that were taken in once, whatever becomes of the transaction: few in memory, many in files."""

    rows: pa.Table | None = None
    files: list[WrittenFile] = field(default_factory=list[WrittenFile])
    columns: Columns = ()
    """Those of the table when the rows came."""

    @property
    def count(self) -> int:
        """How many rows came."""
        small = 0 if self.rows is None else self.rows.num_rows
        return small + sum(file.record_count for file in self.files)

    def stage(self, draft: Draft, table: Table) -> None:
        """Make them rows of the table."""
        staged = draft.staged(table)
        if self.rows is not None:
            if staged.buffer is not None:
                staged.buffer = conform(staged.buffer, table.columns)
            staged.add_rows(conform(self.rows, table.columns))
        for file in self.files:
            staged.add_file(file)

    def check(self, table: Table) -> None:
        """Somebody may have made a column NOT NULL since the rows came in."""
        required = {column.id: column.name for column in table.columns if not column.nullable}
        nulls = {
            stats.column_id
            for file in self.files
            for stats in file.stats
            if stats.null_count != 0 and stats.column_id in required
        }
        if self.rows is not None:
            rows = conform(self.rows, table.columns)
            nulls |= {c.id for at, c in enumerate(table.columns) if rows.column(at).null_count}
        for column in nulls & required.keys():
            raise NullNotAllowed(
                f'column "{required[column]}" is NOT NULL, and there are rows where it is NULL'
            )


def take_in(batches: Iterable[pa.RecordBatch], schema: pa.Schema, writer: TableWriter) -> Arrived:
    """Keep a few rows in memory, and write more into files as they come."""
    stream = iter(batches)
    kept: list[pa.RecordBatch] = []
    count = 0
    for batch in stream:
        kept.append(batch)
        count += batch.num_rows
        if not writer.target.stays_inline(count):
            rest = pa.RecordBatchReader.from_batches(schema, chained(kept, stream))
            return Arrived(None, writer.write(rest), writer.target.columns)
    if not count:
        return Arrived()
    return Arrived(pa.Table.from_batches(kept, schema), columns=writer.target.columns)


class FirstRows:
    """The rows that a table is created with: read once, and staged as often as the change is tried."""

    def __init__(self, context: LakeContext, data: Rows | None, progress: OnProgress | None = None) -> None:
        """Nothing is read yet; refused if there are only columns."""
        if data is None:
            raise InvalidArgument("append=True needs rows to append: these are only columns")
        self._context = context
        self._given = Given(data)
        self._progress = progress
        self._arrived: Arrived | None = None
        self.written: list[str] = []
        """The files that they were written to."""

    @property
    def lasts(self) -> bool:
        """Whether the rows are surely the same when they are read a second time."""
        return self._given.lasts

    def stage(self, draft: Draft, table: Table) -> None:
        """Make them rows of a new table."""
        if self._arrived is None:
            context = self._context
            writer = writer_for(draft, table, context.storage, context.options, self.written)

            def taken(data: Rows) -> Arrived:
                reader = rows_of(data, table.columns, evaluate=context.engine.evaluate)
                total = self._given.count
                counted = counted_rows(reader, self._progress, "append to", draft, table, total)
                return take_in(counted, reader.schema, writer)

            self._arrived = self._given.read(taken)
        self._arrived.stage(draft, table)


def counted_rows(
    batches: Iterable[pa.RecordBatch],
    progress: OnProgress | None,
    verb: str,
    draft: Draft,
    table: Table,
    total: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches as they are, while their rows are counted for whoever wants to know."""
    if progress is None:
        return iter(batches)
    return row_steps(progress, verb, draft, table, total).over(batches, lambda batch: batch.num_rows)


def row_steps(
    progress: OnProgress | None, verb: str, draft: Draft, table: Table, total: int | None = None
) -> Steps:
    """The progress of a verb on a table."""
    # The name is looked up only for somebody who sees it.
    what = "" if progress is None else f"{verb} {draft.name_of(table)}"
    return Steps(progress, what, "rows", total, every=ROWS_AT_ONCE)


def chained(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first batches, which are let go, and then the others."""
    yield from first
    first.clear()
    yield from rest
