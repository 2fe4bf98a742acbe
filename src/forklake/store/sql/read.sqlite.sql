-- Where SQLite reads otherwise.

-- name: metadata_exists
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ducklake_metadata';
