"""A Parquet file without rows. DuckDB reads no list of files with more threads than it has entries."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from forklake.lazy.arrow import pa, pq

WORTH_IT = 500_000
"""Below so many rows, one thread is enough."""


def spare_entries(files: int, rows: int) -> list[str]:
    """What to put behind a list of few files, so that all threads work on them."""
    if rows < WORTH_IT:
        return []
    return [empty_file()] * max(0, min(8, os.cpu_count() or 1) - files)


def empty_file() -> str:
    """Where it is."""
    return _empty_file(os.getpid())


@cache
def _empty_file(process: int) -> str:
    folder = tempfile.mkdtemp(prefix="forklake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "empty.parquet"
    pq.write_table(pa.table({"nothing": pa.array([], pa.int8())}), path)
    return str(path)
