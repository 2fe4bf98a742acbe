-- From 0.5-dev1 to 0.5-dev2. Every database runs these statements as they stand here.

-- name: lineages
SELECT catalog_id, source_catalog_id, COALESCE(copied_snapshot, max_snapshot) FROM ducklake_catalog_lineage;

-- name: merges
SELECT catalog_id, merge_snapshot, source_catalog_id, source_snapshot FROM ducklake_catalog_merge ORDER BY merge_snapshot;

-- name: drop_merges
DROP TABLE ducklake_catalog_merge;

-- name: create_merges
CREATE TABLE ducklake_catalog_merge (
    catalog_id BIGINT NOT NULL,
    merge_snapshot BIGINT NOT NULL,
    source_catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    base_snapshot BIGINT NOT NULL,
    source_snapshot BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, merge_snapshot, source_catalog_id, table_id)
);

-- name: index_merges
CREATE INDEX ducklake_catalog_merge_by_source ON ducklake_catalog_merge (source_catalog_id, catalog_id);

-- name: name_parents_by_place
-- The parent of a mapped name was the id of a column; it is the number of an entry of the mapping, as DuckLake has it.
UPDATE ducklake_name_mapping
   SET parent_column = (SELECT p.column_id FROM ducklake_name_mapping p
                         WHERE p.catalog_id = ducklake_name_mapping.catalog_id
                           AND p.mapping_id = ducklake_name_mapping.mapping_id
                           AND p.target_field_id = ducklake_name_mapping.parent_column)
 WHERE parent_column IS NOT NULL;

-- name: forget_bounds
-- The bounds that were stored of whole tables left out rows that merges brought and defaults of new columns, and took
-- long texts for their beginnings. Nothing but other clients relies on them: now they say that nothing is known.
UPDATE ducklake_table_column_stats
   SET contains_null = true, contains_nan = NULL, min_value = NULL, max_value = NULL, min_key = '', max_key = '~~';

-- name: home
SELECT 1 FROM ducklake_metadata WHERE key = 'home' AND scope IS NULL;

-- name: remember_home
INSERT INTO ducklake_metadata (key, value) VALUES ('home', $home);
