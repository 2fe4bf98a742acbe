"""What DuckDB or Spark would take in an expression although it says something else than the row does."""

from __future__ import annotations

REACHING = [
    "#1", "#3", "COLUMNS('z')", "*COLUMNS('z')", "COLUMNS(*)", "COLUMNS(c -> c LIKE 'z%')", "*", "t.*",
    "source.*", "target.*", "s.*", "(SELECT 1)", "(FROM range(3))", "(TABLE t)", "(VALUES (1))",
    "(SHOW TABLES)", "(DESCRIBE t)", "(SUMMARIZE t)", "ARRAY(SELECT 1)", "EXISTS (SELECT 1)",
    "1 IN (SELECT 1)", "1 = ANY (SELECT 1)", "1 = ALL (VALUES (1))", "getvariable('a')",
    '"getvariable"(\'a\')', "current_setting('threads')", "CURRENT_SETTING('threads')",
    "main.current_setting('threads')", "system.main.getvariable('a')", "current_user", "user()",
    "session_user", "current_schema()", "current_database()", "current_query()", "txid_current()",
    "version()", "getenv('HOME')", "read_text('/etc/hostname')", "read_csv('x.csv')",
    "read_parquet('x.parquet')", "read_blob('x')", "glob('*')", "query('SELECT 1')", "query_table('t')",
    "duckdb_secrets()", "range(3).unnest()", "unnest([1, 2])", "generate_subscripts([1, 2], 1)",
    "regexp_split_to_table('a b', ' ')", "explode(array(1, 2))", "row_number() OVER ()", "row_number()",
    "rank()", "lag(1)", "sum(1)", "sum(1) FILTER (WHERE true)", "count(*)", "count()", "product(2)",
    "mad(1)", "list(1)", "first(1)", "json_group_array(1)", "weighted_avg(1, 1)", "$1", "?", "$name",
    ":name", "@x.y()", "nextval('s')", "currval('s')", "setseed(0.5)", "pg_sleep(1)", "write_log('x')",
    "pg_get_viewdef(1)", "1 AS x", "x: 1", "1; DROP TABLE t", "1) FROM t --", "1 /* more */", "1, 2",
    "rowid", "filename", "forklake_row_id", "excluded.z", "DEFAULT",
]  # fmt: skip

SHADOWING = [
    "list_transform([{'z': 1}], lambda s: s.z)",
    "list_transform([1], lambda z: Z + 1)",
    "[s.z for s in [{'z': 1}]]",
]
"""Variables that DuckDB would take for columns of `id, z, s STRUCT(z)`."""
