-- Which tables of which living catalogs a checkpoint has something to do for, among catalogs from one number to another. Only
-- what a catalog has itself counts: what it inherited is looked after where it was written, and not once more in every fork.

-- name: tables_to_flush
-- Tables with inlined rows.
SELECT w.catalog_id, n.catalog_name, w.table_id, w.found
  FROM (SELECT f.catalog_id, f.table_id, CAST(sum(f.record_count) AS BIGINT) AS found
          FROM ducklake_data_file f
         WHERE f.catalog_id BETWEEN $first AND $last AND f.end_snapshot IS NULL AND f.file_format = 'inlined'
         GROUP BY f.catalog_id, f.table_id) w
  JOIN ducklake_catalog n ON n.catalog_id = w.catalog_id AND n.end_snapshot IS NULL
 WHERE EXISTS (SELECT 1 FROM visible_table t
                WHERE t.catalog_id = w.catalog_id AND t.table_id = w.table_id AND t.end_snapshot IS NULL)
 ORDER BY w.catalog_id, w.table_id;

-- name: tables_to_compact
-- Tables with two small files or more; those with a file size of their own are looked at in any case.
SELECT w.catalog_id, n.catalog_name, w.table_id, w.small
  FROM (SELECT f.catalog_id, f.table_id, count(*) AS found,
               CAST(sum(CASE WHEN f.file_size_bytes <= $small THEN 1 ELSE 0 END) AS BIGINT) AS small
          FROM ducklake_data_file f
         WHERE f.catalog_id BETWEEN $first AND $last AND f.end_snapshot IS NULL AND f.file_format <> 'inlined'
         GROUP BY f.catalog_id, f.table_id) w
  JOIN ducklake_catalog n ON n.catalog_id = w.catalog_id AND n.end_snapshot IS NULL
 WHERE (w.small > 1 OR (w.found > 1 AND EXISTS (SELECT 1 FROM ducklake_tag o
                                                 WHERE o.object_id = w.table_id AND o.key = 'option:target_file_size')))
   AND EXISTS (SELECT 1 FROM visible_table t
                WHERE t.catalog_id = w.catalog_id AND t.table_id = w.table_id AND t.end_snapshot IS NULL)
 ORDER BY w.catalog_id, w.table_id;

-- name: tables_to_index
-- Tables with indexes, and files that a catalog has not inherited: which of them lack a segment is found out later.
SELECT w.catalog_id, n.catalog_name, w.table_id, w.found
  FROM (SELECT f.catalog_id, f.table_id, count(*) AS found
          FROM ducklake_data_file f
         WHERE f.catalog_id BETWEEN $first AND $last AND f.end_snapshot IS NULL AND f.file_format <> 'inlined'
         GROUP BY f.catalog_id, f.table_id) w
  JOIN ducklake_catalog n ON n.catalog_id = w.catalog_id AND n.end_snapshot IS NULL
 WHERE EXISTS (SELECT 1 FROM visible_index i
                WHERE i.catalog_id = w.catalog_id AND i.table_id = w.table_id AND i.end_snapshot IS NULL)
   AND EXISTS (SELECT 1 FROM visible_table t
                WHERE t.catalog_id = w.catalog_id AND t.table_id = w.table_id AND t.end_snapshot IS NULL)
 ORDER BY w.catalog_id, w.table_id;

-- name: tables_to_rewrite
-- Tables in which a catalog has deleted rows of a file that may have lost so many millionths of its rows. Deletes of the
-- whole lineage are counted, replaced ones too: no file is overlooked, and which ones it is is found out later.
WITH touched AS (
    SELECT d.catalog_id, d.table_id, d.data_file_id
      FROM ducklake_delete_file d
     WHERE d.catalog_id BETWEEN $first AND $last AND d.end_snapshot IS NULL
    UNION
    SELECT i.catalog_id, i.table_id, i.data_file_id
      FROM ducklake_inlined_delete i
     WHERE i.catalog_id BETWEEN $first AND $last
),
lost AS (
    SELECT t.catalog_id, t.table_id, t.data_file_id, COALESCE(max(d.delete_count), 0) AS deleted
      FROM touched t
      JOIN ducklake_catalog_lineage l ON l.catalog_id = t.catalog_id
      LEFT JOIN ducklake_delete_file d ON d.catalog_id = l.source_catalog_id AND d.table_id = t.table_id
                                      AND d.data_file_id = t.data_file_id AND d.begin_snapshot <= l.max_snapshot
     GROUP BY t.catalog_id, t.table_id, t.data_file_id
),
inlined AS (
    SELECT t.catalog_id, t.data_file_id, count(*) AS deleted
      FROM touched t
      JOIN ducklake_catalog_lineage l ON l.catalog_id = t.catalog_id
      JOIN ducklake_inlined_delete i ON i.catalog_id = l.source_catalog_id AND i.data_file_id = t.data_file_id
                                    AND i.begin_snapshot <= l.max_snapshot
     GROUP BY t.catalog_id, t.data_file_id
)
SELECT w.catalog_id, n.catalog_name, w.table_id, count(*)
  FROM lost w
  LEFT JOIN inlined i ON i.catalog_id = w.catalog_id AND i.data_file_id = w.data_file_id
  JOIN visible_data_file f ON f.catalog_id = w.catalog_id AND f.data_file_id = w.data_file_id
                          AND f.end_snapshot IS NULL AND f.file_format <> 'inlined'
  JOIN ducklake_catalog n ON n.catalog_id = w.catalog_id AND n.end_snapshot IS NULL
 WHERE ((w.deleted + COALESCE(i.deleted, 0)) * 1000000 >= f.record_count * $millionths
        OR EXISTS (SELECT 1 FROM ducklake_tag o
                    WHERE o.object_id = w.table_id AND o.key = 'option:rewrite_delete_threshold'))
   AND EXISTS (SELECT 1 FROM visible_table t
                WHERE t.catalog_id = w.catalog_id AND t.table_id = w.table_id AND t.end_snapshot IS NULL)
 GROUP BY w.catalog_id, n.catalog_name, w.table_id
 ORDER BY w.catalog_id, w.table_id;
