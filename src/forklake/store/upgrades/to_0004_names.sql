-- From 0.5-dev3 to 0.5-dev4.

-- name: drop_catalogs
DROP INDEX IF EXISTS ducklake_catalog_by_name;

-- name: drop_tables
DROP INDEX IF EXISTS ducklake_table_by_name;

-- name: drop_views
DROP INDEX IF EXISTS ducklake_view_by_name;

-- name: sqlite_catalogs
CREATE INDEX ducklake_catalog_by_name ON ducklake_catalog (catalog_name COLLATE NOCASE);

-- name: sqlite_tables
CREATE INDEX ducklake_table_by_name ON ducklake_table (catalog_id, schema_id, table_name COLLATE NOCASE);

-- name: sqlite_views
CREATE INDEX ducklake_view_by_name ON ducklake_view (catalog_id, schema_id, view_name COLLATE NOCASE);

-- name: postgresql_catalogs
CREATE INDEX ducklake_catalog_by_name ON ducklake_catalog (lower(catalog_name COLLATE "C"));

-- name: postgresql_tables
CREATE INDEX ducklake_table_by_name ON ducklake_table (catalog_id, schema_id, lower(table_name COLLATE "C"));

-- name: postgresql_views
CREATE INDEX ducklake_view_by_name ON ducklake_view (catalog_id, schema_id, lower(view_name COLLATE "C"));
