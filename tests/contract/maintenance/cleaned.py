"""What is there, and what has to be: for tests that clean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import forklake
from forklake.store.tables import TABLES

NOW = timedelta(0)
LEFT = {"ducklake_metadata", "ducklake_snapshot", "ducklake_counter"}
"""What a lake without catalogs has: settings, its last snapshot, and where its counters stand."""
RunSql = Callable[[str], list[tuple[Any, ...]]]


def rows(start: int, end: int) -> list[dict[str, object]]:
    """Rows of a table `t`."""
    return [{"id": number, "v": f"v{number}"} for number in range(start, end)]


def ids(catalog: forklake.Catalog) -> list[int]:
    """The rows that a catalog has."""
    return sorted(row["id"] for row in catalog.table("t").to_pylist())


def clean(lake: forklake.Lake) -> None:
    """Expire and collect everything that can be."""
    lake.expire(older_than=NOW)
    assert not lake.collect_garbage(older_than=NOW).kept


def on_disk(folder: Path) -> set[str]:
    """The data files below a data path."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if path.is_file()}


def named(raw: RunSql) -> set[str]:
    """The files that any row names."""
    found = raw(
        "SELECT path FROM ducklake_data_file WHERE path <> '' UNION SELECT path FROM ducklake_delete_file"
    )
    return {path for (path,) in found}


def left_behind(raw: RunSql) -> dict[str, int]:
    """How many rows are left in a lake without catalogs that should not be there."""
    counts = {name: raw(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES if name not in LEFT}
    return {name: number for name, number in counts.items() if number}


def files(tmp_path: Path) -> set[str]:
    """The names of the data files of a lake."""
    return {path.name for path in (tmp_path / "files").rglob("*.parquet")}
