"""Small statements, each a transaction of its own, against stock DuckLake on the same kind of database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import duckdb
import psycopg

import forklake
from benchmarks.contenders import lake_url
from benchmarks.report import Section, Target, table
from benchmarks.stock import attached, postgres
from benchmarks.timing import Timing, Work, cost, cpu_cost, in_turns, same, seconds
from forklake.api.catalog import Catalog

MOST_BINDING = 3e-3
_OURS, _STOCK = "forklake", "DuckLake"
_COLUMNS = "id BIGINT, name VARCHAR, price DOUBLE, paid BOOLEAN"
_ROWS = "SELECT i, 'name ' || i, i / 4e0, i % 2 = 0 FROM range({rows}) AS r(i)"
_NOTHING = "SELECT * FROM few WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Contest:
    """The same table `t` of many rows in files, and `few` of some, in the same kind of database."""

    backend: str
    ours: Catalog
    stock: duckdb.DuckDBPyConnection

    def run(self, sql: str, title: str, params: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """A statement by one of them; its rows."""
        if title == _OURS:
            return self.ours.sql(sql, list(params) or None).to_rows()
        return self.stock.execute(sql, list(params)).fetchall()


def small(server: str, folder: Path, *, rows: int, statements: int) -> Section:
    """A point select, an insert and an update, one after the other in turns."""
    lines: list[Sequence[str]] = []
    targets: list[Target] = []
    for opened in (_on_sqlite(folder), _on_postgres(server, folder), _on_duckdb(folder)):
        with opened as contest:
            for title in (_OURS, _STOCK):
                for name, made in (("t", rows), ("few", 10)):
                    contest.run(f"CREATE TABLE {name} ({_COLUMNS})", title)
                    contest.run(f"INSERT INTO {name} {_ROWS.format(rows=made)}", title)
            for what, sql in _STATEMENTS.items():
                timings = in_turns(
                    {title: _work(contest, sql, title, rows) for title in (_OURS, _STOCK)}, statements
                )
                ours, stock = timings[_OURS], timings[_STOCK]
                lines.append(_line(contest.backend, what, ours, stock))
                ahead = cost(ours, stock)
                targets.append(
                    Target(
                        ahead < 1,
                        f"{what} on {contest.backend} is ahead of {_STOCK}",
                        f"{ahead:.2f}x of its time",
                    )
                )
            same(
                {title: contest.run("SELECT count(*), sum(price) FROM t", title) for title in (_OURS, _STOCK)}
            )
            if contest.backend == "SQLite":
                targets.append(_binding(contest, statements))
    heading = ("", "", _OURS, "CPU", _STOCK, "CPU", "forklake takes", "of its CPU")
    return Section(f"small: statements on {rows:,} rows", table(heading, lines), targets)


_STATEMENTS = {
    "point select": "SELECT * FROM t WHERE id = ?",
    "single insert": "INSERT INTO t VALUES (?, 'new', 1.5, true)",
    "single update": "UPDATE t SET price = price + 1 WHERE id = ?",
}


def _work(contest: Contest, sql: str, title: str, rows: int) -> Work:
    """Each time about another row, the same for both."""
    numbers = count(1 if sql.startswith("INSERT") else 0)

    def run() -> None:
        number = next(numbers)
        contest.run(sql, title, [rows + number if sql.startswith("INSERT") else number * 7919 % rows])

    return run


def _line(backend: str, what: str, ours: Timing, stock: Timing) -> Sequence[str]:
    times = (seconds(value) for timing in (ours, stock) for value in (timing.median, timing.cpu))
    return (backend, what, *times, f"{cost(ours, stock):.2f}x", f"{cpu_cost(ours, stock):.2f}x")


def _binding(contest: Contest, statements: int) -> Target:
    """A statement whose rows are inlined: next to nothing is left of it but binding and planning."""
    numbers = count()
    whole = in_turns({_OURS: lambda: contest.run(_NOTHING, _OURS, [next(numbers) % 10])}, statements)[_OURS]
    most = seconds(MOST_BINDING)
    what = f"a statement on 10 inlined rows takes less than {most} as a whole on {contest.backend}"
    return Target(whole.median < MOST_BINDING, what, f"{seconds(whole.median)}, CPU {seconds(whole.cpu)}")


@contextmanager
def _contest(
    backend: str, url: str, address: str, folder: Path, schema: str | None = None
) -> Iterator[Contest]:
    with (
        forklake.connect(url, data_path=folder / "ours", create=True) as lake,
        attached(address, str(folder / "stock"), metadata_schema=schema, inlined_rows=100) as stock,
    ):
        stock.execute("USE lake")
        yield Contest(backend, lake.create_catalog("bench"), stock)


def _on_sqlite(folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "small_sqlite"
    inner.mkdir()
    return _contest("SQLite", f"sqlite:///{inner}/ours.db", f"sqlite:{inner}/stock.db", inner)


def _on_duckdb(folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "small_duckdb"
    inner.mkdir()
    return _contest("DuckDB", f"duckdb:///{inner}/ours.duckdb", f"{inner}/stock.ducklake", inner)


def _on_postgres(server: str, folder: Path) -> AbstractContextManager[Contest]:
    inner = folder / "small_postgres"
    inner.mkdir()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA small_stock")
    return _contest(
        "PostgreSQL", lake_url(server, "small_ours"), postgres(server), inner, schema="small_stock"
    )
