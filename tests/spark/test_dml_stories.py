"""The stories that are told of the local engine, told of Spark: the same programs, the same model."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import forklake
from forklake.data.input.lossless import fit
from forklake.spark import SparkCatalog
from forklake.spark.types import shown_type, to_arrow
from tests.property.table_lakes import Lakes
from tests.property.table_programs import programs
from tests.property.table_runs import Run
from tests.property.table_steps import DML, Op, Program
from tests.property.table_values import COMMON, FLOATS, names_in, types
from tests.spark.compare import same_feed, same_rows

EXAMPLES = {"sqlite": 4, "duckdb": 1, "postgresql": 2}
INEXACT = frozenset(
    {"timestamp_ns", "time_ns", "interval", "timetz", "int128", "uint128", "geometry", "json"}
)
"""What Spark DataFrames cannot hold as it is: such rows come by the local engine."""
LAYOUT = ("compact", "rewrite_deletes", "set_partitioning", "set_sort_order")


class SparkRun(Run):
    """A program whose rows are changed by Spark."""

    def __init__(self, lakes: Lakes, program: Program, spark: SparkSession) -> None:
        super().__init__(lakes, program)
        self.spark = spark

    def _on_real(self, scope: forklake.Catalog | forklake.Transaction, op: Op) -> Any:
        seen = SparkCatalog(self.spark, scope)
        name = ("main", self.model.name)
        match op:
            case ("compact",):
                seen.compact()
                return None
            case "rewrite_deletes", threshold:
                seen.rewrite_deletes(threshold)
                return None
            case "delete", where:
                return seen.delete(name, None if where is None else where.sql)
            case "update", assignments, where:
                return seen.update(name, assignments, None if where is None else where.sql)
            case "append" | "overwrite" | "merge", names, rows, *rest:
                df = self._frame(scope, names, rows)
                if df is None:
                    return super()._on_real(scope, op)
                return self._with_frame(seen, op[0], df, name, rest[1:])
            case _:
                return super()._on_real(scope, op)

    def _with_frame(
        self, seen: SparkCatalog, verb: str, df: DataFrame, name: tuple[str, str], rest: list[Any]
    ) -> Any:
        match verb, *rest:
            case "append", *_:
                return seen.append(df, name)
            case "overwrite", where:
                return seen.overwrite(df, name, None if where is None else where.sql)
            case _, on, matched, unmatched:
                done = seen.merge(df, name, [on], when_matched=matched, when_not_matched=unmatched)
                return done.updated, done.deleted, done.inserted

    def _frame(
        self,
        scope: forklake.Catalog | forklake.Transaction,
        names: tuple[str, ...],
        rows: tuple[tuple[Any, ...], ...],
    ) -> DataFrame | None:
        types = [self.model.column(name).type for name in names]
        if not names or any(names_in(type) & INEXACT for type in types):
            return None
        known = {column.name: column for column in scope.table(self.model.name).columns}
        given = self._data(names, rows, "arrow")
        arrays = [
            to_arrow(fit(given[name].combine_chunks(), known[name]), type)
            for name, type in zip(names, types, strict=True)
        ]
        fields = [T.StructField(name, shown_type(type)) for name, type in zip(names, types, strict=True)]
        return self.spark.createDataFrame(pa.table(arrays, list(names)), T.StructType(fields))


def tell(lakes: Lakes, spark: SparkSession, stories: st.SearchStrategy[Program]) -> None:
    @settings(
        max_examples=max(1, EXAMPLES[lakes.backend] * settings.default.max_examples // 100),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(stories)
    def run(program: Program) -> None:
        story = SparkRun(lakes, program, spark)
        for step in program.steps:
            story.step(step)
        story.finish()
        seen = SparkCatalog(spark, story.catalog(0))
        table = story.catalog(0).table(story.model.name)
        same_rows(seen, table)
        if "change_type" not in {column.name for column in story.model.columns}:
            same_feed(seen, table, min(story.history))

    run()


@pytest.mark.timeout(900)
def test_rows_of_any_type_are_changed_by_spark_as_locally(lakes: Lakes, spark: SparkSession) -> None:
    tell(lakes, spark, programs([types()], (*DML, *DML, *LAYOUT), 5))


@pytest.mark.timeout(900)
def test_rows_are_changed_again_and_again_by_spark_as_locally(lakes: Lakes, spark: SparkSession) -> None:
    plain, floats = st.sampled_from(COMMON), st.sampled_from(FLOATS)
    tell(lakes, spark, programs([plain, plain, floats], (*DML, *DML, *LAYOUT), 7))
