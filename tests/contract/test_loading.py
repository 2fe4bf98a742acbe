"""A command loads the driver of its own database, and nothing that reads rows."""

from __future__ import annotations

import forklake
from tests.loaded import HEAVY, loaded

# DuckDB itself loads pandas, and so Arrow, with the first parameter of a statement, if they are installed.
DRIVERS = {
    "sqlite": set[str](),
    "duckdb": {"duckdb", "numpy", "pandas", "pyarrow"},
    "postgresql": {"psycopg"},
}


def test_listing_catalogs_loads_the_driver_alone(lake: forklake.Lake, lake_url: str) -> None:
    lake.create_catalog("shop")
    lake.close()
    modules = loaded("from forklake.cli import main\nmain()", "--lake", lake_url, "catalogs")
    assert modules & HEAVY - {"rich", "typer"} == DRIVERS[lake_url.partition(":")[0]]
