"""The 22 queries of TPC-H through `SparkCatalog.sql`, beside the local engine, on rows made up for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

import forklake
from benchmarks.tpch import TABLES, queries
from forklake.spark import SparkCatalog
from tests.spark.test_sql import check

ROWS = (Path(__file__).parent / "tpch_rows.sql").read_text()


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCatalog]:
    folder = tmp_path_factory.mktemp("tpch")
    with forklake.connect(f"sqlite:///{folder}/lake.db", create=True) as lake, duckdb.connect() as made:
        made.execute(ROWS)
        catalog = lake.create_catalog("tpch")
        for table in TABLES:
            catalog.create_table(table, made.sql(f"FROM {table}").to_arrow_table(), append=True)
        # Some rows are deleted, as in tables that are in use.
        catalog.table("lineitem").delete("l_linenumber = 1 AND l_orderkey % 50 = 0")
        yield SparkCatalog(spark, catalog)


@pytest.mark.parametrize("name", [f"Q{number}" for number in range(1, 23)])
def test_query_of_tpch_answers_as_the_local_engine_does(tpch: SparkCatalog, name: str) -> None:
    assert check(tpch, queries(1)[name].replace("0.0001000000", "0.005"))
