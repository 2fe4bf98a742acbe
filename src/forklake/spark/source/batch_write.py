"""Writing a DataFrame into a table as one snapshot: all tasks or none."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from forklake.lazy.arrow import pa
from forklake.spark.source.messages import Written, begin, manifests, write_task
from forklake.spark.source.open_table import opened
from forklake.spark.source.options import SourceOptions


class BatchWriter(DataSourceArrowWriter):
    """Made where the write is planned; copies of it work in tasks, and one more commits."""

    def __init__(self, options: SourceOptions, schema: StructType, overwrite: bool) -> None:
        """Reserve the snapshot."""
        self._options = options
        self._overwrite = overwrite
        with opened(options) as catalog:
            self._ds = begin(catalog, options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        return write_task(self._ds, self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what all tasks wrote one snapshot."""
        written = [message for message in messages if isinstance(message, Written)]
        with opened(self._options) as catalog:
            parts = manifests(catalog, self._ds, self._options, written, overwrite=self._overwrite)
            catalog.commit_distributed(self._ds, parts)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what was written."""
        with opened(self._options) as catalog:
            catalog.cancel_distributed(self._ds)
