-- Writing the metadata. Rows of entities are inserted and ended in sets, by table; what stands here is the rest.

-- name: move_head
UPDATE ducklake_catalog_head
   SET snapshot_id = $snapshot, snapshot_time = $time, schema_version = $schema_version
 WHERE catalog_id = $catalog;

-- name: close_head
-- The catalog is dropped: whoever waits for the head finds its end.
UPDATE ducklake_catalog_head
   SET end_snapshot = $snapshot
 WHERE catalog_id = $catalog;

-- name: end_catalog
UPDATE ducklake_catalog SET end_snapshot = $snapshot WHERE catalog_id = $catalog AND end_snapshot IS NULL;
