"""The tables of TPC-H, and its 22 queries with the parameters that its specification validates them with."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import forklake
from benchmarks.stock import attached
from forklake.api.catalog import Catalog
from forklake.model.options import Options

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_EXTENSION = "duckdb_extension_tpch"


def queries(scale_factor: float) -> dict[str, str]:
    """The queries by their names."""
    text = (Path(__file__).parent / "tpch.sql").read_text()
    _, *pieces = re.split(r"^-- name: (Q\d+)\n", text, flags=re.MULTILINE)
    # Of Q11, which takes the share of a supplier that matters by the size of everything.
    fraction = f"{0.0001 / scale_factor:.10f}"
    named = zip(pieces[::2], pieces[1::2], strict=True)
    return {name: sql.strip().replace("{fraction}", fraction) for name, sql in named}


@contextmanager
def generated(scale_factor: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in memory with all tables."""
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.execute("SET enable_progress_bar = false")
        file = f"extensions/v{duckdb.__version__}/tpch.duckdb_extension"
        connection.execute(f"LOAD '{importlib.resources.files(_EXTENSION) / file}'")
        connection.execute(f"CALL dbgen(sf = {scale_factor})")
        yield connection


@dataclass(frozen=True, slots=True)
class Lakes:
    """The same tables three times."""

    catalog: Catalog
    plain: duckdb.DuckDBPyConnection
    """Views of the very files of the catalog, by `read_parquet`."""
    stock: duckdb.DuckDBPyConnection


@contextmanager
def lakes(folder: Path, scale_factor: float) -> Iterator[Lakes]:
    """The same tables in a catalog and in a stock DuckLake, whose files are written with the same options."""
    options = Options()
    with (
        forklake.connect(f"sqlite:///{folder}/tpch.db", data_path=folder / "lake", create=True) as lake,
        attached(f"{folder}/stock.ducklake", str(folder / "stock")) as stock,
    ):
        for name in ("parquet_compression", "parquet_compression_level", "parquet_row_group_size"):
            stock.execute(f"CALL lake.set_option('{name}', '{getattr(options, name)}')")
        # A plain read needs files of the smallest tables too.
        lake.set_option("data_inlining_row_limit", 0)
        catalog = lake.create_catalog("tpch")
        with generated(scale_factor) as made:
            for table in TABLES:
                rows = made.execute(f"FROM {table}").to_arrow_table(options.parquet_row_group_size)
                catalog.create_table(table, rows.schema).append(rows)
                stock.register("made", rows)
                stock.execute(f"CREATE TABLE lake.{table} AS FROM made")
                stock.unregister("made")
        stock.execute("USE lake")
        with duckdb.connect() as plain:
            plain.execute("SET enable_progress_bar = false")
            for table in TABLES:
                files = catalog.table(table).scan().plan().files
                listed = ", ".join(f"'{folder / 'lake' / file.path}'" for file in files)
                plain.execute(f"CREATE VIEW {table} AS FROM read_parquet([{listed}])")
            yield Lakes(catalog, plain, stock)


def answer(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as Python has them, whatever the columns are called."""
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
