"""Tables of a catalog as frames of Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from forklake.spark.read import read_plan
from forklake.spark.session import prepare
from forklake.store.read import Moment
from forklake.verbs import CatalogVerbs, Name


class SparkCatalog:
    """Reads and writes the tables of a catalog, or of a transaction, with Spark.

    The session may be any: classic or Connect, local or on a cluster. What it needs is set on it.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogVerbs) -> None:
        """Work on a catalog, or inside of a transaction."""
        self.spark = prepare(spark)
        self.catalog = catalog

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
