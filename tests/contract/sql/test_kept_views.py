"""What DuckDB keeps between statements never shows in the next one."""

from __future__ import annotations

import forklake
from tests.contract.sql.conftest import Twins


def test_a_name_means_what_it_is_now(twins: Twins) -> None:
    query = "SELECT * FROM t ORDER BY 1"
    twins.do("CREATE TABLE t (a INTEGER, b VARCHAR)")
    twins.do("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    for change in (
        "UPDATE t SET b = 'z' WHERE a = 2",
        "ALTER TABLE t ALTER a SET DATA TYPE BIGINT",
        "ALTER TABLE t ADD COLUMN c DOUBLE DEFAULT 1.5",
        "ALTER TABLE t RENAME COLUMN b TO d",
        "DELETE FROM t",
        "INSERT INTO t VALUES (5, 'new', 0.5)",
        "DROP TABLE t",
        "CREATE TABLE T (a INTEGER, b VARCHAR)",
        "INSERT INTO T VALUES (7, 'upper')",
        "DROP TABLE T",
        "CREATE VIEW t AS SELECT 'a view' AS what",
        "DROP VIEW t",
        "CREATE TABLE t (a VARCHAR, b INTEGER)",
        "INSERT INTO t VALUES ('x', 1)",
        "DROP TABLE t",
        "CREATE TABLE t (a INTEGER, b VARCHAR)",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
    ):
        twins.do(change)
        if not change.startswith("DROP"):
            twins.same(query)
            twins.same(query)
            twins.same(
                "SELECT a.* FROM t AS a JOIN t AS b USING (a) ORDER BY 1" if "VIEW" not in change else query
            )


def test_rows_of_a_transaction_are_gone_with_it(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (a INTEGER)")
    catalog.sql("INSERT INTO t VALUES (1)")
    query = "SELECT a FROM t ORDER BY a"
    assert catalog.sql(query).to_rows() == [(1,)]
    catalog.sql("BEGIN")
    catalog.sql("INSERT INTO t VALUES (2)")
    assert catalog.sql(query).to_rows() == [(1,), (2,)]
    catalog.sql("ROLLBACK")
    assert catalog.sql(query).to_rows() == [(1,)]


def test_catalogs_and_snapshots_with_tables_of_one_name_show_their_own_rows(lake: forklake.Lake) -> None:
    parent = lake.create_catalog("parent")
    parent.sql("CREATE TABLE t (a INTEGER)")
    parent.sql("INSERT INTO t VALUES (1)")
    first = parent.snapshot
    child = lake.fork("parent", "child")
    child.sql("INSERT INTO t VALUES (2)")
    parent.sql("INSERT INTO t VALUES (3)")
    for _ in range(2):
        assert parent.sql("SELECT a FROM t ORDER BY a").to_rows() == [(1,), (3,)]
        assert child.sql("SELECT a FROM t ORDER BY a").to_rows() == [(1,), (2,)]
        assert parent.sql(f"SELECT a FROM t AT (VERSION => {first})").to_rows() == [(1,)]
        both = "SELECT p.a, c.a FROM parent.main.t AS p, child.main.t AS c ORDER BY ALL"
        assert lake.sql(both).to_rows() == [(1, 1), (1, 2), (3, 1), (3, 2)]
