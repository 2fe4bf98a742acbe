"""Single-row inserts, each a commit of its own, against stock DuckLake with inlined rows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

import forklake
from benchmarks.contenders import lake_url
from benchmarks.report import Section, Target, table
from benchmarks.stock import attached, postgres
from benchmarks.timing import same, seconds

LEAST = 3.0
_BLOCKS = 10
_READS = 9
_INLINED_ROWS = 100
_COLUMNS = "id BIGINT, name VARCHAR, price DOUBLE, paid BOOLEAN"
_OURS, _STOCK = "forklake", "DuckLake"
Insert = Callable[[int], object]
Read = Callable[[], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Contest:
    """Two tables in the same kind of database: how to insert a row into each, and to read count and sum."""

    backend: str
    insert: dict[str, Insert]
    read: dict[str, Read]


@dataclass(frozen=True, slots=True)
class Figure:
    """How one of them did."""

    title: str
    rates: tuple[float, ...]
    """Commits in a second, block by block."""
    read: float
    """Seconds of a read after all inserts: the median of some in turns."""


def insert(server: str, folder: Path, *, inserts: int) -> Section:
    """Insert in turns of blocks, into tables that grow, on each database."""
    lines: list[Sequence[str]] = []
    targets: list[Target] = []
    for opened in (_on_sqlite(folder), _on_duckdb(folder), _on_postgres(server, folder)):
        with opened as contest:
            ours, stock = _measured(contest, inserts)
        ahead = statistics.median(a / b for a, b in zip(ours.rates, stock.rates, strict=True))
        lines += [
            (
                "" if figure is stock else contest.backend,
                figure.title,
                f"{statistics.median(figure.rates):.0f}",
                f"{1.0 if figure is ours else ahead:.1f}x",
                seconds(figure.read),
                f"{ours.read / figure.read:.2f}x",
            )
            for figure in (ours, stock)
        ]
        what = f"at least {LEAST:g}x the commits/s of {_STOCK} on {contest.backend}"
        targets.append(Target(ahead >= LEAST, what, f"{ahead:.1f}x"))
    heading = ("", "", "commits/s", "forklake makes", "read back", "forklake takes")
    title = f"inserts: {inserts:,} single rows of 4 columns, then count and sum"
    return Section(title, table(heading, lines), targets)


def _measured(contest: Contest, inserts: int) -> list[Figure]:
    rates: dict[str, list[float]] = {title: [] for title in contest.insert}
    step = max(1, inserts // _BLOCKS)
    for start in range(0, inserts, step):
        for title, put in contest.insert.items():
            began = time.perf_counter()
            for number in range(start, start + step):
                put(number)
            rates[title].append(step / (time.perf_counter() - began))
    took: dict[str, list[float]] = {title: [] for title in contest.read}
    for _ in range(_READS):
        answers: dict[str, tuple[int, int]] = {}
        for title, read in contest.read.items():
            began = time.perf_counter()
            answers[title] = read()
            took[title].append(time.perf_counter() - began)
        same({**answers, "what was inserted": (inserts, sum(range(inserts)))})
    return [Figure(title, tuple(found), statistics.median(took[title])) for title, found in rates.items()]


@contextmanager
def _contest(
    backend: str, url: str, address: str, folder: Path, schema: str | None = None
) -> Iterator[Contest]:
    with (
        forklake.connect(url, data_path=folder / "ours", create=True) as lake,
        attached(
            address, str(folder / "stock"), metadata_schema=schema, inlined_rows=_INLINED_ROWS
        ) as connection,
    ):
        ours = lake.create_catalog("bench").create_table("t", _COLUMNS)
        connection.execute(f"CREATE TABLE lake.t ({_COLUMNS})")

        def put(number: int) -> None:
            ours.append([{"id": number, "name": f"name {number}", "price": number / 4, "paid": True}])

        def put_stock(number: int) -> None:
            values = [number, f"name {number}", number / 4, True]
            connection.execute("INSERT INTO lake.t VALUES (?, ?, ?, ?)", values)

        def read() -> tuple[int, int]:
            ids = ours.scan(columns=["id"]).to_arrow().column("id").to_pylist()
            return len(ids), sum(ids)

        def read_stock() -> tuple[int, int]:
            count, total = connection.execute("SELECT count(*), sum(id) FROM lake.t").fetchone() or (0, 0)
            return count, int(total)

        yield Contest(backend, {_OURS: put, _STOCK: put_stock}, {_OURS: read, _STOCK: read_stock})


def _on_sqlite(folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "insert_sqlite"
    inner.mkdir()
    return _contest("SQLite", f"sqlite:///{inner}/ours.db", f"sqlite:{inner}/stock.db", inner)


def _on_duckdb(folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "insert_duckdb"
    inner.mkdir()
    return _contest("DuckDB", f"duckdb:///{inner}/ours.duckdb", f"{inner}/stock.ducklake", inner)


def _on_postgres(server: str, folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "insert_postgres"
    inner.mkdir()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA insert_stock")
    return _contest(
        "PostgreSQL", lake_url(server, "insert_ours"), postgres(server), inner, schema="insert_stock"
    )
