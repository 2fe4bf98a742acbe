-- From 0.5-dev2 to 0.5-dev3. Every database runs these statements as they stand here, but for the type of times.

-- name: oldest_snapshots
ALTER TABLE ducklake_catalog_head ADD COLUMN oldest_snapshot BIGINT;

-- name: create_expired_snapshots
CREATE TABLE ducklake_expired_snapshot (
    catalog_id BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, snapshot_id)
);

-- name: create_reach
CREATE TABLE ducklake_reach (
    catalog_id BIGINT NOT NULL,
    low BIGINT NOT NULL,
    high BIGINT NOT NULL,
    viewer_id BIGINT,
    oldest_snapshot BIGINT
);

-- name: index_reach
CREATE INDEX ducklake_reach_by_catalog ON ducklake_reach (catalog_id, high);

-- name: claims_timestamptz
ALTER TABLE ducklake_files_scheduled_for_deletion ADD COLUMN claimed_at TIMESTAMPTZ;

-- name: claims_text
ALTER TABLE ducklake_files_scheduled_for_deletion ADD COLUMN claimed_at VARCHAR;
