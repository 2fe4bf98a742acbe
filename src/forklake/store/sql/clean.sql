-- Expiring snapshots, and removing what nobody can reach any more. Which rows of a catalog are in reach stands in
-- ducklake_reach while garbage is collected. Statements named drop_ducklake_*, drop_rows_of_* and
-- drop_masks_of_* are built, by table.

-- name: retained_snapshots
-- The history of a catalog that is not expired, oldest first.
SELECT s.snapshot_id, s.snapshot_time
  FROM visible_snapshot s
  JOIN ducklake_catalog_head h ON h.catalog_id = s.catalog_id
 WHERE s.catalog_id = $catalog AND s.snapshot_id >= COALESCE(h.oldest_snapshot, 0)
   AND NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x
                    WHERE x.catalog_id = s.catalog_id AND x.snapshot_id = s.snapshot_id)
 ORDER BY s.snapshot_id;

-- name: oldest_reserved
-- The oldest snapshot of a catalog that an open distributed snapshot was begun from.
SELECT min(parent_snapshot_id) FROM ducklake_snapshot_reservation WHERE catalog_id = $catalog AND state = 'open';

-- name: retention
-- The oldest snapshot of a catalog that is not expired, if any is.
SELECT oldest_snapshot FROM ducklake_catalog_head WHERE catalog_id = $catalog;

-- name: is_retained
-- Whether a snapshot of a catalog is not expired.
SELECT 1
  FROM ducklake_catalog_head h
 WHERE h.catalog_id = $catalog AND $snapshot >= COALESCE(h.oldest_snapshot, 0)
   AND NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x
                    WHERE x.catalog_id = $catalog AND x.snapshot_id = $snapshot);

-- name: expired_between
-- Single snapshots of a catalog that are expired, after one and up to another.
SELECT snapshot_id
  FROM ducklake_expired_snapshot
 WHERE catalog_id = $catalog AND snapshot_id > $start AND snapshot_id <= $end
 ORDER BY snapshot_id
 LIMIT 1;

-- name: set_oldest
-- From now on, nobody reads this catalog at an earlier snapshot.
UPDATE ducklake_catalog_head SET oldest_snapshot = $oldest WHERE catalog_id = $catalog;

-- name: drop_passed
-- Single snapshots that the oldest one has passed need not be listed.
DELETE FROM ducklake_expired_snapshot WHERE catalog_id = $catalog AND snapshot_id < $oldest;

-- name: inherit_expired
-- A fork has what its parent had not expired.
INSERT INTO ducklake_expired_snapshot (catalog_id, snapshot_id)
SELECT f.catalog_id, x.snapshot_id
  FROM ducklake_catalog_head f
  JOIN ducklake_expired_snapshot x ON x.catalog_id = $parent AND x.snapshot_id <= $at
 WHERE f.catalog_id IN ids($forks);

-- name: expirable_catalogs
-- For every catalog whose oldest snapshot can be moved on: the first snapshot since a time, or the latest one; but none that
-- an open distributed snapshot was begun after. A catalog's own snapshots rise in time, and those that it inherited are older.
WITH first AS (
    SELECT c.catalog_id, min(c.snapshot_id) AS snapshot_id
      FROM ducklake_snapshot_changes c
      JOIN ducklake_snapshot s ON s.snapshot_id = c.snapshot_id
     WHERE s.snapshot_time >= $time
     GROUP BY c.catalog_id
),
found AS (
    SELECT h.catalog_id, COALESCE(h.oldest_snapshot, 0) AS former,
           COALESCE((SELECT min(f.snapshot_id)
                       FROM ducklake_catalog_lineage l
                       JOIN first f ON f.catalog_id = l.source_catalog_id
                      WHERE l.catalog_id = h.catalog_id
                        AND f.snapshot_id <= COALESCE(l.copied_snapshot, l.max_snapshot)), h.snapshot_id) AS oldest
      FROM ducklake_catalog_head h
     WHERE h.end_snapshot IS NULL
)
SELECT catalog_id, oldest
  FROM (SELECT f.catalog_id, f.former,
               CASE WHEN r.parent_snapshot_id < f.oldest THEN r.parent_snapshot_id ELSE f.oldest END AS oldest
          FROM found f
          LEFT JOIN (SELECT catalog_id, min(parent_snapshot_id) AS parent_snapshot_id
                       FROM ducklake_snapshot_reservation WHERE state = 'open' GROUP BY catalog_id) r
            ON r.catalog_id = f.catalog_id) capped
 WHERE oldest > former
 ORDER BY catalog_id;

-- name: last_snapshots
-- The snapshot at a place from the end of what some catalogs have not expired: what is expired never comes back.
SELECT catalog_id, snapshot_id
  FROM (SELECT s.catalog_id, s.snapshot_id,
               row_number() OVER (PARTITION BY s.catalog_id ORDER BY s.snapshot_id DESC) AS place
          FROM visible_snapshot s
          JOIN ducklake_catalog_head h ON h.catalog_id = s.catalog_id
         WHERE s.catalog_id IN ids($catalogs) AND s.snapshot_id >= COALESCE(h.oldest_snapshot, 0)
           AND NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x
                            WHERE x.catalog_id = s.catalog_id AND x.snapshot_id = s.snapshot_id)) ranked
 WHERE place = $place;

-- name: retirable_catalogs
-- Catalogs that were dropped before a time and live on in others that descend from them or have merged them, with no files of
-- distributed snapshots to be looked after.
SELECT h.catalog_id
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog_lineage o ON o.catalog_id = h.catalog_id AND o.source_catalog_id = h.catalog_id
 WHERE h.end_snapshot IS NOT NULL AND h.snapshot_time < $time AND o.max_snapshot = forever()
   AND (EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                 WHERE l.source_catalog_id = h.catalog_id AND l.source_catalog_id <> l.catalog_id)
        OR EXISTS (SELECT 1 FROM ducklake_catalog_merge m WHERE m.source_catalog_id = h.catalog_id))
   AND NOT EXISTS (SELECT 1 FROM ducklake_snapshot_reservation r
                    WHERE r.catalog_id = h.catalog_id AND r.swept_at IS NULL);

-- name: retire_catalogs
-- Nobody will bring these catalogs back. What others have of them stays to be seen, as merges look it up.
UPDATE ducklake_catalog_lineage
   SET max_snapshot = CASE WHEN COALESCE((SELECT max(COALESCE(l.copied_snapshot, l.max_snapshot)) FROM ducklake_catalog_lineage l
                                           WHERE l.source_catalog_id = ducklake_catalog_lineage.catalog_id
                                             AND l.source_catalog_id <> l.catalog_id), -1)
                                > COALESCE((SELECT max(m.source_snapshot) FROM ducklake_catalog_merge m
                                             WHERE m.source_catalog_id = ducklake_catalog_lineage.catalog_id), -1)
                           THEN (SELECT max(COALESCE(l.copied_snapshot, l.max_snapshot)) FROM ducklake_catalog_lineage l
                                  WHERE l.source_catalog_id = ducklake_catalog_lineage.catalog_id
                                    AND l.source_catalog_id <> l.catalog_id)
                           ELSE (SELECT max(m.source_snapshot) FROM ducklake_catalog_merge m
                                  WHERE m.source_catalog_id = ducklake_catalog_lineage.catalog_id) END
 WHERE catalog_id = source_catalog_id AND catalog_id IN ids($catalogs);

-- name: retire_heads
UPDATE ducklake_catalog_head
   SET oldest_snapshot = (SELECT o.max_snapshot FROM ducklake_catalog_lineage o
                           WHERE o.catalog_id = ducklake_catalog_head.catalog_id
                             AND o.source_catalog_id = ducklake_catalog_head.catalog_id)
 WHERE catalog_id IN ids($catalogs);

-- name: forgettable_catalogs
-- Dropped catalogs that nobody will bring back: dropped before a time, with no catalog that descends from them and no files
-- of distributed snapshots to be looked after, and merged into no two others that somebody can still read, and that may have
-- to compare what they have of it. One that was merged is remembered until all of its relatives have seen all that anyone has
-- seen of it, at every snapshot that is not expired: until then a merge has to tell them what it did.
WITH viewers AS (
    SELECT o.catalog_id, COALESCE(h.oldest_snapshot, 0) AS oldest
      FROM ducklake_catalog_lineage o
      JOIN ducklake_catalog_head h ON h.catalog_id = o.catalog_id
     WHERE o.source_catalog_id = o.catalog_id AND o.max_snapshot = forever()
       AND (h.end_snapshot IS NULL OR h.snapshot_time >= $time
            OR EXISTS (SELECT 1 FROM ducklake_snapshot_reservation r
                        WHERE r.catalog_id = h.catalog_id AND r.swept_at IS NULL))
),
merged AS (
    SELECT h.catalog_id, max(m.source_snapshot) AS up_to
      FROM ducklake_catalog_head h
      JOIN ducklake_catalog_merge m ON m.source_catalog_id = h.catalog_id
     WHERE h.end_snapshot IS NOT NULL AND h.snapshot_time < $time
     GROUP BY h.catalog_id
),
points AS (
    SELECT l.source_catalog_id AS catalog_id,
           CASE WHEN v.oldest < COALESCE(l.copied_snapshot, l.max_snapshot) THEN v.oldest
                ELSE COALESCE(l.copied_snapshot, l.max_snapshot) END AS snapshot_id, count(*) AS viewers
      FROM ducklake_catalog_lineage l
      JOIN viewers v ON v.catalog_id = l.catalog_id
     WHERE l.source_catalog_id IN (SELECT b.catalog_id FROM merged c
                                     JOIN ducklake_catalog_merge b ON b.source_catalog_id = c.catalog_id)
     GROUP BY 1, 2
),
taken AS (
    -- Since when a catalog has all that anyone has seen of it: since a merge of all tables, or, if nobody else has merged it,
    -- since the last one.
    SELECT a.catalog_id, a.target, min(a.merge_snapshot) AS merge_snapshot
      FROM (SELECT c.catalog_id, b.catalog_id AS target, b.merge_snapshot
              FROM merged c
              JOIN ducklake_catalog_merge b ON b.source_catalog_id = c.catalog_id
             WHERE b.table_id = 0 AND b.source_snapshot = c.up_to
            UNION ALL
            SELECT c.catalog_id, min(b.catalog_id), max(b.merge_snapshot)
              FROM merged c
              JOIN ducklake_catalog_merge b ON b.source_catalog_id = c.catalog_id
             GROUP BY c.catalog_id
            HAVING count(DISTINCT b.catalog_id) = 1) a
     GROUP BY a.catalog_id, a.target
),
seen AS (
    SELECT t.catalog_id, sum(p.viewers) AS viewers
      FROM taken t
      JOIN points p ON p.catalog_id = t.target AND p.snapshot_id >= t.merge_snapshot
     GROUP BY t.catalog_id
),
roots AS (
    SELECT c.catalog_id, l.source_catalog_id AS root
      FROM merged c
      JOIN ducklake_catalog_lineage l ON l.catalog_id = c.catalog_id
     WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage d WHERE d.catalog_id = l.catalog_id AND d.depth < l.depth)
),
families AS (
    SELECT l.source_catalog_id AS root, count(*) AS viewers
      FROM ducklake_catalog_lineage l
      JOIN viewers v ON v.catalog_id = l.catalog_id
     WHERE l.source_catalog_id IN (SELECT root FROM roots)
     GROUP BY l.source_catalog_id
),
awaited AS (
    SELECT r.catalog_id
      FROM roots r
      JOIN families f ON f.root = r.root
      LEFT JOIN seen s ON s.catalog_id = r.catalog_id
     WHERE f.viewers > COALESCE(s.viewers, 0)
)
SELECT h.catalog_id
  FROM ducklake_catalog_head h
 WHERE h.end_snapshot IS NOT NULL AND h.snapshot_time < $time
   AND EXISTS (SELECT 1 FROM ducklake_catalog_lineage l WHERE l.catalog_id = h.catalog_id)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.source_catalog_id = h.catalog_id AND l.source_catalog_id <> l.catalog_id)
   AND NOT EXISTS (SELECT 1 FROM ducklake_snapshot_reservation r
                    WHERE r.catalog_id = h.catalog_id AND r.swept_at IS NULL)
   AND h.catalog_id NOT IN (SELECT catalog_id FROM awaited)
   AND (SELECT count(DISTINCT m.catalog_id) FROM ducklake_catalog_merge m
         WHERE m.source_catalog_id = h.catalog_id
           AND EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                         JOIN ducklake_catalog_head v ON v.catalog_id = l.catalog_id
                        WHERE l.source_catalog_id = m.catalog_id
                          AND (v.end_snapshot IS NULL OR v.snapshot_time >= $time))) <= 1;

-- name: forget_catalogs
-- Nobody looks at anything through these catalogs any more.
DELETE FROM ducklake_catalog_lineage WHERE catalog_id IN ids($catalogs);

-- name: begin_cleaning
-- Whoever writes has everything to itself.
SELECT 1;

-- name: clear_reach
DELETE FROM ducklake_reach;

-- name: clear_earlier_reach
-- What another collection has noted, which may have been interrupted.
DELETE FROM ducklake_reach WHERE viewer_id IS NULL OR viewer_id <> $collection;

-- name: note_collection
-- Whose collection it is that follows, as a catalog below zero.
INSERT INTO ducklake_reach (catalog_id, low, high, viewer_id)
VALUES ($collection, 0, -1, $collection);

-- name: end_collection
-- Another collection has put its own here, if it came later.
DELETE FROM ducklake_reach
 WHERE EXISTS (SELECT 1 FROM ducklake_reach c WHERE c.catalog_id = $collection);

-- name: note_candidates
-- Catalogs that may have rows out of reach: some that ended, or all of them.
INSERT INTO ducklake_reach (catalog_id, low, high, viewer_id)
SELECT catalog_id, 0, -1, CAST($collection AS BIGINT)
  FROM (SELECT catalog_id FROM ducklake_data_file WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_delete_file WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_schema WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_table WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_view WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_macro WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_tag WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_column_tag WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_partition_info WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_sort_info WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_index WHERE end_snapshot IS NOT NULL
        UNION SELECT catalog_id FROM ducklake_index_file WHERE end_snapshot IS NOT NULL
        UNION SELECT c.catalog_id FROM ducklake_catalog c
               WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                                  WHERE l.catalog_id = c.catalog_id AND l.source_catalog_id = c.catalog_id
                                    AND l.max_snapshot = forever())) looked_at;

-- name: note_own_reach
-- What catalogs reach of their own rows.
INSERT INTO ducklake_reach (catalog_id, low, high, viewer_id, oldest_snapshot)
SELECT h.catalog_id, COALESCE(h.oldest_snapshot, 0), l.max_snapshot, h.catalog_id, COALESCE(h.oldest_snapshot, 0)
  FROM ducklake_catalog_head h
  JOIN ducklake_catalog_lineage l ON l.catalog_id = h.catalog_id AND l.source_catalog_id = h.catalog_id
 WHERE h.catalog_id IN (SELECT catalog_id FROM ducklake_reach) AND l.max_snapshot = forever();

-- name: note_inherited_reach
-- What catalogs reach of the rows of others: at the fork point in any case, since merges compare with what was there.
-- Those that only live on in others reach nothing themselves. If all who see the rows of one see the same fork of it, and nobody
-- reads what was before that, they part only there: they see what that fork has left of the rows.
INSERT INTO ducklake_reach (catalog_id, low, high, viewer_id, oldest_snapshot)
SELECT l.source_catalog_id,
       min(CASE WHEN COALESCE(h.oldest_snapshot, 0) < l.max_snapshot THEN COALESCE(h.oldest_snapshot, 0) ELSE l.max_snapshot END),
       l.max_snapshot,
       CASE WHEN max(n.viewers) = 1 THEN min(l.catalog_id) ELSE max(n.fork) END,
       CASE WHEN max(n.viewers) = 1 THEN min(COALESCE(h.oldest_snapshot, 0)) ELSE max(n.up_to) END
  FROM ducklake_catalog_lineage l
  JOIN ducklake_catalog_head h ON h.catalog_id = l.catalog_id
  JOIN ducklake_catalog_lineage o ON o.catalog_id = l.catalog_id AND o.source_catalog_id = l.catalog_id
   AND o.max_snapshot = forever()
  JOIN (SELECT v.source_catalog_id, count(*) AS viewers,
               CASE WHEN count(x.source_catalog_id) = count(*) AND count(DISTINCT x.source_catalog_id) = 1
                         AND min(v.max_snapshot) = max(v.max_snapshot)
                         AND min(COALESCE(p.oldest_snapshot, 0)) > max(v.max_snapshot)
                    THEN min(x.source_catalog_id) END AS fork,
               min(CASE WHEN p.oldest_snapshot < x.max_snapshot THEN p.oldest_snapshot ELSE x.max_snapshot END) AS up_to
          FROM ducklake_catalog_lineage v
          JOIN ducklake_catalog_lineage w ON w.catalog_id = v.catalog_id AND w.source_catalog_id = v.catalog_id
           AND w.max_snapshot = forever()
          JOIN ducklake_catalog_head p ON p.catalog_id = v.catalog_id
          LEFT JOIN ducklake_catalog_lineage d ON d.catalog_id = v.source_catalog_id AND d.source_catalog_id = v.source_catalog_id
           AND d.max_snapshot < forever()
          LEFT JOIN ducklake_catalog_lineage x ON x.catalog_id = v.catalog_id AND x.depth = d.depth + 1
         WHERE v.max_snapshot >= 0 AND v.source_catalog_id IN (SELECT catalog_id FROM ducklake_reach)
         GROUP BY v.source_catalog_id) n ON n.source_catalog_id = l.source_catalog_id
 WHERE l.max_snapshot >= 0 AND l.source_catalog_id <> l.catalog_id
 GROUP BY l.source_catalog_id, l.max_snapshot;

-- name: note_merged_reach
-- What the next merge of a catalog compares with: its state up to which another one has seen it.
INSERT INTO ducklake_reach (catalog_id, low, high)
SELECT DISTINCT source_catalog_id, snapshot_id, snapshot_id
  FROM (SELECT m.source_catalog_id, max(m.source_snapshot) AS snapshot_id
          FROM (SELECT DISTINCT source_catalog_id, COALESCE(copied_snapshot, max_snapshot) AS bound
                  FROM ducklake_catalog_lineage) b
          JOIN ducklake_catalog_merge m ON m.catalog_id = b.source_catalog_id AND m.merge_snapshot <= b.bound
         WHERE m.source_catalog_id IN (SELECT catalog_id FROM ducklake_reach)
           AND NOT unseen(m.source_catalog_id)
         GROUP BY b.source_catalog_id, b.bound, m.source_catalog_id, m.table_id) seen;

-- name: note_adopted_reach
-- What a merge brought, as long as a catalog that has it from elsewhere has not seen the merge: if it is deleted here, the next
-- merge into that one has to tell.
INSERT INTO ducklake_reach (catalog_id, low, high)
SELECT DISTINCT m.catalog_id, m.merge_snapshot, m.merge_snapshot
  FROM ducklake_catalog_merge m
  JOIN (SELECT l.catalog_id, l.source_catalog_id FROM ducklake_catalog_lineage l
        UNION
        SELECT l.catalog_id, o.source_catalog_id
          FROM ducklake_catalog_merge o
          JOIN ducklake_catalog_lineage l ON l.source_catalog_id = o.catalog_id
                                         AND o.merge_snapshot <= COALESCE(l.copied_snapshot, l.max_snapshot)) x
    ON x.source_catalog_id = m.source_catalog_id
 WHERE m.catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                WHERE l.source_catalog_id = m.catalog_id
                  AND COALESCE(l.copied_snapshot, l.max_snapshot) >= m.merge_snapshot)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.catalog_id = x.catalog_id AND l.source_catalog_id = m.catalog_id
                      AND COALESCE(l.copied_snapshot, l.max_snapshot) >= m.merge_snapshot)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                     JOIN ducklake_catalog_merge b ON b.catalog_id = l.source_catalog_id
                                                  AND b.merge_snapshot <= COALESCE(l.copied_snapshot, l.max_snapshot)
                    WHERE l.catalog_id = x.catalog_id AND b.source_catalog_id = m.catalog_id
                      AND b.source_snapshot >= m.merge_snapshot);

-- name: note_copied_reach
-- What merges compare with where rows were copied: the copies, and what they are copies of, as they stood where both histories
-- part. Catalogs that have the copies from each other part later, so these are not needed for them.
WITH bounds AS (
    SELECT l.source_catalog_id AS ancestor, COALESCE(l.copied_snapshot, l.max_snapshot) AS bound, count(*) AS catalogs
      FROM ducklake_catalog_lineage l
     WHERE l.source_catalog_id IN (SELECT c.source_catalog_id FROM ducklake_catalog_lineage c WHERE c.copied_snapshot IS NOT NULL)
     GROUP BY l.source_catalog_id, COALESCE(l.copied_snapshot, l.max_snapshot)
),
copies AS (
    SELECT DISTINCT l.source_catalog_id AS ancestor, r.source_catalog_id AS holder,
           CASE WHEN l.copied_snapshot < r.max_snapshot THEN l.copied_snapshot ELSE r.max_snapshot END AS bound
      FROM ducklake_catalog_lineage l
      JOIN ducklake_catalog_lineage r ON r.catalog_id = l.catalog_id AND r.max_snapshot >= 0
     WHERE l.copied_snapshot IS NOT NULL
),
related AS (
    SELECT c.ancestor, c.holder, COALESCE(o.copied_snapshot, o.max_snapshot) AS bound, count(*) AS catalogs
      FROM (SELECT DISTINCT ancestor, holder FROM copies) c
      JOIN ducklake_catalog_lineage y ON y.source_catalog_id = c.holder
      JOIN ducklake_catalog_lineage o ON o.catalog_id = y.catalog_id AND o.source_catalog_id = c.ancestor
     GROUP BY c.ancestor, c.holder, COALESCE(o.copied_snapshot, o.max_snapshot)
)
INSERT INTO ducklake_reach (catalog_id, low, high)
SELECT catalog_id, snapshot_id, snapshot_id
  FROM (SELECT c.holder AS catalog_id, CASE WHEN c.bound < b.bound THEN c.bound ELSE b.bound END AS snapshot_id
          FROM copies c
          JOIN bounds b ON b.ancestor = c.ancestor
          LEFT JOIN related s ON s.ancestor = c.ancestor AND s.holder = c.holder AND s.bound = b.bound
         WHERE b.catalogs > COALESCE(s.catalogs, 0)
        UNION
        SELECT l.source_catalog_id, CASE WHEN l.copied_snapshot < r.max_snapshot THEN l.copied_snapshot ELSE r.max_snapshot END
          FROM ducklake_catalog_lineage l
          JOIN (SELECT DISTINCT source_catalog_id, max_snapshot FROM ducklake_catalog_lineage WHERE max_snapshot >= 0) r
            ON r.source_catalog_id = l.source_catalog_id
         WHERE l.copied_snapshot IS NOT NULL) found
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach);

-- name: dead_data_files
-- Rows of files that nobody reaches, after one, by their keys. What nobody reaches now, nobody will.
SELECT e.catalog_id, e.data_file_id, e.path, e.file_size_bytes
  FROM ducklake_data_file e
 WHERE (e.catalog_id, e.data_file_id) > ($catalog, $file) AND out_of_reach(data_file)
 ORDER BY e.catalog_id, e.data_file_id
 LIMIT $most;

-- name: dead_delete_files
SELECT e.catalog_id, e.delete_file_id, e.path, e.file_size_bytes
  FROM ducklake_delete_file e
 WHERE (e.catalog_id, e.delete_file_id) > ($catalog, $file) AND out_of_reach(delete_file)
 ORDER BY e.catalog_id, e.delete_file_id
 LIMIT $most;

-- name: useless_delete_files
-- Rows of delete files that are about data files of which no row is left: merges that compare with what a catalog had deleted
-- keep them, and the data file may have been another's, who has forgotten it.
SELECT e.catalog_id, e.delete_file_id, e.path, e.file_size_bytes
  FROM ducklake_delete_file e
 WHERE (e.catalog_id, e.delete_file_id) > ($catalog, $file) AND e.catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.data_file_id = e.data_file_id)
 ORDER BY e.catalog_id, e.delete_file_id
 LIMIT $most;

-- name: dead_index_files
SELECT e.catalog_id, e.index_file_id, e.path, e.file_size_bytes
  FROM ducklake_index_file e
 WHERE (e.catalog_id, e.index_file_id) > ($catalog, $file) AND out_of_reach(index_file)
 ORDER BY e.catalog_id, e.index_file_id
 LIMIT $most;

-- name: schedule_data_files
-- Files of rows that nobody reaches. If another row names one too, that is found out before it is removed.
INSERT INTO ducklake_files_scheduled_for_deletion (catalog_id, data_file_id, path, path_is_relative, schedule_start, reason)
SELECT min(e.catalog_id), min(e.data_file_id), e.path, e.path_is_relative, $now, min(reason_of(e))
  FROM keys($keys)
  JOIN ducklake_data_file e ON e.catalog_id = k.catalog_id AND e.data_file_id = k.id
 WHERE e.path <> ''
   AND NOT EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion q WHERE q.path = e.path)
 GROUP BY e.path, e.path_is_relative
RETURNING path;

-- name: schedule_delete_files
INSERT INTO ducklake_files_scheduled_for_deletion (catalog_id, data_file_id, path, path_is_relative, schedule_start, reason)
SELECT min(e.catalog_id), min(e.data_file_id), e.path, e.path_is_relative, $now, min(reason_of(e))
  FROM keys($keys)
  JOIN ducklake_delete_file e ON e.catalog_id = k.catalog_id AND e.delete_file_id = k.id
 WHERE e.path <> ''
   AND NOT EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion q WHERE q.path = e.path)
 GROUP BY e.path, e.path_is_relative
RETURNING path;

-- name: schedule_index_files
INSERT INTO ducklake_files_scheduled_for_deletion (catalog_id, data_file_id, path, path_is_relative, schedule_start, reason)
SELECT min(e.catalog_id), min(e.index_file_id), e.path, e.path_is_relative, $now, min(reason_of(e))
  FROM keys($keys)
  JOIN ducklake_index_file e ON e.catalog_id = k.catalog_id AND e.index_file_id = k.id
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion q WHERE q.path = e.path)
 GROUP BY e.path, e.path_is_relative
RETURNING path;

-- name: count_scheduled
-- What rows out of reach name, in files and bytes.
SELECT count(*), COALESCE(sum(bytes), 0)
  FROM (SELECT e.path, max(e.file_size_bytes) AS bytes
          FROM ducklake_data_file e WHERE out_of_reach(data_file) AND e.path <> '' GROUP BY e.path
        UNION ALL
        SELECT e.path, max(e.file_size_bytes)
          FROM ducklake_delete_file e WHERE out_of_reach(delete_file) AND e.path <> '' GROUP BY e.path
        UNION ALL
        SELECT e.path, max(e.file_size_bytes)
          FROM ducklake_index_file e WHERE out_of_reach(index_file) GROUP BY e.path) found;

-- name: drop_inlined_deletes
-- Positions in files that the catalog that deleted them has no row of any more, or that only a forgotten one had deleted.
DELETE FROM ducklake_inlined_delete
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_data_file f
                     JOIN ducklake_catalog_lineage l ON l.source_catalog_id = f.catalog_id
                    WHERE f.data_file_id = ducklake_inlined_delete.data_file_id
                      AND l.catalog_id = ducklake_inlined_delete.catalog_id AND l.max_snapshot >= f.begin_snapshot)
    OR unseen(ducklake_inlined_delete.catalog_id);

-- name: drop_columns
-- Columns go with the last version of their table: their ids stay taken until then, and files are read by their names.
DELETE FROM ducklake_column
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND (NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.table_id = ducklake_column.table_id)
        OR unseen(ducklake_column.catalog_id));

-- name: drop_schema_versions
DELETE FROM ducklake_schema_versions
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND (NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.table_id = ducklake_schema_versions.table_id)
        OR unseen(ducklake_schema_versions.catalog_id));

-- name: drop_table_stats
DELETE FROM ducklake_table_stats
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND (NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.table_id = ducklake_table_stats.table_id)
        OR unseen(ducklake_table_stats.catalog_id));

-- name: drop_table_column_stats
DELETE FROM ducklake_table_column_stats
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND (NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.table_id = ducklake_table_column_stats.table_id)
        OR unseen(ducklake_table_column_stats.catalog_id));

-- name: drop_column_mappings
DELETE FROM ducklake_column_mapping
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND (NOT EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.mapping_id = ducklake_column_mapping.mapping_id)
        OR unseen(ducklake_column_mapping.catalog_id));

-- name: drop_name_mappings
DELETE FROM ducklake_name_mapping
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND NOT EXISTS (SELECT 1 FROM ducklake_column_mapping o
                    WHERE o.catalog_id = ducklake_name_mapping.catalog_id AND o.mapping_id = ducklake_name_mapping.mapping_id);

-- name: drop_merges
-- What a merge added to the version vector of a catalog, if nobody sees that or had left it before; or of one that was merged
-- and is gone, if everyone who could compare has seen the merge.
WITH bounds AS MATERIALIZED (
    SELECT l.source_catalog_id AS catalog_id, min(COALESCE(h.oldest_snapshot, 0)) AS oldest,
           min(COALESCE(l.copied_snapshot, l.max_snapshot)) AS bound
      FROM ducklake_catalog_lineage l
      JOIN ducklake_catalog_head h ON h.catalog_id = l.catalog_id
     GROUP BY l.source_catalog_id
)
DELETE FROM ducklake_catalog_merge
 WHERE unseen(ducklake_catalog_merge.catalog_id)
    OR NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.source_catalog_id = ducklake_catalog_merge.catalog_id
                      AND COALESCE(l.copied_snapshot, l.max_snapshot) >= ducklake_catalog_merge.merge_snapshot)
    OR (unseen(ducklake_catalog_merge.source_catalog_id)
        AND NOT EXISTS (SELECT 1 FROM bounds b
                         WHERE b.catalog_id = ducklake_catalog_merge.catalog_id
                           AND (b.oldest <= ducklake_catalog_merge.merge_snapshot
                                OR b.bound <= ducklake_catalog_merge.merge_snapshot)));

-- name: history_bounds
-- Catalogs that were forked from no other, and the oldest of their snapshots that somebody can read or merge with, if
-- there are older ones.
SELECT b.catalog_id, b.low
  FROM (SELECT l.source_catalog_id AS catalog_id,
               min(CASE WHEN COALESCE(h.oldest_snapshot, 0) < COALESCE(l.copied_snapshot, l.max_snapshot)
                        THEN COALESCE(h.oldest_snapshot, 0) ELSE COALESCE(l.copied_snapshot, l.max_snapshot) END) AS low
          FROM ducklake_catalog_lineage l
          JOIN ducklake_catalog_head h ON h.catalog_id = l.catalog_id
         GROUP BY l.source_catalog_id) b
 WHERE b.low > 0
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage o
                    WHERE o.catalog_id = b.catalog_id AND o.source_catalog_id <> b.catalog_id)
   AND EXISTS (SELECT 1 FROM ducklake_snapshot_changes c WHERE c.catalog_id = b.catalog_id AND c.snapshot_id < b.low);

-- name: drop_old_changes
-- What commits of a root did is needed as long as somebody can read them or merge with what was there. Those of forks
-- are needed as long as others can merge them.
DELETE FROM ducklake_snapshot_changes
 WHERE EXISTS (SELECT 1 FROM spans($spans)
                WHERE k.catalog_id = ducklake_snapshot_changes.catalog_id AND ducklake_snapshot_changes.snapshot_id < k.high);

-- name: drop_unseen_changes
-- Commits that are in nobody's history.
DELETE FROM ducklake_snapshot_changes
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.catalog_id = ducklake_snapshot_changes.catalog_id
                      AND l.source_catalog_id = ducklake_snapshot_changes.catalog_id
                      AND COALESCE(l.copied_snapshot, l.max_snapshot) >= ducklake_snapshot_changes.snapshot_id)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                    WHERE l.source_catalog_id = ducklake_snapshot_changes.catalog_id
                      AND l.source_catalog_id <> l.catalog_id
                      AND COALESCE(l.copied_snapshot, l.max_snapshot) >= ducklake_snapshot_changes.snapshot_id);

-- name: drop_snapshots
-- Snapshots of which nothing is left but the number; the last one stays.
DELETE FROM ducklake_snapshot
 WHERE snapshot_id > 0 AND snapshot_id < (SELECT max(snapshot_id) FROM ducklake_snapshot)
   AND NOT EXISTS (SELECT 1 FROM ducklake_snapshot_changes c WHERE c.snapshot_id = ducklake_snapshot.snapshot_id);

-- name: drop_commits_once
DELETE FROM ducklake_commit_once
 WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach)
   AND unseen(ducklake_commit_once.catalog_id);

-- name: drop_expired_snapshots
DELETE FROM ducklake_expired_snapshot
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l WHERE l.catalog_id = ducklake_expired_snapshot.catalog_id)
    OR EXISTS (SELECT 1 FROM ducklake_catalog_head h
                WHERE h.catalog_id = ducklake_expired_snapshot.catalog_id
                  AND ducklake_expired_snapshot.snapshot_id < h.oldest_snapshot);

-- name: drop_reservations
DELETE FROM ducklake_snapshot_reservation
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l WHERE l.catalog_id = ducklake_snapshot_reservation.catalog_id);

-- name: forgotten_data_paths
-- Data paths of their own that forgotten catalogs had.
SELECT h.data_path
  FROM ducklake_catalog_head h
 WHERE h.end_snapshot IS NOT NULL AND (h.data_path LIKE '/%' OR h.data_path LIKE '%://%')
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l WHERE l.catalog_id = h.catalog_id);

-- name: drop_heads
-- A data path of its own stays known as long as files are in it, orphans too, or may be named there.
DELETE FROM ducklake_catalog_head
 WHERE end_snapshot IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l WHERE l.catalog_id = ducklake_catalog_head.catalog_id)
   AND (data_path NOT LIKE '/%' AND data_path NOT LIKE '%://%'
        OR NOT data_path IN texts($filled)
           AND NOT EXISTS (SELECT 1 FROM ducklake_data_file f
                        WHERE substr(f.path, 1, length(ducklake_catalog_head.data_path)) = ducklake_catalog_head.data_path)
           AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file f
                            WHERE substr(f.path, 1, length(ducklake_catalog_head.data_path)) = ducklake_catalog_head.data_path)
           AND NOT EXISTS (SELECT 1 FROM ducklake_index_file f
                            WHERE substr(f.path, 1, length(ducklake_catalog_head.data_path)) = ducklake_catalog_head.data_path)
           AND NOT EXISTS (SELECT 1 FROM ducklake_files_scheduled_for_deletion f
                            WHERE substr(f.path, 1, length(ducklake_catalog_head.data_path)) = ducklake_catalog_head.data_path));

-- name: needless_ancestors
-- Dropped catalogs in the middle of chains of forks: nobody brings them back, nobody forked them who can be read, nobody reads
-- their snapshots, and nothing is left of them but what they did. That is needed for merges, unless they did nothing, or all
-- relatives have seen it alike. All who descend from one descend from the same fork of it, where they part later.
WITH dropped AS MATERIALIZED (
    SELECT c.catalog_id
      FROM ducklake_catalog_lineage c
      JOIN ducklake_catalog_head h ON h.catalog_id = c.catalog_id
     WHERE c.source_catalog_id = c.catalog_id AND c.max_snapshot < forever() AND h.end_snapshot IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_merge m WHERE m.source_catalog_id = c.catalog_id)
       AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l
                         JOIN ducklake_catalog_lineage v ON v.catalog_id = l.catalog_id AND v.source_catalog_id = l.catalog_id
                                                        AND v.depth = l.depth + 1 AND v.max_snapshot = forever()
                        WHERE l.source_catalog_id = c.catalog_id)
       AND nothing_to_see(c.catalog_id)
),
viewers AS (
    SELECT l.source_catalog_id AS catalog_id, count(*) AS viewers, min(l.max_snapshot) AS low, max(l.max_snapshot) AS high,
           min(COALESCE(h.oldest_snapshot, 0)) AS oldest
      FROM ducklake_catalog_lineage l
      JOIN ducklake_catalog_lineage v ON v.catalog_id = l.catalog_id AND v.source_catalog_id = l.catalog_id
                                     AND v.max_snapshot = forever()
      JOIN ducklake_catalog_head h ON h.catalog_id = l.catalog_id
     WHERE l.source_catalog_id IN (SELECT catalog_id FROM dropped)
     GROUP BY l.source_catalog_id
),
forks AS (
    SELECT l.source_catalog_id AS catalog_id, count(DISTINCT n.source_catalog_id) AS forks
      FROM ducklake_catalog_lineage l
      JOIN ducklake_catalog_lineage n ON n.catalog_id = l.catalog_id AND n.depth = l.depth + 1
     WHERE l.source_catalog_id IN (SELECT catalog_id FROM dropped)
     GROUP BY l.source_catalog_id
),
families AS (
    SELECT d.catalog_id, count(*) AS viewers
      FROM dropped d
      JOIN ducklake_catalog_lineage a ON a.catalog_id = d.catalog_id
       AND a.depth = (SELECT min(x.depth) FROM ducklake_catalog_lineage x WHERE x.catalog_id = d.catalog_id)
      JOIN ducklake_catalog_lineage r ON r.source_catalog_id = a.source_catalog_id
      JOIN ducklake_catalog_lineage v ON v.catalog_id = r.catalog_id AND v.source_catalog_id = r.catalog_id
                                     AND v.max_snapshot = forever()
     GROUP BY d.catalog_id
)
SELECT v.catalog_id
  FROM viewers v
  JOIN forks n ON n.catalog_id = v.catalog_id
  JOIN families f ON f.catalog_id = v.catalog_id
 WHERE n.forks = 1 AND v.low = v.high AND v.low >= 0 AND v.oldest > v.high
   AND (f.viewers = v.viewers
        OR NOT EXISTS (SELECT 1 FROM ducklake_snapshot_changes c
                        WHERE c.catalog_id = v.catalog_id AND c.snapshot_id <= v.high
                          AND (c.footprint IS NULL OR c.footprint <> '[]')))
 ORDER BY v.catalog_id;

-- name: raise_descendants
-- Those who descend from catalogs that are left out have so many ancestors less. The rows of these say where they stood.
UPDATE ducklake_catalog_lineage
   SET depth = depth - (SELECT count(*) FROM ducklake_catalog_lineage d
                         WHERE d.catalog_id = ducklake_catalog_lineage.catalog_id AND d.source_catalog_id IN ids($gone)
                           AND d.depth < ducklake_catalog_lineage.depth)
 WHERE NOT source_catalog_id IN ids($gone)
   AND catalog_id IN (SELECT l.catalog_id FROM ducklake_catalog_lineage l WHERE l.source_catalog_id IN ids($gone));

-- name: leave_out_ancestors
DELETE FROM ducklake_catalog_lineage WHERE catalog_id IN ids($gone) OR source_catalog_id IN ids($gone);

-- name: drop_names
-- The name of a catalog goes last of all: by it, what is left of a catalog is found, whoever was interrupted before.
DELETE FROM ducklake_catalog
 WHERE unseen(ducklake_catalog.catalog_id) AND nothing_left(ducklake_catalog.catalog_id)
   AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_merge m WHERE m.source_catalog_id = ducklake_catalog.catalog_id);

-- name: due_files
-- Files that were scheduled before a time, in order, after one path.
SELECT catalog_id, path, path_is_relative, reason
  FROM ducklake_files_scheduled_for_deletion
 WHERE schedule_start <= $before AND path > $after
 ORDER BY path
 LIMIT $most;

-- name: named_files
-- Those of some paths that any row of any catalog names.
SELECT path FROM ducklake_data_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value))
UNION
SELECT path FROM ducklake_delete_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value))
UNION
SELECT path FROM ducklake_index_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value));

-- name: known_files
-- Those of some paths that any row of any catalog names, or that are scheduled for deletion.
SELECT path FROM ducklake_data_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value))
UNION
SELECT path FROM ducklake_delete_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value))
UNION
SELECT path FROM ducklake_index_file WHERE path IN (SELECT k.value FROM texts($paths) AS k(value))
UNION
SELECT path FROM ducklake_files_scheduled_for_deletion WHERE path IN (SELECT k.value FROM texts($paths) AS k(value));

-- name: unused_folders
-- Those of some folders below the data path that no catalog keeps its files in, and in which no row names a file.
SELECT k.value
  FROM texts($folders) AS k(value)
 WHERE NOT EXISTS (SELECT 1 FROM ducklake_catalog_head h WHERE h.data_path = k.value)
   AND k.value NOT IN (SELECT substr(f.path, 1, instr(f.path, '/')) FROM ducklake_data_file f
                       UNION ALL SELECT substr(f.path, 1, instr(f.path, '/')) FROM ducklake_delete_file f
                       UNION ALL SELECT substr(f.path, 1, instr(f.path, '/')) FROM ducklake_index_file f
                       UNION ALL SELECT substr(f.path, 1, instr(f.path, '/')) FROM ducklake_files_scheduled_for_deletion f);

-- name: claimed_files
-- Those of some paths that are being removed.
SELECT path FROM ducklake_files_scheduled_for_deletion
 WHERE claimed_at IS NOT NULL AND path IN (SELECT k.value FROM texts($paths) AS k(value));

-- name: open_commit_uuids
-- What the paths of files have in them that distributed snapshots may still commit.
SELECT commit_uuid FROM ducklake_snapshot_reservation WHERE state = 'open' OR swept_at IS NULL;

-- name: abandoned_files
-- Those of some paths that are scheduled for one reason.
SELECT path FROM ducklake_files_scheduled_for_deletion
 WHERE reason = $reason AND path IN (SELECT k.value FROM texts($paths) AS k(value));

-- name: claim_files
UPDATE ducklake_files_scheduled_for_deletion SET claimed_at = $now
 WHERE path IN (SELECT k.value FROM texts($paths) AS k(value));

-- name: unschedule_files
DELETE FROM ducklake_files_scheduled_for_deletion WHERE path IN (SELECT k.value FROM texts($paths) AS k(value));
