-- What SQLite and DuckDB count in a table.

-- name: counters
-- The next free numbers.
SELECT name, next_value FROM ducklake_counter;
