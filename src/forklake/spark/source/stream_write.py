"""Writing a stream: each batch is one snapshot, and is committed once however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from forklake.distributed import DistributedSnapshot
from forklake.errors import ReservationConsumed
from forklake.lazy.arrow import pa
from forklake.spark.source.messages import Written, begin, check_fit, manifests, write_task
from forklake.spark.source.open_table import opened
from forklake.spark.source.options import SourceOptions


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for the tasks of each batch, and another one to commit it; they share nothing.

    So tasks tell which snapshot they wrote for, and which query they belong to.
    """

    def __init__(self, options: SourceOptions, schema: StructType, overwrite: bool) -> None:
        """Nothing is reserved yet: the one that commits needs nothing."""
        with opened(options) as catalog:
            check_fit(schema, catalog.table(options.table).columns)
        self._options = options
        self._schema = schema
        self._overwrite = overwrite
        self._ds: DistributedSnapshot | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What goes to the tasks, with the snapshot that they write for."""
        if self._ds is None:
            with opened(self._options) as catalog:
                self._ds = begin(catalog, self._options, self._schema)
        return dict(self.__dict__)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        if self._ds is None:
            raise AssertionError("a writer gets to a task with the snapshot that it writes for")
        return write_task(self._ds, self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make a batch one snapshot, unless it was committed before and Spark does not know."""
        written = [message for message in messages if isinstance(message, Written)]
        if not written:
            if self._overwrite:
                with opened(self._options) as catalog:
                    catalog.table(self._options.table).delete()
            return
        ds, query = DistributedSnapshot.from_json(written[0].snapshot), written[0].query
        with opened(self._options) as catalog:
            parts = manifests(catalog, ds, self._options, written, overwrite=self._overwrite)
            catalog.commit_distributed(
                ds,
                parts,
                once=f"spark/{query}/{ds.tables[0].id}/{batchId}",
                extra={"stream": {"query": query, "batch": batchId}},
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Remove what tasks have written; a batch that was committed stays."""
        for text in {message.snapshot for message in messages if isinstance(message, Written)}:
            with opened(self._options) as catalog:
                try:
                    catalog.cancel_distributed(DistributedSnapshot.from_json(text))
                except ReservationConsumed:
                    # Spark also gives up a batch when its answer to the commit was lost.
                    return
