-- What stands in the database, as SQLite tells it.

-- name: views
SELECT name FROM sqlite_master WHERE type = 'view' AND name LIKE 'visible\_%' ESCAPE '\' ORDER BY name;

-- name: columns
SELECT name FROM pragma_table_info($table);
