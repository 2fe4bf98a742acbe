"""The bounds that are stored for the columns of a table: no row lies outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forklake
from tests.invariants import check_files

Bounds = Callable[[forklake.Table], list[tuple[Any, ...]]]


@pytest.fixture
def bounds(raw: Callable[..., Any]) -> Bounds:
    """Bounds of every column, and whether it has NULLs, by the id of the column."""
    return lambda table: [
        (column, low, high, bool(null))
        for column, low, high, null in raw(
            "SELECT column_id, min_value, max_value, contains_null FROM ducklake_table_column_stats "
            f"WHERE table_id = {table.id} ORDER BY catalog_id, column_id"
        )
    ]


def test_a_merge_of_inlined_rows_widens_them(
    lake: forklake.Lake, catalog: forklake.Catalog, bounds: Bounds
) -> None:
    table = catalog.create_table("t", "n INTEGER")
    table.append([{"n": 1}])
    lake.fork(catalog.name, "f").table("t").append([{"n": 5}, {"n": None}])
    lake.merge("f", into=catalog.name)
    assert bounds(table) == [(1, "1", "5", True)]
    check_files(lake)


def test_rows_that_are_older_than_a_column_have_its_default(
    lake: forklake.Lake, catalog: forklake.Catalog, bounds: Bounds
) -> None:
    table = catalog.create_table("t", "n INTEGER")
    table.append([{"n": 1}])
    table.add_column("d", "INTEGER", default=5)
    table.add_column("e", "INTEGER")
    table.append([{"n": 2, "d": 1, "e": 1}])
    assert bounds(table) == [(1, "1", "2", False), (2, "1", "5", False), (3, "1", "1", True)]
    # Where nothing is older, nothing is wider.
    fresh = catalog.create_table("u", "n INTEGER")
    fresh.append([{"n": 1}])
    assert bounds(fresh) == [(1, "1", "1", False)]
    check_files(lake)


@pytest.mark.parametrize("rows", [1, 300], ids=["inlined", "in a file"])
def test_texts_that_are_empty_or_begin_alike(
    lake: forklake.Lake, catalog: forklake.Catalog, rows: int
) -> None:
    table = catalog.create_table("t", "v VARCHAR")
    long = "p" * 40
    for texts in (["", "y"], [f"{long}b"], [f"{long}c", f"{long}a"], [f"z{long}b"], [f"z{long}c"]):
        table.append([{"v": text} for text in texts] * rows)
        check_files(lake)
    other = catalog.create_table("u", "v VARCHAR")
    for texts in ([""], ["y"], [f"z{long}b", f"z{long}a", f"z{long}c"], [f"z{long}d"]):
        other.append([{"v": text} for text in texts] * rows)
        check_files(lake)


def test_a_table_has_bounds_of_what_has_values(catalog: forklake.Catalog, raw: Callable[..., Any]) -> None:
    catalog.sql("CREATE TABLE nested (i INTEGER, s STRUCT(a INTEGER), l INTEGER[], m MAP(INTEGER, INTEGER))")
    table = catalog.table("nested")
    table.set_option("data_inlining_row_limit", 0)
    catalog.sql("INSERT INTO nested SELECT x, {'a': x}, [x], MAP([x], [x * 2]) FROM range(9) AS t(x)")
    catalog.sql("DELETE FROM nested WHERE i = 3")
    catalog.sql("CALL rewrite_data_files('nested', delete_threshold => 0)")
    stored = "SELECT column_id, min_value, max_value FROM ducklake_table_column_stats ORDER BY column_id"
    names = {column.id: column.name for top in table.columns for column in top.walk()}
    bounds = [(names[number], low, high) for number, low, high in raw(stored)]
    assert [name for name, _, _ in bounds] == ["i", "a", "element", "key", "value"]
    assert {low for _, low, _ in bounds} == {"0"}
    assert [high for _, _, high in bounds] == ["8", "8", "8", "8", "16"]
    assert catalog.sql("SELECT count(*) FROM nested WHERE s IS NULL OR s.a > 4").to_rows() == [(4,)]
