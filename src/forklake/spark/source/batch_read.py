"""Reading a table as it was at one snapshot: planned once, read by many tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from forklake.data.storage import Storage
from forklake.scan.plan import ScanPlan
from forklake.spark.parts import parts_of
from forklake.spark.source.filters import condition_of
from forklake.spark.source.opened import opened
from forklake.spark.source.options import SourceOptions
from forklake.spark.source.shape import Shape
from forklake.spark.workers import Piece, read_piece


@dataclass
class Rows(InputPartition):
    """What one task reads."""

    piece: Piece


class BatchReader(DataSourceReader):
    """Rows of a table at one snapshot."""

    def __init__(self, options: SourceOptions, shape: Shape) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._shape = shape
        self._conditions = [] if options.where is None else [f"({options.where})"]

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what means the same here; files that cannot hold such rows are never opened."""
        for filter in filters:
            said = condition_of(filter, self._shape.columns)
            if said is None:
                yield filter
            else:
                self._conditions.append(said)

    def partitions(self) -> Sequence[InputPartition]:
        """The planned files, in groups of about the same size."""
        where = " AND ".join(self._conditions) or None
        with opened(self._options) as catalog:
            table = catalog.at(self._shape.at).table(self._options.table)
            return [
                Rows(piece)
                for piece in pieces(catalog.workbench.storage, table.scan(where).plan(), self._shape)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group, in a task."""
        if not isinstance(partition, Rows):
            # Spark asks even where there is nothing to read.
            return iter(())
        return read_piece(partition.piece, to_arrow_schema(self._shape.schema, timezone="UTC"))


def pieces(storage: Storage, plan: ScanPlan, shape: Shape) -> Iterator[Piece]:
    """A plan in pieces for tasks."""
    for part in parts_of(plan):
        yield Piece(
            storage.data_path, storage.s3.options, part, shape.columns, (), shape.row_ids, place=False
        )
