"""What Spark asks for by the name of the format; everything else is made here when it is needed."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from forklake.errors import InvalidArgument
from forklake.lazy import LazyModule
from forklake.spark.features import HAS_STREAM_WRITER, needs
from forklake.spark.source.options import SourceOptions
from forklake.spark.source.schema import ReadSchema, shape_of

if TYPE_CHECKING:
    from forklake.spark.source import batch_read, batch_write, stream_read, stream_write
else:
    # Spark makes a source in a process of its own, for one of these.
    batch_read = LazyModule("forklake.spark.source.batch_read")
    batch_write = LazyModule("forklake.spark.source.batch_write")
    stream_read = LazyModule("forklake.spark.source.stream_read")
    stream_write = LazyModule("forklake.spark.source.stream_write")


class ForklakeDataSource(DataSource):
    """The data source `spark.read.format("forklake")`, also for `write`, `readStream` and `writeStream`.

    `session()` registers it; on other sessions call `spark.dataSource.register(ForklakeDataSource)`.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Check the options; nothing is opened yet."""
        super().__init__(options)
        self._given = SourceOptions.parse(options)
        self._shape: ReadSchema | None = None

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "forklake"

    def schema(self) -> StructType:
        """The columns of the table, or those that were chosen.

        A DataFrame shows the table as it is now: Spark keeps this object, and with it the snapshot.
        """
        self._shape = shape_of(self._given)
        return self._shape.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads rows."""
        if self._given.changes != "fail" or self._given.starting_snapshot is not None:
            raise InvalidArgument("changes and startingSnapshot are options of a stream: use readStream")
        return batch_read.BatchReader(self._given, self._found(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes a DataFrame."""
        return batch_write.BatchWriter(self._given, schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """What reads a stream."""
        return stream_read.StreamReader(self._given, self._found(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """What writes a stream."""
        if not HAS_STREAM_WRITER:
            raise InvalidArgument(
                needs('writeStream with the format "forklake"', "4.1")
                + ": use foreachBatch, and SparkCatalog.append in it"
            )
        return stream_write.StreamWriter(self._given, schema, overwrite)

    def _found(self, schema: StructType) -> ReadSchema:
        shape = self._shape or shape_of(self._given)
        return shape.cut(schema)
