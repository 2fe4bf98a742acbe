-- Whether the rows of a lake hold together. Most of these list what does not, as catalog, table, path, and two numbers that say
-- what was found and what should be there.

-- name: check_heads
-- Catalogs that live and do not see themselves.
SELECT h.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM ducklake_catalog_head h
 WHERE h.end_snapshot IS NULL
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.catalog_id = h.catalog_id AND l.source_catalog_id = h.catalog_id
                      AND l.max_snapshot = 9223372036854775807)
 LIMIT $most;

-- name: check_names
-- Catalogs that live and have no name, or a name and no head.
SELECT h.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM ducklake_catalog_head h
 WHERE h.end_snapshot IS NULL
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog c WHERE c.catalog_id = h.catalog_id AND c.end_snapshot IS NULL)
UNION ALL
SELECT c.catalog_id, NULL, NULL, NULL, NULL
  FROM ducklake_catalog c
 WHERE c.end_snapshot IS NULL
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_head h WHERE h.catalog_id = c.catalog_id AND h.end_snapshot IS NULL)
 LIMIT $most;

-- name: check_positions
-- Catalogs that stand at a snapshot that nobody has made, or before the oldest one that they have.
SELECT h.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), h.snapshot_id, COALESCE(h.oldest_snapshot, 0)
  FROM ducklake_catalog_head h
 WHERE h.end_snapshot IS NULL
   AND (h.snapshot_id > (SELECT max(snapshot_id) FROM ducklake_snapshot) OR h.oldest_snapshot > h.snapshot_id)
 LIMIT $most;

-- name: check_parents
-- Forks that do not see their parent.
SELECT l.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), CAST(NULL AS BIGINT), l.depth - 1
  FROM ducklake_catalog_lineage l
 WHERE l.source_catalog_id = l.catalog_id AND l.depth > 0
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage p WHERE p.catalog_id = l.catalog_id AND p.depth = l.depth - 1)
 LIMIT $most;

-- name: check_ancestors
-- Catalogs that do not see whom an ancestor of theirs sees.
SELECT l.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), l.source_catalog_id, a.source_catalog_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_catalog_lineage a ON a.catalog_id = l.source_catalog_id AND a.source_catalog_id <> a.catalog_id
 WHERE l.source_catalog_id <> l.catalog_id
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage o
                    WHERE o.catalog_id = l.catalog_id AND o.source_catalog_id = a.source_catalog_id)
 LIMIT $most;

-- name: check_sources
-- Catalogs that descend from one that nobody knows.
SELECT l.catalog_id, CAST(NULL AS BIGINT), CAST(NULL AS VARCHAR), l.source_catalog_id, CAST(NULL AS BIGINT)
  FROM ducklake_catalog_lineage l
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog c WHERE c.catalog_id = l.source_catalog_id)
 LIMIT $most;

-- name: check_masks
-- Ends of rows that come before the rows.
SELECT m.catalog_id, CASE WHEN m.entity IN ('table', 'column', 'column_tag') THEN m.entity_id END, CAST(NULL AS VARCHAR),
       m.end_snapshot, m.row_begin
  FROM ducklake_inherited_end m
 WHERE m.end_snapshot < m.row_begin
 LIMIT $most;

-- name: check_files_of_tables
-- Files of tables that nobody knows.
SELECT f.catalog_id, f.table_id, f.path, f.data_file_id, CAST(NULL AS BIGINT)
  FROM ducklake_data_file f
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.table_id = f.table_id)
 LIMIT $most;

-- name: check_deletes_of_files
-- Delete files of data files that nobody has.
SELECT d.catalog_id, d.table_id, d.path, d.data_file_id, CAST(NULL AS BIGINT)
  FROM ducklake_delete_file d
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.data_file_id = d.data_file_id)
 LIMIT $most;

-- name: check_files_of_indexes
-- Files of indexes that nobody knows, and parts of files of indexes that their catalog does not have.
SELECT f.catalog_id, f.table_id, f.path, f.index_file_id, f.index_id
  FROM ducklake_index_file f
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_index i WHERE i.index_id = f.index_id AND i.table_id = f.table_id)
UNION ALL
SELECT c.catalog_id, NULL, NULL, c.index_file_id, c.data_file_id
  FROM ducklake_index_coverage c
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_index_file f
                    WHERE f.catalog_id = c.catalog_id AND f.index_file_id = c.index_file_id)
 LIMIT $most;

-- name: check_spans
-- Rows that end before they begin, or begin in a snapshot that nobody has made.
SELECT f.catalog_id, f.table_id, f.path, f.begin_snapshot, f.end_snapshot
  FROM ducklake_data_file f
 WHERE f.end_snapshot < f.begin_snapshot OR f.begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)
UNION ALL
SELECT d.catalog_id, d.table_id, d.path, d.begin_snapshot, d.end_snapshot
  FROM ducklake_delete_file d
 WHERE d.end_snapshot < d.begin_snapshot OR d.begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)
UNION ALL
SELECT i.catalog_id, i.table_id, i.path, i.begin_snapshot, i.end_snapshot
  FROM ducklake_index_file i
 WHERE i.end_snapshot < i.begin_snapshot OR i.begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)
UNION ALL
SELECT t.catalog_id, t.table_id, NULL, t.begin_snapshot, t.end_snapshot
  FROM ducklake_table t
 WHERE t.end_snapshot < t.begin_snapshot OR t.begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)
 LIMIT $most;

-- name: check_parts
-- Statistics, partition values and inlined rows of files that their catalog does not have.
SELECT s.catalog_id, s.table_id, CAST(NULL AS VARCHAR), s.data_file_id, s.column_id
  FROM ducklake_file_column_stats s
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.catalog_id = s.catalog_id AND f.data_file_id = s.data_file_id)
UNION ALL
SELECT p.catalog_id, p.table_id, NULL, p.data_file_id, NULL
  FROM ducklake_file_partition_value p
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.catalog_id = p.catalog_id AND f.data_file_id = p.data_file_id)
UNION ALL
SELECT i.catalog_id, i.table_id, NULL, i.data_file_id, NULL
  FROM ducklake_inlined_file i
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.catalog_id = i.catalog_id AND f.data_file_id = i.data_file_id)
 LIMIT $most;

-- name: check_mappings
-- Files whose names of columns their catalog neither has nor has inherited.
SELECT f.catalog_id, f.table_id, f.path, f.mapping_id, CAST(NULL AS BIGINT)
  FROM ducklake_data_file f
 WHERE f.mapping_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM ducklake_column_mapping m WHERE m.catalog_id = f.catalog_id AND m.mapping_id = f.mapping_id)
   AND NOT EXISTS (SELECT 1 FROM visible_column_mapping m WHERE m.catalog_id = f.catalog_id AND m.mapping_id = f.mapping_id)
 LIMIT $most;

-- name: check_table_names
-- Tables of one name that a catalog sees in one schema, one of them its own.
SELECT t.catalog_id, t.table_id, CAST(NULL AS VARCHAR), o.table_id, CAST(NULL AS BIGINT)
  FROM ducklake_table t
  JOIN ducklake_catalog_head h ON h.catalog_id = t.catalog_id AND h.end_snapshot IS NULL
  JOIN visible_table o ON o.catalog_id = t.catalog_id AND o.schema_id = t.schema_id AND o.table_name = t.table_name
                      AND o.end_snapshot IS NULL AND o.table_id <> t.table_id
 WHERE t.end_snapshot IS NULL
 LIMIT $most;

-- name: check_row_ids
-- Tables whose next row would get an id that a row has. A fork numbers its rows in a space of 2^32 ids, and a catalog the
-- rows of tables that it made below all of them.
SELECT s.catalog_id, s.table_id, CAST(NULL AS VARCHAR), s.next_row_id, max(f.row_id_start + f.record_count)
  FROM ducklake_table_stats s
  JOIN ducklake_data_file f ON f.catalog_id = s.catalog_id AND f.table_id = s.table_id
 WHERE f.row_id_start + f.record_count > s.next_row_id
   AND CASE WHEN f.row_id_start < 281474976710656 THEN -1 ELSE f.row_id_start - f.row_id_start % 4294967296 END
     = CASE WHEN s.next_row_id < 281474976710656 THEN -1 ELSE s.next_row_id - s.next_row_id % 4294967296 END
 GROUP BY s.catalog_id, s.table_id, s.next_row_id
 LIMIT $most;

-- name: check_counts
-- Tables whose rows or bytes were counted otherwise than they are, in catalogs from one number to another. Of one that only
-- lives on in others, nobody asks for the counts, and what others do not have is gone.
SELECT w.catalog_id, w.table_id, w.record_count, w.file_size_bytes, w.next_row_id, w.found_rows, w.found_bytes
  FROM (SELECT s.catalog_id, s.table_id, s.record_count, s.file_size_bytes, s.next_row_id,
               CAST((SELECT COALESCE(sum(f.record_count), 0)
                       FROM visible_data_file f
                      WHERE f.catalog_id = s.catalog_id AND f.table_id = s.table_id AND f.end_snapshot IS NULL)
                  - (SELECT COALESCE(sum(d.delete_count), 0)
                       FROM visible_delete_file d
                      WHERE d.catalog_id = s.catalog_id AND d.table_id = s.table_id AND d.end_snapshot IS NULL)
                  - (SELECT count(*)
                       FROM visible_inlined_delete i
                       JOIN visible_data_file o ON o.catalog_id = i.catalog_id AND o.data_file_id = i.data_file_id
                                               AND o.end_snapshot IS NULL
                      WHERE i.catalog_id = s.catalog_id AND i.table_id = s.table_id
                        AND NOT EXISTS (SELECT 1 FROM visible_delete_file n
                                         WHERE n.catalog_id = i.catalog_id AND n.data_file_id = i.data_file_id
                                           AND n.begin_snapshot > i.begin_snapshot AND n.end_snapshot IS NULL
                                           AND n.path NOT LIKE '%-deletes.parquet')) AS BIGINT) AS found_rows,
               CAST((SELECT COALESCE(sum(f.file_size_bytes), 0)
                       FROM visible_data_file f
                      WHERE f.catalog_id = s.catalog_id AND f.table_id = s.table_id AND f.end_snapshot IS NULL)
                    AS BIGINT) AS found_bytes
          FROM ducklake_table_stats s
          JOIN ducklake_catalog_lineage l ON l.catalog_id = s.catalog_id AND l.source_catalog_id = s.catalog_id
                                         AND l.max_snapshot = forever()
          JOIN visible_table t ON t.catalog_id = s.catalog_id AND t.table_id = s.table_id AND t.end_snapshot IS NULL
         WHERE s.record_count IS NOT NULL AND s.catalog_id BETWEEN $first AND $last) w
 WHERE w.record_count <> w.found_rows OR w.file_size_bytes <> w.found_bytes
 LIMIT $most;

-- name: check_bounds
-- Bounds of columns of tables that a file of the same catalog goes beyond, and what is known of that file. Ids that rows
-- carry (2147483540) are bounded in files only.
SELECT s.catalog_id, s.table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value, s.min_key, s.max_key,
       f.value_count, f.null_count, f.min_value, f.max_value, f.min_key, f.max_key, f.contains_nan
  FROM ducklake_table_column_stats s
  JOIN ducklake_file_column_stats f ON f.catalog_id = s.catalog_id AND f.table_id = s.table_id AND f.column_id = s.column_id
 WHERE s.catalog_id BETWEEN $first AND $last AND s.column_id <> 2147483540
   AND ((f.min_key IS NOT NULL AND (s.min_key IS NULL OR f.min_key < s.min_key OR s.max_key IS NULL OR f.max_key > s.max_key))
        OR (f.null_count > 0 AND NOT s.contains_null)
        OR (f.contains_nan AND NOT s.contains_nan))
 ORDER BY s.catalog_id, s.table_id, s.column_id
 LIMIT $most;

-- name: data_files_after
-- Parquet files in order, after one.
SELECT f.catalog_id, f.data_file_id, f.table_id, f.path, f.path_is_relative, f.record_count, f.file_size_bytes, f.footer_size,
       f.mapping_id
  FROM ducklake_data_file f
 WHERE (f.catalog_id > $catalog OR (f.catalog_id = $catalog AND f.data_file_id > $file)) AND f.file_format <> 'inlined'
 ORDER BY f.catalog_id, f.data_file_id
 LIMIT $most;

-- name: delete_files_after
-- Delete files in order, after one, with the rows of the data file that they are about.
SELECT d.catalog_id, d.delete_file_id, d.table_id, d.path, d.path_is_relative, d.delete_count, d.file_size_bytes, d.footer_size,
       (SELECT max(f.record_count) FROM ducklake_data_file f WHERE f.data_file_id = d.data_file_id)
  FROM ducklake_delete_file d
 WHERE d.catalog_id > $catalog OR (d.catalog_id = $catalog AND d.delete_file_id > $file)
 ORDER BY d.catalog_id, d.delete_file_id
 LIMIT $most;

-- name: inlined_files_after
-- Files whose rows live in the database, in order, after one, with their content.
SELECT f.catalog_id, f.data_file_id, f.table_id, f.record_count, i.content
  FROM ducklake_data_file f
  LEFT JOIN ducklake_inlined_file i ON i.catalog_id = f.catalog_id AND i.data_file_id = f.data_file_id
 WHERE (f.catalog_id > $catalog OR (f.catalog_id = $catalog AND f.data_file_id > $file)) AND f.file_format = 'inlined'
 ORDER BY f.catalog_id, f.data_file_id
 LIMIT $most;

-- name: stats_anywhere
-- What is known of the columns of some files, wherever they are.
SELECT s.catalog_id, s.data_file_id, s.column_id, s.value_count, s.null_count, s.min_value, s.max_value, s.min_key, s.max_key,
       s.contains_nan, s.distinct_count, s.column_size_bytes
  FROM ducklake_data_file f
  JOIN ducklake_file_column_stats s ON s.catalog_id = f.catalog_id AND s.data_file_id = f.data_file_id
 WHERE f.data_file_id IN ids($files);

-- name: bounds_anywhere
-- The bounds of columns of some tables that some catalogs have counted.
SELECT s.catalog_id, s.table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value, s.min_key, s.max_key
  FROM ducklake_table_column_stats s
 WHERE s.catalog_id IN ids($catalogs) AND s.table_id IN ids($tables);

-- name: column_types
-- The types that columns of some tables have had anywhere, the latest last.
SELECT c.table_id, c.column_id, c.column_name, c.column_type
  FROM ducklake_column c
 WHERE c.table_id IN ids($tables) AND c.column_type IS NOT NULL
 ORDER BY c.begin_snapshot;

-- name: names_of_mappings
-- What files that were imported call columns that are in no other.
SELECT DISTINCT n.mapping_id, n.source_name, n.target_field_id
  FROM ducklake_name_mapping n
 WHERE n.mapping_id IN ids($mappings) AND n.parent_column IS NULL AND NOT n.is_partition;

-- name: latest_names
-- What some catalogs are, or were last, called.
SELECT c.catalog_id, c.catalog_name
  FROM ducklake_catalog c
 WHERE c.catalog_id IN ids($catalogs)
   AND c.begin_snapshot = (SELECT max(o.begin_snapshot) FROM ducklake_catalog o WHERE o.catalog_id = c.catalog_id);

-- name: names_of_tables
-- What some tables were called anywhere, the latest last.
SELECT t.table_id, t.catalog_id, s.schema_name, t.table_name
  FROM ducklake_table t
  JOIN ducklake_schema s ON s.schema_id = t.schema_id
 WHERE t.table_id IN ids($tables)
 ORDER BY t.begin_snapshot, s.begin_snapshot;

-- name: highest_numbers
-- The highest numbers that are in use.
SELECT 'snapshot_id', max(snapshot_id) FROM ducklake_snapshot
UNION ALL
SELECT 'catalog_id', max(number)
  FROM (SELECT max(catalog_id) AS number FROM ducklake_catalog
        UNION ALL SELECT max(schema_id) FROM ducklake_schema
        UNION ALL SELECT max(table_id) FROM ducklake_table
        UNION ALL SELECT max(view_id) FROM ducklake_view
        UNION ALL SELECT max(macro_id) FROM ducklake_macro
        UNION ALL SELECT max(partition_id) FROM ducklake_partition_info
        UNION ALL SELECT max(sort_id) FROM ducklake_sort_info
        UNION ALL SELECT max(index_id) FROM ducklake_index) c
UNION ALL
SELECT 'file_id', max(number)
  FROM (SELECT max(data_file_id) AS number FROM ducklake_data_file
        UNION ALL SELECT max(delete_file_id) FROM ducklake_delete_file
        UNION ALL SELECT max(index_file_id) FROM ducklake_index_file) f;
