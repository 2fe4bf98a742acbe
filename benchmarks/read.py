"""Reading rows, against DuckDB's own `read_parquet` on the very same files, and against stock DuckLake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import forklake
from benchmarks.report import Section, Target, table
from benchmarks.sample import SCHEMA, sample
from benchmarks.stock import attached
from benchmarks.timing import Timings, Work, cost, in_turns, same, seconds
from forklake.api.table import Table
from forklake.model.options import Options

_OURS, _PLAIN, _STOCK = "forklake", "DuckDB read_parquet", "DuckLake"
_DELETED = "id % 100 = 7"


@dataclass(frozen=True, slots=True)
class Query:
    """Something to compute over the rows, and how much longer than the plain read it may take."""

    title: str
    sql: str
    most: float
    most_with_deletes: float


ARROW = Query("all rows to Arrow", "SELECT * FROM {rows}", 1.10, 1.8)
AGGREGATE = Query("bare aggregate", "SELECT count(*), sum(quantity), sum(price) FROM {rows}", 1.10, 2.5)
GROUPED = Query(
    "group by",
    "SELECT region, paid, count(*), sum(price), max(score), min(customer) FROM {rows} "
    "GROUP BY ALL ORDER BY ALL",
    1.10,
    1.8,
)
QUERIES = (ARROW, AGGREGATE, GROUPED)


@dataclass(frozen=True, slots=True)
class Readers:
    """The same rows: as a table of forklake, as its plain files, in a DuckLake."""

    table: Table
    connection: duckdb.DuckDBPyConnection
    files: list[str]
    stock: duckdb.DuckDBPyConnection

    def contenders(self, query: Query, *, stock: bool) -> dict[str, Work]:
        """Each of them computes the query from scratch, its own planning included."""
        listed = ", ".join(f"'{file}'" for file in self.files)
        plain = query.sql.format(rows=f"read_parquet([{listed}])")
        found: dict[str, Work] = {
            _OURS: lambda: self._ours(query),
            _PLAIN: lambda: self.connection.execute(plain).to_arrow_table(),
        }
        if stock:
            theirs = query.sql.format(rows="lake.t")
            found[_STOCK] = lambda: self.stock.execute(theirs).to_arrow_table()
        return found

    def _ours(self, query: Query) -> pa.Table:
        if query is ARROW:
            return self.table.scan().to_arrow()
        # DuckDB finds the relation by the name of the variable.
        ours = self.table.scan().to_duckdb(self.connection)
        assert ours is not None
        return self.connection.execute(query.sql.format(rows="ours")).to_arrow_table()


def read(folder: Path, *, rows: int, rounds: int) -> list[Section]:
    """Read whole files, delete one row in a hundred, and read again."""
    with _readers(folder, rows) as readers:
        sections = [_measured(readers, rows, rounds, deleted=False)]
        gone = readers.table.delete(_DELETED)
        (theirs,) = readers.stock.execute(f"DELETE FROM lake.t WHERE {_DELETED}").fetchone() or (0,)
        same({_OURS: gone, _STOCK: theirs})
        return [*sections, _measured(readers, rows - gone, rounds, deleted=True)]


@contextmanager
def _readers(folder: Path, rows: int) -> Iterator[Readers]:
    made = sample(rows)
    options = Options()
    with (
        forklake.connect(f"sqlite:///{folder}/read.db", data_path=folder / "lake", create=True) as lake,
        duckdb.connect() as connection,
        attached(f"{folder}/stock.ducklake", str(folder / "stock")) as stock,
    ):
        rows_of = lake.create_catalog("bench").create_table("t", SCHEMA)
        rows_of.append(made)
        connection.execute("SET enable_progress_bar = false")
        for name in ("parquet_compression", "parquet_compression_level", "parquet_row_group_size"):
            stock.execute(f"CALL lake.set_option('{name}', '{getattr(options, name)}')")
        stock.register("made", made)
        stock.execute("CREATE TABLE lake.t AS SELECT * FROM made")
        files = [str(folder / "lake" / file.path) for file in rows_of.scan().plan().files]
        yield Readers(rows_of, connection, files, stock)


def _measured(readers: Readers, rows: int, rounds: int, *, deleted: bool) -> Section:
    lines: list[Sequence[str]] = []
    targets: list[Target] = []
    for query in QUERIES:
        contenders = readers.contenders(query, stock=True)
        answers = {title: _answer(work(), query) for title, work in contenders.items()}
        if deleted:
            # The plain files still have every row.
            del answers[_PLAIN]
        same(answers)
        timings = in_turns(contenders, rounds)
        lines += _lines(query, timings)
        targets += _targets(query, timings, deleted=deleted)
    state = "1 % of the rows deleted" if deleted else "no deletes"
    title = f"read: {rows:,} rows, {len(readers.files)} files, {state}"
    return Section(title, table(("", "", "median", "CPU", "forklake takes"), lines), targets)


def _answer(found: pa.Table, query: Query) -> Any:
    if query is not ARROW:
        return found.to_pylist()
    sums = found.group_by([]).aggregate([("id", "sum"), ("price", "sum"), ("customer", "max")])
    return found.num_rows, sums.to_pylist()


def _lines(query: Query, timings: Timings) -> Iterator[Sequence[str]]:
    ours = timings[_OURS]
    for place, timing in enumerate(timings.values()):
        yield (
            "" if place else query.title,
            timing.title,
            seconds(timing.median),
            seconds(timing.cpu),
            f"{cost(ours, timing):.2f}x",
        )


def _targets(query: Query, timings: Timings, *, deleted: bool) -> Iterator[Target]:
    ours = timings[_OURS]
    most = query.most_with_deletes if deleted else query.most
    after = " after deletes" if deleted else ""
    found = cost(ours, timings[_PLAIN])
    yield Target(found <= most, f"{query.title}{after} takes at most {most:g}x of {_PLAIN}", f"{found:.2f}x")
    if deleted:
        found = cost(ours, timings[_STOCK])
        yield Target(found < 1, f"{query.title}{after} is ahead of {_STOCK}", f"{found:.2f}x of its time")
