-- Reading the metadata. Every statement names the catalog it reads for, and reads entities through the views
-- visible_*, so that it need not know whether that catalog is a root or a fork.

-- name: setting
-- A setting of the whole lake.
SELECT value FROM ducklake_metadata WHERE key = $key AND scope IS NULL;

-- name: settings
-- All settings of the whole lake.
SELECT key, value FROM ducklake_metadata WHERE scope IS NULL;

-- name: some_files
-- Some of the oldest files below the data path, and of the newest.
SELECT path
  FROM (SELECT path FROM ducklake_data_file
         WHERE path_is_relative AND path <> '' ORDER BY data_file_id LIMIT $most) oldest
UNION
SELECT path
  FROM (SELECT path FROM ducklake_data_file
         WHERE path_is_relative AND path <> '' ORDER BY data_file_id DESC LIMIT $most) newest;

-- name: head
-- Where a catalog stands now.
SELECT snapshot_id, schema_version, data_path, snapshot_time, end_snapshot
  FROM ducklake_catalog_head
 WHERE catalog_id = $catalog;

-- name: catalog_by_name
-- A live catalog and where it stands, in one look.
SELECT c.catalog_id, c.catalog_uuid, h.snapshot_id, h.schema_version, h.data_path, h.snapshot_time
  FROM ducklake_catalog c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
 WHERE c.catalog_name = $name AND c.end_snapshot IS NULL;

-- name: catalogs_alike
-- The live catalogs of a name, and of names that differ from it only in case.
SELECT catalog_name
  FROM ducklake_catalog
 WHERE folded(catalog_name) = folded($name) AND end_snapshot IS NULL;

-- name: catalogs_beside
-- Some names of live catalogs, those that come next before and after one.
SELECT catalog_name
  FROM (SELECT catalog_name FROM ducklake_catalog
         WHERE end_snapshot IS NULL AND catalog_name >= $name ORDER BY catalog_name LIMIT $most) following
UNION ALL
SELECT catalog_name
  FROM (SELECT catalog_name FROM ducklake_catalog
         WHERE end_snapshot IS NULL AND catalog_name < $name ORDER BY catalog_name DESC LIMIT $most) preceding;

-- name: catalog_name
-- The latest name of a catalog, dropped or not.
SELECT catalog_name, end_snapshot FROM ducklake_catalog WHERE catalog_id = $catalog ORDER BY begin_snapshot DESC LIMIT 1;

-- name: catalog_by_name_at
-- The catalog that had a name at some snapshot.
SELECT catalog_id
  FROM ducklake_catalog
 WHERE catalog_name = $name AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: catalogs_at
-- Every catalog that lived at a snapshot, with the one it was forked from.
SELECT c.catalog_name, c.catalog_id, c.catalog_uuid, o.depth,
       (SELECT p.catalog_name FROM ducklake_catalog p
         WHERE p.catalog_id = f.source_catalog_id ORDER BY p.begin_snapshot DESC LIMIT 1) AS parent,
       COALESCE(f.copied_snapshot, f.max_snapshot), h.created_at, h.expires_at,
       NOT EXISTS (SELECT 1 FROM ducklake_catalog p
                    WHERE p.catalog_id = f.source_catalog_id
                      AND p.begin_snapshot <= $at AND (p.end_snapshot IS NULL OR $at < p.end_snapshot)) AS orphaned
  FROM ducklake_catalog c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
  JOIN ducklake_catalog_lineage o ON o.catalog_id = c.catalog_id AND o.source_catalog_id = c.catalog_id
  LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = c.catalog_id AND f.depth = o.depth - 1
 WHERE c.begin_snapshot <= $at AND (c.end_snapshot IS NULL OR $at < c.end_snapshot)
 ORDER BY c.catalog_name;

-- name: catalog_by_name_at_time
-- The catalog that had a name at a time, by the times of its own snapshots. If a clock went back there may be several.
SELECT c.catalog_id
  FROM ducklake_catalog c
  JOIN ducklake_snapshot b ON b.snapshot_id = c.begin_snapshot
  LEFT JOIN ducklake_snapshot e ON e.snapshot_id = c.end_snapshot
 WHERE c.catalog_name = $name AND b.snapshot_time <= $time AND (c.end_snapshot IS NULL OR $time < e.snapshot_time)
 ORDER BY c.begin_snapshot DESC
 LIMIT 1;

-- name: catalogs_at_time
-- Every catalog that lived at a time, by the times of its own snapshots, with the one it was forked from.
SELECT c.catalog_name, c.catalog_id, c.catalog_uuid, o.depth,
       (SELECT p.catalog_name FROM ducklake_catalog p
         WHERE p.catalog_id = f.source_catalog_id ORDER BY p.begin_snapshot DESC LIMIT 1) AS parent,
       COALESCE(f.copied_snapshot, f.max_snapshot), h.created_at, h.expires_at,
       NOT EXISTS (SELECT 1 FROM ducklake_catalog p
                     JOIN ducklake_snapshot pb ON pb.snapshot_id = p.begin_snapshot
                     LEFT JOIN ducklake_snapshot pe ON pe.snapshot_id = p.end_snapshot
                    WHERE p.catalog_id = f.source_catalog_id AND pb.snapshot_time <= $time
                      AND (p.end_snapshot IS NULL OR $time < pe.snapshot_time)) AS orphaned
  FROM ducklake_catalog c
  JOIN ducklake_snapshot b ON b.snapshot_id = c.begin_snapshot
  LEFT JOIN ducklake_snapshot e ON e.snapshot_id = c.end_snapshot
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
  JOIN ducklake_catalog_lineage o ON o.catalog_id = c.catalog_id AND o.source_catalog_id = c.catalog_id
  LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = c.catalog_id AND f.depth = o.depth - 1
 WHERE b.snapshot_time <= $time AND (c.end_snapshot IS NULL OR $time < e.snapshot_time)
 ORDER BY c.catalog_name, c.begin_snapshot;

-- name: catalogs_by_names
-- Live catalogs, with the one that each was forked from.
SELECT c.catalog_name, c.catalog_id, f.source_catalog_id
  FROM ducklake_catalog c
  JOIN ducklake_catalog_lineage o ON o.catalog_id = c.catalog_id AND o.source_catalog_id = c.catalog_id
  LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = c.catalog_id AND f.depth = o.depth - 1
 WHERE c.end_snapshot IS NULL AND c.catalog_name IN texts($names);

-- name: own_data_paths
-- Where catalogs keep files outside the data path of the lake, dropped ones too: others may read those.
SELECT data_path FROM ducklake_catalog_head WHERE data_path LIKE '/%' OR data_path LIKE '%://%';

-- name: others_files
-- Whether other catalogs keep files in the folder of one: a namesake before it, forks of that, or who imported them.
SELECT EXISTS (SELECT 1 FROM ducklake_catalog_head h WHERE h.data_path = $folder AND h.catalog_id <> $catalog)
    OR EXISTS (SELECT 1 FROM ducklake_data_file f
                WHERE f.catalog_id <> $catalog AND substr(f.path, 1, length($folder)) = $folder)
    OR EXISTS (SELECT 1 FROM ducklake_index_file f
                WHERE f.catalog_id <> $catalog AND substr(f.path, 1, length($folder)) = $folder)
    OR EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion s
                WHERE s.catalog_id <> $catalog AND substr(s.path, 1, length($folder)) = $folder);

-- name: lineages
-- Whom some catalogs descend from, themselves included, and up to which snapshot they share its history.
SELECT catalog_id, source_catalog_id, COALESCE(copied_snapshot, max_snapshot)
  FROM ducklake_catalog_lineage
 WHERE catalog_id IN ids($catalogs);

-- name: lineage_by_name
-- A live catalog, where it stands, what it has expired, and whom it descends from, all as of one point in time.
SELECT h.catalog_id, h.snapshot_id, h.schema_version, h.snapshot_time, h.oldest_snapshot,
       CASE WHEN EXISTS (SELECT 1 FROM ducklake_expired_snapshot x WHERE x.catalog_id = h.catalog_id) THEN 1 ELSE 0 END,
       l.source_catalog_id, l.max_snapshot, l.depth, l.copied_snapshot
  FROM ducklake_catalog c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
  JOIN ducklake_catalog_lineage l ON l.catalog_id = c.catalog_id
 WHERE c.catalog_name = $name AND c.end_snapshot IS NULL;

-- name: fork_point
-- The snapshot of its parent that a catalog began with.
SELECT COALESCE(f.copied_snapshot, f.max_snapshot)
  FROM ducklake_catalog_lineage o
  JOIN ducklake_catalog_lineage f ON f.catalog_id = o.catalog_id AND f.depth = o.depth - 1
 WHERE o.catalog_id = $catalog AND o.source_catalog_id = $catalog;

-- name: parent_catalog
-- The catalog that another one was forked from, dropped or not, with its latest name.
SELECT f.source_catalog_id,
       (SELECT p.catalog_name FROM ducklake_catalog p
         WHERE p.catalog_id = f.source_catalog_id ORDER BY p.begin_snapshot DESC LIMIT 1)
  FROM ducklake_catalog_lineage o
  JOIN ducklake_catalog_lineage f ON f.catalog_id = o.catalog_id AND f.depth = o.depth - 1
 WHERE o.catalog_id = $catalog AND o.source_catalog_id = $catalog;

-- name: fork_tree
-- The catalogs that a tree of forks shows, below one or (if $root is negative) all: some forks of each, none below
-- one that is not shown, the upper levels first. With each: how many siblings there are, and how many forks of it.
-- A dropped one counts if it is asked for, or if a fork of it lives.
WITH chosen AS (
    SELECT catalog_id FROM ducklake_catalog_lineage WHERE source_catalog_id = $root AND source_catalog_id <> catalog_id
    UNION ALL
    SELECT catalog_id FROM ducklake_catalog_head WHERE catalog_id = $root
    UNION ALL
    SELECT catalog_id FROM ducklake_catalog_head WHERE $root < 0
),
known AS (
    SELECT o.catalog_id, f.source_catalog_id AS parent_id,
           o.depth - COALESCE((SELECT r.depth FROM ducklake_catalog_lineage r
                                WHERE r.catalog_id = $root AND r.source_catalog_id = $root), 0) AS level
      FROM chosen a
      JOIN ducklake_catalog_head h ON h.catalog_id = a.catalog_id
      JOIN ducklake_catalog_lineage o ON o.catalog_id = a.catalog_id AND o.source_catalog_id = a.catalog_id
      LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = a.catalog_id AND f.depth = o.depth - 1
     WHERE h.end_snapshot IS NULL OR $dropped = 1
        OR EXISTS (SELECT 1 FROM ducklake_catalog_lineage d
                     JOIN ducklake_catalog_head e ON e.catalog_id = d.catalog_id
                    WHERE d.source_catalog_id = h.catalog_id AND d.source_catalog_id <> d.catalog_id
                      AND e.end_snapshot IS NULL)
),
ranked AS (
    SELECT catalog_id, parent_id, level, row_number() OVER (PARTITION BY parent_id ORDER BY catalog_id) AS place,
           count(*) OVER (PARTITION BY parent_id) AS siblings
      FROM known
),
forks AS (SELECT parent_id, count(*) AS number FROM known GROUP BY parent_id),
hidden AS (
    SELECT DISTINCT l.catalog_id
      FROM ranked r
      JOIN ducklake_catalog_lineage l ON l.source_catalog_id = r.catalog_id AND l.source_catalog_id <> l.catalog_id
     WHERE r.place > $siblings
)
SELECT k.catalog_id, k.level, k.parent_id, k.siblings, COALESCE(n.number, 0)
  FROM ranked k
  LEFT JOIN hidden x ON x.catalog_id = k.catalog_id
  LEFT JOIN forks n ON n.parent_id = k.catalog_id
 WHERE k.place <= $siblings AND x.catalog_id IS NULL AND k.level <= $deepest
 ORDER BY k.level, k.place, k.catalog_id
 LIMIT $most;

-- name: fork_tree_nodes
-- What a tree of forks says of some catalogs: commits are those after the one that made the catalog.
SELECT h.catalog_id,
       (SELECT n.catalog_name FROM ducklake_catalog n
         WHERE n.catalog_id = h.catalog_id ORDER BY n.begin_snapshot DESC LIMIT 1) AS catalog_name,
       (SELECT p.catalog_name FROM ducklake_catalog p
         WHERE p.catalog_id = f.source_catalog_id ORDER BY p.begin_snapshot DESC LIMIT 1) AS parent,
       COALESCE(f.copied_snapshot, f.max_snapshot), h.created_at, h.expires_at, h.snapshot_id, h.end_snapshot,
       (SELECT count(*) FROM ducklake_snapshot_changes c
         WHERE c.catalog_id = h.catalog_id AND (h.end_snapshot IS NULL OR c.snapshot_id < h.end_snapshot)
           AND c.snapshot_id > (SELECT min(b.begin_snapshot) FROM ducklake_catalog b
                                 WHERE b.catalog_id = h.catalog_id)) AS commits,
       (SELECT max(m.merge_snapshot) FROM ducklake_catalog_merge m
         WHERE m.source_catalog_id = h.catalog_id AND m.catalog_id = f.source_catalog_id) AS merged
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog_lineage o ON o.catalog_id = h.catalog_id AND o.source_catalog_id = h.catalog_id
  LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = h.catalog_id AND f.depth = o.depth - 1
 WHERE h.catalog_id IN ids($catalogs);

-- name: count_catalogs
-- How many catalogs live.
SELECT count(*) FROM ducklake_catalog_head WHERE end_snapshot IS NULL;

-- name: first_catalogs
-- Some live catalogs by name, with the one that each was forked from.
SELECT c.catalog_name,
       (SELECT p.catalog_name FROM ducklake_catalog p
         WHERE p.catalog_id = f.source_catalog_id ORDER BY p.begin_snapshot DESC LIMIT 1) AS parent,
       COALESCE(f.copied_snapshot, f.max_snapshot), h.created_at, h.expires_at
  FROM (SELECT catalog_name, catalog_id FROM ducklake_catalog
         WHERE end_snapshot IS NULL ORDER BY catalog_name LIMIT $most) c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
  JOIN ducklake_catalog_lineage o ON o.catalog_id = c.catalog_id AND o.source_catalog_id = c.catalog_id
  LEFT JOIN ducklake_catalog_lineage f ON f.catalog_id = c.catalog_id AND f.depth = o.depth - 1
 ORDER BY c.catalog_name;

-- name: count_tables
-- How many tables a catalog has.
SELECT count(*)
  FROM visible_table
 WHERE catalog_id = $catalog AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: first_tables
-- Some tables of a catalog, by schema and name.
SELECT s.schema_name, t.table_name
  FROM visible_table t
  JOIN visible_schema s ON s.catalog_id = t.catalog_id AND s.schema_id = t.schema_id
   AND s.begin_snapshot <= $at AND (s.end_snapshot IS NULL OR $at < s.end_snapshot)
 WHERE t.catalog_id = $catalog AND t.begin_snapshot <= $at AND (t.end_snapshot IS NULL OR $at < t.end_snapshot)
 ORDER BY s.schema_name, t.table_name
 LIMIT $most;

-- name: live_ancestors
-- The catalogs whose rows a catalog reads beside its own.
SELECT source_catalog_id, max_snapshot
  FROM ducklake_catalog_lineage
 WHERE catalog_id = $catalog AND source_catalog_id <> $catalog AND max_snapshot >= 0;

-- name: expired_catalogs
-- Whether the time of any catalog has come.
SELECT 1 FROM ducklake_catalog_head WHERE end_snapshot IS NULL AND expires_at <= $now LIMIT 1;

-- name: snapshots
-- Every commit of the lake up to one, once: one that made or dropped many catalogs names none of them.
SELECT s.snapshot_id, s.snapshot_time, s.schema_version, c.changes_made, c.author, c.commit_message,
       c.commit_extra_info,
       (SELECT n.catalog_name FROM ducklake_catalog n
         WHERE n.catalog_id = c.catalog_id AND n.begin_snapshot <= s.snapshot_id
           AND NOT EXISTS (SELECT 1 FROM ducklake_snapshot_changes o
                            WHERE o.snapshot_id = s.snapshot_id AND o.catalog_id > c.catalog_id)
         ORDER BY n.begin_snapshot DESC LIMIT 1) AS catalog_name,
       c.footprint
  FROM ducklake_snapshot s
  LEFT JOIN ducklake_snapshot_changes c
         ON c.snapshot_id = s.snapshot_id
        AND c.catalog_id = (SELECT min(f.catalog_id) FROM ducklake_snapshot_changes f WHERE f.snapshot_id = s.snapshot_id)
 WHERE s.snapshot_id <= $at
 ORDER BY s.snapshot_id;

-- name: snapshots_of_catalog
-- The history of one catalog, with what it inherited.
SELECT s.snapshot_id, s.snapshot_time, s.schema_version, s.changes_made, s.author, s.commit_message,
       s.commit_extra_info,
       (SELECT n.catalog_name FROM ducklake_catalog n
         WHERE n.catalog_id = s.source_catalog_id AND n.begin_snapshot <= s.snapshot_id
         ORDER BY n.begin_snapshot DESC LIMIT 1) AS catalog_name,
       s.footprint
  FROM visible_snapshot s
  JOIN ducklake_catalog_head h ON h.catalog_id = s.catalog_id
 WHERE s.catalog_id = $catalog AND s.snapshot_id >= COALESCE(h.oldest_snapshot, 0)
   AND NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x
                    WHERE x.catalog_id = s.catalog_id AND x.snapshot_id = s.snapshot_id)
 ORDER BY s.snapshot_id;

-- name: names_of_catalogs
-- Every name that some catalogs had, oldest first.
SELECT catalog_id, begin_snapshot, catalog_name
  FROM ducklake_catalog
 WHERE catalog_id IN ids($catalogs)
 ORDER BY begin_snapshot;

-- name: snapshot_exists
SELECT 1 FROM ducklake_snapshot WHERE snapshot_id = $at;

-- name: time_is_known
-- Whether the lake was there at a time.
SELECT 1 FROM ducklake_snapshot WHERE snapshot_time <= $time ORDER BY snapshot_id LIMIT 1;

-- name: latest_snapshot
-- The last commit of the whole lake.
SELECT max(snapshot_id) FROM ducklake_snapshot;

-- name: catalog_at_snapshot
-- Where a catalog stood at a snapshot of the lake: its own last commit up to there.
SELECT snapshot_id, schema_version, snapshot_time
  FROM visible_snapshot
 WHERE catalog_id = $catalog AND snapshot_id <= $at
 ORDER BY snapshot_id DESC
 LIMIT 1;

-- name: catalog_at_own_snapshot
-- A snapshot of a catalog or, from before it was forked, of an ancestor.
SELECT snapshot_id, schema_version, snapshot_time
  FROM visible_snapshot
 WHERE catalog_id = $catalog AND snapshot_id = $at;

-- name: catalog_at_time
-- Where a catalog stood at a time.
SELECT snapshot_id, schema_version, snapshot_time
  FROM visible_snapshot
 WHERE catalog_id = $catalog AND snapshot_time <= $time
 ORDER BY snapshot_id DESC
 LIMIT 1;

-- name: footprints_since
-- What a catalog itself has committed after a snapshot.
SELECT snapshot_id, footprint
  FROM ducklake_snapshot_changes
 WHERE catalog_id = $catalog AND snapshot_id > $base
 ORDER BY snapshot_id;

-- name: committed_once
-- The snapshot of a catalog, or of an ancestor before it was forked, that some work became.
SELECT o.snapshot_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_commit_once o ON o.catalog_id = l.source_catalog_id AND o.work = $work
 WHERE l.catalog_id = $catalog
   AND (o.catalog_id = $catalog OR o.snapshot_id <= COALESCE(l.copied_snapshot, l.max_snapshot))
 ORDER BY o.snapshot_id
 LIMIT 1;

-- name: reservation
-- A snapshot that many hosts write together.
SELECT snapshot_id, parent_snapshot_id, commit_uuid, state, expires_at, committed_snapshot_id, manifest_digest
  FROM ducklake_snapshot_reservation
 WHERE catalog_id = $catalog AND reservation_id = $reservation;

-- name: reservations_of_catalog
SELECT reservation_id, snapshot_id, parent_snapshot_id, state, created_at, expires_at, committed_snapshot_id, properties
  FROM ducklake_snapshot_reservation
 WHERE catalog_id = $catalog
 ORDER BY snapshot_id;

-- name: unswept_reservations
-- Those whose time is over, and that may have left files behind.
SELECT r.catalog_id, r.reservation_id, r.commit_uuid, r.parent_snapshot_id, r.state, r.committed_snapshot_id,
       h.data_path, h.end_snapshot
  FROM ducklake_snapshot_reservation r
  JOIN ducklake_catalog_head h ON h.catalog_id = r.catalog_id
 WHERE r.swept_at IS NULL AND r.expires_at <= $now
 ORDER BY r.snapshot_id;

-- name: table_paths
-- The folders of all tables that a catalog had at a snapshot.
SELECT table_id, path
  FROM visible_table
 WHERE catalog_id = $catalog AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: paths_of_commit
-- The files that one commit of a catalog made part of a table.
SELECT path
  FROM visible_data_file
 WHERE catalog_id = $catalog AND table_id = $table AND begin_snapshot = $at
UNION ALL
SELECT path
  FROM visible_delete_file
 WHERE catalog_id = $catalog AND table_id = $table AND begin_snapshot = $at
UNION ALL
SELECT path
  FROM visible_index_file
 WHERE catalog_id = $catalog AND table_id = $table AND begin_snapshot = $at;

-- name: schemas
SELECT source_catalog_id, begin_snapshot, schema_id, schema_uuid, schema_name, path
  FROM visible_schema
 WHERE catalog_id = $catalog AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY schema_id;

-- name: tables
-- Every table of a catalog, for listings.
SELECT s.schema_name, t.table_name, t.table_id, t.table_uuid
  FROM visible_table t
  JOIN visible_schema s ON s.catalog_id = t.catalog_id AND s.schema_id = t.schema_id
   AND s.begin_snapshot <= $at AND (s.end_snapshot IS NULL OR $at < s.end_snapshot)
 WHERE t.catalog_id = $catalog AND t.begin_snapshot <= $at AND (t.end_snapshot IS NULL OR $at < t.end_snapshot)
 ORDER BY s.schema_name, t.table_name;

-- name: table_by_name
-- The tables of a name, and of names that differ from it only in case: mostly one.
SELECT source_catalog_id, begin_snapshot, table_id, table_uuid, schema_id, table_name, path
  FROM visible_table
 WHERE catalog_id = $catalog AND schema_id = $schema AND folded(table_name) = folded($name)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: table_by_id
SELECT source_catalog_id, begin_snapshot, table_id, table_uuid, schema_id, table_name, path
  FROM visible_table
 WHERE catalog_id = $catalog AND table_id = $table
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: columns_of_table
-- Parents come before the fields nested in them.
SELECT source_catalog_id, begin_snapshot, column_id, parent_column, column_order, column_name, column_type,
       initial_default, default_value, nulls_allowed, default_value_type, default_value_dialect
  FROM visible_column
 WHERE catalog_id = $catalog AND table_id = $table
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY column_order, column_id;

-- name: last_column_id
-- The highest column id that a table has ever used, dropped columns included.
SELECT max(column_id) FROM visible_column WHERE catalog_id = $catalog AND table_id = $table;

-- name: views
SELECT source_catalog_id, begin_snapshot, view_id, view_uuid, schema_id, view_name, sql, dialect, column_aliases
  FROM visible_view
 WHERE catalog_id = $catalog AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY view_name;

-- name: view_by_name
-- The views of a name, and of names that differ from it only in case.
SELECT source_catalog_id, begin_snapshot, view_id, view_uuid, schema_id, view_name, sql, dialect, column_aliases
  FROM visible_view
 WHERE catalog_id = $catalog AND schema_id = $schema AND folded(view_name) = folded($name)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: macros
SELECT source_catalog_id, begin_snapshot, macro_id, schema_id, macro_name
  FROM visible_macro
 WHERE catalog_id = $catalog AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY macro_name;

-- name: macro_implementations
SELECT macro_id, impl_id, dialect, sql, type FROM visible_macro_impl WHERE catalog_id = $catalog ORDER BY macro_id, impl_id;

-- name: macro_parameters
SELECT macro_id, impl_id, parameter_name, parameter_type, default_value, default_value_type
  FROM visible_macro_parameters
 WHERE catalog_id = $catalog
 ORDER BY macro_id, impl_id, column_id;

-- name: tags_of_object
SELECT source_catalog_id, begin_snapshot, object_id, key, value
  FROM visible_tag
 WHERE catalog_id = $catalog AND object_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY key;

-- name: tags_of_columns
SELECT source_catalog_id, begin_snapshot, table_id, key, value, column_id
  FROM visible_column_tag
 WHERE catalog_id = $catalog AND table_id = $table
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY column_id, key;

-- name: name_taken
-- The tables and views that have a name, or one that differs from it only in case; they share one namespace.
SELECT 'table' AS kind, table_id AS id, table_name AS name
  FROM visible_table
 WHERE catalog_id = $catalog AND schema_id = $schema AND folded(table_name) = folded($name)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT 'view', view_id, view_name
  FROM visible_view
 WHERE catalog_id = $catalog AND schema_id = $schema AND folded(view_name) = folded($name)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: objects_changed
-- What is not the same after one snapshot of a catalog and at another, or came and went between. Ids are of one series for all kinds.
SELECT 'schema' AS kind, schema_id AS id
  FROM visible_schema
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_table
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_column
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_column_tag
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_partition_info
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_sort_info
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'table', table_id
  FROM visible_index
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'view', view_id
  FROM visible_view
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'macro', macro_id
  FROM visible_macro
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end))
UNION
SELECT 'tag', object_id
  FROM visible_tag
 WHERE catalog_id = $catalog AND ((begin_snapshot > $start AND begin_snapshot <= $end) OR (end_snapshot > $start AND end_snapshot <= $end));

-- name: tables_by_ids
SELECT source_catalog_id, begin_snapshot, table_id, table_uuid, schema_id, table_name, path
  FROM visible_table
 WHERE catalog_id = $catalog AND table_id IN ids($tables)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: columns_of_tables
-- Parents come before the fields nested in them.
SELECT table_id, source_catalog_id, begin_snapshot, column_id, parent_column, column_order, column_name, column_type,
       initial_default, default_value, nulls_allowed, default_value_type, default_value_dialect
  FROM visible_column
 WHERE catalog_id = $catalog AND table_id IN ids($tables)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY table_id, column_order, column_id;

-- name: tags_of_objects
SELECT source_catalog_id, begin_snapshot, object_id, key, value
  FROM visible_tag
 WHERE catalog_id = $catalog AND object_id IN ids($objects)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY key;

-- name: tags_that_begin
SELECT source_catalog_id, begin_snapshot, object_id, key, value
  FROM visible_tag
 WHERE catalog_id = $catalog AND substr(key, 1, length($prefix)) = $prefix
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY object_id, key;

-- name: tags_of_columns_of_tables
SELECT source_catalog_id, begin_snapshot, table_id, key, value, column_id
  FROM visible_column_tag
 WHERE catalog_id = $catalog AND table_id IN ids($tables)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
 ORDER BY column_id, key;

-- name: dropped_table
-- The table of a name that was dropped last, and when; if none had it, one whose name differs only in case.
SELECT t.table_id, t.end_snapshot
  FROM visible_table t
  JOIN visible_schema s ON s.catalog_id = t.catalog_id AND s.schema_id = t.schema_id AND s.begin_snapshot < t.end_snapshot
   AND (s.end_snapshot IS NULL OR t.end_snapshot <= s.end_snapshot)
 WHERE t.catalog_id = $catalog AND folded(t.table_name) = folded($name) AND folded(s.schema_name) = folded($schema)
   AND t.begin_snapshot < t.end_snapshot AND t.end_snapshot <= $at
   AND NOT EXISTS (SELECT 1 FROM visible_table n
                    WHERE n.catalog_id = $catalog AND n.table_id = t.table_id AND n.begin_snapshot <= $at
                      AND n.begin_snapshot >= t.end_snapshot)
 ORDER BY CASE WHEN s.schema_name = $schema THEN 0 ELSE 1 END, CASE WHEN t.table_name = $name THEN 0 ELSE 1 END,
          t.end_snapshot DESC
 LIMIT 1;

-- name: dropped_catalog
-- The catalog of a name that was dropped last, and is neither there again under another nor forgotten.
SELECT c.catalog_id, c.catalog_uuid, h.snapshot_id, h.schema_version, h.data_path, h.snapshot_time
  FROM ducklake_catalog c
  JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id AND h.end_snapshot = c.end_snapshot
  JOIN ducklake_catalog_lineage l ON l.catalog_id = c.catalog_id AND l.source_catalog_id = c.catalog_id
   AND l.max_snapshot = forever()
 WHERE c.catalog_name = $name
 ORDER BY c.end_snapshot DESC
 LIMIT 1;

-- name: rows_of_object
-- The rows that belong to a table, view, macro or schema and end with it.
SELECT table_id AS owner, 'column' AS entity, table_id AS entity_id, column_id AS sub_id, '' AS sub_key,
       source_catalog_id, begin_snapshot
  FROM visible_column
 WHERE catalog_id = $catalog AND table_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT object_id, 'tag', object_id, 0, key, source_catalog_id, begin_snapshot
  FROM visible_tag
 WHERE catalog_id = $catalog AND object_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'column_tag', table_id, column_id, key, source_catalog_id, begin_snapshot
  FROM visible_column_tag
 WHERE catalog_id = $catalog AND table_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'partition_info', partition_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_partition_info
 WHERE catalog_id = $catalog AND table_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'sort_info', sort_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_sort_info
 WHERE catalog_id = $catalog AND table_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'index', index_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_index
 WHERE catalog_id = $catalog AND table_id = $object
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: tables_in_schema
SELECT source_catalog_id, begin_snapshot, table_id, table_uuid, schema_id, table_name, path
  FROM visible_table
 WHERE catalog_id = $catalog AND schema_id = $schema
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);

-- name: rows_in_schema
-- The rows that belong to what is in a schema and end when all of it is dropped.
WITH inside AS (
    SELECT table_id AS id
      FROM visible_table
     WHERE catalog_id = $catalog AND schema_id = $schema
       AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
    UNION ALL
    SELECT view_id
      FROM visible_view
     WHERE catalog_id = $catalog AND schema_id = $schema
       AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
    UNION ALL
    SELECT macro_id
      FROM visible_macro
     WHERE catalog_id = $catalog AND schema_id = $schema
       AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
)
SELECT table_id AS owner, 'column' AS entity, table_id AS entity_id, column_id AS sub_id, '' AS sub_key,
       source_catalog_id, begin_snapshot
  FROM visible_column
 WHERE catalog_id = $catalog AND table_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT object_id, 'tag', object_id, 0, key, source_catalog_id, begin_snapshot
  FROM visible_tag
 WHERE catalog_id = $catalog AND object_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'column_tag', table_id, column_id, key, source_catalog_id, begin_snapshot
  FROM visible_column_tag
 WHERE catalog_id = $catalog AND table_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'partition_info', partition_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_partition_info
 WHERE catalog_id = $catalog AND table_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'sort_info', sort_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_sort_info
 WHERE catalog_id = $catalog AND table_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot)
UNION ALL
SELECT table_id, 'index', index_id, 0, '', source_catalog_id, begin_snapshot
  FROM visible_index
 WHERE catalog_id = $catalog AND table_id IN (SELECT id FROM inside)
   AND begin_snapshot <= $at AND (end_snapshot IS NULL OR $at < end_snapshot);
