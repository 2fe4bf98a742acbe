"""Changes of rows in a span of snapshots, in pieces that tasks read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from forklake.data.storage.paths import S3Options
from forklake.data.storage.storage import Storage
from forklake.engine.change_feed import KIND, ROW_COLUMN, SNAPSHOT_COLUMN, feed_query
from forklake.engine.condition import naming
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import SnapshotId
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns
from forklake.scan.change_plan import ChangePlan, Place, plan_of, plan_places
from forklake.scan.scan_plan import ScanPlan, Source
from forklake.spark.jobs import engine_of
from forklake.spark.plan_splits import parts_of
from forklake.spark.source.batch_read import pieces
from forklake.spark.source.schema import ReadSchema
from forklake.spark.workers import Piece, plain_type


@dataclass(frozen=True, slots=True)
class Span:
    """What happened in some snapshots, with all that it takes to read it elsewhere."""

    data_path: str
    options: S3Options = field(repr=False)
    plan: ChangePlan
    lost: ScanPlan
    predicate: Predicate | None
    columns: Columns
    feed: bool
    """Whether all changes are told, or only rows that were added."""


def read_span(span: Span, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The changes of a span as rows."""
    engine = engine_of(span.data_path, span.options)
    found = feed_query(engine, span.plan, span.lost, span.predicate)
    selected = [KIND, SNAPSHOT_COLUMN, ROW_COLUMN] if span.feed else []
    selected += [f"CAST({quoted(c.name)} AS {plain_type(c)})" for c in _named(span)]
    listed = ", ".join(f"{value} AS v{at}" for at, value in enumerate(selected))
    where = "" if span.feed else f" WHERE {KIND} = 'insert'"
    sql = f"SELECT {listed} FROM ({found.sql}){where}"  # noqa: S608
    with naming(span.predicate):
        for batch in engine.stream(sql, found.tables):
            yield batch.rename_columns(schema.names).cast(schema)


def _named(span: Span) -> list[Column]:
    """The columns under the names that the plan knows: one may have been renamed since the stream began."""
    now = {column.id: column for column in span.plan.inserted.table.columns}
    return [now[column.id] for column in span.columns]


def spans(
    storage: Storage, source: Source, plan: ChangePlan, predicate: Predicate | None, shape: ReadSchema
) -> Iterator[Piece | Span]:
    """A plan in pieces. Only snapshots that took rows away need to be looked at as a whole."""
    mixed = mixed_snapshots(plan)
    added = [place for place in places_of(plan.inserted) if place.file.begin not in mixed]
    if shape.feed:
        yield from _feed(storage, source, added, predicate, shape)
    else:
        yield from pieces(storage, replace(plan_of(source, added), predicate=predicate), shape)
    for snapshot in sorted(mixed):
        part = _at(source, plan, snapshot)
        lost = plan_places(source, part.deleted)
        yield Span(storage.data_path, storage.s3.options, part, lost, predicate, shape.columns, shape.feed)


def _feed(
    storage: Storage, source: Source, places: Sequence[Place], predicate: Predicate | None, shape: ReadSchema
) -> Iterator[Span]:
    nothing = plan_of(source, [])
    for part in parts_of(plan_of(source, places)):
        change = ChangePlan(part, nothing, ())
        yield Span(storage.data_path, storage.s3.options, change, nothing, predicate, shape.columns, True)


def mixed_snapshots(plan: ChangePlan) -> frozenset[SnapshotId]:
    """The snapshots that updated or deleted rows."""
    dropped = {place.file.begin for place in places_of(plan.dropped)}
    return frozenset(dropped | {gone.snapshot for gone in plan.deleted})


def refuse_changes(snapshots: frozenset[SnapshotId]) -> None:
    """Say what to do where rows were changed and a stream shows only new ones."""
    if snapshots:
        raise InvalidArgument(
            f"snapshot {min(snapshots)} updated or deleted rows, and this stream shows rows that are added: "
            'set the option "changes" to skip, to pass over that, or to feed, to see every change'
        )


def places_of(plan: ScanPlan) -> list[Place]:
    """The files and inlined rows of a plan, in the order of their ids."""
    return sorted((*plan.files, *plan.rows), key=lambda place: place.file.id)


def _at(source: Source, plan: ChangePlan, snapshot: SnapshotId) -> ChangePlan:
    """What one snapshot did."""

    def of(part: ScanPlan) -> ScanPlan:
        return plan_of(source, [place for place in places_of(part) if place.file.begin == snapshot])

    deleted = tuple(gone for gone in plan.deleted if gone.snapshot == snapshot)
    return ChangePlan(of(plan.inserted), of(plan.dropped), deleted, plan.net & {snapshot})
