"""The functions that DuckDB has itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from forklake.engine.query.workbench import Workbench


def is_builtin(workbench: Workbench, parts: Sequence[str]) -> bool:
    """Whether a function that was written without a schema is one of DuckDB."""
    return len(parts) == 1 and parts[0].lower() in _names(workbench)


def _names(workbench: Workbench) -> frozenset[str]:
    found = _known(os.getpid())
    if not found:
        rows = workbench.connection.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()")
        found |= {str(row[0]) for row in rows.fetchall()}
        # The parser makes functions of these, which no list has.
        found |= {"struct_extract_at", "__internal_compress_string_uhugeint"}
    return frozenset(found)


@lru_cache(1)
def _known(process: int) -> set[str]:
    return set()
