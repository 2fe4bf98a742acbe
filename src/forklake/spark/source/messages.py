"""What tasks tell of what they have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from forklake.data.defaults import check_optional
from forklake.data.input.lossless import match_names
from forklake.distributed import DistributedSnapshot, base_files, write_part
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.manifest import Manifest
from forklake.model.table.columns import Columns
from forklake.spark.jobs import task_number
from forklake.spark.source.options import SourceOptions
from forklake.spark.task_results import DAY

if TYPE_CHECKING:
    from forklake.api.catalog import Catalog

_QUERY = "sql.streaming.queryId"
_OVERWRITE = "overwrite"
_READING = ("at", "columns", "where", "starting_snapshot", "max_files", "max_rows", "max_bytes")


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written, for which snapshot, and in which query if it is a stream."""

    snapshot: str
    manifest: str
    query: str | None


def begin(catalog: Catalog, options: SourceOptions, schema: StructType) -> DistributedSnapshot:
    """Reserve a snapshot for rows that fit, as far as their names tell."""
    for name in _READING:
        if getattr(options, name) is not None:
            raise InvalidArgument(f'the option "{name}" is for reading: leave it out')
    check_fit(schema, catalog.table(options.table).columns)
    return catalog.begin_distributed([options.table], ttl=DAY)


def check_fit(schema: StructType, columns: Columns) -> None:
    """Refuse what no task could write; values are looked at when they come."""
    given = match_names(schema.names, columns)
    for column in columns:
        if column.name not in given:
            check_optional(column)


def write_task(ds: DistributedSnapshot, options: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Write the rows of a task as a part that is named after it: tried again, it adds nothing."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY)
    manifest = write_part(ds, options.table, batches, part=task_number(), storage_options=options.storage)
    return Written(ds.to_json(), manifest.to_json(), query)


def manifests(
    catalog: Catalog,
    ds: DistributedSnapshot,
    options: SourceOptions,
    messages: Iterable[Written],
    *,
    overwrite: bool,
) -> list[Manifest]:
    """All parts of a snapshot, with one that removes what was there."""
    found = [Manifest.from_json(message.manifest) for message in messages]
    if overwrite:
        plan = catalog.at(ds.parent_snapshot_id).table(options.table).scan().plan()
        there = [base.id for base in base_files(plan)]
        found.append(
            write_part(ds, options.table, remove=there, part=_OVERWRITE, storage_options=options.storage)
        )
    return found
