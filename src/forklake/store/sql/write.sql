-- Writing the metadata. Rows of entities are inserted and ended in sets, by table; what stands here is the rest.

-- name: move_head
UPDATE ducklake_catalog_head
   SET snapshot_id = $snapshot, snapshot_time = $time, schema_version = $schema_version
 WHERE catalog_id = $catalog;

-- name: leave_ancestors
-- A catalog and its forks read copies from now on, and what its ancestors did is only its history.
UPDATE ducklake_catalog_lineage
   SET copied_snapshot = max_snapshot, max_snapshot = -1
 WHERE max_snapshot >= 0
   AND (catalog_id = $catalog
        OR catalog_id IN (SELECT f.catalog_id FROM ducklake_catalog_lineage f
                           WHERE f.source_catalog_id = $catalog AND f.source_catalog_id <> f.catalog_id))
   AND source_catalog_id IN (SELECT a.source_catalog_id FROM ducklake_catalog_lineage a
                              WHERE a.catalog_id = $catalog AND a.source_catalog_id <> $catalog);

-- name: forget_masks
-- The copies have these ends themselves.
DELETE FROM ducklake_inherited_end WHERE catalog_id = $catalog;

-- name: adopt_columns
-- Versions of columns that only the source of a merge had come as what was never to be seen here: they begin and end at
-- once. Files know them by their names, and their ids stay taken.
INSERT INTO ducklake_column
       (catalog_id, column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, column_type,
        initial_default, default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect)
SELECT CAST($catalog AS BIGINT), v.column_id, v.begin_snapshot, v.begin_snapshot, v.table_id, v.column_order,
       v.column_name, v.column_type, v.initial_default, v.default_value, v.nulls_allowed, v.parent_column,
       v.default_value_type, v.default_value_dialect
  FROM visible_column v
 WHERE v.catalog_id = $source AND v.table_id IN ids($tables) AND v.end_snapshot <= $at
   AND NOT EXISTS (SELECT 1 FROM visible_column o
                    WHERE o.catalog_id = $catalog AND o.table_id = v.table_id AND o.column_id = v.column_id
                      AND o.begin_snapshot = v.begin_snapshot);

-- name: adopt_default
-- Files that came with a merge and lack a column get statistics that say so: their rows have its default.
INSERT INTO ducklake_file_column_stats
       (catalog_id, data_file_id, table_id, column_id, value_count, null_count, min_value, max_value, min_key, max_key,
        contains_nan)
SELECT f.catalog_id, f.data_file_id, f.table_id, CAST($column AS BIGINT), f.record_count, 0, CAST($low AS VARCHAR),
       CAST($high AS VARCHAR), CAST($low_key AS VARCHAR), CAST($high_key AS VARCHAR), CAST($nan AS BOOLEAN)
  FROM ducklake_data_file f
 WHERE f.catalog_id = $catalog AND f.data_file_id IN ids($files) AND f.file_format <> 'inlined'
   AND NOT EXISTS (SELECT 1 FROM ducklake_file_column_stats s
                    WHERE s.catalog_id = $catalog AND s.data_file_id = f.data_file_id AND s.column_id = $column);

-- name: set_expiry
UPDATE ducklake_catalog_head SET expires_at = $expires WHERE catalog_id = $catalog AND end_snapshot IS NULL;

-- name: close_heads
-- The catalogs are dropped: whoever waits for such a head finds its end.
UPDATE ducklake_catalog_head
   SET end_snapshot = $snapshot, snapshot_id = $snapshot, snapshot_time = $time
 WHERE catalog_id IN ids($catalogs);

-- name: reopen_head
-- The catalog lives again.
UPDATE ducklake_catalog_head SET end_snapshot = NULL, expires_at = $expires WHERE catalog_id = $catalog;

-- name: cancel_reservations
-- Whoever wrote for a catalog that was dropped has to begin anew.
UPDATE ducklake_snapshot_reservation SET state = 'cancelled' WHERE catalog_id = $catalog AND state = 'open';

-- name: end_catalogs
-- Written so that no planner looks for them among all names that are live.
UPDATE ducklake_catalog
   SET end_snapshot = $snapshot
 WHERE catalog_id IN ids($catalogs) AND COALESCE(end_snapshot, -1) = -1;

-- name: end_catalog
UPDATE ducklake_catalog
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND COALESCE(end_snapshot, -1) = -1;

-- name: end_data_files
-- The tables are dropped: their own files end with them.
UPDATE ducklake_data_file
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND end_snapshot IS NULL;

-- name: end_delete_files
UPDATE ducklake_delete_file
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND end_snapshot IS NULL;

-- name: end_index_files
UPDATE ducklake_index_file
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND end_snapshot IS NULL;

-- name: take_reservation
-- Whoever gets a row back has committed it, and nobody else will. Its own number is used unless it lies below a snapshot
-- of the lake that is there: somebody may have read the lake as it was then.
UPDATE ducklake_snapshot_reservation
   SET state = 'committed', manifest_digest = $digest,
       committed_snapshot_id = CASE WHEN EXISTS (SELECT 1 FROM ducklake_snapshot s WHERE s.snapshot_id > $reserved)
                                    THEN CAST($snapshot AS BIGINT) ELSE CAST($reserved AS BIGINT) END
 WHERE catalog_id = $catalog AND reservation_id = $reservation AND state = 'open' AND expires_at > $now
RETURNING committed_snapshot_id;

-- name: cancel_reservation
UPDATE ducklake_snapshot_reservation
   SET state = 'cancelled'
 WHERE catalog_id = $catalog AND reservation_id = $reservation AND state = 'open'
RETURNING reservation_id;

-- name: expire_reservations
-- From now on none of them can be committed.
UPDATE ducklake_snapshot_reservation SET state = 'expired' WHERE state = 'open' AND expires_at <= $now;

-- name: mark_swept
UPDATE ducklake_snapshot_reservation
   SET swept_at = $now
 WHERE catalog_id = $catalog AND reservation_id = $reservation AND expires_at <= $now;

-- name: remove_setting
-- A setting of the whole lake.
DELETE FROM ducklake_metadata WHERE key = $key AND scope IS NULL;

-- name: move_files
-- Files that were imported from below the data path, which is another one now.
UPDATE ducklake_data_file SET path = $present || substr(path, length($former) + 1)
 WHERE NOT path_is_relative AND substr(path, 1, length($former)) = $former;
