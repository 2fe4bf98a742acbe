"""CREATE INDEX, DROP INDEX and SHOW INDEXES."""

from __future__ import annotations

import pytest

import forklake
from forklake.errors import AmbiguousName, IndexNotFound, InvalidSql


def test_indexes_in_sql(catalog: forklake.Catalog, table: forklake.Table) -> None:
    run = catalog.sql
    run("CREATE INDEX by_id ON t USING Shelf (id) INCLUDE (name) WITH (height = 4, maintain = 'commit')")
    run("CREATE INDEX IF NOT EXISTS BY_ID ON t (name)")
    shown = ("main", "t", "by_id", "shelf", ["id"], ["name"], "commit", '{"height": 4}')
    assert run("SHOW INDEXES").to_rows() == [shown]
    assert run("SHOW INDEXES FROM main.t").to_rows() == run("CALL indexes('t')").to_rows() == [shown]
    assert run("SELECT kind FROM indexes() WHERE index_name = 'by_id'").to_rows() == [("shelf",)]
    assert run("SHOW INDEXES", read_only=True).to_rows() == [shown]
    ((name, text),) = run("SELECT index_name, sql FROM duckdb_indexes()").to_rows()
    assert name == "by_id"
    run("BEGIN; DROP INDEX main.By_Id; SHOW INDEXES")
    assert run("SHOW INDEXES").to_rows() == []
    run(text)
    run("COMMIT")
    assert run("SHOW INDEXES").to_rows() == [shown]
    run("CREATE TABLE u (id INTEGER); CREATE INDEX by_id ON u USING shelf (id)")
    with pytest.raises(AmbiguousName, match="t and u each have an index"):
        run("DROP INDEX by_id")
    run("DROP INDEX by_id ON t")
    assert [row[1] for row in run("SHOW INDEXES").to_rows()] == ["u"]
    assert table.indexes() == []
    run("DROP INDEX by_id; DROP INDEX IF EXISTS by_id; DROP INDEX IF EXISTS by_id ON nothing")
    assert run("SHOW INDEXES").to_rows() == []


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE UNIQUE INDEX i ON t USING shelf (id)", InvalidSql, "leave UNIQUE out"),
        ("CREATE INDEX i ON t USING shelf (place.x)", forklake.InvalidIndex, "as a whole"),
        ("CREATE INDEX i ON t USING shelf (id) WITH (depth = 3)", forklake.InvalidIndex, "no depth"),
        ("CREATE INDEX i ON nothing USING shelf (id)", forklake.TableNotFound, "nothing"),
        ("DROP INDEX i", IndexNotFound, "SHOW INDEXES"),
        ("DROP INDEX i ON t", IndexNotFound, "it has none"),
        ("SHOW INDEXES FROM nothing", forklake.TableNotFound, "nothing"),
    ],
)
def test_bad_statements(
    catalog: forklake.Catalog, table: forklake.Table, text: str, error: type[Exception], message: str
) -> None:
    before = catalog.snapshot
    with pytest.raises(error, match=message):
        catalog.sql(text)
    assert catalog.snapshot == before
