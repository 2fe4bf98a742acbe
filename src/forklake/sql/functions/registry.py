"""Every function that SQL knows beside those of DuckDB, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from forklake.sql.functions import catalogs, history, indexes, maintenance, options, restoring, tables, upkeep
from forklake.sql.functions.function import SqlFunction

FUNCTIONS: Mapping[str, SqlFunction] = MappingProxyType(
    {
        function.name: function
        for module in (history, tables, indexes, options, maintenance, restoring, upkeep, catalogs)
        for function in module.FUNCTIONS
    }
)
"""In lower case, without the prefix `ducklake_`."""
