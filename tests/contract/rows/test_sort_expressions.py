"""Sort orders by expressions, by macros and by nested columns: in new files, flushed ones and merged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import forklake
from forklake.errors import InvalidArgument, InvalidSchemaChange
from tests.contract.conftest import RunSql

COLUMNS = "id BIGINT, name VARCHAR, parts INTEGER[], place STRUCT(zip INTEGER, city VARCHAR)"
ROWS: list[dict[str, Any]] = [
    {"id": 3, "name": "Ab", "parts": [2, 1], "place": {"zip": 7, "city": "X"}},
    {"id": -4, "name": "b", "parts": [2], "place": {"zip": 1, "city": "Y"}},
    {"id": None, "name": "C", "parts": None, "place": None},
    {"id": 0, "name": None, "parts": [9], "place": {"zip": 7, "city": "A"}},
    {"id": 2, "name": "a", "parts": [], "place": {"zip": None, "city": "Z"}},
]
ORDERS = [
    ["id * id DESC", "lower(name)"],
    ["id * id DESC NULLS FIRST"],
    ["parts DESC", "id"],
    ["place.zip NULLS FIRST", "length(name) % 2 DESC", "id"],
    ["concat(name, ') DESC, (', id)"],
    ["name IS NULL", "list_sum(parts) DESC NULLS FIRST", "id"],
]


@pytest.fixture
def table(catalog: forklake.Catalog) -> forklake.Table:
    made = catalog.create_table("t", COLUMNS)
    made.set_option("data_inlining_row_limit", 0)
    return made


def in_files(lake: forklake.Lake, table: forklake.Table) -> list[list[Any]]:
    """The ids of the rows of each file, as they lie in it."""
    found: list[list[Any]] = []
    for file in table.files():
        sql = "SELECT id FROM read_parquet(?, file_row_number=true) ORDER BY file_row_number"
        found.append(
            [id for (id,) in duckdb.execute(sql, [str(Path(lake.data_path) / str(file.path))]).fetchall()]
        )
    return found


def by_duckdb(rows: list[dict[str, Any]], order: list[str], before: str = "") -> list[Any]:
    """The ids in the order that DuckDB gives them."""
    with duckdb.connect(":memory:") as oracle:
        oracle.execute(f"{before}; CREATE TABLE t ({COLUMNS})")
        oracle.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [list(row.values()) for row in rows])
        return [id for (id,) in oracle.execute(f"SELECT id FROM t ORDER BY {', '.join(order)}").fetchall()]


@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_in_the_order_of_expressions_wherever_they_are_written(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, order: list[str]
) -> None:
    table.set_sort_order(order)
    again = catalog.table("t").sort_order
    assert len(again) == len(order)
    table.append(ROWS)
    assert in_files(lake, table) == [by_duckdb(ROWS, order)]
    more = [row | {"id": None if row["id"] is None else row["id"] + 10} for row in ROWS]
    table.append(more)
    table.set_sort_order(list(again))
    assert (catalog.compact().files_in, table.sort_order) == (2, again)
    assert in_files(lake, table) == [by_duckdb([*ROWS, *more], order)]

    flushed = catalog.create_table("flushed", COLUMNS, sorted_by=order)
    flushed.append(ROWS)
    assert flushed.flush_inlined() == len(ROWS)
    assert in_files(lake, flushed) == [by_duckdb(ROWS, order)]


def test_rows_are_sorted_by_macros_as_they_are_when_rows_are_written(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    catalog.sql("CREATE MACRO twice(x) AS x * 2")
    catalog.sql("CREATE MACRO far(x, least := 1) AS abs(twice(x)) + least")
    catalog.sql("ALTER TABLE t SET SORTED BY (far(id, least := 3) DESC)")
    table.append(ROWS)
    assert in_files(lake, table) == [[-4, 3, 2, 0, None]]
    catalog.sql("CREATE OR REPLACE MACRO twice(x) AS x * -2")
    catalog.sql("CREATE OR REPLACE MACRO far(x, least := 1) AS twice(x)")
    table.append(ROWS)
    assert in_files(lake, table)[1:] == [[-4, 0, 2, 3, None]]
    catalog.compact()
    assert in_files(lake, table) == [[-4, -4, 0, 0, 2, 2, 3, 3, None, None]]

    fork = lake.fork(catalog.name, "fork")
    fork.sql("DROP MACRO far")
    with pytest.raises(InvalidArgument, match=r"far.*does not exist.*another sort order"):
        fork.table("t").append(ROWS)
    table.append(ROWS)
    fork.sql("ALTER TABLE t RESET SORTED BY")
    fork.table("t").append(ROWS)
    assert (table.count(), fork.table("t").count()) == (3 * len(ROWS), 3 * len(ROWS))


def test_the_macros_of_a_tables_own_schema_come_first(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.create_schema("s")
    catalog.sql("CREATE MACRO main.key(x) AS x; CREATE MACRO s.key(x) AS -x")
    for name, found in (("main.a", [1, 2]), ("s.a", [2, 1])):
        table = catalog.create_table(name, "id BIGINT", sorted_by=["key(id)"])
        table.set_option("data_inlining_row_limit", 0)
        table.append([{"id": 2}, {"id": 1}])
        assert in_files(lake, table) == [found]


@pytest.mark.parametrize(
    "body",
    [
        "(SELECT max(secret) FROM other)",
        "(SELECT content FROM read_text('/etc/passwd'))",
        "getenv('HOME') || x",
    ],
)
def test_rows_are_not_sorted_by_what_lies_outside_of_them(
    catalog: forklake.Catalog, table: forklake.Table, body: str
) -> None:
    catalog.create_table("other", "secret VARCHAR").append([{"secret": "s"}])
    catalog.create_macro("m", ["x"], body)
    catalog.create_macro("outer_m", ["x"], "m(x)")
    for call in ("m(name)", "outer_m(name)"):
        with pytest.raises(InvalidArgument, match="cannot be sorted"):
            table.set_sort_order([call])
    assert table.sort_order == ()


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        (["id + 1", "id + 1 DESC"], "twice"),
        (["nothing + 1"], 'no column "nothing"'),
        (["nothing(id)"], "nothing.*does not exist"),
        (["id || parts[1] + name"], "cannot be sorted"),
        (["1 + 1"], "names no column"),
        (["row_number() OVER ()"], "window"),
        (["id; DROP TABLE t"], "cannot be read|not one"),
    ],
)
def test_what_rows_cannot_be_sorted_by_is_refused_before_anything_is_stored(
    catalog: forklake.Catalog, table: forklake.Table, order: list[str], problem: str
) -> None:
    before = catalog.snapshot
    with pytest.raises(InvalidArgument, match=problem):
        table.set_sort_order(order)
    with pytest.raises(InvalidArgument, match=problem):
        catalog.create_table("other", COLUMNS, sorted_by=order)
    assert (catalog.snapshot, table.sort_order, "other" in catalog) == (before, (), False)


def test_expressions_follow_the_names_of_columns(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.set_sort_order(["ID * 2 DESC", "place.CITY || 'id' || name"])
    table.rename_column("id", "user")
    table.rename_column(("place", "city"), "town here")
    assert table.sort_order == (
        '"user" * 2 DESC NULLS LAST',
        """place."town here" || 'id' || name ASC NULLS LAST""",
    )
    table.rename_column("user", "id")
    renamed = [
        row | {"place": row["place"] and {"zip": 1, "town here": row["place"]["city"]}} for row in ROWS
    ]
    table.append(renamed)
    assert in_files(lake, table) == [[3, 2, 0, -4, None]]
    for column in ("id", "name", "place"):
        with pytest.raises(InvalidSchemaChange, match=f'sorted by "{column}"'):
            table.drop_column(column)
    table.drop_column("parts")
    table.restore(table.history()[0].id)
    assert table.sort_order == ()


def test_inserts_are_left_in_their_order_if_an_option_says_so(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table
) -> None:
    table.set_sort_order(["-id"])
    table.set_option("sort_on_insert", False)
    table.append(ROWS)
    table.append(ROWS)
    assert in_files(lake, table) == [[3, -4, None, 0, 2]] * 2
    catalog.compact()
    assert in_files(lake, table) == [[3, 3, 2, 2, 0, 0, -4, -4, None, None]]
    table.set_option("data_inlining_row_limit", 100)
    table.append(ROWS)
    table.flush_inlined()
    assert in_files(lake, table)[1:] == [[3, 2, 0, -4, None]]


def test_another_sort_order_is_no_other_shape_of_a_table(
    catalog: forklake.Catalog, table: forklake.Table, raw: RunSql
) -> None:
    """Others read from the schema versions of a table when its columns changed."""

    def versions() -> int:
        return len(raw(f"SELECT 1 FROM ducklake_schema_versions WHERE table_id = {table.id}"))

    before = versions()
    table.set_sort_order(["id"])
    table.set_sort_order(["lower(name)"])
    table.set_sort_order([])
    assert versions() == before
    with catalog.transaction() as tx:
        tx.table("t").set_sort_order(["id"])
        tx.table("t").add_column("more", "INTEGER")
    assert versions() == before + 1
    table.set_partitioning(["id"])
    assert versions() == before + 2
