"""Reading a table as it was at one snapshot: planned once, read by many tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import DataSourceReader, InputPartition

from forklake.api.scoped import scope_of
from forklake.data.storage.storage import Storage
from forklake.lazy.arrow import pa
from forklake.scan.scan_plan import ScanPlan
from forklake.spark.arrow_types import arrow_schema
from forklake.spark.plan_splits import parts_of
from forklake.spark.source.open_table import opened
from forklake.spark.source.options import SourceOptions
from forklake.spark.source.schema import ReadSchema
from forklake.spark.workers import Piece, read_piece


@dataclass
class Rows(InputPartition):
    """What one task reads."""

    piece: Piece


class BatchReader(DataSourceReader):
    """Rows of a table at one snapshot.

    There is no `pushFilters`: Spark 4.3 keeps the plan of the first use of a DataFrame for all later ones, so
    what one use had filtered would be missing from the others. Spark filters the rows itself.
    """

    def __init__(self, options: SourceOptions, shape: ReadSchema) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._shape = shape

    def partitions(self) -> Sequence[InputPartition]:
        """The planned files, in groups of about the same size."""
        with opened(self._options, self._shape.catalog) as catalog:
            table = catalog.at(self._shape.at).table(self._options.table)
            plan = table.scan(self._options.where).plan()
            return [Rows(piece) for piece in pieces(scope_of(catalog).context.storage, plan, self._shape)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group, in a task."""
        if not isinstance(partition, Rows):
            # Spark asks even where there is nothing to read.
            return iter(())
        return read_piece(partition.piece, arrow_schema(self._shape.schema))


def pieces(storage: Storage, plan: ScanPlan, shape: ReadSchema) -> Iterator[Piece]:
    """A plan in pieces for tasks."""
    for part in parts_of(plan):
        yield Piece(
            storage.data_path, storage.s3.options, part, shape.columns, (), shape.row_ids, place=False
        )
