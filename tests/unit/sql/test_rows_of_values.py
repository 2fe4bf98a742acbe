"""Which VALUES an INSERT has to convert value by value."""

from __future__ import annotations

import duckdb
import pytest

from forklake.engine.query.tree import QueryTree


@pytest.mark.parametrize(
    ("sql", "width"),
    [
        ("VALUES (1, 'a')", None),
        ("VALUES (1, 'a'), (2, 'b')", None),
        ("VALUES (1, NULL), (NULL, 'b')", None),
        ("VALUES (1, 2.5), (2, 3)", 2),
        ("VALUES ('NaN'), (1)", 1),
        ("VALUES (1.5), (22.55)", 1),
        ("VALUES (1 + 1), (2)", 1),
        ("VALUES " + ", ".join(["(1)"] * 101), 1),
        ("VALUES ('a'), (1) LIMIT 1", None),
        ("SELECT * FROM (VALUES ('a'), (1))", None),
    ],
)
def test_only_rows_of_different_types_are_converted_one_by_one(sql: str, width: int | None) -> None:
    with duckdb.connect() as connection:
        tree = QueryTree.read(connection, sql)
    assert tree is not None
    assert tree.width_of_mixed_values == width
