"""Tables of a catalog as frames of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from forklake.errors import InvalidArgument
from forklake.merging import RowsMerged
from forklake.model.ddl import ColumnSource
from forklake.spark.publish import DAY, Work, publish
from forklake.spark.read import read_plan
from forklake.spark.session import prepare
from forklake.spark.types import given_schema
from forklake.spark.write import write_frame
from forklake.store.read import Moment
from forklake.table import Table
from forklake.verbs import CatalogVerbs, Name


class SparkCatalog:
    """Reads and writes the tables of a catalog, or of a transaction, with Spark.

    The session may be any: classic or Connect, local or on a cluster. What it needs is set on it.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogVerbs, *, ttl: timedelta = DAY) -> None:
        """Work on a catalog, or inside of a transaction.

        `ttl` is how long a change may take. Files of one that was broken off go when it is over.
        """
        self.spark = prepare(spark)
        self.catalog = catalog
        self.ttl = ttl

    def __repr__(self) -> str:
        """The catalog."""
        return f"<SparkCatalog {self.catalog!r}>"

    def read(
        self,
        table: Name,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        at: Moment | None = None,
        row_ids: bool = False,
    ) -> DataFrame:
        """Rows of a table as an ordinary frame.

        `where` is a condition as `Table.scan` takes it: files that cannot meet it are never opened, and Spark
        filters what the others hold. The frame stays as it is: it shows the table as of this call.
        """
        scan = self.catalog.table(table).scan(where, columns, at=at, row_ids=row_ids)
        return read_plan(prepare(self.spark), self.catalog.workbench, scan.plan(), scan.selection)

    # ---- Writing ---

    def create_table(
        self,
        name: Name,
        columns: StructType | ColumnSource,
        *,
        partition_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        if_not_exists: bool = False,
        comment: str | None = None,
    ) -> Table:
        """Create a table with the columns of a frame's schema, or as `Catalog.create_table` does."""
        return self.catalog.create_table(
            name,
            given_schema(columns) if isinstance(columns, StructType) else columns,
            partition_by=partition_by,
            sorted_by=sorted_by,
            if_not_exists=if_not_exists,
            comment=comment,
        )

    def append(self, frame: DataFrame, table: Name) -> int:
        """Add the rows of a frame to a table, as one snapshot. Returns how many.

        Columns are found by name, and those that are not there get their defaults. Values are cast only if
        each stays what it is.
        """
        given = _checked(frame)
        return self._publish(table, "append", lambda writing: write_frame(given, writing)).inserted

    def _publish(
        self, table: Name, operation: str, work: Work, before: Callable[[], object] | None = None
    ) -> RowsMerged:
        prepare(self.spark)
        return publish(self.catalog, table, work, operation=operation, ttl=self.ttl, before=before)


def _checked(frame: object) -> DataFrame:
    if not isinstance(frame, DataFrame):
        raise InvalidArgument(
            f"rows are given as a frame of Spark, before the name of the table, not as {type(frame).__name__}"
        )
    prepare(frame.sparkSession)
    return frame
