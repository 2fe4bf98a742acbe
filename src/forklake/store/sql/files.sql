-- Reading files, what is known of them, and what was deleted from them. `ids($name)` is a set of numbers, `texts($name)` one of texts.
-- `NOT masked(f.data_file)` leaves out rows of a view visible_*_unmasked that this catalog or an ancestor has ended by $at;
-- with the name of a CTE behind it, only masks of the files in there are looked for.

-- name: files
-- Every Parquet file of a table as a catalog sees it at a snapshot.
SELECT data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count, file_size_bytes,
       footer_size, row_id_start, partition_id, mapping_id, partial_max
  FROM visible_data_file_unmasked
 WHERE catalog_id = $catalog AND table_id = $table AND file_format <> 'inlined'
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
   AND NOT masked(data_file);

-- name: files_and_inlined_rows
-- Every file of a table, Parquet or not; of those whose rows live in this database, the rows.
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max, f.file_format,
       c.content
  FROM visible_data_file_unmasked f
  LEFT JOIN ducklake_inlined_file c ON c.catalog_id = f.source_catalog_id AND c.data_file_id = f.data_file_id
 WHERE f.catalog_id = $catalog AND f.table_id = $table
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file);

-- name: files_by_key
-- The files whose values of a column may lie between two keys, found through the index of keys. The hits come
-- first whatever a planner thinks: PostgreSQL would look at every file and then for its statistics.
WITH hit AS MATERIALIZED (
SELECT s.catalog_id, s.data_file_id, count(*) OVER () AS hits
  FROM ducklake_catalog_lineage l
  JOIN ducklake_file_column_stats s ON s.catalog_id = l.source_catalog_id AND s.table_id = $table
                                   AND s.column_id = $column AND s.min_key <= $high AND s.max_key >= $low
 WHERE l.catalog_id = $catalog
 LIMIT $most)
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max,
       hit.hits
  FROM hit
  JOIN visible_data_file_unmasked f ON f.catalog_id = $catalog AND f.source_catalog_id = hit.catalog_id
                                   AND f.data_file_id = hit.data_file_id
 WHERE f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file, hit);

-- name: files_by_keys
-- The same for single keys, which lie between the two: bounds have to hold one of them.
WITH hit AS MATERIALIZED (
SELECT s.catalog_id, s.data_file_id, count(*) OVER () AS hits
  FROM ducklake_catalog_lineage l
  JOIN ducklake_file_column_stats s ON s.catalog_id = l.source_catalog_id AND s.table_id = $table
                                   AND s.column_id = $column AND s.min_key <= $high AND s.max_key >= $low
 WHERE l.catalog_id = $catalog
   AND EXISTS (SELECT 1 FROM texts($keys) AS k(value) WHERE k.value >= s.min_key AND k.value <= s.max_key)
 LIMIT $most)
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max,
       hit.hits
  FROM hit
  JOIN visible_data_file_unmasked f ON f.catalog_id = $catalog AND f.source_catalog_id = hit.catalog_id
                                   AND f.data_file_id = hit.data_file_id
 WHERE f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file, hit);

-- name: files_by_two_keys
-- The files that two columns leave over: for when each alone leaves many.
WITH one AS MATERIALIZED (
SELECT s.catalog_id, s.data_file_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_file_column_stats s ON s.catalog_id = l.source_catalog_id AND s.table_id = $table
                                   AND s.column_id = $column AND s.min_key <= $high AND s.max_key >= $low
 WHERE l.catalog_id = $catalog
), other AS MATERIALIZED (
SELECT s.catalog_id, s.data_file_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_file_column_stats s ON s.catalog_id = l.source_catalog_id AND s.table_id = $table
                                   AND s.column_id = $other AND s.min_key <= $other_high AND s.max_key >= $other_low
 WHERE l.catalog_id = $catalog
), hit AS MATERIALIZED (
SELECT one.catalog_id, one.data_file_id
  FROM one
  JOIN other ON other.catalog_id = one.catalog_id AND other.data_file_id = one.data_file_id
)
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max
  FROM hit
  JOIN visible_data_file_unmasked f ON f.catalog_id = $catalog AND f.source_catalog_id = hit.catalog_id
                                   AND f.data_file_id = hit.data_file_id
 WHERE f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file, hit);

-- name: files_before
-- The files that are older than some column.
SELECT data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count, file_size_bytes,
       footer_size, row_id_start, partition_id, mapping_id, partial_max
  FROM visible_data_file_unmasked
 WHERE catalog_id = $catalog AND table_id = $table AND file_format <> 'inlined'
   AND begin_snapshot < $since AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
   AND NOT masked(data_file);

-- name: files_by_partition
-- The files of one partition, found through the index of partition values, which comes first here too.
WITH hit AS MATERIALIZED (
SELECT p.catalog_id, p.data_file_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_file_partition_value p ON p.catalog_id = l.source_catalog_id AND p.table_id = $table
                                      AND p.partition_key_index = $place AND p.partition_value = $value
 WHERE l.catalog_id = $catalog)
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max
  FROM hit
  JOIN visible_data_file_unmasked f ON f.catalog_id = $catalog AND f.source_catalog_id = hit.catalog_id
                                   AND f.data_file_id = hit.data_file_id
 WHERE f.partition_id = $partition
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file, hit);

-- name: files_outside_partitioning
-- The files that were written under another partitioning, or none.
SELECT data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count, file_size_bytes,
       footer_size, row_id_start, partition_id, mapping_id, partial_max
  FROM visible_data_file_unmasked
 WHERE catalog_id = $catalog AND table_id = $table AND file_format <> 'inlined'
   AND (partition_id IS NULL OR partition_id <> $partition)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
   AND NOT masked(data_file);

-- name: inlined_files
-- Files whose rows live in this database, with those rows.
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max, c.content
  FROM visible_data_file f
  JOIN ducklake_inlined_file c ON c.catalog_id = f.source_catalog_id AND c.data_file_id = f.data_file_id
 WHERE f.catalog_id = $catalog AND f.table_id = $table AND f.file_format = 'inlined'
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot);

-- name: inlined_tables
-- The tables that have inlined rows.
SELECT DISTINCT f.table_id
  FROM visible_data_file f
  JOIN visible_table t ON t.catalog_id = f.catalog_id AND t.table_id = f.table_id
   AND t.begin_snapshot <= $at AND (t.end_snapshot IS NULL OR $at < t.end_snapshot)
 WHERE f.catalog_id = $catalog AND f.file_format = 'inlined'
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
 ORDER BY f.table_id;

-- name: tables_with_files
-- The tables that have files or inlined rows.
SELECT DISTINCT f.table_id
  FROM visible_data_file f
  JOIN visible_table t ON t.catalog_id = f.catalog_id AND t.table_id = f.table_id
   AND t.begin_snapshot <= $at AND (t.end_snapshot IS NULL OR $at < t.end_snapshot)
 WHERE f.catalog_id = $catalog
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
 ORDER BY f.table_id;

-- name: stats_of_files
-- What is known of some columns in some files.
SELECT data_file_id, column_id, value_count, null_count, min_value, max_value, min_key, max_key, contains_nan,
       distinct_count, column_size_bytes
  FROM visible_file_column_stats
 WHERE catalog_id = $catalog AND data_file_id IN ids($files) AND column_id IN ids($columns);

-- name: stats_of_table
-- What is known of some columns in all files of a table.
SELECT data_file_id, column_id, value_count, null_count, min_value, max_value, min_key, max_key, contains_nan,
       distinct_count, column_size_bytes
  FROM visible_file_column_stats
 WHERE catalog_id = $catalog AND table_id = $table AND column_id IN ids($columns);

-- name: partitions_of_files
SELECT data_file_id, partition_key_index, partition_value
  FROM visible_file_partition_value
 WHERE catalog_id = $catalog AND data_file_id IN ids($files)
 ORDER BY data_file_id, partition_key_index;

-- name: delete_files
-- Every delete file that applies to a table at a snapshot.
SELECT data_file_id, delete_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, delete_count,
       file_size_bytes, footer_size
  FROM visible_delete_file_unmasked
 WHERE catalog_id = $catalog AND table_id = $table
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
   AND NOT masked(delete_file);

-- name: delete_files_of
-- The delete files that apply to some data files.
SELECT data_file_id, delete_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, delete_count,
       file_size_bytes, footer_size
  FROM visible_delete_file
 WHERE catalog_id = $catalog AND table_id = $table AND data_file_id IN ids($files)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: inlined_deletes
-- Every position that was deleted inline.
SELECT data_file_id, position, begin_snapshot
  FROM visible_inlined_delete
 WHERE catalog_id = $catalog AND table_id = $table AND begin_snapshot <= $at;

-- name: inlined_deletes_of
SELECT data_file_id, position, begin_snapshot
  FROM visible_inlined_delete
 WHERE catalog_id = $catalog AND table_id = $table AND data_file_id IN ids($files) AND begin_snapshot <= $at;

-- name: inlined_deletes_between
-- For many inlined files: DuckDB takes as long for the text of a thousand numbers as for all else.
SELECT data_file_id, position, begin_snapshot
  FROM visible_inlined_delete
 WHERE catalog_id = $catalog AND table_id = $table AND data_file_id BETWEEN $low AND $high AND begin_snapshot <= $at;

-- name: totals
-- How many files, rows and bytes a table has, and how many rows were deleted through files and inline. Delete files
-- of earlier versions, which are named otherwise, name again what had been deleted inline before.
SELECT f.files, f.records, f.bytes, d.deleted, i.deleted
  FROM (SELECT count(*) AS files, COALESCE(sum(record_count), 0) AS records, COALESCE(sum(file_size_bytes), 0) AS bytes
          FROM visible_data_file_unmasked
         WHERE catalog_id = $catalog AND table_id = $table
           AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
           AND NOT masked(data_file)) f,
       (SELECT COALESCE(sum(delete_count), 0) AS deleted
          FROM visible_delete_file_unmasked
         WHERE catalog_id = $catalog AND table_id = $table
           AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
           AND NOT masked(delete_file)) d,
       (SELECT count(*) AS deleted
          FROM visible_inlined_delete i
          JOIN visible_data_file o ON o.catalog_id = i.catalog_id AND o.data_file_id = i.data_file_id
                                  AND o.begin_snapshot <= $at AND (o.end_snapshot IS NULL OR $at < o.end_snapshot)
         WHERE i.catalog_id = $catalog AND i.table_id = $table AND i.begin_snapshot <= $at
           AND NOT EXISTS (SELECT 1 FROM visible_delete_file n
                            WHERE n.catalog_id = $catalog AND n.table_id = $table AND n.data_file_id = i.data_file_id
                              AND n.begin_snapshot > i.begin_snapshot AND n.begin_snapshot <= $at
                              AND n.path NOT LIKE '%-deletes.parquet'
                              AND (n.end_snapshot IS NULL OR $at < n.end_snapshot))) i;

-- name: bounds
-- The outermost bounds of a column over all files, by key; values are missing where a bound is not exact.
SELECT s.min_key, s.min_value, s.max_key, s.max_value, s.null_count, s.value_count, s.contains_nan, f.begin_snapshot
  FROM visible_data_file_unmasked f
  LEFT JOIN ducklake_file_column_stats s ON s.catalog_id = f.source_catalog_id AND s.data_file_id = f.data_file_id
                                        AND s.column_id = $column
 WHERE f.catalog_id = $catalog AND f.table_id = $table AND f.file_format <> 'inlined'
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
   AND NOT masked(f.data_file);

-- name: column_totals
-- What all Parquet files of a table together know of each column.
WITH known AS (
    SELECT s.column_id, s.value_count, s.null_count, s.min_key, s.max_key, s.min_value, s.max_value,
           s.contains_nan, s.column_size_bytes
      FROM visible_data_file_unmasked f
      JOIN ducklake_file_column_stats s ON s.catalog_id = f.source_catalog_id AND s.data_file_id = f.data_file_id
     WHERE f.catalog_id = $catalog AND f.table_id = $table
       AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot)
       AND NOT masked(f.data_file)
), totals AS (
    SELECT column_id, sum(value_count) AS value_count, sum(null_count) AS null_count,
           count(*) - count(null_count) AS unknown_nulls, min(min_key) AS min_key, max(max_key) AS max_key,
           max(CASE WHEN contains_nan THEN 1 WHEN NOT contains_nan THEN 0 END) AS contains_nan,
           sum(column_size_bytes) AS size_bytes
      FROM known
     GROUP BY column_id
)
SELECT t.column_id, t.value_count, CASE WHEN t.unknown_nulls = 0 THEN t.null_count END,
       (SELECT CASE WHEN min(k.min_value) = max(k.min_value) AND count(*) = count(k.min_value) THEN min(k.min_value) END
          FROM known k
         WHERE k.column_id = t.column_id AND k.min_key = t.min_key),
       -- '5' is the key of NaN: files that may have it do not say by their keys which has the greatest number.
       (SELECT CASE WHEN min(k.max_value) = max(k.max_value) AND count(*) = count(k.max_value) THEN max(k.max_value) END
          FROM known k
         WHERE k.column_id = t.column_id AND (k.max_key = t.max_key OR t.max_key = '5' AND k.max_key IS NOT NULL)),
       t.min_key, t.max_key, t.contains_nan, t.size_bytes
  FROM totals t;

-- name: files_with_row
-- The files that hold a row by its id: by their range of ids, or because rows carry ids and these surround it.
SELECT f.data_file_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.record_count,
       f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id, f.mapping_id, f.partial_max
  FROM visible_data_file f
 WHERE f.catalog_id = $catalog AND f.table_id = $table AND f.file_format <> 'inlined'
   AND f.row_id_start <= $row AND f.row_id_start + f.record_count > $row
   AND f.begin_snapshot <= $at AND (f.end_snapshot IS NULL OR $at < f.end_snapshot);

-- name: column_names
-- The versions of each column of a table, nested fields too. One that begins and ends at once was never to be seen here:
-- it only tells a name that files of a fork may know.
SELECT column_id, parent_column, column_name, column_type, begin_snapshot, end_snapshot
  FROM visible_column
 WHERE catalog_id = $catalog AND table_id = $table
 ORDER BY column_id, begin_snapshot, end_snapshot;

-- name: mappings
SELECT m.mapping_id, m.type, n.source_name, n.target_field_id, n.is_partition
  FROM visible_column_mapping m
  JOIN visible_name_mapping n ON n.catalog_id = m.catalog_id AND n.mapping_id = m.mapping_id
 WHERE m.catalog_id = $catalog AND m.table_id = $table
 ORDER BY m.mapping_id, n.column_id;

-- name: partitionings
-- How a table was partitioned, now and before.
SELECT i.partition_id, i.source_catalog_id, i.begin_snapshot, i.end_snapshot, c.partition_key_index, c.column_id, c.transform
  FROM visible_partition_info i
  JOIN ducklake_partition_column c ON c.catalog_id = i.source_catalog_id AND c.partition_id = i.partition_id
 WHERE i.catalog_id = $catalog AND i.table_id = $table AND i.begin_snapshot <= $at
 ORDER BY i.partition_id, c.partition_key_index;

-- name: partitionings_of_tables
SELECT i.table_id, i.partition_id, i.source_catalog_id, i.begin_snapshot, i.end_snapshot, c.partition_key_index,
       c.column_id, c.transform
  FROM visible_partition_info i
  JOIN ducklake_partition_column c ON c.catalog_id = i.source_catalog_id AND c.partition_id = i.partition_id
 WHERE i.catalog_id = $catalog AND i.table_id IN ids($tables) AND i.begin_snapshot <= $at
 ORDER BY i.partition_id, c.partition_key_index;

-- name: sort_orders_of_tables
SELECT i.table_id, i.sort_id, i.source_catalog_id, i.begin_snapshot, e.sort_key_index, e.expression, e.sort_direction,
       e.null_order
  FROM visible_sort_info i
  JOIN ducklake_sort_expression e ON e.catalog_id = i.source_catalog_id AND e.sort_id = i.sort_id
 WHERE i.catalog_id = $catalog AND i.table_id IN ids($tables)
   AND i.begin_snapshot <= $at AND (i.end_snapshot IS NULL OR $at < i.end_snapshot)
 ORDER BY i.sort_id, e.sort_key_index;

-- name: sort_orders
SELECT i.sort_id, i.source_catalog_id, i.begin_snapshot, e.sort_key_index, e.expression, e.sort_direction, e.null_order
  FROM visible_sort_info i
  JOIN ducklake_sort_expression e ON e.catalog_id = i.source_catalog_id AND e.sort_id = i.sort_id
 WHERE i.catalog_id = $catalog AND i.table_id = $table
   AND i.begin_snapshot <= $at AND (i.end_snapshot IS NULL OR $at < i.end_snapshot)
 ORDER BY i.sort_id, e.sort_key_index;

-- name: files_changed
-- The files that a table gained or lost after one snapshot and up to another.
SELECT data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count, file_size_bytes,
       footer_size, row_id_start, partition_id, mapping_id, partial_max, file_format, end_snapshot
  FROM visible_data_file
 WHERE catalog_id = $catalog AND table_id = $table AND begin_snapshot <= $end
   AND (begin_snapshot > $start OR (end_snapshot > $start AND end_snapshot <= $end))
 ORDER BY data_file_id;

-- name: deletes_changed
-- The delete files of data files that lost rows in a span, with those that stood before.
SELECT d.data_file_id, d.delete_file_id, d.source_catalog_id, d.begin_snapshot, d.path, d.path_is_relative,
       d.delete_count, d.file_size_bytes, d.footer_size, d.end_snapshot
  FROM visible_delete_file d
 WHERE d.catalog_id = $catalog AND d.table_id = $table AND d.begin_snapshot <= $end
   AND (d.end_snapshot IS NULL OR d.end_snapshot > $start)
 ORDER BY d.data_file_id, d.begin_snapshot;

-- name: files_by_id
-- Data files whatever their end.
SELECT data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count, file_size_bytes,
       footer_size, row_id_start, partition_id, mapping_id, partial_max, file_format, end_snapshot
  FROM visible_data_file
 WHERE catalog_id = $catalog AND table_id = $table AND data_file_id IN ids($files)
 ORDER BY data_file_id;

-- name: files_added_since
-- The files that some tables gained after a snapshot, whether they are still there or not.
SELECT data_file_id
  FROM visible_data_file
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND begin_snapshot > $since AND begin_snapshot <= $at;

-- name: files_changed_in_tables
-- The files of some tables that came, went or lost rows after one snapshot and up to another.
SELECT data_file_id
  FROM visible_data_file_unmasked
 WHERE catalog_id = $catalog AND table_id IN ids($tables)
   AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT f.data_file_id
  FROM visible_mask m
  JOIN visible_data_file_unmasked f ON f.catalog_id = m.catalog_id AND f.data_file_id = m.entity_id
 WHERE m.catalog_id = $catalog AND m.entity = 'data_file' AND m.end_snapshot > $start AND m.end_snapshot <= $end
   AND f.table_id IN ids($tables)
UNION
SELECT data_file_id
  FROM visible_delete_file_unmasked
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND begin_snapshot > $start AND begin_snapshot <= $end
UNION
SELECT data_file_id
  FROM visible_inlined_delete
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND begin_snapshot > $start AND begin_snapshot <= $end;

-- name: file_states
-- Data files whatever their end.
SELECT table_id, data_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, record_count,
       file_size_bytes, footer_size, row_id_start, partition_id, mapping_id, partial_max, file_format, end_snapshot
  FROM visible_data_file
 WHERE catalog_id = $catalog AND data_file_id IN ids($files);

-- name: delete_states
-- The delete files that apply to some data files at a snapshot.
SELECT data_file_id, delete_file_id, source_catalog_id, begin_snapshot, path, path_is_relative, delete_count,
       file_size_bytes, footer_size
  FROM visible_delete_file
 WHERE catalog_id = $catalog AND table_id IN ids($tables) AND data_file_id IN ids($files)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: inlined_delete_states
SELECT data_file_id, position, begin_snapshot
  FROM visible_inlined_delete
 WHERE catalog_id = $catalog AND data_file_id IN ids($files) AND begin_snapshot <= $at;

-- name: merges_in_spans
-- What was merged into some catalogs in spans of their snapshots.
SELECT m.catalog_id, m.merge_snapshot, m.source_catalog_id, m.table_id, m.base_snapshot, m.source_snapshot
  FROM spans($spans)
  JOIN ducklake_catalog_merge m ON m.catalog_id = k.catalog_id AND m.merge_snapshot > k.low AND m.merge_snapshot <= k.high;

-- name: merges_of_sources
-- The same, of some sources only.
SELECT m.catalog_id, m.merge_snapshot, m.source_catalog_id, m.table_id, m.base_snapshot, m.source_snapshot
  FROM spans($spans)
  JOIN ducklake_catalog_merge m ON m.catalog_id = k.catalog_id AND m.merge_snapshot > k.low AND m.merge_snapshot <= k.high
 WHERE m.source_catalog_id IN ids($sources);

-- name: merged_up_to
-- How far some sources were merged into catalogs in spans of their snapshots.
SELECT m.source_catalog_id, m.table_id, max(m.source_snapshot)
  FROM spans($spans)
  JOIN ducklake_catalog_merge m ON m.catalog_id = k.catalog_id AND m.merge_snapshot > k.low AND m.merge_snapshot <= k.high
 WHERE m.source_catalog_id IN ids($sources)
 GROUP BY m.source_catalog_id, m.table_id;

-- name: footprints_in_spans
-- What some catalogs committed themselves in spans of their snapshots.
SELECT c.catalog_id, c.snapshot_id, c.footprint
  FROM spans($spans)
  JOIN ducklake_snapshot_changes c ON c.catalog_id = k.catalog_id AND c.snapshot_id > k.low AND c.snapshot_id <= k.high
 ORDER BY c.snapshot_id;

-- name: definitions_in_spans
-- The same, without commits that did nothing but to rows: a footprint that is not known counts as more.
SELECT c.catalog_id, c.snapshot_id, c.footprint
  FROM spans($spans)
  JOIN ducklake_snapshot_changes c ON c.catalog_id = k.catalog_id AND c.snapshot_id > k.low AND c.snapshot_id <= k.high
 WHERE c.footprint IS NULL OR c.changes_made LIKE '%created_%' OR c.changes_made LIKE '%altered_%'
    OR c.changes_made LIKE '%dropped_%' OR c.changes_made LIKE '%restored_%'
 ORDER BY c.snapshot_id;

-- name: file_histories
-- Some data files as some catalogs have or had them.
SELECT f.catalog_id, f.data_file_id, f.record_count, f.begin_snapshot, f.end_snapshot
  FROM spans($catalogs)
  JOIN visible_data_file f ON f.catalog_id = k.catalog_id
 WHERE f.data_file_id IN ids($files);

-- name: delete_histories
-- The delete files that some data files ever had in some catalogs.
SELECT d.catalog_id, d.data_file_id, d.delete_file_id, d.source_catalog_id, d.begin_snapshot, d.path,
       d.path_is_relative, d.delete_count, d.file_size_bytes, d.footer_size
  FROM spans($catalogs)
  JOIN visible_delete_file d ON d.catalog_id = k.catalog_id
 WHERE d.data_file_id IN ids($files)
 ORDER BY d.begin_snapshot;

-- name: inlined_delete_histories
-- The positions of some data files that were deleted inline in some catalogs.
SELECT d.catalog_id, d.data_file_id, d.position, d.begin_snapshot
  FROM spans($catalogs)
  JOIN visible_inlined_delete d ON d.catalog_id = k.catalog_id
 WHERE d.data_file_id IN ids($files);

-- name: origins_of_files
-- The commits that made some files: others have them from there, by merges or as copies.
SELECT data_file_id, min(table_id), min(begin_snapshot)
  FROM ducklake_data_file
 WHERE data_file_id IN ids($files)
 GROUP BY data_file_id;

-- name: files_in_catalogs
-- The catalogs that have or had some files, and the commits by which they got them.
SELECT data_file_id, catalog_id, min(begin_snapshot)
  FROM ducklake_data_file
 WHERE data_file_id IN ids($files)
 GROUP BY data_file_id, catalog_id;

-- name: inlined_content
SELECT data_file_id, content
  FROM visible_inlined_file
 WHERE catalog_id = $catalog AND data_file_id IN ids($files);

-- name: footprints_between
-- What a catalog and its ancestors committed after one snapshot and up to another.
SELECT snapshot_id, footprint
  FROM visible_snapshot
 WHERE catalog_id = $catalog AND snapshot_id > $start AND snapshot_id <= $end
 ORDER BY snapshot_id;

-- name: table_statistics
-- What a catalog itself has counted of its tables, and the bounds of their columns.
SELECT t.table_id, t.record_count, t.next_row_id, t.file_size_bytes,
       c.column_id, c.contains_null, c.contains_nan, c.min_value, c.max_value, c.min_key, c.max_key
  FROM ducklake_table_stats t
  LEFT JOIN ducklake_table_column_stats c ON c.catalog_id = t.catalog_id AND c.table_id = t.table_id
 WHERE t.catalog_id = $catalog AND t.table_id IN ids($tables);

-- name: sizes_of_tables
-- How many files, rows and bytes the tables of a catalog have; inlined rows are counted apart.
SELECT f.table_id, f.files, f.bytes, f.records, COALESCE(d.files, 0), COALESCE(d.bytes, 0), COALESCE(d.deleted, 0),
       COALESCE(i.deleted, 0)
  FROM (SELECT table_id, sum(CASE WHEN file_format = 'inlined' THEN 0 ELSE 1 END) AS files,
               sum(CASE WHEN file_format = 'inlined' THEN 0 ELSE file_size_bytes END) AS bytes,
               sum(record_count) AS records
          FROM visible_data_file_unmasked
         WHERE catalog_id = $catalog
           AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
           AND NOT masked(data_file)
         GROUP BY table_id) f
  LEFT JOIN (SELECT table_id, count(*) AS files, sum(file_size_bytes) AS bytes, sum(delete_count) AS deleted
               FROM visible_delete_file_unmasked
              WHERE catalog_id = $catalog
                AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
                AND NOT masked(delete_file)
              GROUP BY table_id) d ON d.table_id = f.table_id
  LEFT JOIN (SELECT i.table_id, count(*) AS deleted
               FROM visible_inlined_delete i
               JOIN visible_data_file o ON o.catalog_id = i.catalog_id AND o.data_file_id = i.data_file_id
                                       AND o.begin_snapshot <= $at
                                       AND (o.end_snapshot IS NULL OR $at < o.end_snapshot)
              WHERE i.catalog_id = $catalog AND i.begin_snapshot <= $at
                AND NOT EXISTS (SELECT 1 FROM visible_delete_file n
                                 WHERE n.catalog_id = $catalog AND n.table_id = i.table_id
                                   AND n.data_file_id = i.data_file_id
                                   AND n.begin_snapshot > i.begin_snapshot AND n.begin_snapshot <= $at
                                   AND n.path NOT LIKE '%-deletes.parquet'
                                   AND (n.end_snapshot IS NULL OR $at < n.end_snapshot))
              GROUP BY i.table_id) i ON i.table_id = f.table_id;
