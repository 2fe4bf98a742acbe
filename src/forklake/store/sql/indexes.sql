-- Indexes of tables: their definitions, and the files that they consist of.

-- name: indexes_of_tables
-- The indexes of some tables, with their columns in order.
SELECT i.table_id, i.index_id, i.source_catalog_id, i.begin_snapshot, i.index_uuid, i.index_name, i.kind, i.maintain, i.params,
       c.column_id, c.role
  FROM visible_index i
  JOIN ducklake_index_column c ON c.catalog_id = i.source_catalog_id AND c.index_id = i.index_id
 WHERE i.catalog_id = $catalog AND i.table_id IN ids($tables)
   AND i.begin_snapshot <= $at AND (i.end_snapshot IS NULL OR $at < i.end_snapshot)
 ORDER BY i.index_id, c.ordinal;

-- name: indexes
-- The indexes of all tables, with their columns in order.
SELECT i.table_id, i.index_id, i.source_catalog_id, i.begin_snapshot, i.index_uuid, i.index_name, i.kind, i.maintain, i.params,
       c.column_id, c.role
  FROM visible_index i
  JOIN ducklake_index_column c ON c.catalog_id = i.source_catalog_id AND c.index_id = i.index_id
 WHERE i.catalog_id = $catalog
   AND i.begin_snapshot <= $at AND (i.end_snapshot IS NULL OR $at < i.end_snapshot)
 ORDER BY i.index_id, c.ordinal;

-- name: index_files
-- The files of the indexes of some tables, of those that count at a snapshot or now: what a segment says of its data files
-- holds at every snapshot.
SELECT f.index_file_id, f.index_id, f.source_catalog_id, f.begin_snapshot, f.path, f.path_is_relative, f.file_size_bytes,
       f.entry_count, f.format, f.format_version, f.min_key, f.max_key, f.footer_size, f.summary, f.level, f.role,
       f.model_file_id
  FROM visible_index_file f
 WHERE f.catalog_id = $catalog AND f.table_id IN ids($tables)
   AND (f.end_snapshot IS NULL OR (f.begin_snapshot <= $at AND $at < f.end_snapshot))
 ORDER BY f.index_file_id;

-- name: index_coverage
-- The data files of the segments that `index_files` lists.
SELECT c.index_file_id, c.ordinal, c.data_file_id
  FROM visible_index_file f
  JOIN ducklake_index_coverage c ON c.catalog_id = f.source_catalog_id AND c.index_file_id = f.index_file_id
 WHERE f.catalog_id = $catalog AND f.table_id IN ids($tables)
   AND (f.end_snapshot IS NULL OR (f.begin_snapshot <= $at AND $at < f.end_snapshot));

-- name: known_index_files
-- Those of some files of indexes that a catalog has or had.
SELECT index_file_id FROM visible_index_file WHERE catalog_id = $catalog AND index_file_id IN ids($files);

-- name: index_files_to_end
-- The live files of indexes of some tables that somebody replaces, whose index is gone, or that find rows of no data file
-- that is still there.
SELECT f.index_file_id, f.source_catalog_id, f.begin_snapshot
  FROM visible_index_file f
 WHERE f.catalog_id = $catalog AND f.table_id IN ids($tables) AND f.end_snapshot IS NULL
   AND (f.index_file_id IN ids($replaced)
        OR NOT EXISTS (SELECT 1 FROM visible_index i
                        WHERE i.catalog_id = $catalog AND i.index_id = f.index_id AND i.end_snapshot IS NULL)
        OR (f.role = 'segment'
            AND NOT EXISTS (SELECT 1 FROM visible_index_coverage c
                              JOIN visible_data_file d ON d.catalog_id = c.catalog_id AND d.data_file_id = c.data_file_id
                                                      AND d.end_snapshot IS NULL
                             WHERE c.catalog_id = $catalog AND c.index_file_id = f.index_file_id)));

-- name: indexes_now_or_then
-- The indexes of a table that count at a snapshot or now, of columns that were not altered after it: segments of today
-- may have others in types that the snapshot does not know.
SELECT i.table_id, i.index_id, i.source_catalog_id, i.begin_snapshot, i.index_uuid, i.index_name, i.kind, i.maintain, i.params,
       c.column_id, c.role
  FROM visible_index i
  JOIN ducklake_index_column c ON c.catalog_id = i.source_catalog_id AND c.index_id = i.index_id
 WHERE i.catalog_id = $catalog AND i.table_id = $table
   AND (i.end_snapshot IS NULL OR (i.begin_snapshot <= $at AND $at < i.end_snapshot))
   AND NOT EXISTS (SELECT 1 FROM visible_index_column k
                     JOIN visible_column v ON v.catalog_id = k.catalog_id AND v.table_id = $table AND v.column_id = k.column_id
                                          AND v.begin_snapshot > $at
                    WHERE k.catalog_id = $catalog AND k.index_id = i.index_id)
 ORDER BY i.index_id, c.ordinal;
