"""A DataFrame that is used more than once: no use sees another, and all see one snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import forklake
from forklake.spark import SparkCatalog
from tests.spark.test_session import program

ROWS = 1000
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ONCE = pytest.mark.parametrize("lake_url", ["sqlite"], indirect=True)
"""For what is the same on every backend, as only Spark can do it wrong."""


class Shop:
    """A lake that is open only while somebody changes it: DuckDB lets one process at a time open a file."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        with forklake.connect(url, data_path=folder, create=True) as lake:
            lake.set_option("data_inlining_row_limit", 2)
            table = lake.create_catalog("shop").create_table("t", "id BIGINT, n INTEGER")
            for start in range(0, ROWS, ROWS // 2):
                table.append(pa.table({"id": range(start, start + ROWS // 2)}))
            table.append([{"id": -1}])
            table.delete("id = -1 OR id = 600")
            table.append([{"id": 600}])

    @contextmanager
    def open(self) -> Generator[forklake.Lake]:
        with forklake.connect(self.url) as lake:
            yield lake

    @contextmanager
    def table(self) -> Generator[forklake.Table]:
        with self.open() as lake:
            yield lake.catalog("shop").table("t")


@pytest.fixture
def shop(lake_url: str, tmp_path: Path) -> Shop:
    return Shop(lake_url, tmp_path / "files")


Load = Callable[..., DataFrame]


@pytest.fixture(params=["format", "SparkCatalog"])
def load(request: pytest.FixtureRequest, spark: SparkSession, shop: Shop) -> Load:
    """A DataFrame of the table as it is, by the format or by `SparkCatalog.read`."""

    def by_format(where: str | None = None) -> DataFrame:
        given = {"lake": shop.url, "catalog": "shop", "table": "t"}
        given |= {} if where is None else {"where": where}
        return spark.read.format("forklake").options(**given).load()

    def by_catalog(where: str | None = None) -> DataFrame:
        with shop.open() as lake:
            return SparkCatalog(spark, lake.catalog("shop")).read("t", where)

    return by_format if request.param == "format" else by_catalog


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """A session that would push filters into such a source."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


@pytest.mark.usefixtures("pushing")
def test_no_use_of_a_frame_sees_the_filters_of_another(load: Load) -> None:
    df = load()
    assert (df.where("id < 10").count(), df.count()) == (10, ROWS)
    assert df.where("id < 10").union(df).count() == ROWS + 10
    assert df.where("id < 10").union(df.where("id >= 990")).count() == 20
    few, most = df.where("id < 10").alias("a"), df.where("id > 3").alias("b")
    assert few.join(most, F.col("a.id") == F.col("b.id")).count() == 6
    assert df.alias("a").join(df.alias("b"), "id").count() == ROWS
    assert df.where("id IN (SELECT 5)").count() == 1
    assert df.agg(F.sum("id")).first() == (sum(range(ROWS)),)
    # What is asked for when the DataFrame is loaded is the same for all of its uses.
    some = load("id < 100")
    assert (some.where("id >= 90").count(), some.count(), df.count()) == (10, 100, ROWS)


def test_a_frame_shows_one_snapshot_from_its_first_use_to_its_last(load: Load, shop: Shop) -> None:
    used, unused = load(), load()
    assert used.count() == ROWS
    with shop.table() as table:
        table.append([{"id": 5000}])
        table.delete("id < 500")
        table.update({"n": "1"}, "id = 700")
        table.compact()
        table.rename_column("n", "m")
        table.append([{"id": 5001, "m": 1}])
    now = load()
    assert (now.columns, now.count()) == (["id", "m"], ROWS // 2 + 2)
    for df in (used, unused):
        assert (df.columns, df.count(), df.where("id < 500").count()) == (["id", "n"], ROWS, 500)
        assert df.where("n IS NOT NULL OR id > 4000").count() == 0
    assert used.union(now).count() == ROWS + now.count()
    # In one query, both snapshots of one table.
    assert used.alias("then").join(now.alias("now"), "id", "left_anti").count() == ROWS // 2
    with shop.open() as lake:
        lake.catalog("shop").drop_table("t")
    assert (used.count(), unused.count(), now.count()) == (ROWS, ROWS, ROWS // 2 + 2)


@ONCE
def test_what_is_cached_is_that_frame_and_no_later_one(load: Load, shop: Shop) -> None:
    df = load()
    df.cache()
    try:
        assert df.count() == ROWS
        with shop.table() as table:
            table.delete("id < 10")
            table.append([{"id": 5000}])
        later = load()
        assert (later.count(), later.where("id < 20").count()) == (ROWS - 9, 10)
        assert (df.count(), df.where("id < 20").count()) == (ROWS, 20)
        assert df.exceptAll(later).count() == 10
    finally:
        df.unpersist()
    assert (df.count(), later.count()) == (ROWS, ROWS - 9)


def test_a_frame_stays_with_its_catalog_when_another_takes_the_name(load: Load, shop: Shop) -> None:
    used, unused = load(), load()
    assert used.count() == ROWS
    with shop.open() as lake:
        fork = lake.fork("shop", "better")
        fork.table("t").delete("id >= 10")
        lake.rename_catalog("shop", "former")
        lake.rename_catalog("better", "shop")
    assert (used.count(), unused.count(), load().count()) == (ROWS, ROWS, 10)


@ONCE
def test_a_frame_of_a_catalog_that_is_gone_says_so(spark: SparkSession, shop: Shop) -> None:
    given = {"lake": shop.url, "catalog": "shop", "table": "t"}
    df = spark.read.format("forklake").options(**given).load()
    with shop.open() as lake:
        lake.drop_catalog("shop")
    with pytest.raises(PySparkException, match="was dropped after this DataFrame was loaded"):
        df.count()


@ONCE
def test_a_view_shows_what_was_there_when_it_was_made_and_takes_rows(spark: SparkSession, shop: Shop) -> None:
    def made(columns: str = "") -> None:
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW v {columns} USING forklake "
            f"OPTIONS (lake '{shop.url}', catalog 'shop', table 't')"
        )

    def count(where: str = "true") -> int:
        return spark.sql(f"SELECT count(*) FROM v WHERE {where}").collect()[0][0]

    made()
    assert (count("id < 10"), count(), count("id >= 990")) == (10, ROWS, 10)
    both = "SELECT id FROM v WHERE id < 10 UNION ALL SELECT id FROM v"
    assert spark.sql(both).count() == ROWS + 10
    for number in (5000, 5001):
        spark.sql(f"INSERT INTO v SELECT {number}, 1")
    assert count() == ROWS
    with shop.table() as table:
        assert table.count() == ROWS + 2
    made()
    assert (count("id >= 5000"), count()) == (2, ROWS + 2)
    # Spark does not ask for the table before the first use, if it is told what the columns are.
    made("(id BIGINT)")
    with shop.table() as table:
        table.append([{"id": 5002}])
    assert count() == ROWS + 3
    with shop.table() as table:
        table.append([{"id": 5003}])
    assert (count("id = 5003"), count()) == (0, ROWS + 3)


@ONCE
def test_frames_of_a_transaction_end_with_it_or_stay(spark: SparkSession, shop: Shop) -> None:
    with shop.open() as lake:
        catalog = lake.catalog("shop")
        with catalog.transaction() as tx:
            inside = SparkCatalog(spark, tx)
            inside.append(spark.range(5000, 5100).selectExpr("id"), "t")
            staged = inside.read("t")
            assert (staged.where("id >= 5000").count(), staged.count()) == (100, ROWS + 100)
        assert (staged.where("id < 10").count(), staged.count()) == (10, ROWS + 100)
        with pytest.raises(RuntimeError), catalog.transaction() as tx:
            inside = SparkCatalog(spark, tx)
            inside.append(spark.range(6000, 6100).selectExpr("id"), "t")
            staged = inside.read("t")
            raise RuntimeError
        # Its files are gone: that is an error, and never fewer rows.
        with pytest.raises((PySparkException, Py4JError), match="does not exist"):
            staged.count()


# ---- Streams ---


@pytest.fixture
def stream(spark: SparkSession, shop: Shop) -> Callable[..., DataFrame]:
    def load(**options: Any) -> DataFrame:
        given = {"lake": shop.url, "catalog": "shop", "table": "t", **options}
        return spark.readStream.format("forklake").options(**given).load()

    return load


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Callable[..., int]:
    """Take what is there; gives how many rows that was."""

    def run(df: DataFrame, checkpoint: str) -> int:
        folder = str(tmp_path / checkpoint / "rows")
        writer = df.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(availableNow=True).start(folder)
        assert query.awaitTermination(120)
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    return run


@ONCE
def test_one_stream_feeds_several_queries(
    spark: SparkSession, shop: Shop, stream: Callable[..., DataFrame], run: Callable[..., int], tmp_path: Path
) -> None:
    df = stream()

    def there(checkpoint: str) -> int:
        return spark.read.parquet(str(tmp_path / checkpoint / "rows")).count()

    run(df.where("id < 10"), "few")
    run(df, "all")
    assert (there("few"), there("all")) == (10, ROWS)
    with shop.table() as table:
        table.append(pa.table({"id": range(-50, 0)}))
    # Each goes on where its own checkpoint stands, by the DataFrame that it had.
    assert run(df, "all") == 50
    run(df.where("id < 10"), "few")
    run(df.union(df.where("id < 0")), "both")
    assert (there("few"), there("all"), there("both")) == (60, ROWS + 50, ROWS + 100)


@ONCE
def test_a_stream_whose_columns_changed_is_loaded_again(
    shop: Shop, stream: Callable[..., DataFrame], run: Callable[..., int]
) -> None:
    df = stream()
    run(df, "all")
    with shop.table() as table:
        table.alter_type("n", "BIGINT")
        table.append(pa.table({"id": range(-60, -50)}))
    # The DataFrame has the columns that it was loaded with.
    with pytest.raises(StreamingQueryException, match="load the stream again"):
        run(df, "all")
    assert run(stream(columns="id"), "all") == 10


@ONCE
def test_a_checkpoint_goes_on_in_a_fork_only_from_what_both_know(
    shop: Shop, stream: Callable[..., DataFrame], run: Callable[..., int]
) -> None:
    run(stream(), "shared")
    with shop.open() as lake:
        fork = lake.fork("shop", "fork")
        fork.table("t").append(pa.table({"id": range(10)}))
    # The fork has all that the stream has seen.
    assert run(stream(catalog="fork"), "shared") == 10
    with shop.table() as table:
        table.append(pa.table({"id": range(20)}))
    # And the catalog has nothing of what it saw there: going on would pass over rows.
    with pytest.raises(StreamingQueryException, match="the checkpoint is of another catalog"):
        run(stream(), "shared")
    # A catalog that takes the name is another one, too.
    run(stream(), "named")
    with shop.open() as lake:
        lake.rename_catalog("shop", "former")
        lake.rename_catalog("fork", "shop")
    with pytest.raises(StreamingQueryException, match="the checkpoint is of another catalog"):
        run(stream(), "named")
    assert run(stream(catalog="former"), "named") == 0


# ---- Sessions that others have made ---

PLAIN = """
    import os, sys
    from forklake.spark.java import java_home
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession
    from forklake.spark import ForklakeDataSource

    url, folder = {url!r}, {folder!r}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.dataSource.register(ForklakeDataSource)
    named = {{"lake": url, "catalog": "shop", "table": "t"}}

    DataFrame = spark.read.format("forklake").options(**named).load()
    print(DataFrame.where("id < 10").count(), DataFrame.where("id < 10").union(DataFrame).count())
    spark.range(5000, 5010).write.format("forklake").options(**named).mode("append").save()
    print(DataFrame.count(), spark.read.format("forklake").options(**named).load().count())
    for _ in range(2):
        stream = spark.readStream.format("forklake").options(**named).load()
        writer = stream.writeStream.format("forklake").options(**{{**named, "table": "copies"}})
        writer = writer.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True)
        writer.start().awaitTermination()
        spark.range(6000, 6010).write.format("forklake").options(**named).mode("append").save()
"""


@ONCE
@pytest.mark.timeout(300)
def test_a_plain_session_needs_nothing_but_the_format(shop: Shop, tmp_path: Path) -> None:
    """In a process of its own: settings that a session was made with hold for all later ones."""
    with shop.open() as lake:
        lake.catalog("shop").create_table("copies", "id BIGINT, n INTEGER")
    lines = program(tmp_path, PLAIN.format(url=shop.url, folder=str(tmp_path)), **os.environ).splitlines()
    assert lines[-2:] == ["10 1010", "1000 1010"]
    with shop.open() as lake:
        assert lake.catalog("shop").table("copies").count() == ROWS + 20
