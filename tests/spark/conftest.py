"""One Spark for all tests: a second in another process would only take its time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.spark import SparkCatalog, session
from tests.contract.conftest import lake, lake_url, raw, sql_on
from tests.property.table_lakes import Lakes

__all__ = ["lake", "lake_url", "raw", "sql_on"]

SMALL = {
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nothing may depend on the zone that a session has.
    "spark.sql.session.timeZone": "America/New_York",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("local[2]", conf=SMALL)
    yield running
    running.stop()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lake.db"


@pytest.fixture
def lakes(lake: forklake.Lake, lake_url: str) -> Iterator[Lakes]:
    """What stories are told in, on each backend."""
    lakes = Lakes(lake, lake_url)
    yield lakes
    lakes.close()


@pytest.fixture
def catalog(tmp_path: Path, url: str) -> Iterator[forklake.Catalog]:
    """A catalog whose tables keep two rows at most in the metadata."""
    with forklake.connect(url, data_path=tmp_path / "files", create=True) as lake:
        lake.set_option("data_inlining_row_limit", 2)
        yield lake.create_catalog("main_catalog")


@pytest.fixture
def on_spark(spark: SparkSession, catalog: forklake.Catalog) -> SparkCatalog:
    return SparkCatalog(spark, catalog)
