"""Rows that a change computed: new ones, and those that take the place of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from forklake.api.arrived_rows import Arrived, chained, take_in
from forklake.commit.draft import Draft
from forklake.commit.write_target import writer_for
from forklake.context.lake_context import LakeContext
from forklake.data.input.arrow_streams import stream_of
from forklake.data.input.batches import rows_of
from forklake.engine.dml import Found
from forklake.lazy.arrow import pa
from forklake.model.entities import Table


def take_rows(
    context: LakeContext,
    draft: Draft,
    table: Table,
    batches: Iterator[pa.RecordBatch],
    seen: Callable[[pa.RecordBatch], None] | None = None,
) -> Arrived:
    """New rows with the columns that they have, and defaults for the others; `seen` is shown all of them."""
    given = stream_of(batches)
    if given is None:
        return Arrived()
    reader = rows_of(given, table.columns, evaluate=context.engine.evaluate)
    writer = writer_for(draft, table, context.storage, context.options, draft.written)
    return take_in(reader if seen is None else _shown_to(seen, reader), reader.schema, writer)


def _shown_to(
    seen: Callable[[pa.RecordBatch], None], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        seen(batch)
        yield batch


def replace_rows(
    context: LakeContext,
    draft: Draft,
    table: Table,
    batches: Iterator[pa.RecordBatch],
    found: Callable[[], Found],
) -> int:
    """Write rows that take the place of others, with the ids that these had."""
    writer = writer_for(draft, table, context.storage, context.options, draft.written)
    first = next(batches, None)
    if first is None:
        return 0
    arrived = take_in(chained([first], batches), first.schema, writer)
    # Rows of the transaction itself are among those that go: they leave before the new ones come.
    draft.staged(table).delete(found())
    arrived.stage(draft, table)
    return arrived.count
