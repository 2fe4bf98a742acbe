"""Finding the files that a filter needs, among very many."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import forklake
from benchmarks.counting import calls
from benchmarks.many_files import CUSTOMERS, PER_DAY, ROWS, Backend, Place, make_files
from benchmarks.report import Section, Target, table
from forklake.api.table import Table
from forklake.store.duckdb import DuckDBDatabase
from forklake.store.postgres import PostgresDatabase
from forklake.store.sqlite import SqliteDatabase

MOST = 0.05
FEW = 10
_ENOUGH = 3.0
"""Seconds after which a slow filter is not measured again."""
_DATABASES: dict[Backend, type] = {
    "PostgreSQL": PostgresDatabase,
    "SQLite": SqliteDatabase,
    "DuckDB": DuckDBDatabase,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition, and how many of so many files may meet it."""

    title: str
    where: Callable[[int], str | None]
    expected: Callable[[int], int]
    is_point: bool = False


def _spread(files: int) -> list[int]:
    return [files * part // 20 * ROWS + 5 for part in range(20)]


FILTERS = (
    Filter("id = …, first file", lambda files: "id = 7", lambda files: 1, is_point=True),
    Filter("id = …, middle", lambda files: f"id = {files // 2 * ROWS + 7}", lambda files: 1, is_point=True),
    Filter("id = …, last file", lambda files: f"id = {files * ROWS - 7}", lambda files: 1, is_point=True),
    Filter(
        "id BETWEEN …, 5 files",
        lambda files: f"id BETWEEN {files // 2 * ROWS} AND {(files // 2 + 5) * ROWS - 1}",
        lambda files: 5,
    ),
    Filter(
        "id >= …, 1 % of the files",
        lambda files: f"id >= {(files - max(1, files // 100)) * ROWS}",
        lambda files: max(1, files // 100),
    ),
    Filter(
        "id IN (20 of one file)",
        lambda files: f"id IN ({', '.join(str(files // 2 * ROWS + at) for at in range(20))})",
        lambda files: 1,
    ),
    Filter(
        "id IN (20 from everywhere)",
        lambda files: f"id IN ({', '.join(map(str, _spread(files)))})",
        lambda files: len({value // ROWS for value in _spread(files)}),
    ),
    Filter(
        "day = … AND id = …",
        lambda files: f"day = {files // 2 // PER_DAY} AND id = {files // 2 * ROWS + 7}",
        lambda files: 1,
    ),
    Filter(
        "customer = … AND id = …",
        lambda files: f"customer = {CUSTOMERS // 2} AND id = {files // 2 * ROWS + 7}",
        lambda files: 1,
    ),
    Filter(
        "customer = … AND id BETWEEN …",
        lambda files: f"customer = {CUSTOMERS // 2} AND id BETWEEN 0 AND {ROWS - 1}",
        lambda files: 1,
    ),
    Filter("no filter", lambda files: None, lambda files: files),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What planning one filter took."""

    filter: Filter
    median: float
    statements: int
    few_statements: int
    files: int


def plan(
    server: str, folder: Path, *, backend: Backend, files: int, columns: int, rounds: int, has_target: bool
) -> Section:
    """Make a table of many files and one of few, and plan the same filters over both."""
    name = f"plan_{files}_{columns}"
    many, few = Place(backend, server, folder, name), Place(backend, server, folder, f"{name}_few")
    began = time.perf_counter()
    make_files(many, files=files, columns=columns)
    make_files(few, files=FEW, columns=columns)
    took = time.perf_counter() - began
    with forklake.connect(many.url) as lake, forklake.connect(few.url) as small:
        tables = lake.catalog("bench").table("t"), small.catalog("bench").table("t")
        found = [_planned(*tables, one, files, rounds, _DATABASES[backend]) for one in FILTERS]
    lines: list[Sequence[str]] = [
        (
            one.filter.title,
            f"{one.median * 1e3:.1f} ms",
            str(one.files),
            str(one.statements),
            str(one.few_statements),
        )
        for one in found
    ]
    heading = ("", "median", "files", "statements", f"of {FEW} files")
    title = f"plan: {files:,} files x {columns} columns on {backend} (made in {took:.0f} s)"
    return Section(title, table(heading, lines), _targets(found, f"{files:,} files") if has_target else [])


def _planned(many: Table, few: Table, one: Filter, files: int, rounds: int, database: type) -> Found:
    where = one.where(files)
    expected = one.expected(files)
    with calls(database, "rows") as statements:
        _ = few.scan(where=one.where(FEW)).plan(), many.scan(where=where).plan()
        start = statements()
        few.scan(where=one.where(FEW)).plan()
        between = statements()
        planned = many.scan(where=where).plan()
        end = statements()
    assert len(planned.files) == expected, (one.title, len(planned.files), expected)
    taken: list[float] = []
    while len(taken) < rounds and sum(taken) < _ENOUGH:
        began = time.perf_counter()
        many.scan(where=where).plan()
        taken.append(time.perf_counter() - began)
    return Found(one, statistics.median(taken), end - between, between - start, expected)


def _targets(found: Sequence[Found], what: str) -> list[Target]:
    slowest = max((one for one in found if one.filter.is_point), key=lambda one: one.median)
    differ = [one.filter.title for one in found if one.statements != one.few_statements]
    return [
        Target(
            slowest.median < MOST,
            f"a point filter over {what} takes less than {MOST * 1e3:.0f} ms, wherever it points",
            f"{slowest.median * 1e3:.1f} ms for {slowest.filter.title}",
        ),
        Target(
            not differ,
            f"as many statements for {what} as for {FEW}",
            "the same" if not differ else f"not for {', '.join(differ)}",
        ),
    ]
