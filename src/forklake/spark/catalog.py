"""Tables of a catalog as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from forklake.api.assignments import Assignments
from forklake.api.catalog import Catalog
from forklake.api.handle import Handle
from forklake.api.maintenance import table_first
from forklake.api.rows import check_assignments
from forklake.api.scoped import Name, scope_of
from forklake.api.search import Several
from forklake.api.sql import Parameters
from forklake.api.sql_result import SqlResult
from forklake.api.table import Table
from forklake.api.upsert import Matched, NotMatched, RowsMerged
from forklake.api.verbs import CatalogVerbs
from forklake.compact.compaction import (
    CompactResult,
    Planner,
    compact_all,
    compact_one,
    delete_planner,
    merge_planner,
)
from forklake.context.catalog_scope import CatalogScope
from forklake.context.scope import look
from forklake.errors import InvalidArgument
from forklake.maintenance.build_indexes import BuildResult, build_named
from forklake.maintenance.checkpoint import CheckpointResult
from forklake.maintenance.checkpoint import checkpoint as run_checkpoint
from forklake.model.index import Parameter
from forklake.model.names import QualifiedName
from forklake.model.progress import OnProgress
from forklake.model.snapshots import CommitInfo
from forklake.model.sql.ddl import ColumnSource
from forklake.model.time_travel import AsOf
from forklake.spark.changes import read_changes
from forklake.spark.commit import Work, Writing, write_and_commit
from forklake.spark.compact import runner_on
from forklake.spark.dml import clear, delete_rows, update_rows
from forklake.spark.index_work import builder_on
from forklake.spark.read import read_plan
from forklake.spark.sessions import prepare
from forklake.spark.sql.query import from_result
from forklake.spark.sql.session import run_sql
from forklake.spark.sql.views import TemporaryViews
from forklake.spark.task_results import DAY, Done
from forklake.spark.types import given_schema
from forklake.spark.upsert import merge_dataframe
from forklake.spark.write import write_dataframe

if TYPE_CHECKING:
    from forklake.commit.draft import Draft
    from forklake.engine.select import Selection
    from forklake.scan.scan_plan import ScanPlan


class SparkCatalog(Handle):
    """Reads and writes the tables of a catalog, or of a transaction, with Spark.

    Any session works: classic or Connect, local or on a cluster; it gets the settings that it needs. The
    Python of its workers needs forklake: `PYSPARK_PYTHON` names it, and `session()` sets it on this machine.
    """

    def __init__(self, spark: SparkSession, catalog: CatalogVerbs, *, ttl: timedelta = DAY) -> None:
        """Work on a catalog, or in a transaction.

        `ttl` is how long a change may take. Files of an interrupted change are deleted after it.
        """
        self.spark = prepare(spark)
        if not isinstance(catalog, CatalogVerbs):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(
                f"a catalog or a transaction is needed, such as lake.catalog(name), not {_kind(catalog)}"
            )
        self.catalog = catalog
        self.ttl = ttl
        self._views: TemporaryViews | None = None

    def __repr__(self) -> str:
        """The catalog."""
        return f"<SparkCatalog {self.catalog!r}>"

    def read(
        self,
        table: Name,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        at: AsOf | None = None,
        row_ids: bool = False,
    ) -> DataFrame:
        """Read a table as a plain DataFrame.

        `where` is a condition as in `Table.scan`: it prunes files, and Spark filters the rows of the others.
        The DataFrame shows the snapshot of this call, also after later commits.
        """

        def planned(_: Draft) -> tuple[ScanPlan, Selection]:
            scan = self.catalog.table(table).scan(where, columns, at=at, row_ids=row_ids)
            return scan.plan(), scan.selection

        scope = scope_of(self.catalog)
        return read_plan(prepare(self.spark), scope.context, *look(scope, planned))

    def search(
        self,
        table: Name,
        name: str | Several,
        query: object = None,
        *,
        k: int = 10,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        at: AsOf | None = None,
        **params: Parameter,
    ) -> DataFrame:
        """Search a table by an index that ranks rows, as `Table.search` does: the best rows."""
        found = self.catalog.table(table).search(
            name, query, k=k, where=where, columns=columns, at=at, **params
        )
        return from_result(prepare(self.spark), found)

    # ---- Writing ---

    def create_table(
        self,
        name: Name,
        columns: DataFrame | StructType | ColumnSource,
        *,
        partition_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        if_not_exists: bool = False,
        comment: str | None = None,
        append: bool = False,
        **info: Unpack[CommitInfo],
    ) -> Table:
        """Create a table with the columns of a DataFrame or its schema, or as `Catalog.create_table` does.

        Columns that are not nullable in the DataFrame are NOT NULL. With `append` its rows are inserted, in
        the same commit.
        """
        if append and isinstance(columns, DataFrame):
            layout = {"partition_by": partition_by, "sorted_by": sorted_by, "comment": comment}
            return self._create_with_rows(name, columns, if_not_exists, info, **layout)
        given = columns.schema if isinstance(columns, DataFrame) else columns
        return self.catalog.create_table(
            name,
            given_schema(given) if isinstance(given, StructType) else given,
            partition_by=partition_by,
            sorted_by=sorted_by,
            if_not_exists=if_not_exists,
            comment=comment,
            append=append,
            **info,
        )

    def _create_with_rows(
        self, name: Name, df: DataFrame, if_not_exists: bool, info: CommitInfo, **options: Any
    ) -> Table:
        target = QualifiedName.parse(name)
        if if_not_exists and scope_of(self.catalog).read().find_table(target) is not None:
            return self.catalog.table(name)
        if isinstance(self.catalog, Catalog):
            with self.catalog.transaction(**info) as tx:
                inside = SparkCatalog(self.spark, tx, ttl=self.ttl)
                inside._create_with_rows(name, df, False, CommitInfo(), **options)
            return self.catalog.table(name)
        table = self.create_table(name, df, **options, **info)
        self.append(df, name)
        return table

    def append(self, df: DataFrame, table: Name, *, cast: bool = False, **info: Unpack[CommitInfo]) -> int:
        """Insert the rows of a DataFrame, as one snapshot. Returns the number of rows.

        Columns are matched by name; missing ones get their defaults. `cast` converts values as in
        `Table.append`.
        """
        given = _checked(df)
        return self._publish(
            table, "append", lambda writing: write_dataframe(given, writing, cast=cast), info
        ).inserted

    def overwrite(
        self,
        df: DataFrame,
        table: Name,
        where: str | None = None,
        *,
        cast: bool = False,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Delete the matching rows, or all, and insert those of a DataFrame. Returns their number."""
        given = _checked(df)

        def work(writing: Writing) -> list[Done]:
            if where is not None:
                return [*delete_rows(self.spark, writing, where), *write_dataframe(given, writing, cast=cast)]
            cleared = [] if writing.inside else [clear(writing)]
            return [*cleared, *write_dataframe(given, writing, cast=cast)]

        empty = self.catalog.table(table).delete if where is None else None
        return self._publish(table, "overwrite", work, info, before=empty).inserted

    def delete(self, table: Name, where: str | None = None, **info: Unpack[CommitInfo]) -> int:
        """Delete the rows that match a condition, or all. Returns the number of rows."""
        if where is None:
            # Nothing has to be read for that.
            return self.catalog.table(table).delete(**info)
        return self._publish(
            table, "delete", lambda writing: delete_rows(self.spark, writing, where), info
        ).deleted

    def update(
        self,
        table: Name,
        assignments: Assignments,
        where: str | None = None,
        **info: Unpack[CommitInfo],
    ) -> int:
        """Update columns of the matching rows. Returns the number of rows.

        Conditions and values are those of `Table.update`.
        """

        def work(writing: Writing) -> list[Done]:
            values = check_assignments(assignments, writing.table.columns)
            return update_rows(self.spark, writing, values, where)

        return self._publish(table, "update", work, info).updated

    def merge(
        self,
        df: DataFrame,
        table: Name,
        on: str | Sequence[str],
        *,
        when_matched: Matched = "update",
        when_not_matched: NotMatched = "insert",
        cast: bool = False,
        **info: Unpack[CommitInfo],
    ) -> RowsMerged:
        """Upsert the rows of a DataFrame; see `Table.merge`."""
        given = _checked(df)

        def work(writing: Writing) -> list[Done]:
            return merge_dataframe(self.spark, writing, given, on, when_matched, when_not_matched, cast=cast)

        return self._publish(table, "merge", work, info)

    # ---- The past ---

    def changes(
        self, table: Name, start: int, end: int | None = None, *, where: str | None = None
    ) -> DataFrame:
        """The change feed after snapshot `start`, up to `end` or the current one; in no particular order."""
        feed = self.catalog.table(table).changes(start, end, where=where)
        return read_changes(prepare(self.spark), scope_of(self.catalog).context, feed)

    # ---- SQL ---

    def sql(self, text: str, params: Parameters = None, *, read_only: bool = False) -> DataFrame | SqlResult:
        """Run SQL in DuckDB's dialect, as `Catalog.sql` does. Returns the answer of the last statement.

        A query is computed by Spark and is a DataFrame; INSERT and CREATE TABLE from a query, UPDATE, DELETE
        and MERGE INTO run on Spark too. Everything else is run as by `Catalog.sql`, and answers as there.
        """
        prepare(self.spark)
        try:
            return run_sql(self, text, params, read_only=read_only)
        finally:
            # The statements before one that failed took effect.
            self._refresh()

    def register_views(
        self, prefix: str | None = None, *, every: timedelta | None = timedelta(seconds=1)
    ) -> TemporaryViews:
        """Register the tables and views of the catalog as temporary views, for `spark.sql`.

        `sales.orders` becomes `{prefix}_sales_orders`, a table of the schema `main` `{prefix}_orders`. The
        prefix is the name of the catalog. Queries see what was committed through this object before them.
        Other commits are looked for so often as `every` says; None leaves that to `TemporaryViews.refresh`.
        """
        if self._views is not None:
            self._views.close()
        self._views = TemporaryViews(self, prefix, every)
        return self._views

    def _refresh(self) -> None:
        if self._views is not None:
            self._views.refresh()

    def on(self, work: CatalogVerbs) -> SparkCatalog:
        """The same on another catalog, or in a transaction."""
        return self if work is self.catalog else SparkCatalog(self.spark, work, ttl=self.ttl)

    # ---- Maintenance ---

    def compact(
        self,
        table: Name | None = None,
        *,
        min_files: int = 2,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Merge small files and write inlined rows to files, on Spark; see `Catalog.compact`."""
        return self._compact(table, merge_planner(min_files), info, dry_run=dry_run, progress=progress)

    def rewrite_deletes(
        self,
        table: Name | None = None,
        threshold: float = 0.95,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CompactResult:
        """Rewrite files of which at least this share of rows is deleted, of one table or of all."""
        table, threshold = table_first(table, threshold)
        return self._compact(table, delete_planner(threshold), info, dry_run=dry_run, progress=progress)

    def build_indexes(
        self,
        table: Name | None = None,
        names: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> BuildResult:
        """Build what indexes lack, on Spark; see `Catalog.build_indexes`. Workers need what kinds need."""
        scope = scope_of(self.catalog).with_commit_info(**info)
        runner = builder_on(prepare(self.spark), scope.context.storage)
        return build_named(scope, table, names, dry_run=dry_run, progress=progress, runner=runner)

    def checkpoint(
        self,
        *,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        **info: Unpack[CommitInfo],
    ) -> CheckpointResult:
        """Flush, expire, compact and rewrite deletes of the catalog, on Spark; see `Catalog.checkpoint`."""
        scope = scope_of(self.catalog)
        if not isinstance(scope, CatalogScope):
            raise InvalidArgument("a checkpoint commits table by table: not in a transaction")
        spark, storage = prepare(self.spark), scope.context.storage
        return run_checkpoint(
            scope.context,
            info=info,
            catalog=scope,
            runner=runner_on(spark, storage),
            builder=builder_on(spark, storage),
            dry_run=dry_run,
            progress=progress,
        )

    def _compact(
        self,
        table: Name | None,
        planner: Planner,
        info: CommitInfo,
        *,
        dry_run: bool,
        progress: OnProgress | None,
    ) -> CompactResult:
        scope = scope_of(self.catalog).with_commit_info(**info)
        runner = runner_on(self.spark, scope_of(self.catalog).context.storage)
        if table is None:
            return compact_all(scope, planner, dry_run=dry_run, progress=progress, runner=runner)
        number = self.catalog.table(table).id
        return compact_one(scope, number, planner, dry_run=dry_run, progress=progress, runner=runner)

    def _publish(
        self,
        table: Name,
        operation: str,
        work: Work,
        info: CommitInfo,
        *,
        before: Callable[[], object] | None = None,
    ) -> RowsMerged:
        scope = scope_of(self.catalog).with_commit_info(**info)
        prepare(self.spark)
        merged = write_and_commit(scope, table, work, operation=operation, ttl=self.ttl, before=before)
        self._refresh()
        return merged


def _kind(value: object) -> str:
    """A type in full: pandas has a DataFrame too."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _checked(df: object) -> DataFrame:
    if not isinstance(df, DataFrame):
        raise InvalidArgument(
            f"rows are given as a Spark DataFrame, before the name of the table, not as {_kind(df)}"
        )
    prepare(df.sparkSession)
    return df
