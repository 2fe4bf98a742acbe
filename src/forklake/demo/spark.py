"""The part of the demo that is about Spark: orders come in, are corrected, and change on a fork."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import forklake
from forklake.api.catalog import Catalog
from forklake.api.lake import Lake
from forklake.api.verbs import CatalogVerbs
from forklake.demo.steps import Step, checked
from forklake.errors import EngineError, InvalidArgument
from forklake.lazy.arrow import pa, pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from forklake.spark import SparkCatalog

LOCAL = "local[*]"
LOG = "spark.log"
MARKET, ORDERS, AGENT = "market", "trade.orders", "accountant"
ROWS, FILES, PER_DAY = 1_000_000, 8, 4_000
NEWS, EVERY = 500, 100
_PROBES, _STDERR = 4, 2
_FATAL = re.compile(r'^(Exception in thread "main"|Error:).*|Reason: .*', re.MULTILINE)
_CITIES = ("Bremen", "Lyon", "Porto", "Krakow", "Bergen")
_MISSING = re.compile(r"(?<=ModuleNotFoundError: )No module named '\w+'")
_FAR, _SHIPPED_DAYS = 4, 31
_SHIPPED = f"customer.address.city = '{_CITIES[_FAR]}' AND placed < '2025-02-01'"
_COLUMNS = """
    id BIGINT NOT NULL,
    placed DATE,
    amount DECIMAL(10, 2),
    customer STRUCT(name VARCHAR, address STRUCT(city VARCHAR, zip INTEGER))
"""
_CONF = {
    "spark.sql.shuffle.partitions": str(FILES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Java then compiles less, which takes a third off so short a run.
_HERE = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

Totals = dict[str, tuple[int, Decimal]]
"""For each city, how many orders there are and what they are worth."""


def check_master(master: str, folder: Path | None) -> None:
    """Refuse at once what cannot work: executors on other machines do not see a folder that is only here."""
    # It says what has to be installed.
    import_module("forklake.spark")
    if folder is None and not _is_local(master):
        raise InvalidArgument(
            f"executors of {master} have to reach the lake's files: name a folder on storage that all "
            "machines share, under the same path, with --folder; and install forklake where executors run"
        )


class SparkStory:
    """The steps, and the session that they share."""

    def __init__(self, master: str, place: Path) -> None:
        """Run on a cluster, or on this machine. What Java says goes into a file in `place`."""
        self._master = master
        self._log = place / LOG
        self._session: SparkSession | None = None
        self._is_ours = False

    def steps(self) -> tuple[Step, ...]:
        """What is told, in order."""
        return (
            Step("Spark starts", self.start, "Spark is being started, which takes some seconds"),
            Step("Spark brings in a million orders", self.ingest),
            Step("Late corrections are merged", self.correct),
            Step("An agent works with Spark on a fork", self.work_on_fork),
            Step("Two engines, one answer", self.compare),
        )

    def stop(self) -> None:
        """End the session, unless it was there before."""
        if self._session is not None and self._is_ours:
            self._session.stop()

    def start(self, _: Lake) -> Iterator[str]:
        """Executors need the packages and the storage, and nothing else."""
        # An extra, which takes a second to import: whoever goes without it neither has it nor waits.
        from forklake.spark.jobs import each
        from forklake.spark.sessions import running, session

        begun = time.perf_counter()
        self._is_ours = running() is None
        conf = {**_CONF, **_HERE} if _is_local(self._master) else _CONF
        with _errors_into(self._log):
            try:
                spark = self._session = session(self._master, "forklake demo", conf)
            except EngineError as error:
                raise EngineError(" ".join([str(error), *_reason(self._log)])) from error
        took = time.perf_counter() - begun
        try:
            seen = set(each(spark, [str(self._log)] * _PROBES, _looks()))
        except EngineError as error:
            missing = _MISSING.search(str(error.__cause__))
            if missing is None:
                raise
            raise EngineError(
                f"executors lack a package ({missing[0]}): install forklake with its extra spark where they "
                "are, and let PYSPARK_PYTHON name their Python"
            ) from error
        lost = sorted(host for host, _, reaches in seen if not reaches)
        if lost:
            raise InvalidArgument(
                f"{self._log} is not there on {', '.join(lost)}: executors have to reach the lake's files, "
                "so name a folder on storage that all machines share, under the same path, with --folder"
            )
        hosts = sorted({host for host, _, _ in seen})
        yield checked(
            {version for _, version, _ in seen} == {forklake.__version__},
            f"Spark {spark.version} was started on {self._master} in {took:.1f} s; its workers on "
            f"{', '.join(hosts)} have forklake {forklake.__version__} and reach the files",
        )

    def ingest(self, lake: Lake) -> Iterator[str]:
        """Rows go from Spark to the storage, and become visible in one snapshot."""
        market = lake.create_catalog(MARKET)
        market.create_schema("trade")
        table = market.create_table(ORDERS, _COLUMNS, sorted_by=["placed"])
        before = len(market.snapshots())
        on_spark = self._on(market)
        begun = time.perf_counter()
        added = on_spark.append(_orders(on_spark.spark.range(0, ROWS, 1, FILES)), ORDERS)
        took = time.perf_counter() - begun
        files = table.files()
        size = sum(file.file_size_bytes for file in files)
        yield checked(
            added == ROWS == table.count() and len(files) == FILES and len(market.snapshots()) == before + 1,
            f"{FILES} tasks wrote {added:,} orders to {len(files)} Parquet files, {size / 1e6:.1f} MB, in "
            f"{took:.1f} s, and one snapshot shows them all",
        )
        day = on_spark.read(ORDERS, "placed = '2025-03-01'")
        opened = len(day.inputFiles())
        yield checked(
            opened == 1 and day.count() == PER_DAY,
            f"for the {PER_DAY:,} orders of the 1st of March Spark opens {opened} file, and not the other "
            f"{FILES - opened}",
        )

    def correct(self, lake: Lake) -> Iterator[str]:
        """A merge is one join of keys, and writes what has changed."""
        market = lake.catalog(MARKET)
        then, size = market.snapshot, _size(market)
        on_spark = self._on(market)
        numbers = on_spark.spark.range(0, ROWS, EVERY).union(on_spark.spark.range(ROWS, ROWS + NEWS))
        begun = time.perf_counter()
        merged = on_spark.merge(_orders(numbers, dearer=1), ORDERS, on="id")
        took = time.perf_counter() - begun
        written = _size(market) - size
        yield checked(
            (merged.updated, merged.inserted) == (ROWS // EVERY, NEWS)
            and market.table(ORDERS).count() == ROWS + NEWS,
            f"{merged.updated:,} orders were corrected and {merged.inserted} more came in {took:.1f} s: "
            f"{written / 1e6:.2f} MB were written beside the {size / 1e6:.1f} MB that stay",
        )
        feed = on_spark.changes(ORDERS, then).groupBy("change_type").count().collect()
        kinds = {row["change_type"]: row["count"] for row in feed}
        yield checked(
            kinds == {"insert": NEWS, "update_preimage": ROWS // EVERY, "update_postimage": ROWS // EVERY},
            f"read by Spark, the change feed tells of {kinds['insert']} inserts and "
            f"{kinds['update_postimage']:,} updates",
        )

    def work_on_fork(self, lake: Lake) -> Iterator[str]:
        """What Spark does on a fork is a transaction like any other, and is merged like any other."""
        market = lake.catalog(MARKET)
        count = market.table(ORDERS).count()
        agent = lake.fork(MARKET, AGENT)
        begun = time.perf_counter()
        with agent.transaction(author=AGENT, message="shipping, and no trial orders") as tx:
            on_spark = self._on(tx)
            fees = on_spark.update(ORDERS, {"amount": "amount + 5"}, _SHIPPED)
            gone = on_spark.delete(ORDERS, "placed = '2025-01-01'")
        took = time.perf_counter() - begun
        yield checked(
            agent.table(ORDERS).count() == count - gone and market.table(ORDERS).count() == count,
            f"a snapshot of {AGENT} adds shipping to {fees:,} orders and deletes {gone:,}, in {took:.1f} s; "
            f"{MARKET} still has {count:,}",
        )
        begun = time.perf_counter()
        result = lake.merge(AGENT, into=MARKET)
        took = time.perf_counter() - begun
        lake.drop_catalog(AGENT)
        yield checked(
            market.table(ORDERS).count() == count - gone and market.snapshot == result.snapshot,
            f"its work was merged into {MARKET} in {1000 * took:.0f} ms, and the fork was dropped",
        )

    def compare(self, lake: Lake) -> Iterator[str]:
        """Both engines read the same files, the same deletes and the same row ids."""
        market = lake.catalog(MARKET)
        expected = _expected()
        by_spark = _totals_on(self._on(market))
        local = market.table(ORDERS).scan(columns=["amount", "customer"]).to_arrow()
        by_duckdb = _totals_of(local)
        yield checked(
            by_spark == by_duckdb == expected,
            "Spark, the local engine and plain arithmetic agree on number and worth of orders in each city:",
        )
        for city, (number, worth) in sorted(by_spark.items()):
            yield f"  {city}: {number:,} orders, {worth:,}"

    def _on(self, catalog: CatalogVerbs) -> SparkCatalog:
        from forklake.spark import SparkCatalog

        if self._session is None:
            raise EngineError("Spark was not started")
        return SparkCatalog(self._session, catalog)


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _orders(numbers: DataFrame, dearer: int = 0) -> DataFrame:
    """Orders, each made from its number; `_expected` knows how."""
    return numbers.selectExpr(
        "id",
        f"date_add(DATE '2025-01-01', CAST(id DIV {PER_DAY} AS INT)) AS placed",
        f"CAST(id * 7919 % 100000 * 0.01BD + {dearer} AS DECIMAL(10, 2)) AS amount",
        "named_struct('name', concat('customer ', id % 10007), 'address', named_struct("
        f"'city', element_at(array{_CITIES}, CAST(id % {len(_CITIES)} AS INT) + 1), "
        "'zip', CAST(10000 + id % 90000 AS INT))) AS customer",
    )


def _expected() -> Totals:
    """What is left of the orders after the story, by arithmetic alone."""
    counts, cents = [0] * len(_CITIES), [0] * len(_CITIES)
    for number in range(PER_DAY, ROWS + NEWS):
        city = number % len(_CITIES)
        counts[city] += 1
        cents[city] += number * 7919 % 100000
        cents[city] += 100 * (number % EVERY == 0 or number >= ROWS)
        cents[city] += 500 * (city == _FAR and number < _SHIPPED_DAYS * PER_DAY)
    return {city: (counts[at], Decimal(cents[at]) / 100) for at, city in enumerate(_CITIES)}


def _totals_on(on_spark: SparkCatalog) -> Totals:
    rows = on_spark.read(ORDERS).selectExpr("customer.address.city AS city", "amount").groupBy("city")
    found = rows.agg({"city": "count", "amount": "sum"}).collect()
    return {row["city"]: (row["count(city)"], row["sum(amount)"]) for row in found}


def _totals_of(orders: pa.Table) -> Totals:
    city = pc.struct_field(orders["customer"], [1, 0])
    found = pa.table({"city": city, "amount": orders["amount"]}).group_by("city")
    rows = found.aggregate([("city", "count"), ("amount", "sum")]).to_pylist()
    return {row["city"]: (row["city_count"], row["amount_sum"]) for row in rows}


def _size(catalog: Catalog) -> int:
    return sum(file.file_size_bytes for file in catalog.table(ORDERS).files())


def _looks() -> Callable[[str], tuple[str, str, bool]]:
    """What a worker finds: its host, its forklake, and whether a file of ours is there."""

    # Inside of a function, so that it travels by value: workers then need not load the command line.
    def look(path: str) -> tuple[str, str, bool]:
        import forklake

        return socket.gethostname(), forklake.__version__, Path(path).exists()

    return look


@contextmanager
def _errors_into(log: Path) -> Generator[None]:
    """Let processes that are started meanwhile write into a file what they would write to standard error.

    Settings of its log do not reach all that Java and Spark say there while they start.
    """
    with log.open("ab") as file:
        try:
            before = os.dup(_STDERR)
        except OSError:
            # There is none, so nobody would be disturbed.
            yield
            return
        os.dup2(file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            os.close(before)


def _reason(log: Path) -> list[str]:
    """What only the log knows: why there is no Java to talk to, or that no cluster answered."""
    found = _FATAL.search(log.read_text(errors="replace"))
    return [] if found is None else [found[0]]
