-- What stands in the database, as DuckDB tells it.

-- name: views
SELECT view_name FROM duckdb_views()
 WHERE database_name = current_database() AND schema_name = current_schema() AND starts_with(view_name, 'visible_')
 ORDER BY view_name;

-- name: columns
SELECT column_name FROM duckdb_columns()
 WHERE database_name = current_database() AND schema_name = current_schema() AND table_name = $table;
