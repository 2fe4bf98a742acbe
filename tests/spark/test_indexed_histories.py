"""On Spark too an index never changes an answer: two tables with one history, one of which has segments."""

from __future__ import annotations

import math
from functools import reduce
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import forklake
from forklake.spark import SparkCatalog
from tests.property.test_indexes import ANSWERED, NAMES, SCHEMA, STEPS, History

EXAMPLES = 2
CONDITIONS = (
    "k = 3",
    "k IN (1, 4, 9) AND id > 3",
    "k = 3 OR s = 's5'",
    "s LIKE 's1%'",
    "s > 's3' AND s <= 's6'",
    "s IS NULL AND k = 1",
    "k = 77",
)
ON_SPARK = st.lists(
    st.tuples(st.sampled_from(["delete", "update", "merge"]), st.integers(0, 9)), min_size=1, max_size=2
)


def step(sc: SparkCatalog, what: str, seed: int) -> None:
    """A change on Spark, of either table."""
    match what:
        case "delete":
            told = [sc.delete(name, f"k = {seed} AND id % 2 = 0") for name in NAMES]
        case "update":
            told = [sc.update(name, {"note": "'old car'"}, f"s = 's{seed}'") for name in NAMES]
        case _:
            rows = [(seed, "new bicycle"), (seed + 20, "new car"), (9_000 + seed, "new")]
            source = sc.spark.createDataFrame(rows, "id BIGINT, note STRING")
            told = [sc.merge(source, name, on="id") for name in NAMES]
    assert told[0] == told[1], what


def answers(sc: SparkCatalog, name: str) -> list[str]:
    """The rows for each of the conditions, all by one job."""
    parts: list[DataFrame] = [
        sc.read(name, where).select(F.lit(at).alias("at"), "id", "k", "s", "note")
        for at, where in enumerate(CONDITIONS)
    ]
    return sorted(map(str, reduce(DataFrame.union, parts).collect()))


def test_an_index_never_changes_an_answer_on_spark(catalog: forklake.Catalog, on_spark: SparkCatalog) -> None:
    lake = catalog._lake

    @settings(
        max_examples=max(1, math.ceil(EXAMPLES * settings.default.max_examples / 100)),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(STEPS, ON_SPARK)
    def run(steps: list[tuple[str, int]], on_spark_steps: list[tuple[str, int]]) -> None:
        history = History(lake, lake.create_catalog(f"c{uuid4().hex}"))
        for name in NAMES:
            history.catalog.create_table(name, SCHEMA)
        history.step("append", 2)
        for index, kind, columns, params in ANSWERED:
            history.catalog.table("indexed").create_index(index, kind=kind, columns=columns, **params)
        history.step("append", 5)
        for what, seed in steps:
            history.step(what, seed)
        sc = SparkCatalog(on_spark.spark, history.catalog)
        for what, seed in on_spark_steps:
            step(sc, what, seed)
        assert answers(sc, "indexed") == answers(sc, "plain")

    run()
