"""Reading a table as a stream: what was added after a snapshot, or every change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from forklake.api.change_feed import check_names
from forklake.api.scoped import scope_of
from forklake.engine.condition import condition_of
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.ids import SnapshotId
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import to_sql
from forklake.scan.change_plan import ChangePlan, Place, plan_changes, plan_of
from forklake.scan.scan_plan import Source, plan_scan
from forklake.spark.arrow_types import arrow_schema
from forklake.spark.features import HAS_ADMISSION, needs
from forklake.spark.source.admission import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from forklake.spark.source.batch_read import Rows
from forklake.spark.source.change_splits import (
    Span,
    mixed_snapshots,
    places_of,
    read_span,
    refuse_changes,
    spans,
)
from forklake.spark.source.offsets import Arrival, Offset, admitted, admitted_of_table
from forklake.spark.source.open_table import connected, known_in
from forklake.spark.source.options import SourceOptions
from forklake.spark.source.schema import ReadSchema
from forklake.spark.workers import Piece, read_piece

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog
    from forklake.api.lake import Lake

_TABLE = "of"
"""Where an offset says which table it is a place in: of another one it would pass over rows."""
_CATALOG = "in"
"""Where it says which catalog that is: forks have the same tables, and snapshots of their own."""


@dataclass
class Changes(InputPartition):
    """What one task reads where rows went as well."""

    span: Span


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in one process as long as a query runs; copies of it read in tasks."""

    def __init__(self, options: SourceOptions, shape: ReadSchema) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._shape = shape
        self._lake: Lake | None = None
        self._target: int | None = None
        """Where a query ends that takes only what is there."""
        self._quiet = (-1, -1)
        """A span of snapshots that have nothing for the stream."""
        limits = (options.max_files, options.max_rows, options.max_bytes)
        if sum(limit is not None for limit in limits) > 1:
            raise InvalidArgument(
                "a stream has one limit: maxFilesPerTrigger, maxRowsPerTrigger or maxBytesPerTrigger"
            )
        if any(limit is not None for limit in limits) and not HAS_ADMISSION:
            raise InvalidArgument(
                needs("a stream with maxFilesPerTrigger, maxRowsPerTrigger or maxBytesPerTrigger", "4.2")
            )
        if options.at is not None or options.row_ids:
            raise InvalidArgument(
                'a stream has no options "at" and "row_ids": use startingSnapshot, and changes=feed for ids'
            )

    def __getstate__(self) -> dict[str, Any]:
        """What goes to the tasks: they need no database."""
        return {**self.__dict__, "_lake": None}

    # ---- Where batches end ---

    def initialOffset(self) -> dict[str, Any]:
        """Always the same: the first batch may be planned again after a restart."""
        start = self._options.starting_snapshot
        if start is None:
            return self._told(Offset(begin="table"))
        if start == "latest":
            return self._told(Offset(begin="latest"))
        scope_of(self._catalog()).at(start).read()
        return self._told(Offset(start))

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options allow for one batch."""
        options = self._options
        if options.max_files is not None:
            return ReadMaxFiles(options.max_files)
        if options.max_rows is not None:
            return ReadMaxRows(options.max_rows)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Take nothing that comes from now on."""
        self._target = self._catalog().snapshot

    def reportLatestOffset(self) -> dict[str, Any]:
        """Where the table stands."""
        return self._told(Offset(self._catalog().snapshot))

    def latestOffset(
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Where the next batch ends; at the start if there is nothing."""
        if start is None or limit is None:
            # A Spark that lets nobody say how much a batch takes: it takes all, or what it was told to.
            return self.reportLatestOffset()
        offset = self._place(start)
        catalog = self._catalog()
        head = catalog.snapshot if self._target is None else self._target
        if offset.begin == "latest":
            return self._told(Offset(head))
        if offset.begin == "table" or offset.table:
            at = head if offset.begin else offset.snapshot
            # Planned without the condition, so that files are counted alike whatever is asked of them.
            files = [Arrival.of(place.file) for place in places_of(plan_scan(self._source(catalog, at)))]
            done = admitted_of_table(files, offset.files or 0, limit)
            return self._told(Offset(at, done, done is not None))
        if head <= offset.snapshot and offset.files is None:
            return dict(start)
        return self._told(self._next(catalog, offset, head, limit))

    def _told(self, offset: Offset) -> dict[str, Any]:
        return {**offset.to_dict(), _TABLE: self._shape.table, _CATALOG: self._shape.catalog}

    def _place(self, given: Mapping[str, Any]) -> Offset:
        """Where a checkpoint says that the stream is, if it was in this table."""
        if given.get(_TABLE, self._shape.table) != self._shape.table:
            raise InvalidArgument(
                f'the checkpoint is of another table than "{self._options.table}", which may have had that '
                "name before: choose another checkpoint, or the table that it was made with"
            )
        offset = Offset.read({key: value for key, value in given.items() if key not in (_TABLE, _CATALOG)})
        if given.get(_CATALOG, self._shape.catalog) != self._shape.catalog and offset.begin is None:
            self._check_history(offset)
        return offset

    def _check_history(self, offset: Offset) -> None:
        """Refuse a place that another catalog reached after this one was forked, if it was at all."""
        if all(one.id != offset.snapshot for one in self._catalog().snapshots()):
            raise InvalidArgument(
                f'the checkpoint is of another catalog than "{self._options.catalog}", which has no snapshot '
                f"{offset.snapshot}: choose another checkpoint, or the catalog that it was made with"
            )

    def _next(self, catalog: Catalog, offset: Offset, head: int, limit: ReadLimit) -> Offset:
        known, quiet = self._quiet
        after = quiet if known == offset.snapshot and offset.files is None else offset.after
        if after >= head:
            return offset
        source = self._source(catalog, head)
        found = source.reader.changed(SnapshotId(after), SnapshotId(head))
        came = [past.file for past in found.files if past.file.begin > after and past.file.newest_row is None]
        ended = {past.end for past in found.files if past.end is not None and after < past.end <= head}
        lost = {version.begin for versions in found.deletes.values() for version in versions}
        lost |= {begin for places in found.inlined.values() for _, begin in places}
        whole = frozenset(ended | {snapshot for snapshot in lost if snapshot > after})
        if not came and (not whole or self._options.changes == "skip"):
            self._quiet = (offset.snapshot, head)
            return offset
        arrivals = [Arrival.of(file) for file in sorted(came, key=lambda file: file.id)]
        return admitted(arrivals, whole, offset, head, limit)

    # ---- What batches hold ---

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """What tasks have to read between two offsets."""
        first, last = self._place(start), self._place(end)
        catalog = self._catalog()
        if first == last or first.begin == "latest":
            return []
        if first.begin == "table" or first.table:
            source = self._source(catalog, last.snapshot)
            chosen = places_of(plan_scan(source))[first.files or 0 : last.files]
            change = ChangePlan(plan_of(source, chosen), plan_of(source, []), ())
            found = self._pieces(catalog, source, change)
        else:
            found = self._between(catalog, first, last)
        return [Rows(part) if isinstance(part, Piece) else Changes(part) for part in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one piece, in a task."""
        schema = arrow_schema(self._shape.schema)
        match partition:
            case Rows():
                return read_piece(partition.piece, schema)
            case Changes():
                return read_span(partition.span, schema)
            case _:
                return iter(())

    def stop(self) -> None:
        """Let go of the lake."""
        if self._lake is not None:
            self._lake.close()
            self._lake = None

    def _between(self, catalog: Catalog, first: Offset, last: Offset) -> list[Piece | Span]:
        # Refused if that snapshot is not there any more: what it said of later ones may be gone as well.
        scope_of(catalog).at(first.snapshot).read()
        source = self._source(catalog, last.snapshot)
        storage = scope_of(catalog).context.storage
        after = SnapshotId(first.after)
        plan = plan_changes(source, after, SnapshotId(last.snapshot), storage)
        if self._options.changes == "fail":
            refuse_changes(mixed_snapshots(plan))
        chosen = _cut(places_of(plan.inserted), first, last)
        plan = replace(plan, inserted=plan_of(source, chosen))
        return self._pieces(catalog, source, plan)

    def _pieces(self, catalog: Catalog, source: Source, plan: ChangePlan) -> list[Piece | Span]:
        context = scope_of(catalog).context
        predicate = condition_of(context.engine, self._options.where, source.table.columns)
        return list(spans(context.storage, source, plan, predicate, self._shape))

    def _source(self, catalog: Catalog, at: int) -> Source:
        draft = scope_of(catalog).at(at).read()
        source = draft.source(draft.table(self._shape.table))
        check_names(source)
        check_same(self._shape.columns, source.table.columns)
        return source

    def _catalog(self) -> Catalog:
        if self._lake is None:
            self._lake = connected(self._options)
        return known_in(self._lake, self._options, self._shape.catalog)


def _cut(places: Sequence[Place], first: Offset, last: Offset) -> list[Place]:
    """What was added between two offsets, of which either may lie within a snapshot."""
    begun = [place.file.id for place in places if place.file.begin == first.snapshot][: first.files]
    left = [place.file.id for place in places if place.file.begin == last.snapshot]
    left = [] if last.files is None else left[last.files :]
    # Without files the whole snapshot is done, and its places are not among these.
    done = frozenset((*(begun if first.files is not None else ()), *left))
    return [place for place in places if place.file.id not in done]


def check_same(before: Columns, now: Columns) -> None:
    """Refuse to go on where a column of the stream is gone, or is of another type."""
    known = {column.id: column for column in now}
    for column in before:
        found = known.get(column.id)
        if found is None or found.data_type != column.data_type:
            change = "was dropped" if found is None else f"is {to_sql(found.data_type)} now"
            raise InvalidArgument(
                f'column "{column.name}" {change}: load the stream again and start its query, to go on with '
                "the table as it is"
            )
