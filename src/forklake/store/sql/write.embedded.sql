-- Where SQLite and DuckDB write alike: numbers come from a table, and a snapshot is recorded in three steps.

-- name: allocate
-- Draw numbers, in one statement; returns what each counter will hand out next.
UPDATE ducklake_counter
   SET next_value = next_value + CASE name WHEN 'snapshot_id' THEN 1 WHEN 'catalog_id' THEN $catalog_ids ELSE $file_ids END
RETURNING name, next_value;

-- name: announce_snapshot
-- Nobody else draws a number meanwhile.
SELECT $snapshot;

-- name: share_lineages
-- Whoever writes has everything to itself.
SELECT 1;

-- name: hold_lineages
SELECT 1;

-- name: lock_heads
SELECT c.catalog_name, h.catalog_id, h.schema_version, h.snapshot_time
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog c ON c.catalog_id = h.catalog_id AND c.end_snapshot IS NULL
 WHERE h.end_snapshot IS NULL AND c.catalog_name IN texts($names)
 ORDER BY h.catalog_id;

-- name: lock_expired
SELECT c.catalog_name, h.catalog_id, h.schema_version, h.snapshot_time
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog c ON c.catalog_id = h.catalog_id AND c.end_snapshot IS NULL
 WHERE h.end_snapshot IS NULL AND h.expires_at <= $now
 ORDER BY h.catalog_id;

-- name: lock_head
-- The row that serialises a catalog's commits.
SELECT snapshot_id, schema_version, snapshot_time, end_snapshot
  FROM ducklake_catalog_head
 WHERE catalog_id = $catalog;

-- name: add_snapshot
INSERT INTO ducklake_snapshot (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
VALUES ($snapshot, $time, $schema_version, $next_catalog_id, $next_file_id);

-- name: add_changes
INSERT INTO ducklake_snapshot_changes
       (snapshot_id, catalog_id, changes_made, author, commit_message, commit_extra_info, footprint)
VALUES ($snapshot, $catalog, $changes, $author, $message, $extra, $footprint);
