"""Definitions in SQL: schemas, tables, columns, views, macros, comments, forks."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

import forklake
from tests.contract.sql.conftest import Twins

ALIKE = (
    "CREATE SCHEMA s",
    "CREATE SCHEMA IF NOT EXISTS s",
    "CREATE TABLE s.a (id BIGINT NOT NULL, note VARCHAR DEFAULT 'x', st STRUCT(f INTEGER, g VARCHAR))",
    "CREATE TABLE IF NOT EXISTS s.a (other INTEGER)",
    "INSERT INTO s.a (id, st) VALUES (1, {'f': 1, 'g': 'h'})",
    "ALTER TABLE s.a ADD COLUMN added INTEGER DEFAULT 5",
    "ALTER TABLE s.a ADD COLUMN IF NOT EXISTS added INTEGER",
    "ALTER TABLE s.a RENAME COLUMN note TO remark",
    "ALTER TABLE s.a ALTER added SET DATA TYPE BIGINT",
    "ALTER TABLE s.a ALTER COLUMN remark DROP DEFAULT",
    "ALTER TABLE s.a ALTER remark SET DEFAULT 'y'",
    "ALTER TABLE s.a ALTER COLUMN id DROP NOT NULL",
    "INSERT INTO s.a (added) VALUES (6)",
    "ALTER TABLE s.a DROP COLUMN IF EXISTS nothing",
    "ALTER TABLE s.a ADD COLUMN st.h DOUBLE",
    "ALTER TABLE s.a RENAME COLUMN st.f TO ff",
    "ALTER TABLE s.a DROP COLUMN st.g",
    "CREATE TABLE copied AS SELECT id, added * 2 AS twice FROM s.a",
    "CREATE OR REPLACE TABLE copied (x, y) AS SELECT 1, 'z'",
    "CREATE TABLE empty AS FROM s.a WITH NO DATA",
    "ALTER TABLE s.a RENAME TO b",
    "CREATE VIEW v AS SELECT remark FROM s.b",
    "CREATE OR REPLACE VIEW v (r) AS SELECT remark || '!' FROM s.b",
    "ALTER VIEW v RENAME TO w",
    "DROP TABLE IF EXISTS s.a",
)


def test_definitions_have_the_effect_that_they_have_in_duckdb(twins: Twins) -> None:
    for statement in ALIKE:
        twins.do(statement)
    for query in ("FROM s.b ORDER BY ALL", "FROM copied", "FROM empty", "FROM w ORDER BY ALL"):
        twins.same(query)
    catalog = twins.catalog
    catalog.sql("DROP VIEW w; DROP SCHEMA s CASCADE; DROP TABLE copied; DROP TABLE main_catalog.main.empty")
    assert list(catalog) == []


def test_partitioning_and_sort_order_are_set(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id BIGINT, ts TIMESTAMP, k VARCHAR) PARTITIONED BY (k) SORTED BY (ts DESC)")
    table = catalog.table("t")
    assert (table.partitioning, table.sort_order) == (("k",), ("ts DESC NULLS LAST",))
    catalog.sql("ALTER TABLE t SET PARTITIONED BY (year(ts), bucket(8, id)); ALTER TABLE t RESET SORTED BY")
    assert (table.partitioning, table.sort_order) == (("year(ts)", "bucket(8, id)"), ())
    catalog.sql("ALTER TABLE t RESET PARTITIONED BY; ALTER TABLE t SET SORTED BY (id ASC NULLS FIRST)")
    assert (table.partitioning, table.sort_order) == ((), ("id ASC NULLS FIRST",))


def test_a_struct_gets_other_fields_and_keeps_those_of_the_same_name(catalog: forklake.Catalog) -> None:
    catalog.sql(
        "CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER, b STRUCT(x INTEGER, y INTEGER)), "
        "l STRUCT(p INTEGER)[])"
    )
    catalog.sql("INSERT INTO t VALUES (1, {'a': 1, 'b': {'x': 2, 'y': 3}}, [{'p': 4}])")
    catalog.sql("ALTER TABLE t ALTER s SET DATA TYPE STRUCT(b STRUCT(y BIGINT, z VARCHAR), a BIGINT, c DATE)")
    catalog.sql("ALTER TABLE t ALTER l TYPE STRUCT(q VARCHAR, p BIGINT)[]")
    assert catalog.sql("SELECT s, l FROM t").to_rows() == [
        ({"b": {"y": 3, "z": None}, "a": 1, "c": None}, [{"q": None, "p": 4}])
    ]
    with pytest.raises(forklake.InvalidSchemaChange):
        catalog.sql("ALTER TABLE t ALTER s SET DATA TYPE STRUCT(a SMALLINT)")


def test_comments_and_macros_are_kept(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER); CREATE VIEW v AS FROM t")
    catalog.sql("COMMENT ON TABLE t IS 'all'; COMMENT ON COLUMN t.id IS 'key'; COMMENT ON VIEW v IS 'seen'")
    table = catalog.table("t")
    assert (table.tags(), table.tags(column="id"), catalog.tags("view", "v")) == (
        {"comment": "all"},
        {"comment": "key"},
        {"comment": "seen"},
    )
    catalog.sql("COMMENT ON TABLE t IS NULL")
    assert table.tags() == {}
    catalog.sql("CREATE MACRO add(a, b := 5) AS a + b, (a, b, c) AS a + b + c")
    catalog.sql("CREATE MACRO few(n) AS TABLE FROM range(n)")
    assert catalog.sql("SELECT add(1), add(1, 2), add(1, b := 3), add(1, 2, 3)").to_rows() == [(6, 3, 4, 6)]
    assert len(catalog.sql("FROM few(3)")) == 3
    catalog.sql("DROP MACRO add; DROP MACRO TABLE few; DROP MACRO IF EXISTS add")
    assert catalog.macros() == []


def test_catalogs_are_forked_merged_and_dropped(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1)")
    catalog.sql("FORK CATALOG main_catalog AS agent")
    catalog.sql("CALL fork('main_catalog', 'other', ttl => '7 days')")
    assert "agent" in lake
    assert lake.catalog("other").parent is not None
    lake.catalog("agent").sql("INSERT INTO t VALUES (2)")
    catalog.sql("MERGE CATALOG agent INTO main_catalog")
    assert catalog.sql("SELECT sum(id) FROM t").to_rows() == [(3,)]
    catalog.sql("CALL drop_catalog('other'); DROP CATALOG agent")
    assert [info.name for info in lake.catalogs()] == ["main_catalog"]


@pytest.mark.parametrize(
    ("statement", "error", "told"),
    [
        ("SELEC 1", forklake.InvalidSql, "SELEC"),
        ("SELECT * FROM orderz", forklake.TableNotFound, 'did you mean "orders"'),
        ("SELECT nope FROM orders", forklake.InvalidSql, "nope"),
        ("SELECT 1 +", forklake.InvalidSql, "syntax error"),
        ("CREATE TABLE x (id INTEGER PRIMARY KEY)", forklake.InvalidSql, "PRIMARY KEY"),
        ("ATTACH 'other.db'", forklake.InvalidSql, "ATTACH"),
        ("INSTALL httpfs", forklake.InvalidSql, "INSTALL"),
        ("CREATE VIEW bad AS SELECT * FROM nothing", forklake.TableNotFound, "nothing"),
        ("DROP VIEW orders", forklake.ViewNotFound, "DROP TABLE"),
        ("SELECT * FROM orders WHERE id = ?", forklake.InvalidSql, "got no value: .1"),
        ("", forklake.InvalidSql, "empty"),
    ],
)
def test_bad_statements_say_what_is_wrong(
    catalog: forklake.Catalog, statement: str, error: type[Exception], told: str
) -> None:
    catalog.sql("CREATE TABLE orders (id INTEGER)")
    before = catalog.snapshot
    with pytest.raises(error, match=told):
        catalog.sql(statement).to_arrow()
    assert catalog.snapshot == before


def test_a_view_means_the_same_in_every_fork_and_from_every_schema(
    lake: forklake.Lake, catalog: forklake.Catalog
) -> None:
    catalog.sql("CREATE SCHEMA s; CREATE TABLE s.t (id INTEGER); INSERT INTO s.t VALUES (1)")
    catalog.sql(
        "USE s; CREATE VIEW main.a AS SELECT id FROM t; CREATE VIEW b AS FROM main_catalog.s.t; USE main"
    )
    fork = lake.fork(catalog, "temp")
    fork.sql("INSERT INTO s.t VALUES (2)")
    for name in ("a", "s.b", "main.a", "temp.s.b"):
        assert sorted(fork.sql(f"FROM {name}").to_rows()) == [(1,), (2,)]
    assert catalog.sql("SELECT id, a.id FROM a").to_rows() == [(1, 1)]


def test_views_are_stored_as_duckdb_writes_them_and_their_columns_are_listed(
    catalog: forklake.Catalog,
) -> None:
    catalog.sql("CREATE SCHEMA s; CREATE TABLE t (id INTEGER, name VARCHAR)")
    catalog.sql("CREATE VIEW s.v AS SELECT id, upper(name) AS u FROM main.t WHERE id>1 -- the large ones")
    catalog.sql("CREATE VIEW w (n) AS SELECT count(*) FROM s.v")
    assert {view.name: view.sql for view in catalog.views()} == {
        "v": 'SELECT id, upper("name") AS u FROM main.t WHERE (id > 1)',
        "w": "SELECT count_star() FROM s.v",
    }
    listed = (
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_name IN ('v', 'w') ORDER BY table_name, ordinal_position"
    )
    columns = [("s", "v", "id", "INTEGER"), ("s", "v", "u", "VARCHAR"), ("main", "w", "n", "BIGINT")]
    assert catalog.sql(listed).to_rows() == columns
    catalog.sql("BEGIN; ALTER TABLE t RENAME TO other")
    assert catalog.sql(listed).to_rows() == []
    assert catalog.sql("SELECT bool_or(is_bound) FROM duckdb_views()").to_rows() == [(False,)]
    catalog.sql("ROLLBACK")
    assert catalog.sql(listed).to_rows() == columns


def test_not_null_that_is_there_already_or_is_not_there_is_refused(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER)")
    for text, told in (
        ("ALTER TABLE t ALTER a SET NOT NULL", '"a" is NOT NULL already'),
        ("ALTER TABLE t ALTER b DROP NOT NULL", '"b" has no NOT NULL constraint'),
    ):
        with pytest.raises(forklake.InvalidSchemaChange, match=told):
            catalog.sql(text)


def test_variants_are_refused_with_what_to_do(catalog: forklake.Catalog) -> None:
    for text in (
        "SELECT 5::VARIANT AS x",
        "SELECT {'a': 5::VARIANT} AS x",
        "CREATE TABLE v AS SELECT 5::VARIANT AS x",
    ):
        with pytest.raises(forklake.InvalidSql, match=r'column "x" is .*VARIANT.*CAST it to JSON'):
            catalog.sql(text)
    assert catalog.sql("SELECT CAST(5::VARIANT AS JSON) AS x").to_rows() == [("5",)]


def test_a_statement_without_rows_is_an_empty_table_in_every_form(catalog: forklake.Catalog) -> None:
    done = catalog.sql("CREATE TABLE t (id INTEGER)")
    assert (done.columns, done.types, done.to_rows(), done.to_pylist(), len(done)) == ((), (), [], [], 0)
    assert (done.to_arrow().column_names, list(done.to_pandas().columns)) == (["Success"], ["Success"])
    with duckdb.connect() as connection:
        assert done.to_duckdb(connection).fetchall() == []


def test_a_table_like_another_has_its_defaults(catalog: forklake.Catalog) -> None:
    catalog.sql(
        "CREATE TABLE a (id INT NOT NULL, word VARCHAR DEFAULT 'now()', quote VARCHAR DEFAULT 'it''s', "
        "number INT DEFAULT 1 + 1, day DATE DEFAULT '2024-02-03', list INT[] DEFAULT [1, 2], plain DOUBLE)"
    )
    catalog.sql("CREATE TABLE b (LIKE a); INSERT INTO a (id) VALUES (1); INSERT INTO b (id) VALUES (1)")
    (row,) = catalog.sql("FROM b").to_rows()
    assert row == (1, "now()", "it's", 2, dt.date(2024, 2, 3), [1, 2], None)
    assert catalog.sql("FROM a").to_rows() == [row]
    assert catalog.sql("DESCRIBE a").to_rows() == catalog.sql("DESCRIBE b").to_rows()
    with pytest.raises(forklake.InvalidData):
        catalog.sql("INSERT INTO b DEFAULT VALUES")


def test_names_with_dots_and_quotes_are_kept_whole(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql('CREATE SCHEMA "s.1"; CREATE TABLE "s.1"."t.1" (a INT); CREATE TABLE t (a INT)')
    catalog.sql('ALTER TABLE "s.1"."t.1" RENAME TO "t""2.x"; ALTER TABLE t RENAME TO "s.1.t"')
    catalog.sql('CREATE VIEW v AS FROM "s.1.t"; ALTER VIEW v RENAME TO "v.w"')
    assert sorted(catalog.sql("SELECT schema, name FROM (SHOW ALL TABLES)").to_rows()) == [
        ("main", "s.1.t"),
        ("main", "v.w"),
        ("s.1", 't"2.x'),
    ]
    fork = lake.fork(catalog, "other")
    fork.sql('INSERT INTO "s.1"."t""2.x" VALUES (1); INSERT INTO "s.1.t" VALUES (2)')
    catalog.sql(f'MERGE CATALOG other INTO "{catalog.name}" TABLES ("s.1"."t""2.x")')
    assert catalog.sql('FROM "s.1"."t""2.x"').to_rows() == [(1,)]
    assert catalog.sql('FROM "v.w"').to_rows() == []


def test_names_that_no_backend_should_keep_are_refused(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (a INT)")
    for name in ("x\x01y", "x\x00y", " ", "n" * 2000):
        for text in (
            "CREATE TABLE {} (a INT)",
            "CREATE TABLE {} AS SELECT 1 AS a",
            "ALTER TABLE t RENAME TO {}",
        ):
            with pytest.raises(forklake.NamingError):
                catalog.sql(text.format(f'"{name}"'))
    assert [table.name for table in catalog.tables()] == ["t"]


def test_a_view_does_not_replace_what_it_reads(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS FROM t; CREATE VIEW w AS FROM v")
    for query in ("FROM v", "SELECT * FROM t, (FROM w)"):
        with pytest.raises(forklake.InvalidSql, match=r'"main\.v" would read itself'):
            catalog.sql(f"CREATE OR REPLACE VIEW v AS {query}")
    catalog.sql("CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t")
    assert catalog.sql("FROM w").to_rows() == [(2,)]


def test_rows_of_a_view_are_not_changed(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS FROM t")
    for text in (
        "INSERT INTO v VALUES (1)",
        "UPDATE v SET a = 2",
        "DELETE FROM v",
        "ALTER TABLE v ADD COLUMN b INT",
    ):
        with pytest.raises(forklake.TableNotFound, match=r'"main\.v" is a view'):
            catalog.sql(text)
    for wrong in ("nope", "b", "row_id"):
        with pytest.raises(forklake.InvalidSql, match=wrong) as refused:
            catalog.sql(f"DELETE FROM t WHERE {wrong} = 1")
        assert "forklake_" not in str(refused.value)
