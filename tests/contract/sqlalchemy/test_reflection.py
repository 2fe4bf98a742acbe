"""What SQLAlchemy finds in a catalog, also of the transaction that it is in."""

from __future__ import annotations

import pytest
import sqlalchemy as sa


@pytest.fixture
def connection(engine: sa.Engine):
    with engine.connect() as opened:
        run = opened.exec_driver_sql
        run("CREATE SCHEMA sales")
        run(
            "CREATE TABLE sales.orders (id BIGINT NOT NULL, note VARCHAR DEFAULT 'it''s', made TIMESTAMPTZ "
            "DEFAULT now(), price DECIMAL(10, 2), u UBIGINT, h HUGEINT, d DOUBLE, f FLOAT, b BLOB, j JSON, "
            "t TIMESTAMP, day DATE, s STRUCT(a INTEGER), l INTEGER[][], m MAP(VARCHAR, INTEGER), x UUID)"
        )
        run("COMMENT ON TABLE sales.orders IS 'one row for each order'")
        run("COMMENT ON COLUMN sales.orders.note IS 'said by whom'")
        run("CREATE VIEW sales.dear AS SELECT id, price * 2 AS twice FROM sales.orders")
        run("CREATE TABLE lines (id INTEGER)")
        yield opened


def test_names_are_listed_by_schema(connection: sa.Connection) -> None:
    found = sa.inspect(connection)
    assert found.default_schema_name == "main"
    assert sorted(found.get_schema_names()) == ["main", "sales"]
    assert (found.get_table_names(), found.get_table_names("sales")) == (["lines"], ["orders"])
    assert (found.get_view_names(), found.get_view_names("sales")) == ([], ["dear"])
    assert found.has_schema("SALES") and not found.has_schema("nothing")
    assert all(found.has_table(name, "Sales") for name in ("orders", "dear", "ORDERS"))
    assert not found.has_table("lines", "sales")


def test_columns_have_types_defaults_and_comments(connection: sa.Connection) -> None:
    found = {column["name"]: column for column in sa.inspect(connection).get_columns("orders", "sales")}
    types = {name: str(column["type"].compile(connection.dialect)) for name, column in found.items()}
    assert types == {
        "id": "BIGINT", "note": "VARCHAR", "made": "TIMESTAMP WITH TIME ZONE", "price": "DECIMAL(10, 2)",
        "u": "UBIGINT", "h": "HUGEINT", "d": "DOUBLE", "f": "REAL", "b": "BLOB", "j": "JSON",
        "t": "TIMESTAMP", "day": "DATE", "s": 'STRUCT("a" INTEGER)', "l": "INTEGER[][]",
        "m": "MAP(VARCHAR, INTEGER)", "x": "UUID",
    }  # fmt: skip
    assert [name for name, column in found.items() if not column["nullable"]] == ["id"]
    assert (found["note"]["default"], found["made"]["default"]) == ("'it''s'", "now()")
    assert (found["note"]["comment"], found["id"]["comment"]) == ("said by whom", None)
    view = {
        column["name"]: str(column["type"]) for column in sa.inspect(connection).get_columns("dear", "sales")
    }
    assert view == {"id": "BIGINT", "twice": "DECIMAL(18, 2)"}
    assert "price * 2" in sa.inspect(connection).get_view_definition("dear", "sales")


def test_tables_can_be_loaded_and_made_again_elsewhere(connection: sa.Connection) -> None:
    orders = sa.Table("orders", sa.MetaData(), schema="sales", autoload_with=connection)
    assert orders.comment == "one row for each order"
    assert (list(orders.primary_key), list(orders.foreign_keys), list(orders.indexes)) == ([], [], [])
    copied = orders.to_metadata(sa.MetaData(), schema=None, name="copied")
    copied.create(connection)
    found = sa.inspect(connection)
    assert [(column["name"], str(column["type"])) for column in found.get_columns("copied")] == [
        (column["name"], str(column["type"])) for column in found.get_columns("orders", "sales")
    ]
    everything = sa.MetaData()
    everything.reflect(connection, schema="sales", views=True)
    assert set(everything.tables) == {"sales.orders", "sales.dear"}


def test_what_is_not_there_is_said(connection: sa.Connection) -> None:
    found = sa.inspect(connection)
    for look in (found.get_columns, found.get_pk_constraint, found.get_indexes, found.get_table_comment):
        with pytest.raises(sa.exc.NoSuchTableError, match=r"sales\.nothing"):
            look("nothing", "sales")
