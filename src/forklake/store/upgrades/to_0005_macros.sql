-- From 0.5-dev4 to 0.5-dev5.

-- name: no_defaults
UPDATE ducklake_column SET default_value_type = 'literal', default_value_dialect = 'duckdb'
 WHERE default_value_type IS NULL AND column_type IS NOT NULL;

-- name: drop_unique
DROP INDEX IF EXISTS ducklake_macro_live_name;

-- name: by_name
CREATE INDEX ducklake_macro_live_name ON ducklake_macro (catalog_id, schema_id, macro_name) WHERE end_snapshot IS NULL;
