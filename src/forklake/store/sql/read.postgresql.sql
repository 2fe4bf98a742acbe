-- Where PostgreSQL reads otherwise.

-- name: metadata_exists
SELECT 1 WHERE to_regclass('ducklake_metadata') IS NOT NULL;
