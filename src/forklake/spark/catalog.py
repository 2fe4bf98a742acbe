"""Tables of a catalog as frames of Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from forklake.commit.draft import Draft
from forklake.commit.output import output_for
from forklake.data.conform import misfit_of
from forklake.errors import CommitConflict, InvalidArgument
from forklake.rows import Arrived
from forklake.spark.read import read_plan
from forklake.spark.session import prepare
from forklake.spark.write import write_frame
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

    def append(self, table: Name, frame: DataFrame) -> int:
        """Add the rows of a frame to a table, as one snapshot. Returns how many.

        Columns are found by name, and those that are not there get their defaults. Values are cast only if
        each stays what it is.
        """
        if not isinstance(frame, DataFrame):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"rows are given as a frame of Spark, not as {type(frame).__name__}")
        prepare(frame.sparkSession)
        workbench = self.catalog.workbench
        number = self.catalog.table(table).id
        written: list[str] = []
        before = self.catalog.read()
        known = before.table(number)
        output = output_for(before, known, workbench.storage, workbench.options, written)
        arrived = Arrived(None, write_frame(frame, output), known.columns)

        def change(draft: Draft) -> int:
            now = draft.table(number)
            misfit = misfit_of(arrived.columns, now.columns) if arrived.count else None
            if misfit is not None:
                raise CommitConflict(f"somebody changed the table while its new rows were written: {misfit}")
            arrived.check(now)
            arrived.stage(draft, now)
            return arrived.count

        return self.catalog.apply(change, written=written, present=True)[0]
