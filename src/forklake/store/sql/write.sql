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
   AND catalog_id IN (SELECT f.catalog_id FROM ducklake_catalog_lineage f WHERE f.source_catalog_id = $catalog)
   AND source_catalog_id IN (SELECT a.source_catalog_id FROM ducklake_catalog_lineage a
                              WHERE a.catalog_id = $catalog AND a.source_catalog_id <> $catalog);

-- name: forget_masks
-- The copies have these ends themselves.
DELETE FROM ducklake_inherited_end WHERE catalog_id = $catalog;

-- name: set_expiry
UPDATE ducklake_catalog_head SET expires_at = $expires WHERE catalog_id = $catalog AND end_snapshot IS NULL;

-- name: close_head
-- The catalog is dropped: whoever waits for the head finds its end.
UPDATE ducklake_catalog_head
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog;

-- name: end_catalog
UPDATE ducklake_catalog SET end_snapshot = $snapshot WHERE catalog_id = $catalog AND end_snapshot IS NULL;

-- name: end_data_files
-- The tables are dropped: their own files end with them.
UPDATE ducklake_data_file
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND end_snapshot IS NULL;

-- name: end_delete_files
UPDATE ducklake_delete_file
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND end_snapshot IS NULL;

-- name: remove_setting
-- A setting of the whole lake.
DELETE FROM ducklake_metadata WHERE key = $key AND scope IS NULL;
