"""Whatever is done to a table, Spark shows what the local engine shows, now and at every snapshot."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from forklake.errors import InvalidPredicate
from forklake.spark import SparkCatalog
from tests.property.table_lakes import Lakes
from tests.property.table_programs import programs
from tests.property.table_runs import Run
from tests.property.table_steps import DDL, DML, LAYOUT, Program
from tests.property.table_values import COMMON, FLOATS, types
from tests.spark.compare import same_rows

EXAMPLES = {"sqlite": 6, "duckdb": 2, "postgresql": 2}


def tell(lakes: Lakes, spark: SparkSession, stories: st.SearchStrategy[Program]) -> None:
    @settings(
        max_examples=EXAMPLES[lakes.backend] * settings.default.max_examples // 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(stories)
    def run(program: Program) -> None:
        story = Run(lakes, program)
        for step in program.steps:
            story.step(step)
        seen = SparkCatalog(spark, story.catalog(0))
        snapshots = sorted(story.history)
        for snapshot in {snapshots[-1], snapshots[len(snapshots) // 2]}:
            table, look = story.history[snapshot]
            past = story.catalog(0).table(table.name, at=snapshot)
            at = SparkCatalog(spark, story.catalog(0).at(snapshot))
            same_rows(at, past)
            if look is not None:
                try:
                    same_rows(at, past, look.where.sql, columns=list(look.columns))
                except InvalidPredicate as refusal:
                    assert "cannot be given to Spark" in str(refusal)
        same_rows(seen, story.catalog(0).table(story.model.name))

    run()


@pytest.mark.timeout(900)
def test_tables_of_any_type_are_the_same_on_spark(lakes: Lakes, spark: SparkSession) -> None:
    tell(lakes, spark, programs([types()], (*DML, *DML, *LAYOUT, *DDL), 8))


@pytest.mark.timeout(900)
def test_rows_that_change_often_are_the_same_on_spark(lakes: Lakes, spark: SparkSession) -> None:
    plain, floats = st.sampled_from(COMMON), st.sampled_from(FLOATS)
    tell(lakes, spark, programs([plain, plain, floats], (*DML, *DML, *LAYOUT), 10))
