-- Where PostgreSQL writes otherwise.

-- name: allocate
SELECT nextval('ducklake_next_snapshot_id'), clock_timestamp(),
       ARRAY(SELECT nextval('ducklake_next_catalog_id') FROM generate_series(1, $catalog_ids::int)),
       ARRAY(SELECT nextval('ducklake_next_file_id') FROM generate_series(1, $file_ids::int)),
       (SELECT last_value + is_called::int FROM ducklake_next_catalog_id),
       (SELECT last_value + is_called::int FROM ducklake_next_file_id);

-- name: lock_head
-- Numbers must be drawn by a later statement: a sequence called here would advance before the lock is held.
SELECT snapshot_id, schema_version, snapshot_time, end_snapshot
  FROM ducklake_catalog_head
 WHERE catalog_id = $catalog
   FOR NO KEY UPDATE;
