-- Where DuckDB reads otherwise.

-- name: metadata_exists
SELECT 1 FROM information_schema.tables WHERE table_schema = $schema AND table_name = 'ducklake_metadata';
