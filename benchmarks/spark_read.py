"""Reading rows with Spark, against `spark.read.parquet` of the very same files, before and after deletes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.report import Section, Target, table
from benchmarks.spark_shared import CATALOG, GONE, OURS, PLAIN, TABLE, Bench, cpu_seconds
from benchmarks.timing import Timings, Work, cost, in_turns, same, seconds
from forklake.spark import SparkCatalog

MOST, MOST_WITH_DELETES = 1.05, 1.5
_TOLD, _SOURCE = "spark.read.schema(…).parquet", 'format("forklake")'


@dataclass(frozen=True, slots=True)
class Query:
    """Something to compute over all rows."""

    title: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]

    def answer(self, df: DataFrame) -> list[tuple[Any, ...]]:
        """Compute it now."""
        found = df.groupBy(*self.keys).agg(*map(F.expr, self.values)).collect()
        return sorted(tuple(row) for row in found)


QUERIES = (
    Query(
        "aggregate",
        ("id", "quantity", "score", "price"),
        (),
        ("count(*)", "sum(quantity)", "avg(score)", "sum(price)", "max(id)"),
    ),
    Query(
        "group by",
        ("region", "paid", "price", "score", "sold_at", "customer"),
        ("region", "paid"),
        ("count(*)", "sum(price)", "avg(score)", "max(sold_at)", "sum(length(customer))"),
    ),
)


@dataclass(frozen=True, slots=True)
class Readers:
    """The same rows: as a table, and as plain files."""

    bench: Bench
    on: SparkCatalog
    files: list[str]
    source: bool
    """Whether the data source for Python reads them too: it takes its time."""

    def contenders(self, query: Query) -> dict[str, Work]:
        """Each of them computes the query from scratch, its own planning included."""
        read = self.bench.spark.read
        schema = self.plain().schema
        found: dict[str, Work] = {
            OURS: lambda: query.answer(self.on.read(TABLE)),
            PLAIN: lambda: query.answer(self.plain()),
            _TOLD: lambda: query.answer(read.schema(schema).parquet(*self.files)),
        }
        if self.source:
            found[_SOURCE] = lambda: query.answer(self._sourced(query))
        return found

    def plain(self) -> DataFrame:
        """All that the files hold."""
        return self.bench.spark.read.parquet(*self.files)

    def _sourced(self, query: Query) -> DataFrame:
        wanted = self.bench.spark.read.format("forklake").option("lake", self.bench.address)
        # Spark tells such a source nothing of the columns that it needs.
        wanted = wanted.option("catalog", CATALOG).option("columns", ",".join(query.columns))
        return wanted.load(TABLE)


def read(bench: Bench, *, rows: int, files: int, rounds: int, source: bool) -> Iterator[Section]:
    """Read whole files, delete one row in a hundred, and read again."""
    with bench.lake() as lake:
        on = bench.catalog(lake)
        bench.progress(f"{rows:,} rows are written")
        made = bench.rows(rows, files)
        on.create_table(TABLE, made.schema)
        on.append(made, TABLE)
        readers = Readers(bench, on, bench.files(on), source)
        yield _measured(readers, rows, rounds, deleted=False)
        bench.progress("1 % of the rows are deleted")
        gone = on.delete(TABLE, GONE)
        same({"deleted": gone, "to delete": readers.plain().where(GONE).count()})
        yield _measured(readers, rows - gone, rounds, deleted=True)


def _measured(readers: Readers, rows: int, rounds: int, *, deleted: bool) -> Section:
    lines: list[Sequence[str]] = []
    targets: list[Target] = []
    left = readers.plain().where(f"NOT ({GONE})") if deleted else readers.plain()
    for query in QUERIES:
        contenders = readers.contenders(query)
        ours = {title: contenders[title]() for title in contenders if title in (OURS, _SOURCE)}
        same({"the rows that are left": query.answer(left), **ours})
        timings = in_turns(contenders, rounds, cpu=cpu_seconds)
        lines += _lines(query, timings)
        if not readers.source:
            targets.append(_target(query, timings, deleted=deleted))
    state = "1 % of the rows deleted" if deleted else "no deletes"
    part = "source" if readers.source else "read"
    title = f"{part}: {rows:,} rows, {len(readers.files)} files, {state}"
    return Section(title, table(("", "", "median", "CPU", f"{OURS} takes"), lines), targets)


def _lines(query: Query, timings: Timings) -> Iterator[Sequence[str]]:
    for place, timing in enumerate(timings.values()):
        taken = f"{cost(timings[OURS], timing):.2f}x"
        yield ("" if place else query.title, timing.title, seconds(timing.median), seconds(timing.cpu), taken)


def _target(query: Query, timings: Timings, *, deleted: bool) -> Target:
    most = MOST_WITH_DELETES if deleted else MOST
    after = " after deletes" if deleted else ""
    found = cost(timings[OURS], timings[PLAIN])
    return Target(found <= most, f"{query.title}{after} takes at most {most:g}x of {PLAIN}", f"{found:.2f}x")
