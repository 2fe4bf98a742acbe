"""Statements that try to get out of their catalog: each is refused, and what it says tells nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

import forklake

SECRET = 424242
Tenants = tuple[forklake.Catalog, forklake.Catalog, Path]


@pytest.fixture
def tenants(lake: forklake.Lake, catalog: forklake.Catalog) -> Tenants:
    """A catalog that is attacked from, one that is not to be reached, and a file of that."""
    for one, value in ((catalog, 1), (lake.create_catalog("secret"), SECRET)):
        one.sql("CREATE TABLE t (id INTEGER, k VARCHAR)")
        one.table("t").set_option("data_inlining_row_limit", 0)
        one.sql("INSERT INTO t VALUES ($1, $2)", [value, f"k{value}"])
    secret = lake.catalog("secret")
    return catalog, secret, Path(lake.data_path, secret.table("t").files()[0].path)


def _is_refused(catalog: forklake.Catalog, statement: str, **options: object) -> str:
    with pytest.raises(forklake.ForklakeError) as caught:
        rows = catalog.sql(statement, **options).to_rows()  # pyright: ignore[reportArgumentType]
        pytest.fail(f"{statement} gave {rows}")
    assert str(SECRET) not in str(caught.value), statement
    return str(caught.value)


def _all_refused(tenants: Tenants, statements: Iterable[str]) -> None:
    attacker, secret, file = tenants
    before, files = secret.snapshot, set(file.parent.iterdir())
    for statement in statements:
        _is_refused(attacker, statement)
    assert secret.snapshot == before
    assert set(file.parent.iterdir()) == files
    assert secret.sql("FROM t").to_rows() == [(SECRET, f"k{SECRET}")]


def test_no_part_of_a_query_reads_files_of_another_catalog(tenants: Tenants) -> None:
    file = tenants[2]
    every = f"{file.parents[3]}/**/*.parquet"
    sources = (
        f"'{file}'",
        f'"{file}"',
        f'"{every}"',
        f'"{file.with_suffix("")}"."parquet"',
        f"read_parquet('{file}')",
        f"READ_PARQUET('{file}')",
        f"\"read_parquet\"(['{file}'])",
        f"system.main.parquet_scan('{every}')",
        f"read_parquet('{file.parent}/' || '{file.name}')",
        f"read_parquet('file:{file}')",
        f"read_parquet('FILE://{file}')",
        f"read_parquet('{file.parent}/../{file.parent.name}/{file.name}')",
        f"read_parquet(e'{str(file).replace('/', chr(92) + 'x2f')}')",
        f"read_parquet('{str(file).replace('.parquet', '.parque[t]')}')",
        f"parquet_metadata('{file}')",
        f"read_blob('{file}')",
        f"query('FROM read_parquet(''{file}'')')",
        f"query_table('{file}')",
        f"histogram('{file}', id)",
        f'(WITH "{file}" AS (FROM "{file}") FROM "{file}")',
        f'(WITH RECURSIVE "{every}" AS (FROM "{every}") FROM "{every}")',
        f"(DESCRIBE '{file}')",
        f"(SUMMARIZE '{file}')",
        "secret.main.t",
        '"secret"."main"."t"',
        "secret.t",
        "secret.main.t AT (VERSION => 3)",
    )
    places = (
        "FROM {0}",
        "SELECT /* /* */ ' */ max(id) FROM {0} --'",
        "SELECT e'\\'' AS a, s.* FROM {0} AS s",
        "SELECT (SELECT count(*) FROM {0})",
        "SELECT list_transform([1], lambda x: (SELECT count(*) FROM {0}))",
        "FROM t WHERE EXISTS (FROM {0})",
        "WITH x AS (FROM {0}) FROM x",
        "PIVOT {0} ON k USING sum(id)",
        "PIVOT (SELECT e'\\'' AS a, s.* FROM {0} AS s) ON k USING sum(id)",
        "PIVOT t ON (SELECT max(k) FROM {0}) USING count(*)",
        "FROM (PIVOT {0} ON k USING sum(id) GROUP BY id)",
        "INSERT INTO t SELECT 1, 'x' FROM {0}",
        "CREATE TABLE x AS FROM {0}",
        "CREATE VIEW x AS FROM {0}",
        "UPDATE t SET k = (SELECT count(*) FROM {0})",
        "DELETE FROM t USING {0} AS s WHERE true",
        "MERGE INTO t USING {0} AS s ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING t AS s ON true WHEN MATCHED THEN ERROR (SELECT max(k) FROM {0})",
        "INSERT INTO t VALUES (1, 'x') RETURNING (SELECT count(*) FROM {0})",
        "COPY (FROM {0}) TO 'x.csv'",
        "EXPLAIN ANALYZE FROM {0}",
        "FROM list_files((SELECT max(k) FROM {0}))",
        "FROM t AT (VERSION => (SELECT max(id) FROM {0}))",
        "FORK CATALOG test AS x AT (VERSION => (SELECT max(id) FROM {0}))",
    )
    plain = f"'{file}'"
    _all_refused(tenants, (places[0].format(source) for source in sources))
    _all_refused(tenants, (places[7].format(source) for source in sources if source[0] != "("))
    _all_refused(tenants, (place.format(plain) for place in places))
    _all_refused(tenants, (place.format("secret.main.t") for place in places))


def test_a_path_that_changes_after_it_was_checked_is_not_read(tenants: Tenants, tmp_path: Path) -> None:
    attacker, _, file = tenants
    mine = tmp_path / "mine"
    mine.mkdir()
    attacker.sql(f"COPY (SELECT 1 AS id) TO '{mine}/ok.parquet'", allow=[str(mine)])
    text = f"FROM read_parquet(if(random() < 0.5, '{mine}/ok.parquet', '{file}'))"
    for _ in range(20):
        try:
            assert attacker.sql(text, allow=[str(mine)]).to_rows() == [(1,)]
        except forklake.InvalidSql as error:
            assert "outside" in str(error)


def test_what_is_stored_reaches_no_more_than_what_is_written(lake: forklake.Lake, tenants: Tenants) -> None:
    attacker, secret, file = tenants
    attacker.sql(f"CREATE MACRO files() AS TABLE FROM read_parquet('{file}')")
    attacker.sql("CREATE MACRO any_file(path) AS TABLE FROM read_parquet(path)")
    attacker.sql("CREATE MACRO one_of(path) AS (SELECT max(id) FROM read_parquet(path))")
    attacker.sql("CREATE MACRO any_table(name) AS TABLE FROM query_table(name)")
    attacker.sql("CREATE MACRO other() AS TABLE FROM secret.main.t")
    attacker.sql("CREATE MACRO settings() AS current_setting('temp_directory')")
    statements = (
        "FROM files()",
        f"FROM any_file('{file}')",
        f"SELECT one_of('{file}')",
        "FROM any_table('secret.main.t')",
        f"FROM any_table('{file}')",
        "FROM other()",
        "SELECT settings()",
        f"FROM (VALUES ('{file}')) AS v (path), read_parquet(v.path)",
        f"SELECT list_transform(['{file}'], lambda path: (SELECT max(id) FROM read_parquet(path)))",
    )
    _all_refused(tenants, statements)
    # The whole lake may name both catalogs, and what it stores in one shows the other to nobody else.
    lake.sql("USE test" if "test" in lake else f"USE {attacker.name}")
    lake.sql("CREATE VIEW across AS FROM secret.main.t")
    assert lake.sql(f"FROM {attacker.name}.main.across").to_rows() == [(SECRET, f"k{SECRET}")]
    _all_refused(tenants, ["FROM across", "CREATE TABLE x AS FROM across"])
    with pytest.raises(forklake.ForklakeError):
        secret.sql(f"FROM {attacker.name}.main.across")


def test_another_catalog_is_neither_changed_nor_told_of(lake: forklake.Lake, tenants: Tenants) -> None:
    attacker, _, file = tenants
    statements = (
        "INSERT INTO secret.main.t VALUES (1, 'x')",
        "DELETE FROM secret.main.t",
        "CREATE TABLE secret.main.u (id INTEGER)",
        "DROP TABLE secret.main.t",
        "ALTER TABLE secret.main.t DROP COLUMN k",
        "COMMENT ON TABLE secret.main.t IS 'x'",
        "CREATE TABLE x LIKE secret.main.t",
        "DESCRIBE secret.main.t",
        "SUMMARIZE secret.main.t",
        "USE secret",
        "USE secret.main",
        "SET search_path = 'secret.main'",
        "CHECKPOINT secret",
        "FORK CATALOG secret AS x",
        "CALL fork('secret', 'x')",
        "CALL ducklake_fork_catalog('secret', 'x')",
        "MERGE CATALOG secret INTO test",
        "CALL merge('secret')",
        "DROP CATALOG secret",
        "DROP CATALOG IF EXISTS secret",
        "CALL drop_catalog('secret')",
        "CALL rename_catalog('secret', 'mine')",
        "CALL set_ttl('secret', INTERVAL 1 SECOND)",
        "CALL diff('secret')",
        "CALL diff_rows('t', 'secret')",
        "CALL conflicts('secret')",
        "CALL replay('secret')",
        "CALL replay(onto => 'secret')",
        "CALL ducklake_snapshots('secret')",
        "FROM secret.snapshots()",
        "FROM ducklake_table_changes('secret', 'main', 't', 0, 100)",
        "CALL ducklake_expire_snapshots('secret', older_than => now())",
        f"CALL add_data_files('t', '{file}')",
        f"CALL add_data_files('t', '{file.parent}/*.parquet')",
    )
    _all_refused(tenants, (text.replace("test", attacker.name) for text in statements))
    for listing in ("catalogs()", "duckdb_databases()", "duckdb_tables()", "information_schema.schemata"):
        assert "secret" not in str(attacker.sql(f"FROM {listing}").to_rows()), listing
    assert sorted(row[0] for row in lake.sql("USE secret; FROM catalogs()").to_rows()) == sorted(
        ["secret", attacker.name]
    )


def test_forks_are_of_the_family(lake: forklake.Lake, tenants: Tenants) -> None:
    parent, secret, _ = tenants
    parent.sql("CALL fork('one')")
    one = lake.catalog("one")
    one.sql("CALL fork('two')")
    one.sql("INSERT INTO t VALUES (2, 'b')")
    assert [row["catalog_name"] for row in parent.sql("FROM catalogs() ORDER BY depth").to_pylist()] == [
        parent.name,
        "one",
        "two",
    ]
    assert parent.sql("FROM diff('one')").to_pylist()[0]["rows_added"] == 1
    one.sql(f"CALL merge('one', into => '{parent.name}')")
    assert parent.sql("SELECT count(*) FROM t").to_rows() == [(2,)]
    parent.sql("DROP CATALOG two")
    # What changes a parent for others is not for its forks.
    _is_refused(one, f"DROP CATALOG {parent.name}")
    _is_refused(one, f"CALL rename_catalog('{parent.name}', 'mine')")
    _is_refused(one, f"CALL fork('{parent.name}', 'mine')")
    _is_refused(one, f"FROM {parent.name}.main.t")
    _is_refused(secret, "DROP CATALOG one")


def test_the_process_and_its_files_are_not_told_of(tenants: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKLAKE_TEST_SECRET", str(SECRET))
    here = [{"x": SECRET}]
    assert here
    values = (
        "getenv('FORKLAKE_TEST_SECRET')",
        "\"GetEnv\"('FORKLAKE_TEST_SECRET')",
        "system.main.getenv('FORKLAKE_TEST_SECRET')",
        "current_setting('temp_directory')",
        "list_transform(['temp_directory'], x -> current_setting(x))",
        "max(current_setting('temp_directory'))",
        "CASE WHEN true THEN current_setting('temp_directory') END",
        "write_log('x')",
    )
    places = (
        "SELECT {0}",
        "VALUES ({0})",
        "SELECT 1 ORDER BY {0}",
        "FROM t WHERE k = {0}",
        "FROM range(length({0}))",
        "PIVOT (SELECT {0} AS k) ON k USING count(*)",
        "INSERT INTO t SELECT 1, {0}",
        "UPDATE t SET k = {0}",
        "CREATE TABLE x AS SELECT {0} AS a",
        "CREATE TABLE x (a VARCHAR DEFAULT {0})",
        "CALL list_files({0})",
    )
    tables = (
        "duckdb_settings()",
        "duckdb_secrets()",
        "duckdb_secrets",
        "duckdb_memory()",
        "duckdb_temporary_files()",
        "duckdb_extensions()",
        "duckdb_logs",
        "pragma_database_list",
        "pg_catalog.pg_settings",
        "which_secret('s3://x', 's3')",
        "json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
        "read_text('/proc/self/environ')",
        "read_text('/etc/hostname')",
        "read_text('../../../../../../etc/hostname')",
        "read_text('~/.profile')",
        "read_csv('/dev/stdin')",
        "read_csv('https://localhost:1/x.csv')",
        "read_json('s3://bucket/x.json')",
        "sniff_csv('/etc/passwd')",
        "glob('/etc/*')",
        "'/etc/passwd'",
        "'https://localhost:1/x.parquet'",
        "here",
        "values",
        "sqlite_master",
        "memory.main.t",
        "temp.main.t",
    )
    _all_refused(tenants, (place.format(values[0]) for place in places))
    _all_refused(tenants, (places[0].format(value) for value in values))
    _all_refused(tenants, (f"FROM {table}" for table in tables))
    _all_refused(tenants, (f"PIVOT {table} ON a USING count(*)" for table in tables))
    others = (
        "ATTACH ':memory:' AS x",
        "ATTACH 'x.db'",
        "DETACH secret",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA database_list",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "RESET lock_configuration",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "CREATE SECRET s (TYPE s3)",
        "CREATE PERSISTENT SECRET s (TYPE s3)",
        "COPY FROM DATABASE a TO b",
        "COPY t TO '/tmp/forklake-attack.csv'",
        "COPY t TO 's3://bucket/x.csv'",
        "COPY t FROM '/etc/passwd'",
        "CALL fork('x', data_path => '/etc/forklake')",
        "CALL fork('x', data_path => 's3://bucket/x')",
        "SELECT 1; ATTACH 'x.db'",
        "PREPARE p AS ATTACH 'x.db'",
        "EXPLAIN ANALYZE ATTACH 'x.db'",
    )
    _all_refused(tenants, others)
    assert not Path("/tmp/forklake-attack.csv").exists()  # noqa: S108  # It is not to be there.


def test_links_and_patterns_do_not_lead_out_of_a_folder_that_is_allowed(
    tenants: Tenants, tmp_path: Path
) -> None:
    attacker, _, file = tenants
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    shutil.copy(file, tmp_path / "beside.parquet")
    (allowed / "folder").symlink_to(file.parent)
    (allowed / "file.parquet").symlink_to(file)
    (allowed / "other.parquet").symlink_to(tmp_path / "beside.parquet")
    reads = (
        f"{allowed}/file.parquet",
        f"{allowed}/other.parquet",
        f"{allowed}/folder/{file.name}",
        f"{allowed}/f*.parquet",
        f"{allowed}/*/*",
        f"{allowed}/**/*.parquet",
        f"{allowed}/folde[r]/*",
        f"{allowed}/*/../../beside.parquet",
        f"{allowed}/../beside.parquet",
        f"{tmp_path}/allowed2/x.parquet",
        os.path.relpath(file),
    )
    for path in reads:
        assert "outside" in _is_refused(attacker, f"FROM read_parquet('{path}')", allow=[str(allowed)]), path
        _is_refused(attacker, f"FROM '{path}'", allow=[str(allowed)])
        _is_refused(attacker, f"FROM glob('{path}')", allow=[str(allowed)])
        _is_refused(attacker, f"CALL add_data_files('t', '{path}')", allow=[str(allowed)])
    writes = (
        f"'{allowed}/folder/x.parquet'",
        f"'{allowed}/file.parquet'",
        f"'{allowed}/../x.parquet'",
        f"'{tmp_path}' (FORMAT parquet, PARTITION_BY (k), OVERWRITE)",
        f"'{allowed}/x' (FORMAT parquet, PARTITION_BY (k), FILENAME_PATTERN '../../{{uuid}}')",
        f"'{allowed}/x' (FORMAT parquet, PARTITION_BY (k), \"filename_pattern\" ('.' || './x'))",
        f"'{allowed}/x' (FORMAT parquet, PER_THREAD_OUTPUT, FILE_EXTENSION '/../../x')",
    )
    before = sorted(tmp_path.rglob("*"))
    for path in writes:
        _is_refused(attacker, f"COPY t TO {path}", allow=[str(allowed)])
    _is_refused(attacker, f"COPY t TO '{file.parents[4]}' (FORMAT parquet, PARTITION_BY (k), OVERWRITE)")
    assert sorted(tmp_path.rglob("*")) == before
    attacker.sql(f"COPY t TO '{allowed}/mine.csv'", allow=[str(allowed)])
    assert attacker.sql(f"FROM '{allowed}/mine.csv'", allow=[str(allowed)]).to_rows() == [(1, "k1")]


def test_urls_are_those_that_were_allowed(tenants: Tenants) -> None:
    attacker = tenants[0]
    for path in (
        "https://other.example/in/x.parquet",
        "https://example.org.evil/in/x.parquet",
        "https://example.org/in/../x.parquet",
        "https://example.org/in/%2e%2E/x.parquet",
        "https://example.org/in%2f..%2fx.parquet",
        "https://example.org/input/x.parquet",
        "HTTPS://example.org/in/x.parquet",
        "s3://example.org/in/x.parquet",
    ):
        said = _is_refused(attacker, f"FROM read_parquet('{path}')", allow=["https://example.org/in"])
        assert "outside" in said, path


def test_a_fork_reads_its_files_wherever_they_are_and_nobody_else_does(
    lake: forklake.Lake, tenants: Tenants, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parent, secret, _ = tenants
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    fork = lake.fork(parent, "agent", data_path=str(elsewhere / "own"))
    fork.sql("INSERT INTO t VALUES (2, 'b')")
    added = elsewhere / "added.parquet"
    parent.sql(f"COPY (SELECT 3::INTEGER AS id, 'c' AS k) TO '{added}'", allow=[str(elsewhere)])
    fork.sql(f"CALL add_data_files('t', '{added}')", allow=[str(elsewhere)])
    assert fork.sql("SELECT id FROM t ORDER BY id").to_rows() == [(1,), (2,), (3,)]
    fork.sql(
        "MERGE INTO t USING (SELECT unnest([2, 3, 4]) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert fork.sql("FROM t ORDER BY id").to_rows() == [(1, "k1"), (2, "m"), (3, "m"), (4, None)]
    for path in (f"{elsewhere}/own/**/*.parquet", f"{elsewhere}/*/*/*/*", f"{elsewhere}/**"):
        _is_refused(secret, f"FROM read_parquet('{path}')", allow=[str(elsewhere)])
    lake.merge("agent", into=parent)
    assert parent.sql("SELECT count(*) FROM t").to_rows() == [(4,)]


def test_what_is_read_or_described_changes_nothing(lake: forklake.Lake) -> None:
    victim = lake.create_catalog("reader")
    victim.sql("CREATE TABLE t AS SELECT 1 AS id")
    trap = "FROM fork('reader', 'stolen')"
    victim.create_view("report", f"SELECT * {trap}")
    victim.create_macro("rows_of", [], f"SELECT * {trap}", table=True)
    victim.create_macro("total", [], f"(SELECT count(*) {trap})")
    victim.create_view("outer_one", "SELECT total() AS n")
    lake.fork("reader", "branch")
    names = {info.name for info in lake.catalogs()}
    for statement in (
        "FROM report",
        "FROM rows_of()",
        "SELECT total()",
        "FROM outer_one",
        "DESCRIBE report",
        "CREATE VIEW w AS FROM report",
        f"CREATE VIEW w AS {trap}",
        f"CREATE VIEW w AS SELECT (SELECT count(*) {trap})",
    ):
        with pytest.raises(forklake.InvalidSql, match="changes something"):
            victim.sql(statement)
    for statement in (
        "SHOW ALL TABLES",
        "FROM duckdb_columns()",
        "FROM information_schema.columns",
        f"DESCRIBE {trap}",
        f"DESCRIBE SELECT * FROM (SELECT parent {trap})",
        f"SELECT * FROM (DESCRIBE {trap})",
        f"EXPLAIN {trap}",
        f"PREPARE p AS {trap}",
        "DESCRIBE FROM set_option('target_file_size', '1MB')",
    ):
        before = victim.snapshot
        victim.sql(statement).to_arrow()
        assert victim.snapshot == before, statement
    assert {info.name for info in lake.catalogs()} == names
    assert victim.sql(f"SELECT parent {trap}").to_rows() == [("reader",)]
