"""Changes through `SparkCatalog.sql`: each does to a table what the local engine does."""

from __future__ import annotations

from typing import Any

import pytest

import forklake
from forklake.spark import SparkCatalog
from tests.spark.test_sql import rows_of

TABLES = """
CREATE TABLE t (id BIGINT, name VARCHAR DEFAULT 'new', price DECIMAL(9, 2), s STRUCT(a INTEGER, b INTEGER));
INSERT INTO t SELECT i, 'n' || i, i * 1.5, {'a': i, 'b': 0} FROM range(10) r(i);
CREATE TABLE news (key BIGINT, name VARCHAR, price DOUBLE);
INSERT INTO news VALUES (3, 'three', 30), (4, NULL, 40.255), (50, 'fifty', 50);
"""

CHANGES: list[tuple[str, Any]] = [
    ("INSERT INTO t SELECT key, name, price, NULL FROM news", None),
    ("INSERT INTO t (id, price) SELECT key + 100, price FROM news WHERE key > ?", [3]),
    ("INSERT INTO t BY NAME SELECT price, key AS id FROM news", None),
    ("INSERT INTO t WITH c AS (SELECT max(id) AS m FROM t) SELECT m + 1, 'x', 1, NULL FROM c", None),
    ("INSERT INTO t VALUES (1, DEFAULT, 2, NULL)", None),
    ("INSERT INTO main_catalog.main.t (id) VALUES ($1)", [77]),
    ("UPDATE t SET name = upper(name) || ?, price = price * 2 WHERE t.id % 3 = $2", ["!", 1]),
    ("UPDATE t AS x SET s.a = x.id + 1, name = DEFAULT WHERE x.s.b = 0 AND id < 5", None),
    ("UPDATE main.t SET price = NULL", None),
    ("DELETE FROM t WHERE id IN (1, 2) OR name = $n", {"n": "n5' OR true --"}),
    ("DELETE FROM t AS x WHERE x.id >= 8", None),
    ("DELETE FROM t", None),
    ("TRUNCATE t", None),
    (
        "MERGE INTO t USING news n ON t.id = n.key "
        "WHEN MATCHED THEN UPDATE SET name = coalesce(n.name, t.name) || ?, price = t.price + n.price "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (n.key, 'm' || n.name)",
        ["?"],
    ),
    (
        "MERGE INTO t AS o USING (SELECT key AS id, name FROM news) AS n USING (id) WHEN MATCHED THEN DELETE",
        None,
    ),
    (
        "MERGE INTO t USING (SELECT key AS id, 'y' AS name, price FROM news) n ON n.id = t.id "
        "WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME",
        None,
    ),
    (
        "WITH a AS (FROM news) MERGE INTO t USING a ON (id = key) WHEN MATCHED THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (id, price) VALUES (key, 1)",
        None,
    ),
    (
        "CREATE TABLE made AS SELECT id, name, price / 3 AS part, id::UTINYINT AS small FROM t WHERE id < ?",
        [4],
    ),
    ("CREATE TABLE made (a, b) PARTITIONED BY (a) AS SELECT id % 2, price FROM t", None),
    ("CREATE OR REPLACE TABLE t AS SELECT id + 1 AS id FROM t", None),
    ("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS one FROM news", None),
    ("CREATE TABLE made AS SELECT * FROM t WITH NO DATA", None),
    ("ALTER TABLE t ADD COLUMN z INTEGER DEFAULT 3", None),
]


def state(catalog: forklake.Catalog) -> dict[str, Any]:
    return {
        table.name: (
            [(column.name, column.type) for column in catalog.table((table.schema, table.name)).columns],
            sorted(rows_of(catalog.sql(f'FROM "{table.name}"').to_arrow()), key=repr),
        )
        for table in catalog.tables()
    }


@pytest.mark.parametrize(("statement", "params"), CHANGES)
def test_change_does_what_the_local_engine_does(
    on_spark: SparkCatalog, catalog: forklake.Catalog, statement: str, params: Any
) -> None:
    catalog.sql(TABLES)
    before = catalog.snapshot
    twin = catalog.fork("twin")
    twin.sql("USE twin.main")
    local = twin.sql(statement.replace("main_catalog.", ""), params)
    found = on_spark.sql(statement, params)
    assert isinstance(found, forklake.SqlResult)
    assert found.rows_affected == local.rows_affected
    assert found.columns == local.columns
    assert state(catalog) == state(twin)
    assert len([one for one in catalog.snapshots() if one.id > before]) <= 1


def test_statements_of_a_transaction_become_one_snapshot(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    catalog.sql(TABLES)
    before = len(catalog.snapshots())
    on_spark.sql("BEGIN")
    on_spark.sql("DELETE FROM t WHERE id < 5; INSERT INTO t SELECT key, name, price, NULL FROM news")
    on_spark.sql("CREATE TABLE copy AS FROM t")
    assert on_spark.sql("SELECT count(*) FROM copy").collect()[0][0] == 8  # type: ignore[union-attr]
    assert len(catalog.snapshots()) == before
    on_spark.sql("COMMIT")
    assert len(catalog.snapshots()) == before + 1
    assert catalog.sql("SELECT count(*) FROM copy").to_rows() == [(8,)]


def test_sql_of_a_transaction_sees_its_changes(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    catalog.sql(TABLES)
    with catalog.transaction() as tx:
        inside = on_spark.on(tx)
        assert inside.sql("UPDATE t SET name = 'z' WHERE id > 6").rows_affected == 3  # type: ignore[union-attr]
        assert inside.sql("SELECT id FROM t WHERE name = 'z'").count() == 3  # type: ignore[union-attr]
        assert on_spark.sql("SELECT id FROM t WHERE name = 'z'").count() == 0  # type: ignore[union-attr]


def test_reading_only_refuses_changes(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    catalog.sql(TABLES)
    assert on_spark.sql("SELECT id FROM t", read_only=True).count() == 10  # type: ignore[union-attr]
    for statement in ("DELETE FROM t WHERE id = 1", "INSERT INTO t FROM t", "CREATE TABLE u AS FROM t"):
        with pytest.raises(forklake.InvalidSql, match="only reading"):
            on_spark.sql(statement, read_only=True)


def test_functions_and_definitions_answer_as_the_local_session(
    on_spark: SparkCatalog, catalog: forklake.Catalog
) -> None:
    on_spark.sql("CREATE SCHEMA sales; CREATE VIEW sales.one AS SELECT 1 AS one; USE sales")
    assert on_spark.sql("SHOW TABLES").to_rows() == catalog.sql("SHOW TABLES").to_rows()  # type: ignore[union-attr]
    assert on_spark.sql("CALL current_snapshot()").to_rows() == [(catalog.snapshot,)]  # type: ignore[union-attr]
    assert [tuple(row) for row in on_spark.sql("FROM one").collect()] == [(1,)]  # type: ignore[union-attr]


def test_macro_is_refused_on_spark(on_spark: SparkCatalog, catalog: forklake.Catalog) -> None:
    catalog.sql(TABLES + "CREATE MACRO twice(x) AS x * 2")
    with pytest.raises(forklake.InvalidSql, match=r"twice\(\) is a macro"):
        on_spark.sql("SELECT twice(id) FROM t")
