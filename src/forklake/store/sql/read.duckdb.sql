-- Where DuckDB reads otherwise.

-- name: metadata_exists
SELECT 1 FROM duckdb_tables() WHERE schema_name = $schema AND table_name = 'ducklake_metadata';
