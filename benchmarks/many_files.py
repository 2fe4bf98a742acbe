"""Tables of very many files, made by set-based SQL in the shape that real commits write.

No file stands behind them but the first, so they can be planned and not read.
File n holds ids from 1000 n on; the day of n / 100; customers from everywhere; and other columns somewhere.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import psycopg
import pyarrow as pa

import forklake
from benchmarks.contenders import lake_url
from forklake.model.types.data_types import Scalar
from forklake.model.types.sort_keys import key_of

Backend = Literal["PostgreSQL", "SQLite", "DuckDB"]

ROWS = 1_000
"""In each file."""
PER_DAY = 100
"""Files of the same day."""
CUSTOMERS = 1_000_000
NAMED = ("id", "day", "customer")
_FIRST_ID = 1_000_000
_SERIES = {
    "PostgreSQL": "generate_series({start}, {end}) AS {name}({name})",
    "SQLite": "(WITH RECURSIVE s({name}) AS (VALUES ({start}) UNION ALL SELECT {name} + 1 FROM s "
    "WHERE {name} < {end}) SELECT {name} FROM s) AS s_{name}",
    "DuckDB": "range({start}, {end} + 1) AS {name}({name})",
}

LOW = (
    f"CASE c WHEN 1 THEN n * {ROWS} WHEN 2 THEN CAST((n - n % {PER_DAY}) / {PER_DAY} AS BIGINT) "
    "WHEN 3 THEN 0 ELSE (n * 7919 + c * 31) % 100003 END"
)
WIDTH = f"CASE c WHEN 1 THEN {ROWS - 1} WHEN 2 THEN 0 WHEN 3 THEN {CUSTOMERS - 1} ELSE 1000 END"
_KEY = (
    "CASE WHEN {0} = 0 THEN '2' "
    "ELSE '3' || (499 + length(CAST({0} AS VARCHAR))) || rtrim(CAST({0} AS VARCHAR), '0') END"
)

_FILES = """
INSERT INTO ducklake_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path, path_is_relative,
                                file_format, record_count, file_size_bytes, footer_size, row_id_start)
SELECT f.catalog_id, {first} + n, f.table_id, f.begin_snapshot,
       'bench/main/t/0011223344556677889900' || (1000000000 + n) || '-0.parquet', f.path_is_relative,
       f.file_format, f.record_count, f.file_size_bytes, f.footer_size, n * {rows}
  FROM ducklake_data_file f, {files}
"""
_STATS = """
INSERT INTO ducklake_file_column_stats (catalog_id, data_file_id, table_id, column_id, column_size_bytes,
                                        value_count, null_count, min_value, max_value, min_key, max_key)
SELECT catalog_id, {first} + n, table_id, c, 4000, {rows}, 0, CAST(low AS VARCHAR), CAST(high AS VARCHAR),
       {low_key}, {high_key}
  FROM (SELECT f.catalog_id, f.table_id, n, c, {low} AS low, {low} + {width} AS high
          FROM (SELECT DISTINCT catalog_id, table_id FROM ducklake_data_file) f, {files}, {columns}) g
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lake of very many files is to be made."""

    backend: Backend
    server: str
    folder: Path
    name: str

    @property
    def url(self) -> str:
        """Its address."""
        match self.backend:
            case "PostgreSQL":
                return lake_url(self.server, self.name)
            case "SQLite":
                return f"sqlite:///{self.folder}/{self.name}.db"
            case "DuckDB":
                return f"duckdb:///{self.folder}/{self.name}.duckdb"

    @property
    def files(self) -> Path:
        """Its data path: no two lakes have one."""
        return self.folder / f"{self.name}_{self.backend}"

    def run(self, statements: list[str]) -> None:
        """Run SQL through the database's own driver, as one transaction."""
        match self.backend:
            case "PostgreSQL":
                options = f"-c search_path={self.name}"
                with psycopg.connect(self.server, options=options) as connection:
                    for statement in statements:
                        connection.execute(statement.encode())
                # A server does this by itself some time after so many rows came.
                with psycopg.connect(self.server, autocommit=True, options=options) as connection:
                    connection.execute("ANALYZE ducklake_data_file, ducklake_file_column_stats")
            case "SQLite":
                connection = sqlite3.connect(self.folder / f"{self.name}.db")
                with connection:
                    for statement in statements:
                        connection.execute(statement)
                connection.close()
            case "DuckDB":
                with duckdb.connect(str(self.folder / f"{self.name}.duckdb")) as database:
                    database.execute("USE ducklake")
                    for statement in statements:
                        database.execute(statement)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Ask through the database's own driver."""
        match self.backend:
            case "PostgreSQL":
                with psycopg.connect(self.server, options=f"-c search_path={self.name}") as connection:
                    return connection.execute(text.encode()).fetchall()
            case "SQLite":
                with closing(sqlite3.connect(self.folder / f"{self.name}.db")) as connection:
                    return connection.execute(text).fetchall()
            case "DuckDB":
                with duckdb.connect(str(self.folder / f"{self.name}.duckdb")) as database:
                    database.execute("USE ducklake")
                    return database.execute(text).fetchall()


def columns_named(columns: int) -> list[str]:
    """The names of so many columns, all BIGINT."""
    return [*NAMED, *(f"c{number}" for number in range(len(NAMED), columns))]


def first_file(columns: int) -> pa.Table:
    """The rows of the one file that is real: number 0."""
    made = [[low(0, c) + (row % (width(c) + 1)) for row in range(ROWS)] for c in range(1, columns + 1)]
    # Customers come from everywhere.
    made[2][-1] = CUSTOMERS - 1
    return pa.table(dict(zip(columns_named(columns), made, strict=True)))


def low(file: int, column: int) -> int:
    """The lowest value of a column in a file."""
    known = {1: file * ROWS, 2: file // PER_DAY, 3: 0}
    return known.get(column, (file * 7919 + column * 31) % 100003)


def width(column: int) -> int:
    """How far the values of a file go."""
    return {1: ROWS - 1, 2: 0, 3: CUSTOMERS - 1}.get(column, 1000)


def series(backend: Backend, name: str, start: int, end: int) -> str:
    """Whole numbers as a table, both ends included."""
    return _SERIES[backend].format(name=name, start=start, end=end)


def make_files(place: Place, *, files: int, columns: int) -> None:
    """A table `t` in a catalog `bench`, with a real first file and as many others as asked for."""
    with forklake.connect(place.url, data_path=place.files, create=True) as lake:
        made = lake.create_catalog("bench").create_table("t", first_file(columns).schema)
        made.append(first_file(columns))
    if files > 1:
        numbers = series(place.backend, "n", 1, files - 1)
        filled = {
            "first": _FIRST_ID,
            "rows": ROWS,
            "files": numbers,
            "columns": series(place.backend, "c", 1, columns),
            "low": LOW,
            "width": WIDTH,
            "low_key": _KEY.format("low"),
            "high_key": _KEY.format("high"),
        }
        place.run([_FILES.format_map(filled), _STATS.format_map(filled)])
    _check_keys()


def _check_keys() -> None:
    """The keys that SQL makes are those that forklake makes."""
    with sqlite3.connect(":memory:") as connection:
        for value in (0, 7, 10, 999, 1_000, 120_300, 99_999_999):
            (found,) = connection.execute(f"SELECT {_KEY.format('n')} FROM (SELECT {value} AS n)").fetchone()
            assert found == key_of(value, Scalar("int64")), (value, found)
    connection.close()
