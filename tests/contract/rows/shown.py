"""How tests of rows show what they expect."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import forklake

MANY = 150
"""More rows than stay in the metadata database."""


def numbered(*ids: int, v: str = "x") -> pa.Table:
    """Rows with these ids."""
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([v] * len(ids), pa.string())})


def many(start: int = 0, v: str = "x") -> pa.Table:
    """Rows that become a file."""
    return numbered(*range(start, start + MANY), v=v)


def ids(table: forklake.Table, where: str | None = None, **options: Any) -> list[int]:
    """The ids of the rows of a table, in order."""
    return sorted(table.scan(where, ["id"], **options).to_arrow().column("id").to_pylist())


def content(table: forklake.Table, **options: Any) -> list[tuple[Any, ...]]:
    """All rows with their row ids first, in their order."""
    found = table.scan(row_ids=True, **options).to_pylist()
    return sorted((row.pop("row_id"), *row.values()) for row in found)


def feed(table: forklake.Table, start: int, end: int | None = None) -> list[tuple[Any, ...]]:
    """What happened to rows, in order: kind, snapshot, row id and values."""
    return [tuple(row.values()) for row in table.changes(start, end).to_pylist()]
