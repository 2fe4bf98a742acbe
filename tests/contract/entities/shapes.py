"""A table with nested columns, and how its columns are compared."""

from __future__ import annotations

import forklake

DDL = """
id BIGINT NOT NULL, at TIMESTAMPTZ DEFAULT now(), price DECIMAL(10,2) DEFAULT 1.5,
tags STRUCT(a INT, b VARCHAR[])
"""


def shape(table: forklake.Table) -> list[tuple[int, str, str]]:
    """Ids, names and types of all columns, nested fields included."""
    return [(c.id, c.name, c.type) for column in table.columns for c in column.walk()]
