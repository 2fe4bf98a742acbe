"""Queries in SQL: DuckDB over plain tables says what is right."""

from __future__ import annotations

import datetime as dt
import html

import pandas as pd
import pyarrow as pa
import pytest

import forklake
from tests.contract.sql.conftest import Twins

TABLES = (
    "CREATE TABLE orders (id BIGINT, customer INTEGER, day DATE, price DECIMAL(10,2), note VARCHAR)",
    "CREATE SCHEMA people",
    "CREATE TABLE people.customers (id INTEGER, name VARCHAR, tags VARCHAR[], "
    "home STRUCT(city VARCHAR, zip INTEGER))",
    "INSERT INTO orders SELECT i, i % 7, DATE '2024-01-01' + CAST(i AS INTEGER), i * 1.25, "
    "CASE WHEN i % 3 = 0 THEN NULL ELSE 'note ' || i END FROM range(200) AS r(i)",
    "INSERT INTO people.customers SELECT i, 'c' || i, ['a', 'b' || i], {'city': 'x' || (i % 2), 'zip': i} "
    "FROM range(8) AS r(i)",
)
QUERIES = (
    "SELECT * FROM orders WHERE id = 17",
    "SELECT count(*), sum(price), min(day), max(note) FROM orders",
    "SELECT customer, count(*) AS n FROM orders GROUP BY ALL HAVING n > 28 ORDER BY ALL",
    "SELECT o.id, c.name FROM orders o JOIN people.customers AS c ON o.customer = c.id WHERE c.name = 'c3'",
    "SELECT c.name, o.id FROM people.customers AS c LEFT JOIN orders AS o ON o.customer = c.id AND o.id < 5",
    "SELECT * FROM orders SEMI JOIN people.customers AS c ON customer = c.id AND c.id = 2",
    "FROM orders SELECT id WHERE note IS NULL AND id BETWEEN 3 AND 30",
    "FROM orders WHERE note LIKE 'note 1%' ORDER BY id DESC LIMIT 3",
    "WITH big AS (FROM orders WHERE price > 200), orders AS (SELECT 1 AS one) SELECT * FROM big, orders",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t",
    "SELECT id, rank() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders QUALIFY n = 2 ORDER BY 1",
    "SELECT * EXCLUDE (note, price), price * 2 AS twice FROM orders WHERE id IN (SELECT max(id) FROM orders)",
    "SELECT COLUMNS('i.*') FROM orders WHERE id < 3",
    "SELECT name, list_transform(tags, lambda t: upper(t)) AS loud, home.city FROM people.customers",
    "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM people.customers) GROUP BY tag ORDER BY tag",
    "SELECT day, note FROM orders WHERE day >= DATE '2024-03-01' AND day < DATE '2024-03-05' ORDER BY day",
    "SELECT id FROM orders WHERE date_trunc('month', day) = DATE '2024-02-01' AND customer = 1",
    "SELECT id FROM orders EXCEPT SELECT id FROM orders WHERE id > 10 ORDER BY id",
    "SELECT id FROM orders WHERE id < 3 UNION ALL SELECT id FROM people.customers ORDER BY ALL",
    "SELECT exists(SELECT 1 FROM orders WHERE id = 500), (SELECT count(*) FROM people.customers)",
    "SELECT a.id FROM orders a, orders b WHERE a.id = b.id + 190 AND b.customer = 3 ORDER BY a.id",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT 1 AS x, 'y' AS \"odd name\", NULL AS z",
    "PIVOT (SELECT customer, id % 2 AS odd FROM orders) ON odd USING count(*) ORDER BY customer",
    "SELECT ORDERS.ID, Note FROM ORDERS WHERE Id = 4",
    "TABLE people.customers",
    "SELECT * FROM orders WHERE id = 1 OR customer = 2 AND price < 10 ORDER BY id",
    "SELECT count(*) FILTER (WHERE note IS NULL), avg(price) FROM orders WHERE NOT (customer = 3)",
)  # fmt: skip


@pytest.fixture
def filled(twins: Twins) -> Twins:
    for statement in TABLES:
        twins.do(statement)
    return twins


def test_queries_answer_as_duckdb_does(filled: Twins) -> None:
    for query in QUERIES:
        filled.same(query)


def test_parameters_are_bound_by_place_number_and_name(filled: Twins) -> None:
    filled.same("SELECT id FROM orders WHERE id > ? AND id < ? ORDER BY id", [3, 9])
    filled.same("SELECT $2, $1, id FROM orders WHERE id = $1", [4, "x' OR 1 = 1 --"])
    filled.same(
        "SELECT note FROM orders WHERE day = $day AND id <> $id", {"day": dt.date(2024, 1, 5), "id": 9}
    )
    filled.same("SELECT id FROM orders WHERE list_contains($ids, id) ORDER BY id", {"ids": [1, 2]})


def test_views_and_macros_are_read_where_they_are(filled: Twins) -> None:
    for statement in (
        "CREATE VIEW people.rich AS SELECT c.*, o.price "
        "FROM people.customers AS c JOIN main.orders AS o ON o.customer = c.id",
        "CREATE VIEW few (a, b) AS SELECT id, price FROM people.rich WHERE price > 240",
        "CREATE MACRO twice(x) AS x * 2",
        "CREATE MACRO people.found(wanted, most := 3) AS TABLE "
        "SELECT id FROM main.orders WHERE customer = wanted LIMIT most",
    ):  # fmt: skip
        filled.do(statement)
    for query in (
        "SELECT a, twice(b) AS t FROM few ORDER BY ALL",
        "SELECT count(*) FROM people.found(2)",
        "SELECT count(*) FROM people.found(2, most := 10)",
        "SELECT name FROM people.rich WHERE id = 1 AND price < 20 ORDER BY name",
    ):
        filled.same(query)


def test_the_past_is_read_beside_the_present(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    first = catalog.snapshot
    catalog.sql("INSERT INTO t VALUES (1), (2)")
    second = catalog.snapshot
    catalog.sql("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3)")
    found = catalog.sql(
        f"SELECT (SELECT count(*) FROM t AT (VERSION => {first})) AS a, old.id, now.id AS later "
        f"FROM t AS old AT (VERSION => {second}) LEFT JOIN t AS now ON old.id = now.id ORDER BY old.id"
    )
    assert found.to_rows() == [(0, 1, None), (0, 2, 2)]
    catalog.sql("CREATE VIEW v AS SELECT max(id) AS m FROM t")
    assert catalog.sql("SELECT m FROM v").to_rows() == [(3,)]
    assert catalog.sql("FROM t AT (VERSION => $1) ORDER BY id", [second]).to_rows() == [(1,), (2,)]


@pytest.mark.parametrize(
    "joined",
    [
        "{a} AS a CROSS JOIN b RIGHT JOIN c ON b.id = c.id",
        "{a} AS a CROSS JOIN b AS x CROSS JOIN b LEFT JOIN c ON a.id = c.id",
        "c LEFT JOIN ({a} AS a CROSS JOIN b) ON a.id = c.id",
        "{a} AS a, b LEFT JOIN c ON b.id = c.id",
        "c FULL JOIN ({a} AS a CROSS JOIN (b AS x SEMI JOIN c AS y ON x.id = y.id)) ON x.id = c.id",
    ],
)
def test_joins_nest_as_they_are_written_beside_the_past(twins: Twins, joined: str) -> None:
    for name, rows in {"a": "(1), (2)", "b": "(2), (3)", "c": "(3), (4)"}.items():
        twins.do(f"CREATE TABLE {name} (id INTEGER)")
        twins.do(f"INSERT INTO {name} VALUES {rows}")
    at = twins.catalog.snapshot
    twins.catalog.sql("DELETE FROM a")
    expected = twins.oracle.execute(f"SELECT * FROM {joined.format(a='a')} ORDER BY ALL").fetchall()
    past = joined.replace("{a} AS a", f"a AS a AT (VERSION => {at})")
    assert twins.catalog.sql(f"SELECT * FROM {past} ORDER BY ALL").to_rows() == expected
    twins.catalog.sql(f"CREATE VIEW past AS SELECT count(*) AS n FROM {past}")
    assert twins.catalog.sql("FROM past").to_rows() == [(len(expected),)]


def test_a_join_that_cannot_be_written_back_is_refused(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER)")
    at = catalog.snapshot
    with pytest.raises(forklake.InvalidSql, match="NATURAL JOIN of a join in brackets"):
        catalog.sql(f"FROM a AT (VERSION => {at}) NATURAL JOIN (b JOIN b AS c ON b.id = c.id)")


def test_rows_tell_their_ids_snapshots_and_files(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    catalog.table("t").set_option("data_inlining_row_limit", 0)
    catalog.sql("INSERT INTO t VALUES (10), (20)")
    at = catalog.snapshot
    rows = catalog.sql("SELECT rowid, *, snapshot_id, file_row_number FROM t ORDER BY rowid").to_rows()
    assert rows == [(0, 10, at, 0), (1, 20, at, 1)]
    assert catalog.sql("SELECT * FROM t WHERE rowid = 1").to_rows() == [(20,)]
    ((name,),) = catalog.sql("SELECT DISTINCT filename FROM t").to_rows()
    assert name.endswith(catalog.table("t").files()[0].path)
    joined = catalog.sql("SELECT a.*, b.rowid AS r FROM t AS a JOIN t AS b ON a.rowid = b.rowid ORDER BY r")
    assert joined.to_rows() == [(10, 0), (20, 1)]


def test_files_that_cannot_match_are_not_read(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE a (id BIGINT, k INTEGER); CREATE TABLE b (id BIGINT, name VARCHAR)")
    for name in "ab":
        catalog.table(name).set_option("data_inlining_row_limit", 0)
    for start in range(0, 50, 10):
        catalog.sql("INSERT INTO a SELECT i, i % 3 FROM range($1, $1 + 10) AS r(i)", [start])
        catalog.sql("INSERT INTO b SELECT i, 'n' || i FROM range($1, $1 + 10) AS r(i)", [start])
    catalog.sql("CREATE VIEW joined AS SELECT a.id, b.name, a.k FROM a JOIN b ON a.id = b.id")

    def reads(query: str) -> dict[str, str]:
        found = catalog.sql(f"EXPLAIN {query}").to_rows()
        return {key: value for key, value in found if key.startswith("scan of")}

    lines = catalog.sql("EXPLAIN FROM a").to_rows()
    assert len(lines) > 5
    assert all("\n" not in line for _, line in lines)
    assert set(reads("SELECT name FROM joined WHERE id = 17").values()) == {
        "reads 1 of 5 files and 0 inlined rows"
    }
    assert set(reads("SELECT * FROM a WHERE id >= 40 OR id < 10").values()) == {
        "reads 2 of 5 files and 0 inlined rows"
    }
    assert set(reads("SELECT * FROM a x JOIN a y USING (id) WHERE x.id = 3").values()) == {
        "reads 1 of 5 files and 0 inlined rows"
    }


def test_a_query_of_a_transaction_sees_its_changes(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    with catalog.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (1), (2)")
        assert tx.sql("SELECT sum(id) FROM t").to_rows() == [(3,)]
        assert catalog.sql("SELECT count(*) FROM t").to_rows() == [(0,)]
    assert catalog.sql("SELECT sum(id) FROM t").to_rows() == [(3,)]


def test_a_lake_joins_its_catalogs(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1), (2)")
    fork = lake.fork(catalog, "agent")
    fork.sql("INSERT INTO t VALUES (3)")
    joined = lake.sql("SELECT a.id FROM agent.main.t AS a ANTI JOIN main_catalog.main.t AS b ON a.id = b.id")
    assert joined.to_rows() == [(3,)]
    with pytest.raises(forklake.TableNotFound):
        fork.sql("SELECT * FROM main_catalog.main.t")


def test_rows_of_many_are_computed_when_it_is_known_how_they_are_wanted(
    catalog: forklake.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forklake.engine.query.run._MANY", 0)
    catalog.sql(
        "CREATE TABLE t AS SELECT i AS id, i::HUGEINT AS big, 'x' || i AS text FROM range(300) AS r(i)"
    )
    catalog.flush_inlined()
    query = "SELECT sum(big) AS total, id % 2 AS odd FROM t GROUP BY odd ORDER BY odd"
    expected = [(22350, 0), (22500, 1)]
    result = catalog.sql(query)
    assert result.columns == ("total", "odd")
    assert result.types == ("HUGEINT", "BIGINT")
    assert result.to_rows() == expected
    assert result.to_arrow().schema == catalog.sql(query).schema
    assert [batch.num_rows for batch in catalog.sql(query).to_batches()] == [2]
    with pytest.raises(forklake.StatementLimit):
        catalog.sql("FROM t", max_rows=299).to_arrow()
    late = catalog.sql("SELECT text::INTEGER FROM t")
    with pytest.raises(forklake.InvalidData, match="'x0'"):
        late.to_arrow()
    assert catalog.sql("SELECT count(*) FROM t").to_rows() == [(300,)]


def test_a_statement_reads_rows_that_are_handed_over(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t (id BIGINT, note VARCHAR)")
    df = pd.DataFrame({"id": [1, 2, 2], "note": ["a", "b", "c"]})
    more = {"new": df, "Old": [{"id": 2}], "arrow": pa.table({"id": [7]})}
    catalog.sql("INSERT INTO t FROM new; DELETE FROM t USING OLD AS o WHERE t.id = o.id", data=more)
    assert catalog.sql("FROM t, arrow", data=more).to_rows() == [(1, "a", 7)]
    query = "SELECT a.id, b.id, o.id FROM new AS a JOIN new AS b USING (note), old AS o ORDER BY ALL"
    assert catalog.sql(f"WITH old AS (SELECT 5 AS id) {query}", data=more).to_rows() == [
        (1, 1, 5),
        (2, 2, 5),
        (2, 2, 5),
    ]
    merged = "MERGE INTO t USING new AS n ON t.id = n.id WHEN NOT MATCHED AND n.note = 'b' THEN INSERT"
    assert catalog.sql(merged, data=more).rows_affected == 1
    with catalog.transaction() as tx:
        assert tx.sql("SELECT count(*) FROM new", data=more).to_rows() == [(3,)]


def test_rows_that_are_handed_over_hide_nothing_and_are_kept_by_nothing(catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS id; CREATE VIEW v AS FROM t")
    rows = {"T": [{"id": 99}], "new": [{"id": 3}]}
    assert catalog.sql("FROM v", data=rows).to_rows() == [(1,)]
    for text, error, said in (
        ("FROM t", forklake.InvalidSql, "data has this name too"),
        ("CREATE VIEW w AS FROM new", forklake.TableNotFound, "new"),
        ("FROM new AT (VERSION => 2)", forklake.TableNotFound, "new"),
        ("FROM main.new", forklake.TableNotFound, "new"),
    ):
        with pytest.raises(error, match=said):
            catalog.sql(text, data=rows)
    with pytest.raises(forklake.TableNotFound):
        catalog.sql("FROM new")
    for data in ([1], {"a": [{"b": 1}], "A": [{"b": 2}]}, {1: [{"a": 1}]}):
        with pytest.raises(forklake.InvalidArgument):
            catalog.sql("SELECT 1", data=data)  # pyright: ignore[reportArgumentType]
    for source in (17, "text", [1, 2]):
        with pytest.raises(forklake.InvalidData):
            catalog.sql("SELECT 1", data={"a": source})


def test_a_table_that_is_younger_than_a_snapshot_is_not_proposed_in_its_own_place(
    catalog: forklake.Catalog,
) -> None:
    before = catalog.snapshot
    catalog.sql("CREATE TABLE t (id INT)")
    with pytest.raises(forklake.TableNotFound, match=f"at snapshot {before}: it is younger"):
        catalog.sql(f"FROM t AT (VERSION => {before})")


def test_a_lake_calls_functions_of_its_catalogs(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    catalog.sql("CREATE TABLE t AS SELECT 1 AS a")
    name = catalog.name
    other = lake.fork(catalog, "other")
    other.sql("CREATE TABLE mine AS SELECT 1 AS a")
    counted = "SELECT count(*) FROM {}"
    assert lake.sql(counted.format("other.table_info()")).to_rows() == [(2,)]
    assert lake.sql(counted.format(f"ducklake_table_info('{name}')")).to_rows() == [(1,)]
    lake.sql("CALL other.set_option('target_file_size', '1MB', table_name => 'mine')")
    lake.sql(f"USE {name}; BEGIN")
    with pytest.raises(forklake.InvalidSql, match="the transaction is on"):
        lake.sql("CALL other.flush_inlined_data()")
    assert lake.sql(counted.format("other.table_info()")).to_rows() == [(2,)]
    lake.sql("ROLLBACK")
    with pytest.raises(forklake.CatalogNotFound):
        lake.sql("FROM nobody.snapshots()")
    with pytest.raises(forklake.InvalidSql, match="another catalog"):
        catalog.sql("FROM other.snapshots()")


def test_structs_without_names_are_tuples(twins: Twins) -> None:
    query = (
        "SELECT row(1, 'x') AS a, {'k': row(1)} AS b, [row(1, 2), NULL] AS c, (2, NULL) AS d, {'e': 3} AS e"
    )
    ((a, b, c, d, e),) = twins.same(query)
    result = twins.catalog.sql(query)
    assert result.to_pylist() == [{"a": a, "b": b, "c": c, "d": d, "e": e}]
    assert result.to_pandas().iloc[0].tolist() == [a, b, c, d, e]
    assert all("(1, 'x')" in html.unescape(shown) for shown in (repr(result), result._repr_html_()))
    assert twins.catalog.sql("SELECT MAP {row(1, 2): [row(3)]} AS m").to_rows() == [([((1, 2), [(3,)])],)]
    assert twins.catalog.sql("SELECT 1 AS a, 2 AS a")._repr_html_().count("<td") == 2


def test_queries_are_described_by_their_own_columns(twins: Twins) -> None:
    twins.do("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'x', c DECIMAL(10,2))")
    whole = ("t", "FROM t", "SELECT * FROM t")
    for query in (*whole, "TABLE t", "SELECT t.* FROM t WHERE a > 1"):
        twins.same(f"DESCRIBE {query}")
    for query in (
        "SELECT c FROM t",
        "SELECT count(*) AS n, max(b) AS m FROM t",
        "SELECT * EXCLUDE (a) FROM t",
        "SELECT * RENAME (b AS z), 1 AS one FROM t",
        "SELECT * FROM t AS q(x, y, z)",
        "WITH t AS (SELECT 1 AS zz) SELECT * FROM t",
        "SELECT * REPLACE (b AS a) FROM t",
        "SELECT COLUMNS('a|c') FROM t",
        "FROM (SELECT b FROM t)",
    ):
        expected = twins.oracle.execute(query).description or []
        found = twins.catalog.sql(f"DESCRIBE {query}").to_rows()
        assert [row[:2] for row in found] == [(name, str(kind)) for name, kind, *_ in expected], query
    found = twins.catalog.sql("SELECT column_type FROM (DESCRIBE SELECT c, a FROM t)").to_rows()
    assert found == [("DECIMAL(10,2)",), ("INTEGER",)]


def test_tables_schemas_and_catalogs_are_shown(lake: forklake.Lake, catalog: forklake.Catalog) -> None:
    name = catalog.name
    catalog.sql(
        "CREATE SCHEMA s; CREATE TABLE a (x INT); CREATE TABLE s.b (x INT); CREATE VIEW s.v AS SELECT 1"
    )
    for of, expected in (
        ("main", ["a"]),
        ("S", ["b", "v"]),
        (f"{name}.s", ["b", "v"]),
        (name, ["a"]),
    ):
        assert catalog.sql(f"SHOW TABLES FROM {of}").to_rows() == [(one,) for one in expected], of
        if of != "main" and of != "S":
            assert lake.sql(f"SHOW TABLES FROM {of}").to_rows() == [(one,) for one in expected], of
    other = lake.create_catalog("other")
    other.sql("CREATE TABLE secret (x INT)")
    for of in ("nowhere", "other", "other.main"):
        with pytest.raises(forklake.SchemaNotFound, match=of):
            catalog.sql(f"SHOW TABLES FROM {of}")
    assert catalog.sql("SHOW DATABASES").to_rows() == [(name,)]
    assert catalog.sql("SHOW SCHEMAS").to_rows() == [(name, "main", True), (name, "s", False)]
    assert catalog.sql("SELECT schema_name FROM (SHOW SCHEMAS) WHERE NOT current").to_rows() == [("s",)]
