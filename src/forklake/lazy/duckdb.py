"""DuckDB, loaded at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forklake.lazy import LazyModule

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = LazyModule("duckdb")

__all__ = ["duckdb"]
