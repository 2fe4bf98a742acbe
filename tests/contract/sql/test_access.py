"""What SQL may reach: the tables of its catalog, and nothing outside of the lake that was not allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

import forklake

OUTSIDE = (
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "FROM '/etc/hosts.csv'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('t')",
    "COPY t TO '/tmp/forklake-out.csv'",
    "COPY t FROM '/etc/passwd'",
    "INSERT INTO t SELECT 1 FROM read_blob('/etc/hostname')",
    "CREATE TABLE x AS FROM read_csv('/etc/passwd')",
    "CREATE VIEW x AS FROM read_csv('/etc/passwd')",
    "PIVOT read_csv('/etc/passwd') ON a",
    "SELECT (SELECT count(*) FROM read_text('/etc/hostname'))",
    "WITH x AS (FROM read_text('/etc/hostname')) FROM x",
    "ATTACH '/tmp/other.db' AS other",
    "SET memory_limit = '1GB'",
    "LOAD httpfs",
)
CHANGES = (
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET id = 2",
    "DELETE FROM t",
    "TRUNCATE t",
    "CREATE TABLE u (id INTEGER)",
    "DROP TABLE t",
    "ALTER TABLE t ADD COLUMN x INTEGER",
    "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "CALL flush_inlined_data()",
    "SELECT * FROM set_option('target_file_size', '1MB')",
    "CALL fork('main_catalog', 'agent')",
    "DROP CATALOG main_catalog",
    "COMMENT ON TABLE t IS 'x'",
)


@pytest.fixture
def filled(catalog: forklake.Catalog) -> forklake.Catalog:
    catalog.sql("CREATE TABLE t (id INTEGER)")
    return catalog


def test_nothing_outside_of_the_lake_is_reached(filled: forklake.Catalog) -> None:
    for statement in OUTSIDE:
        with pytest.raises(forklake.ForklakeError) as caught:
            filled.sql(statement).to_arrow()
        assert isinstance(caught.value, forklake.InvalidSql | forklake.TableNotFound), statement
    assert list(filled) == ["main.t"]


def test_files_of_other_catalogs_and_the_database_are_not_read_as_files(
    lake: forklake.Lake, filled: forklake.Catalog, tmp_path: Path
) -> None:
    secret = lake.create_catalog("secret")
    secret.sql("CREATE TABLE t (id INTEGER)")
    secret.table("t").set_option("data_inlining_row_limit", 0)
    secret.sql("INSERT INTO t VALUES (42)")
    file = Path(lake.data_path, secret.table("t").files()[0].path)
    assert file.exists()
    (tmp_path / "link").symlink_to(file.parent)
    for path in (file, f"{tmp_path}/*/*/*/*/*", f"{tmp_path}/**", f"{tmp_path}/link/{file.name}"):
        with pytest.raises(forklake.InvalidSql, match="outside"):
            filled.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow()
    for database in tmp_path.glob("lake.db*"):
        with pytest.raises(forklake.InvalidSql, match="outside"):
            filled.sql(f"SELECT * FROM read_blob('{database}')").to_arrow()
    with pytest.raises(forklake.TableNotFound):
        filled.sql("SELECT * FROM secret.main.t")


def test_a_catalog_reads_files_of_its_own(lake: forklake.Lake, filled: forklake.Catalog) -> None:
    filled.table("t").set_option("data_inlining_row_limit", 0)
    filled.sql("INSERT INTO t VALUES (1), (2)")
    (name,) = (file.path for file in filled.table("t").files())
    assert filled.sql(f"SELECT id FROM '{lake.data_path}/{name}'").to_rows() == [(1,), (2,)]
    folder = f"{lake.data_path}/{name.split('/')[0]}"
    found = filled.sql(f"SELECT file FROM glob('{folder}/**/*.parquet')", read_only=True).to_rows()
    assert found == [(f"{lake.data_path}/{name}".replace("//", "/"),)]
    with pytest.raises(forklake.InvalidSql, match="outside"):
        filled.sql(f"COPY t TO '{folder}/main/t/mine.parquet'")
    with pytest.raises(forklake.InvalidSql, match="outside"):
        filled.sql(f"FROM glob('{folder}*/**')")
    with pytest.raises(forklake.InvalidSql, match="outside"):
        filled.sql(f"FROM glob('{folder}/*/../../**')")


def test_a_fork_and_its_parent_do_not_read_files_of_each_other(
    lake: forklake.Lake, filled: forklake.Catalog
) -> None:
    filled.table("t").set_option("data_inlining_row_limit", 0)
    filled.sql("INSERT INTO t VALUES (1)")
    fork = filled.fork("agent")
    filled.sql("INSERT INTO t VALUES (2)")
    fork.sql("INSERT INTO t VALUES (3)")
    of_both, of_parent = (file.path for file in filled.table("t").files())
    (of_fork,) = (file.path for file in fork.table("t").files() if file.path != of_both)
    for reader, path in ((fork, of_both), (fork, of_parent), (filled, of_fork)):
        with pytest.raises(forklake.InvalidSql, match="outside"):
            reader.sql(f"FROM '{lake.data_path}/{path}'")
    assert filled.sql(f"SELECT id FROM '{lake.data_path}/{of_parent}'").to_rows() == [(2,)]
    assert fork.sql(f"SELECT id FROM '{lake.data_path}/{of_fork}'").to_rows() == [(3,)]


def test_a_folder_that_a_namesake_had_is_nobodys(lake: forklake.Lake, filled: forklake.Catalog) -> None:
    filled.table("t").set_option("data_inlining_row_limit", 0)
    filled.sql("INSERT INTO t VALUES (1)")
    path = f"{lake.data_path}/{filled.table('t').files()[0].path}"
    lake.rename_catalog("main_catalog", "elsewhere")
    namesake = lake.create_catalog("main_catalog")
    for catalog in (lake.catalog("elsewhere"), namesake):
        with pytest.raises(forklake.InvalidSql, match="outside"):
            catalog.sql(f"FROM '{path}'")


def test_reading_only_refuses_every_change(filled: forklake.Catalog) -> None:
    before = filled.snapshot
    for statement in CHANGES:
        with pytest.raises(forklake.InvalidSql, match="only reading"):
            filled.sql(statement, read_only=True)
    assert filled.sql("SELECT count(*) FROM t", read_only=True).to_rows() == [(0,)]
    assert filled.snapshot == before


def test_a_limit_ends_the_statement_and_not_the_process(filled: forklake.Catalog) -> None:
    endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b"
    with pytest.raises(forklake.StatementLimit, match=r"0\.2 seconds"):
        filled.sql(endless, max_seconds=0.2).to_arrow()
    with pytest.raises(forklake.StatementLimit, match="more than 10 rows"):
        filled.sql("FROM range(11)", max_rows=10).to_arrow()
    assert len(filled.sql("FROM range(10)", max_rows=10)) == 10
    large = "SELECT length(list(i)::VARCHAR) FROM range(20000000) AS r(i)"
    with pytest.raises(forklake.StatementLimit, match="more memory than it may use"):
        filled.sql(large, max_memory="40MiB").to_arrow()
    assert len(filled.sql("FROM range(10)", max_memory="40MiB")) == 10
    with pytest.raises(forklake.StatementLimit, match="more memory than it may use"):
        filled.sql(f"INSERT INTO t {large}", max_memory=40 * 2**20)
    assert filled.sql("FROM t").to_rows() == filled.sql("FROM t", max_memory="40MiB").to_rows()


def test_a_limit_of_time_holds_for_every_part_of_a_statement(
    filled: forklake.Catalog, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("out")
    there = Path(folder, "there.csv")
    there.write_text("kept")
    many = "SELECT a.range AS id FROM range(100000000) AS a, range(100000000) AS b"
    before = filled.snapshot
    for statement in (
        f"INSERT INTO t SELECT id FROM ({many})",
        f"INSERT INTO t VALUES ((SELECT count(*) FROM ({many}))), (1)",
        f"MERGE INTO t USING ({many}) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"MERGE INTO t USING (SELECT 5 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT "
        f"VALUES ((SELECT count(*) FROM ({many})))",
        f"PIVOT ({many}) ON id USING count(*)",
        f"SET VARIABLE v = (SELECT count(*) FROM ({many}))",
        f"EXPLAIN ANALYZE {many}",
        f"COPY ({many}) TO '{folder}/new.parquet'",
        f"COPY ({many}) TO '{there}'",
        "FROM t AT (VERSION => sleep_ms(20000)::INT)",
    ):
        with pytest.raises(forklake.StatementLimit, match=r"0\.05 seconds"):
            filled.sql(statement, max_seconds=0.05, allow=[str(folder)])
    assert filled.snapshot == before
    assert [file.name for file in folder.iterdir()] == ["there.csv"]
    assert there.read_text() == "kept"


@pytest.mark.parametrize("memory", ["much", "-1", 0, "1MB", True, 1.5])
def test_a_limit_of_memory_has_to_be_a_size(filled: forklake.Catalog, memory: object) -> None:
    with pytest.raises(forklake.InvalidArgument, match="max_memory"):
        filled.sql("SELECT 1", max_memory=memory)
