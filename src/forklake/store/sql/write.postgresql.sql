-- Where PostgreSQL writes otherwise.

-- name: allocate
-- Before a transaction draws the number of a snapshot, it says by a lock that it has one which is not below what was
-- drawn last. Whoever reads the lake at a later snapshot waits for it: see open_commits.
WITH announced AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(
               hashtext(current_schema()), (SELECT last_value::bit(32)::int FROM ducklake_next_snapshot_id))
)
SELECT nextval('ducklake_next_snapshot_id'), clock_timestamp(),
       ARRAY(SELECT nextval('ducklake_next_catalog_id') FROM generate_series(1, $catalog_ids::int)),
       ARRAY(SELECT nextval('ducklake_next_file_id') FROM generate_series(1, $file_ids::int)),
       (SELECT last_value + is_called::int FROM ducklake_next_catalog_id),
       (SELECT last_value + is_called::int FROM ducklake_next_file_id)
  FROM announced;

-- name: announce_snapshot
-- The same for a number that was drawn long ago. A statement of its own, so that the next one sees what was committed
-- before anybody could know of it.
SELECT pg_advisory_xact_lock_shared(hashtext(current_schema()), ($snapshot::bigint)::bit(32)::int);

-- name: share_lineages
-- Forks copy the lineage of their parent: many at a time, but none while one changes. The lock is a statement of its
-- own, so that the next one sees what was committed while this one waited.
SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema(), 1));

-- name: hold_lineages
SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 1));

-- name: lock_heads
-- In one order, so that two who drop the same catalogs do not wait for each other. Names are looked up
-- one by one, however few catalogs there were when the plan was made that a connection keeps.
SELECT c.catalog_name, h.catalog_id, h.schema_version, h.snapshot_time
  FROM texts($names) AS k(value)
 CROSS JOIN LATERAL (SELECT n.catalog_name, n.catalog_id FROM ducklake_catalog n
                      WHERE n.catalog_name = k.value AND n.end_snapshot IS NULL OFFSET 0) c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
 WHERE h.end_snapshot IS NULL
 ORDER BY h.catalog_id
   FOR NO KEY UPDATE OF h;

-- name: lock_expired
SELECT c.catalog_name, h.catalog_id, h.schema_version, h.snapshot_time
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog c ON c.catalog_id = h.catalog_id AND c.end_snapshot IS NULL
 WHERE h.end_snapshot IS NULL AND h.expires_at <= $now
 ORDER BY h.catalog_id
   FOR NO KEY UPDATE OF h;

-- name: lock_and_allocate
-- The head is materialised, so the sequences advance only when it is locked: a catalog's numbers rise as it commits.
-- Announced is a commit only then, so that nobody waits for those that wait themselves.
WITH head AS MATERIALIZED (
    SELECT snapshot_id, schema_version, snapshot_time, end_snapshot
      FROM ducklake_catalog_head
     WHERE catalog_id = $catalog
       FOR NO KEY UPDATE
), announced AS MATERIALIZED (
    SELECT head.*, pg_advisory_xact_lock_shared(
               hashtext(current_schema()), (SELECT last_value::bit(32)::int FROM ducklake_next_snapshot_id))
      FROM head
     WHERE $only_at::bigint IS NULL OR snapshot_id = $only_at::bigint
)
SELECT snapshot_id, schema_version, snapshot_time, end_snapshot,
       nextval('ducklake_next_snapshot_id'), clock_timestamp(),
       ARRAY(SELECT nextval('ducklake_next_catalog_id') FROM generate_series(1, $catalog_ids::int)),
       ARRAY(SELECT nextval('ducklake_next_file_id') FROM generate_series(1, $file_ids::int)),
       (SELECT last_value + is_called::int FROM ducklake_next_catalog_id),
       (SELECT last_value + is_called::int FROM ducklake_next_file_id)
  FROM announced;

-- name: record_snapshot
WITH snapshot AS (
    INSERT INTO ducklake_snapshot (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
    VALUES ($snapshot, $time, $schema_version, $next_catalog_id, $next_file_id)
), changes AS (
    INSERT INTO ducklake_snapshot_changes
           (snapshot_id, catalog_id, changes_made, author, commit_message, commit_extra_info, footprint)
    VALUES ($snapshot, $catalog, $changes, $author, $message, $extra, $footprint)
)
UPDATE ducklake_catalog_head
   SET snapshot_id = $snapshot, snapshot_time = $time, schema_version = $schema_version
 WHERE catalog_id = $catalog;
