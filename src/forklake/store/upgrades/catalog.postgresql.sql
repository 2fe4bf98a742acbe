-- What stands in the database, as PostgreSQL tells it.

-- name: views
SELECT viewname FROM pg_views WHERE schemaname = current_schema() AND starts_with(viewname::text, 'visible_') ORDER BY 1;

-- name: columns
SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($table) AND attnum > 0 AND NOT attisdropped;

-- name: owner
-- Whom the lake belongs to, if that is somebody else.
SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
 WHERE oid = to_regclass('ducklake_metadata') AND pg_get_userbyid(relowner) <> current_user;

-- name: tables
-- The settings first: whoever writes reads the version before all else, and so waits there, holding nothing.
SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename::text, 'ducklake_')
 ORDER BY tablename <> 'ducklake_metadata', tablename;

-- name: grants
-- Who else may do what: relations that are made anew are given to the same.
SELECT c.relname,
       format('GRANT %s ON %I TO %s%s', a.privilege_type, c.relname,
              CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM pg_class c
 CROSS JOIN aclexplode(c.relacl) a
 WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'v') AND a.grantee <> c.relowner
 ORDER BY 1, 2;

-- name: relations
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'v');
