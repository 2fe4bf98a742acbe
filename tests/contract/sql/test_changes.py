"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE in SQL: DuckDB over plain tables says what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

import forklake
from tests.contract.sql.conftest import Twins

SETUP = (
    "CREATE TABLE t (id INTEGER, v INTEGER DEFAULT 7, s VARCHAR)",
    "CREATE TABLE other (id INTEGER, v INTEGER, s VARCHAR)",
    "INSERT INTO t SELECT i, i * 10, 's' || i FROM range(12) AS r(i)",
    "INSERT INTO other SELECT i, i, 'o' || i FROM range(8, 16) AS r(i)",
)
CHANGES = (
    "INSERT INTO t VALUES (100, DEFAULT, 'x'), (101, 1 + 1, NULL)",
    "INSERT INTO t (s, id) VALUES ('y', 102)",
    "INSERT INTO t BY NAME SELECT 'z' AS s, 103 AS id",
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t SELECT id + 200, '3', s FROM t WHERE id < 2",
    "INSERT INTO t FROM other WHERE id = 15",
    "WITH w AS (SELECT 300 AS id) INSERT INTO t SELECT id, id, 'w' FROM w",
    "UPDATE t SET v = v + 1 WHERE id = 3",
    "UPDATE t SET v = o.v, s = t.s || o.s FROM other AS o WHERE o.id = t.id",
    "UPDATE t AS x SET s = NULL, v = (SELECT max(v) FROM other) "
    "WHERE x.id IN (SELECT id FROM other WHERE id > 9)",
    "UPDATE t SET v = DEFAULT WHERE id = 4",
    "DELETE FROM t WHERE id = 5 OR s = 's6'",
    "DELETE FROM t USING other AS o WHERE o.id = t.id AND o.id > 10",
    "DELETE FROM t AS x WHERE EXISTS (SELECT 1 FROM other WHERE other.id = x.id + 1)",
    "MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN UPDATE SET v = other.v "
    "WHEN NOT MATCHED THEN INSERT VALUES (other.id, other.v, 'new')",
    "MERGE INTO t AS a USING (SELECT id, v * 2 AS v, s FROM other) AS b ON a.id = b.id AND b.v > 20 "
    "WHEN MATCHED AND a.id = 12 THEN DELETE WHEN MATCHED AND a.id > 13 THEN UPDATE SET s = b.s || '!' "
    "WHEN NOT MATCHED AND b.id < 10 THEN INSERT (id, s) VALUES (b.id + 1000, b.s) "
    "WHEN NOT MATCHED BY SOURCE AND a.id = 0 THEN UPDATE SET s = 'alone' "
    "WHEN NOT MATCHED BY SOURCE AND a.id = 1 THEN DELETE",
    "MERGE INTO t USING other USING (id) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN DO NOTHING",
)


@pytest.fixture(params=("inlined", "files"))
def filled(twins: Twins, request: pytest.FixtureRequest) -> Twins:
    for statement in SETUP[:2]:
        twins.do(statement)
    if request.param == "files":
        for name in ("t", "other"):
            twins.catalog.table(name).set_option("data_inlining_row_limit", 0)
    for statement in SETUP[2:]:
        twins.do(statement)
    return twins


def test_rows_are_changed_as_duckdb_changes_them(filled: Twins) -> None:
    for statement in CHANGES:
        filled.do(statement)
        filled.same("SELECT * FROM t ORDER BY ALL")


def test_parameters_of_changes_are_those_of_their_places(filled: Twins) -> None:
    filled.do("INSERT INTO t (s, id) VALUES (?, ?), (?, 52)", ["a", 51, "b"])
    filled.do("UPDATE t SET s = ?, id = id + ?, v = ? WHERE id = ?", ["c", 100, 3, 51])
    filled.do("DELETE FROM t USING other AS o WHERE o.id = t.id AND t.v > ? AND o.s <> ?", [90, "o9"])
    filled.do(
        "MERGE INTO t USING other AS o ON t.id = o.id + ? "
        "WHEN MATCHED AND t.id > ? THEN UPDATE SET s = ?, v = ? "
        "WHEN NOT MATCHED AND o.id = ? THEN INSERT (s, id) VALUES (?, ?)",
        [1, 10, "m", 5, 15, "n", 500],
    )
    filled.do("UPDATE t SET v = $v, s = $s WHERE id = $id", {"id": 3, "s": "named", "v": -1})
    filled.same("SELECT * FROM t ORDER BY ALL")
    filled.catalog.sql("PREPARE p AS UPDATE t SET s = ?, v = ? WHERE id = ?; EXECUTE p('x', 8, 4)")
    assert filled.catalog.sql("SELECT s, v FROM t WHERE id = 4").to_rows() == [("x", 8)]


def test_a_transaction_of_sql_is_one_snapshot(filled: Twins) -> None:
    catalog = filled.catalog
    before = catalog.snapshot
    for statement in ("BEGIN", *CHANGES, "COMMIT"):
        filled.do(statement)
    filled.same("SELECT * FROM t ORDER BY ALL")
    assert [snapshot.id for snapshot in catalog.snapshots() if snapshot.id > before] == [catalog.snapshot]
    for statement in ("BEGIN", "DELETE FROM t", "ROLLBACK"):
        filled.do(statement)
    filled.same("SELECT * FROM t ORDER BY ALL")


def test_a_transaction_without_net_effect_makes_no_snapshot(filled: Twins) -> None:
    catalog, before = filled.catalog, filled.catalog.snapshot
    catalog.sql("BEGIN; DELETE FROM t WHERE id = 77; UPDATE t SET v = 1 WHERE false; COMMIT")
    catalog.sql("BEGIN; COMMIT")
    assert catalog.snapshot == before


def test_returning_shows_what_was_changed(filled: Twins) -> None:
    for statement in (
        "INSERT INTO t (id) VALUES (50), (51) RETURNING *",
        "UPDATE t SET v = id * 2 WHERE id < 3 RETURNING id, v + 1 AS next",
        "DELETE FROM t WHERE id IN (1, 2) RETURNING s",
        "DELETE FROM t WHERE false RETURNING *",
    ):
        filled.same(statement)
    filled.same("SELECT * FROM t ORDER BY ALL")


def test_what_a_merge_returns_has_the_columns_of_the_table(filled: Twins) -> None:
    merge = (
        "MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 99) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 7 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) RETURNING "
    )
    for returning in ("*", "merge_action, *", "id, merge_action", "t.*"):
        filled.do("DELETE FROM t WHERE id = 99")
        filled.same(f"{merge}{returning}")


def test_a_clause_of_merge_without_a_condition_is_tried_last(filled: Twins) -> None:
    filled.do(
        "MERGE INTO t USING other AS o ON t.id = o.id "
        "WHEN MATCHED THEN DO NOTHING WHEN MATCHED AND t.id = 12 THEN DELETE"
    )
    filled.same("SELECT * FROM t ORDER BY ALL")


def test_with_before_merge_is_for_all_of_it(filled: Twins) -> None:
    filled.do(
        "WITH few(id) AS (VALUES (1), (12)), more AS (SELECT id + 1 AS id FROM few) "
        "MERGE INTO t USING few ON t.id = few.id "
        "WHEN MATCHED AND t.id IN (SELECT id - 1 FROM more) THEN UPDATE SET v = (SELECT max(id) FROM more) "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES ((SELECT min(id) FROM few) + 100)"
    )
    filled.same("SELECT * FROM t ORDER BY ALL")


def test_conditions_of_merge_have_queries(filled: Twins) -> None:
    filled.do(
        "MERGE INTO t USING other AS o ON t.id = o.id "
        "WHEN MATCHED AND EXISTS (FROM other AS p WHERE p.id = t.id + 1) THEN UPDATE SET v = t.v + 1000 "
        "WHEN MATCHED AND o.id = (SELECT max(id) FROM t) THEN DELETE "
        "WHEN NOT MATCHED AND o.id > (SELECT avg(id) FROM t) THEN INSERT (id, v) VALUES (o.id, 5)"
    )
    filled.do(
        "MERGE INTO t USING other AS o ON t.id = o.id "
        "WHEN NOT MATCHED BY SOURCE AND t.id < (SELECT min(id) FROM other) THEN UPDATE SET v = 0"
    )
    filled.same("SELECT * FROM t ORDER BY ALL")


def test_rows_keep_their_ids_through_updates(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1), (2), (3)")
    before = catalog.sql("SELECT rowid, id FROM t ORDER BY id").to_rows()
    catalog.sql("UPDATE t SET id = id + 10 WHERE id > 1")
    after = catalog.sql("SELECT rowid, id FROM t ORDER BY rowid").to_rows()
    assert after == [(row, value + 10 if value > 1 else value) for row, value in before]


def test_several_statements_can_be_one_transaction(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    before = catalog.snapshot
    with pytest.raises(forklake.InvalidData):
        catalog.sql("INSERT INTO t VALUES (1); INSERT INTO t VALUES ('x')", one_transaction=True)
    assert catalog.snapshot == before
    catalog.sql("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", one_transaction=True)
    assert len([snapshot for snapshot in catalog.snapshots() if snapshot.id > before]) == 1


def test_a_merge_refuses_to_change_a_row_twice(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER, v INTEGER); INSERT INTO t VALUES (1, 0)")
    with pytest.raises(forklake.InvalidData, match="several rows of the source"):
        catalog.sql(
            "MERGE INTO t USING (VALUES (1, 5), (1, 6)) AS s(id, v) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert catalog.sql("FROM t").to_rows() == [(1, 0)]


def test_rows_are_copied_from_and_to_files_that_are_allowed(
    catalog: forklake.Catalog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    catalog.sql("CREATE TABLE t (id INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    path = Path(folder, "out.parquet")
    with pytest.raises(forklake.InvalidSql, match="outside of the lake"):
        catalog.sql(f"COPY t TO '{path}'")
    assert not path.exists()
    catalog.sql(f"COPY t TO '{path}' (FORMAT parquet)", allow=[str(folder)])
    catalog.sql(f"COPY t FROM '{path}'", allow=[str(folder)])
    catalog.sql(f"INSERT INTO t SELECT id + 10, s FROM read_parquet('{path}')", allow=[str(folder)])
    assert sorted(catalog.sql("SELECT id FROM t").to_rows()) == [(1,), (1,), (2,), (2,), (11,), (12,)]


@pytest.mark.parametrize(
    ("statement", "error", "told"),
    [
        ("INSERT INTO t VALUES (1, 2)", forklake.InvalidSql, "has 3 columns, and the query gives 2"),
        ("INSERT INTO t (id, nope) VALUES (1, 2)", forklake.ColumnNotFound, "nope"),
        ("INSERT INTO nope VALUES (1)", forklake.TableNotFound, "nope"),
        ("INSERT INTO t BY NAME SELECT 1 AS wrong", forklake.ColumnNotFound, "wrong"),
        ("UPDATE t SET nope = 1", forklake.ColumnNotFound, "nope"),
        ("UPDATE t SET v = 'abc'", forklake.InvalidData, "abc"),
        ("DELETE FROM t WHERE nope = 1", forklake.InvalidSql, "nope"),
        (
            "MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN ERROR",
            forklake.InvalidData,
            "MERGE",
        ),
        ("COMMIT", forklake.InvalidSql, "no transaction"),
    ],
)
def test_a_statement_that_fails_changes_nothing(
    filled: Twins, statement: str, error: type[Exception], told: str
) -> None:
    before = filled.catalog.snapshot
    with pytest.raises(error, match=told):
        filled.catalog.sql(statement)
    assert filled.catalog.snapshot == before


VALUES = (
    "CREATE TABLE v (s VARCHAR, d DECIMAL(5, 1), f FLOAT, ts TIMESTAMP, l STRUCT(a INTEGER, b VARCHAR))",
    "INSERT INTO v VALUES (1, 2.55, 'NaN', 'infinity', {'b': 'x'}), ('02', '3', 1, '2026-01-02', row(1, 2)), "
    "(2.50, 4, NULL, DATE '2026-01-03', NULL)",
    "INSERT INTO v (d, s) VALUES ((SELECT max(d) FROM v), true), (DEFAULT, 'x')",
    "INSERT INTO v (f) VALUES (1), (1e30), ('-inf')",
)


def test_each_of_values_is_converted_by_itself(twins: Twins) -> None:
    for statement in VALUES:
        twins.do(statement)
    twins.same("SELECT * REPLACE (CAST(ts AS VARCHAR) AS ts, CAST(f AS VARCHAR) AS f) FROM v ORDER BY ALL")
    for refused in (
        "INSERT INTO v (d) VALUES (1), ('no')",
        "INSERT INTO v (d) SELECT * FROM (VALUES (1), ('no'))",
    ):
        with pytest.raises(forklake.ForklakeError, match="convert") as error:
            twins.catalog.sql(refused)
        assert "LINE" not in str(error.value)
    with pytest.raises(forklake.InvalidSql, match="5 columns, and the query gives 2"):
        twins.catalog.sql("INSERT INTO v VALUES (1, 2)")


def test_what_duckdb_cannot_bind_is_said_although_rows_were_inserted_before(
    catalog: forklake.Catalog,
) -> None:
    catalog.sql("CREATE TABLE v (s VARCHAR, d INTEGER); INSERT INTO v SELECT 'a', 1")
    with pytest.raises(forklake.InvalidSql, match="Cannot combine types"):
        catalog.sql("INSERT INTO v SELECT * FROM (VALUES ('x', 1), (1, 2))")
