"""Extensions of DuckDB from their wheels. With a DuckDB that one does not fit, tests are skipped."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb
import pytest


def extension(name: str) -> Path:
    """The file of an extension."""
    wheel = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert wheel is not None and wheel.submodule_search_locations, f"the wheel of {name} is not installed"
    found = Path(wheel.submodule_search_locations[0], "extensions")
    file = found / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not file.exists():
        fits = ", ".join(sorted(folder.name for folder in found.iterdir()))
        pytest.skip(f"the extension {name} is for DuckDB {fits}, and this is v{duckdb.__version__}")
    return file


def load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension into a database."""
    connection.execute(f"LOAD '{extension(name)}'")
