"""What tests on Spark share. The session itself is a fixture of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import forklake
from forklake.spark import SparkCatalog
from tests.contract.conftest import lake, lake_url, raw, sql_on
from tests.property.table_lakes import Lakes

__all__ = ["lake", "lake_url", "raw", "sql_on"]


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
