-- Where PostgreSQL reads otherwise.

-- name: metadata_exists
SELECT 1 WHERE to_regclass('ducklake_metadata') IS NOT NULL;

-- name: home
-- What tells this schema from a copy of it, by its name and by its identity.
SELECT c.system_identifier::text, d.datname::text, d.oid::bigint, n.oid::bigint
  FROM pg_control_system() c
  JOIN pg_database d ON d.datname = current_database()
  JOIN pg_namespace n ON n.nspname = $schema;
