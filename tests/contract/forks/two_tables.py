"""Two tables with nested values, alike, and what they hold."""

from __future__ import annotations

import pyarrow as pa

import forklake

ROWS = 300


def two_tables(lake: forklake.Lake) -> forklake.Catalog:
    """A catalog "p" with tables "t" and "u"."""
    parent = lake.create_catalog("p")
    for name in ("t", "u"):
        parent.create_table(name, "id BIGINT, v BIGINT, s STRUCT(x DOUBLE, y VARCHAR[])").append(fresh(ROWS))
    return parent


def fresh(rows: int, start: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": range(start, start + rows),
            "v": [0] * rows,
            "s": [{"x": float("nan"), "y": ["a", None]}] * rows,
        }
    )


def values(catalog: forklake.Catalog, table: str = "t") -> dict[int, int]:
    found = catalog.table(table).scan(row_ids=True).to_pylist()
    assert len({row["row_id"] for row in found}) == len(found) == catalog.table(table).count()
    return {row["id"]: row["v"] for row in found}


def base(**changed: int) -> dict[int, int]:
    return dict.fromkeys(range(ROWS), 0) | {int(key[1:]): value for key, value in changed.items()}
