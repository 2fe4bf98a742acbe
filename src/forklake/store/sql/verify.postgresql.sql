-- What PostgreSQL counts in sequences.

-- name: counters
-- The next free numbers.
SELECT 'snapshot_id', CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM ducklake_next_snapshot_id
UNION ALL
SELECT 'catalog_id', CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM ducklake_next_catalog_id
UNION ALL
SELECT 'file_id', CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM ducklake_next_file_id;
