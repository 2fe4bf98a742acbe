"""What the parts of the benchmark of Spark have in common: a session, rows, and ways to look at them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import forklake
from forklake.api.lake import Lake
from forklake.spark import SparkCatalog, session

CATALOG, TABLE = "bench", "t"
OURS, PLAIN = "SparkCatalog.read", "spark.read.parquet"
GONE = "quantity % 100 = 7"
"""One row in a hundred, with no order."""

_COLUMNS = {
    "id": "id",
    "quantity": "CAST(pmod(xxhash64(id), 1000) AS INT)",
    # Eighths: their sums are exact, in any order.
    "score": "pmod(xxhash64(id, 1), 1000000) / 8D",
    "price": "CAST(pmod(xxhash64(id, 2), 10000000) / 100 AS DECIMAL(12, 2))",
    "sold_at": "timestamp_micros(1704067200000000 + id * 1000003)",
    "region": "'region ' || pmod(xxhash64(id, 3), 12)",
    "customer": "'customer ' || lpad(pmod(xxhash64(id, 4), 50000), 6, '0')",
    "paid": "pmod(xxhash64(id, 5), 3) = 0",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where to measure."""

    spark: SparkSession
    folder: Path
    progress: Callable[[str], None]

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """A new lake in the folder, with a catalog."""
        with forklake.connect(self.address, data_path=self.data, create=True) as lake:
            lake.create_catalog(CATALOG)
            yield lake

    @property
    def address(self) -> str:
        """Of the metadata."""
        return f"sqlite:///{self.folder}/lake.db"

    @property
    def data(self) -> Path:
        """Where the lake has its files."""
        return self.folder / "lake"

    def catalog(self, lake: Lake) -> SparkCatalog:
        """The catalog, for Spark."""
        return SparkCatalog(self.spark, lake.catalog(CATALOG))

    def rows(self, number: int, files: int, start: int = 0) -> DataFrame:
        """Rows with rising ids; the same ids always have the same rows."""
        made = self.spark.range(start, start + number, 1, files)
        return made.selectExpr(*(f"{value} AS {name}" for name, value in _COLUMNS.items()))

    def files(self, on: SparkCatalog, table: str = TABLE) -> list[str]:
        """The files of a table, as anybody else would name them."""
        return [str(self.data / file.path) for file in on.catalog.table(table).scan().plan().files]


@contextmanager
def started(folder: Path) -> Iterator[SparkSession]:
    """One session for all parts, on all cores."""
    spark = session(
        "local[*]",
        conf={
            "spark.driver.memory": "4g",
            "spark.local.dir": str(folder),
            "spark.log.level": "ERROR",
            # What forklake writes, so that the other side writes the same.
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    try:
        yield spark
    finally:
        spark.stop()


def digest(df: DataFrame) -> tuple[Any, ...]:
    """How many rows there are, and a number that depends on every value of them and on no order."""
    every = f"sum(CAST(xxhash64({', '.join(_COLUMNS)}) AS DECIMAL(20, 0)))"
    return tuple(df.agg(F.count("*"), F.expr(every)).collect()[0])


def cpu_seconds() -> float:
    """What this process and all below it have used: Java, and the workers of Spark.

    Where there is no /proc, only this one counts.
    """
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process that has ended meanwhile counts for its parent.
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
            used[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    below = [os.getpid()]
    for parent in below:
        below += children.get(parent, ())
    ticks = sum(used.get(process, 0) for process in below)
    return ticks / os.sysconf("SC_CLK_TCK") if used else time.process_time()


def sizes(folders: Sequence[Path]) -> int:
    """Bytes of all Parquet files below some folders."""
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*.parquet"))


def megabytes(size: float) -> str:
    """Bytes as people read them."""
    return f"{size / 1e6:,.1f} MB"
