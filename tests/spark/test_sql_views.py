"""Temporary views of a catalog's tables: `spark.sql` finds them by name, and they show what was committed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import forklake
from forklake.spark import SparkCatalog
from forklake.spark.sql.views import TemporaryViews

TABLES = """
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id BIGINT, region VARCHAR);
INSERT INTO sales.orders VALUES (1, 'EU'), (2, 'US'), (3, 'EU');
CREATE TABLE "odd name" AS SELECT 1 AS one;
CREATE VIEW sales.eu AS SELECT id FROM sales.orders WHERE region = 'EU';
"""


@pytest.fixture
def views(on_spark: SparkCatalog, catalog: forklake.Catalog) -> Iterator[TemporaryViews]:
    catalog.sql(TABLES)
    with on_spark.register_views("shop", every=None) as views:
        yield views


def count(spark: SparkSession, sql: str) -> int:
    return int(spark.sql(sql).collect()[0][0])


def test_tables_and_views_are_found_by_name(spark: SparkSession, views: TemporaryViews) -> None:
    assert views.names == ["shop_odd name", "shop_sales_eu", "shop_sales_orders"]
    joined = "SELECT count(*) FROM shop_sales_orders o JOIN shop_sales_eu e ON o.id = e.id, `shop_odd name`"
    assert count(spark, joined) == 2


def test_query_sees_what_was_committed_through_the_same_object(
    spark: SparkSession, views: TemporaryViews, on_spark: SparkCatalog
) -> None:
    held = spark.sql("SELECT * FROM shop_sales_orders")
    on_spark.append(
        spark.createDataFrame([(4, "EU"), (5, "EU"), (6, "EU")], "id BIGINT, region STRING"), "sales.orders"
    )
    assert count(spark, "SELECT count(*) FROM shop_sales_orders") == 6
    assert count(spark, "SELECT count(*) FROM shop_sales_eu") == 5
    assert held.count() == 3, "a DataFrame stays at its snapshot"
    on_spark.sql("DELETE FROM sales.orders WHERE region = 'EU'; CREATE TABLE sales.more AS SELECT 7 AS seven")
    assert count(spark, "SELECT count(*) + any_value(seven) FROM shop_sales_orders, shop_sales_more") == 8
    on_spark.sql("ALTER TABLE sales.orders RENAME COLUMN region TO area; DROP TABLE sales.more")
    assert spark.table("shop_sales_orders").columns == ["id", "area"]
    with pytest.raises(AnalysisException):
        spark.table("shop_sales_more")


def test_refresh_shows_what_others_committed_and_leaves_the_rest_alone(
    spark: SparkSession, views: TemporaryViews, catalog: forklake.Catalog
) -> None:
    catalog.table("sales.orders").append([{"id": 9, "region": "US"}])
    assert count(spark, "SELECT count(*) FROM shop_sales_orders") == 3
    before = dict(views._registered)
    views.refresh()
    assert count(spark, "SELECT count(*) FROM shop_sales_orders") == 4
    assert views.snapshot == catalog.snapshot
    after = views._registered
    assert {name for name in after if after[name] != before[name]} == {"shop_sales_orders", "shop_sales_eu"}


def test_commits_of_others_are_seen_after_a_while(
    spark: SparkSession, on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    catalog.sql(TABLES)
    with on_spark.register_views(every=timedelta(milliseconds=50)) as views:
        catalog.table("sales.orders").delete("id = 1")
        end = time.monotonic() + 60
        while views.snapshot != catalog.snapshot and time.monotonic() < end:
            time.sleep(0.05)
        assert count(spark, "SELECT count(*) FROM main_catalog_sales_orders") == 2
    with pytest.raises(AnalysisException):
        spark.table("main_catalog_sales_orders")


def test_view_that_spark_cannot_show_is_told_and_others_are_there(
    spark: SparkSession, on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    catalog.sql(TABLES + "CREATE VIEW sorted AS SELECT list(id ORDER BY id) AS ids FROM sales.orders")
    with on_spark.register_views("v", every=None) as views:
        assert "v_sorted" not in views.names
        assert "cannot be given to Spark" in views.refused["v_sorted"]
        assert count(spark, "SELECT count(*) FROM v_sales_orders") == 3


def test_two_tables_of_one_view_name_are_refused(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    catalog.sql('CREATE SCHEMA a; CREATE TABLE a.b (id INTEGER); CREATE TABLE "a_B" (id INTEGER)')
    with pytest.raises(forklake.InvalidArgument, match="would both be the view"):
        on_spark.register_views(every=None)


def test_views_are_not_of_a_transaction(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    with catalog.transaction() as tx, pytest.raises(forklake.InvalidArgument, match="not committed"):
        on_spark.on(tx).register_views()
    with pytest.raises(forklake.InvalidArgument, match="every so often"):
        on_spark.register_views(every=timedelta(0))
