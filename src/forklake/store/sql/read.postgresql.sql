-- Where PostgreSQL reads otherwise.

-- name: metadata_exists
SELECT 1 WHERE to_regclass('ducklake_metadata') IS NOT NULL;

-- name: home
-- What tells this schema from a copy of it, by its name and by its identity.
SELECT c.system_identifier::text, d.datname::text, d.oid::bigint, n.oid::bigint
  FROM pg_control_system() c
  JOIN pg_database d ON d.datname = current_database()
  JOIN pg_namespace n ON n.nspname = $schema;

-- name: clock
SELECT clock_timestamp();

-- name: last_announced
-- Above all that commits in flight have announced, and the time when that was asked: whoever announces itself afterwards
-- draws a later time. Not read from the sequence, which those who may only read tables cannot see.
SELECT statement_timestamp(), max(objid::bigint) + 1
  FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 2
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND classid = hashtext(current_schema())::oid;

-- name: open_commits
-- The server processes whose commits have announced that their number may be below one. Numbers are compared as
-- 32 bits, which is what an advisory lock has room for.
SELECT DISTINCT pid
  FROM pg_locks
 WHERE locktype = 'advisory' AND granted AND objsubid = 2
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND classid = hashtext(current_schema())::oid
   AND (($before::bigint - objid::bigint) & 4294967295) BETWEEN 1 AND 2147483647;

-- name: set_for_session
-- Settings of a connection for its life, and no row if that is not its own: a pooler says another process than the
-- one that runs this, which the pooler's other clients will meet as well.
SELECT set_config(s.name, s.value, false)
  FROM unnest($names::text[], $values::text[]) AS s(name, value)
 WHERE $own::boolean OR pg_backend_pid() = $pid::int;

-- name: set_for_transaction
-- The same until the transaction ends.
SELECT set_config(s.name, s.value, true)
  FROM unnest($names::text[], $values::text[]) AS s(name, value);

-- name: prepared_under
-- Whether this server process has a statement of that name.
SELECT 1 FROM pg_prepared_statements WHERE name = $name;

-- name: catalogs_by_names
-- Looked up name by name, however few catalogs there were when the plan was made that a connection keeps.
SELECT c.catalog_name, c.catalog_id, c.parent_id
  FROM texts($names) AS k(value)
 CROSS JOIN LATERAL (SELECT n.catalog_name, n.catalog_id,
                            (SELECT f.source_catalog_id
                               FROM ducklake_catalog_lineage f
                              WHERE f.catalog_id = n.catalog_id
                                AND f.depth = (SELECT o.depth - 1 FROM ducklake_catalog_lineage o
                                                WHERE o.catalog_id = n.catalog_id
                                                  AND o.source_catalog_id = n.catalog_id)) AS parent_id
                       FROM ducklake_catalog n
                      WHERE n.catalog_name = k.value AND n.end_snapshot IS NULL OFFSET 0) c;
