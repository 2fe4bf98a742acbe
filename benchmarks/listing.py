"""Opening and listing a catalog with many tables, compared with one that has few."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import forklake
from benchmarks.contenders import lake_url
from benchmarks.counting import calls
from forklake.api.catalog import Catalog
from forklake.store.postgres import PostgresDatabase

COLUMNS = 20
FEW = 10
_TRANSACTIONS = 5
_REPEATS = 9


@dataclass(frozen=True, slots=True)
class Statements:
    """How many SQL statements each step takes on a handle that has read nothing yet."""

    open_catalog: int
    open_table: int
    list_tables: int


@dataclass(frozen=True, slots=True)
class Listing:
    """How it went."""

    tables: int
    columns: int
    transactions: int
    creation: float
    """Seconds to create them all."""
    first: float
    """Seconds of the first listing, before the server has any statistics of the tables."""
    median: float
    many: Statements
    few: Statements


def listing(server: str, folder: Path, *, tables: int) -> Listing:
    """Create both catalogs, then look at them through fresh handles."""
    url = lake_url(server, "listing")
    with forklake.connect(url, data_path=folder / "listing", create=True) as lake:
        _fill(lake.create_catalog("few"), FEW, 1)
        began = time.perf_counter()
        _fill(lake.create_catalog("many"), tables, _TRANSACTIONS)
        creation = time.perf_counter() - began
    seconds = [_list(url, tables) for _ in range(_REPEATS)]
    return Listing(
        tables,
        COLUMNS,
        _TRANSACTIONS,
        creation,
        seconds[0],
        statistics.median(seconds),
        _statements(url, "many", tables),
        _statements(url, "few", FEW),
    )


def _fill(catalog: Catalog, tables: int, transactions: int) -> None:
    columns = pa.schema([(f"column_{number:02}", pa.int64()) for number in range(COLUMNS)])
    for part in range(transactions):
        with catalog.transaction() as tx:
            for number in range(part, tables, transactions):
                tx.create_table(_name(number), columns)


def _name(number: int) -> str:
    return f"table_{number:05}"


def _list(url: str, expected: int) -> float:
    with forklake.connect(url) as lake:
        catalog = lake.catalog("many")
        began = time.perf_counter()
        found = catalog.tables()
        seconds = time.perf_counter() - began
    assert len(found) == expected
    return seconds


def _statements(url: str, name: str, tables: int) -> Statements:
    with (
        calls(PostgresDatabase, "rows") as reads,
        calls(PostgresDatabase, "transaction") as transactions,
        forklake.connect(url) as first,
        forklake.connect(url) as second,
    ):
        start = reads()
        catalog = first.catalog(name)
        opened = reads()
        assert len(catalog.table(_name(tables // 2)).columns) == COLUMNS
        table = reads()
        fresh = second.catalog(name)
        again = reads()
        assert len(fresh.tables()) == tables
        listed = reads()
        assert transactions() == 0  # Nothing was read past the handle that is counted.
    return Statements(opened - start, table - opened, listed - again)
