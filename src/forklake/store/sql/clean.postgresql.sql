-- Where PostgreSQL cleans otherwise.

-- name: unused_folders
SELECT k.value
  FROM texts($folders) AS k(value)
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_head h WHERE h.data_path = k.value)
   AND k.value NOT IN (SELECT substr(f.path, 1, strpos(f.path, '/')) FROM ducklake_data_file f
                       UNION ALL SELECT substr(f.path, 1, strpos(f.path, '/')) FROM ducklake_delete_file f
                       UNION ALL SELECT substr(f.path, 1, strpos(f.path, '/')) FROM ducklake_index_file f
                       UNION ALL SELECT substr(f.path, 1, strpos(f.path, '/')) FROM ducklake_files_scheduled_for_deletion f);

-- name: begin_cleaning
-- One cleans at a time, in one transaction after the other: two would wait for each other's rows. It looks at all catalogs at once,
-- so a plan is made for what is there, and carried out by one process: others need theirs. The lock is a statement of its own,
-- so that the next one sees what the other did.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 2)), set_config('enable_seqscan', 'on', true),
       set_config('plan_cache_mode', 'force_custom_plan', true), set_config('max_parallel_workers_per_gather', '0', true);
