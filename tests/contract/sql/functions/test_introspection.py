"""What a catalog holds, listed as DuckDB lists its own databases: DuckDB says what is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import forklake
from forklake.model.entities import MacroParameter
from forklake.sql.functions.function import Caller
from forklake.sql.functions.introspection import INTROSPECTION

TABLES = (
    ("main", "plain", "id BIGINT NOT NULL, note VARCHAR DEFAULT 'it''s', n INTEGER DEFAULT 7"),
    (
        "Odd one",
        "types",
        "a TINYINT, b SMALLINT, c HUGEINT, d UTINYINT, e UBIGINT, f FLOAT, g DOUBLE, h DECIMAL(10,2) "
        "DEFAULT 1.50, i DATE, j TIME, k TIMESTAMP, l TIMESTAMPTZ DEFAULT now(), m BLOB, n UUID, o JSON, "
        "p BOOLEAN DEFAULT true, "
        'q STRUCT(a INTEGER, "B b" VARCHAR, "left" DATE, date DATE), r INTEGER[][], '
        "s MAP(VARCHAR, DECIMAL(4,1)), "
        'u TIMESTAMP_S, v TIMESTAMP_MS, w TIMESTAMP_NS, "select" INTEGER, "Straße" INTEGER NOT NULL',
    ),
)
VIEWS = (("main", "v", "SELECT 1 AS one, 'x' AS two", ()), ("Odd one", "named", "SELECT 1, 2", ("a", "b c")))
IDS = {"database_oid", "schema_oid", "table_oid", "view_oid", "oid", "function_oid", "TABLE_CATALOG"}


@pytest.fixture
def twin() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of DuckDB's own that holds the same."""
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("ATTACH ':memory:' AS main_catalog; USE main_catalog")
        connection.execute('CREATE SCHEMA "Odd one"')
        for schema, name, columns in TABLES:
            connection.execute(f'CREATE TABLE "{schema}".{name} ({columns})')
        for schema, name, query, names in VIEWS:
            listed = f"({', '.join(map(repr_name, names))})" if names else ""
            connection.execute(f'CREATE VIEW "{schema}".{name}{listed} AS {query}')
        connection.execute("CREATE MACRO twice(x, y := 2) AS x * y")
        connection.execute("CREATE MACRO rows(x) AS TABLE SELECT x")
        connection.execute("COMMENT ON TABLE plain IS 'a table'; COMMENT ON COLUMN plain.note IS 'a column'")
        yield connection


def repr_name(name: str) -> str:
    return f'"{name}"'


@pytest.fixture
def filled(catalog: forklake.Catalog) -> forklake.Catalog:
    """The catalog with the same as the database."""
    catalog.create_schema("Odd one")
    for schema, name, columns in TABLES:
        catalog.create_table((schema, name), columns)
    for schema, name, query, names in VIEWS:
        catalog.create_view((schema, name), query, columns=names)
    catalog.create_macro("twice", ["x", MacroParameter("y", default="2")], "x * y")
    catalog.create_macro("rows", ["x"], "SELECT x", table=True)
    catalog.table("plain").comment("a table")
    catalog.table("plain").comment("a column", column="note")
    return catalog


def listed(lake: forklake.Lake, catalog: forklake.Catalog, name: str, schema: str = "main") -> pa.Table:
    with duckdb.connect(":memory:") as connection:

        def columns(view: Any) -> list[tuple[str, str]]:
            names = view.column_aliases
            described = connection.execute(f"DESCRIBE {view.sql}").fetchall()
            return [(names[at] if names else row[0], row[1]) for at, row in enumerate(described)]

        return INTROSPECTION[name](Caller(lake, catalog, catalog, schema, view_columns=columns))


WHERE = {
    "duckdb_tables": "duckdb_tables() WHERE database_name = 'main_catalog'",
    "duckdb_columns": "duckdb_columns() WHERE database_name = 'main_catalog'",
    "duckdb_views": "duckdb_views() WHERE database_name = 'main_catalog'",
    "duckdb_schemas": "duckdb_schemas() WHERE database_name = 'main_catalog'",
    "duckdb_functions": "duckdb_functions() WHERE database_name = 'main_catalog'",
    "duckdb_constraints": "duckdb_constraints() WHERE database_name = 'main_catalog'",
    "duckdb_databases": "duckdb_databases() WHERE database_name = 'main_catalog'",
    "duckdb_indexes": "duckdb_indexes() WHERE database_name = 'main_catalog'",
    "information_schema.tables": "information_schema.tables WHERE table_catalog = 'main_catalog'",
    "information_schema.columns": "information_schema.columns WHERE table_catalog = 'main_catalog'",
    "information_schema.schemata": "information_schema.schemata WHERE catalog_name = 'main_catalog'",
    "information_schema.views": "information_schema.views WHERE table_catalog = 'main_catalog'",
    "show_tables": "(SHOW TABLES) WHERE name <> 'found'",
    "show_schemas": "(SHOW SCHEMAS) WHERE database_name = 'main_catalog'",
    "show_databases": "(SHOW DATABASES) WHERE database_name = 'main_catalog'",
    "show_all_tables": "(SHOW ALL TABLES) WHERE database = 'main_catalog'",
}
# What DuckDB has otherwise: its own spelling of queries and defaults, what is internal, where it is.
OTHERWISE = {
    "duckdb_tables": {"sql"},
    "duckdb_columns": {"column_default"},
    "information_schema.columns": {"column_default"},
    "duckdb_views": {"sql"},
    "information_schema.views": {"view_definition"},
    "duckdb_schemas": {"internal"},
    "duckdb_constraints": {"constraint_index"},
    "duckdb_functions": {"macro_definition"},
    "duckdb_databases": {"path", "tags", "options", "type"},
}


def test_listings_look_as_in_duckdb(
    lake: forklake.Lake, filled: forklake.Catalog, twin: duckdb.DuckDBPyConnection
) -> None:
    twin.execute("SET arrow_lossless_conversion = true")
    assert WHERE.keys() == INTROSPECTION.keys()
    for name, source in WHERE.items():
        found = listed(lake, filled, name)
        twin.register("found", found)
        described = twin.execute(f"DESCRIBE FROM {source.partition(' WHERE')[0]}").fetchall()
        assert twin.execute("DESCRIBE FROM found").fetchall() == described, name
        otherwise = IDS | OTHERWISE.get(name, set())
        chosen = ", ".join(f'"{column}"' for column in found.column_names if column not in otherwise)
        theirs = twin.execute(f"SELECT {chosen} FROM {source}").fetchall()
        ours = twin.execute(f"SELECT {chosen} FROM found").fetchall()
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), name
        assert ours or name == "duckdb_indexes"
        twin.unregister("found")


def test_statements_that_are_listed_create_the_same_again(
    lake: forklake.Lake, filled: forklake.Catalog, twin: duckdb.DuckDBPyConnection
) -> None:
    kept = f"SELECT * EXCLUDE (table_oid, comment) FROM {WHERE['duckdb_columns']} ORDER BY ALL"
    expected = twin.execute(kept).fetchall()
    for kind, name in {"TABLE": "duckdb_tables", "VIEW": "duckdb_views"}.items():
        for row in listed(lake, filled, name).to_pylist():
            thing = row["table_name" if kind == "TABLE" else "view_name"]
            twin.execute(f'DROP {kind} "{row["schema_name"]}".{thing}; {row["sql"]}')
    assert twin.execute(kept).fetchall() == expected


def test_numbers_of_rows_are_those_that_are_seen(lake: forklake.Lake, filled: forklake.Catalog) -> None:
    table = filled.table("plain")
    table.append([{"id": at} for at in range(200)])
    table.append([{"id": 1}])
    table.delete("id < 150")
    fork = lake.fork(filled, "agent")
    fork.table("plain").append([{"id": 1}])

    def count(handle: Any) -> int:
        found = INTROSPECTION["duckdb_tables"](Caller(lake, filled, handle)).to_pylist()
        return next(row["estimated_size"] for row in found if row["table_name"] == "plain")

    assert (count(filled), count(fork), count(filled.at(1 + filled.snapshots()[-4].id))) == (50, 51, 200)
    with filled.transaction() as tx:
        tx.table("plain").append([{"id": 1}])
        tx.table("plain").delete("id = 199")
        assert (count(tx), count(filled)) == (50, 50)
        tx.rollback()


def test_a_view_that_cannot_be_read_is_listed_without_columns(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.create_view("broken", "SELECT * FROM nowhere")
    caller = Caller(lake, catalog, catalog)
    (row,) = INTROSPECTION["duckdb_views"](caller).to_pylist()
    assert (row["view_name"], row["is_bound"], row["column_count"]) == ("broken", False, None)
    assert INTROSPECTION["duckdb_columns"](caller).num_rows == 0
    assert INTROSPECTION["show_tables"](caller).to_pylist() == [{"name": "broken"}]


def test_tables_are_shown_of_the_schema_that_names_mean(
    lake: forklake.Lake, filled: forklake.Catalog
) -> None:
    assert listed(lake, filled, "show_tables", "Odd one").column("name").to_pylist() == ["named", "types"]
    with filled.transaction() as tx:
        tx.create_table("new", "id BIGINT")
        tx.drop_view("v")
        found = INTROSPECTION["show_tables"](Caller(lake, filled, tx))
        assert found.column("name").to_pylist() == ["new", "plain"]
        tx.rollback()
