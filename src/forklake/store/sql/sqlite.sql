-- The metadata of a lake, on SQLite. forklake creates it when a lake is opened with create=True; by hand:
--
--   sqlite3 lake.db < sqlite.sql
--
-- The same tables, columns, keys and views as postgresql.sql, with these differences: uuids and times (UTC, ISO 8601)
-- are text; counters are a table instead of sequences; the end that a fork sets for an inherited row is a scalar
-- sub-select, because SQLite would materialise a joined view for every query.

PRAGMA journal_mode = WAL;
BEGIN;

-- forklake:body (what stands above and below the marks is for creation by hand)

-- ---- The lake --------------------------------------------------------------------------------------------

-- Settings of the lake, or of one catalog, schema or table (scope, scope_id).
CREATE TABLE ducklake_metadata (
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    scope VARCHAR,
    scope_id BIGINT
);

-- One row per commit of any catalog. Counters hold the next free number after it.
CREATE TABLE ducklake_snapshot (
    snapshot_id BIGINT NOT NULL,
    snapshot_time VARCHAR NOT NULL,
    schema_version BIGINT NOT NULL,
    next_catalog_id BIGINT NOT NULL,
    next_file_id BIGINT NOT NULL,
    PRIMARY KEY (snapshot_id)
);

-- What a commit did, who made it and in which catalog; one that makes many forks has a row for each of them.
-- changes_made is DuckLake's notation, for people and stock clients; footprint is the same as JSON, exact enough
-- to tell whether another commit conflicts with it.
CREATE TABLE ducklake_snapshot_changes (
    snapshot_id BIGINT NOT NULL,
    catalog_id BIGINT NOT NULL,
    changes_made VARCHAR,
    author VARCHAR,
    commit_message VARCHAR,
    commit_extra_info VARCHAR,
    footprint VARCHAR,
    PRIMARY KEY (snapshot_id, catalog_id)
);

-- Numbers are drawn inside the write lock; they outlive the snapshots that recorded them.
CREATE TABLE ducklake_counter (
    name VARCHAR NOT NULL,
    next_value BIGINT NOT NULL,
    PRIMARY KEY (name)
);

INSERT INTO ducklake_counter (name, next_value) VALUES ('snapshot_id', 1), ('catalog_id', 0), ('file_id', 0);

-- ---- Catalogs and how they descend from each other -------------------------------------------------------

-- Catalogs are versioned like everything else: a rename ends one row and begins another.
CREATE TABLE ducklake_catalog (
    catalog_id BIGINT NOT NULL,
    catalog_uuid VARCHAR NOT NULL,
    catalog_name VARCHAR NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    PRIMARY KEY (catalog_id, begin_snapshot)
);

-- The row that serialises a catalog's commits and answers "latest" in one lookup.
-- end_snapshot is set when the catalog is dropped; data_path is where its new files go.
-- Snapshots of its history before oldest_snapshot are expired; NULL if none is.
CREATE TABLE ducklake_catalog_head (
    catalog_id BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    snapshot_time VARCHAR NOT NULL,
    schema_version BIGINT NOT NULL,
    end_snapshot BIGINT,
    data_path VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    expires_at VARCHAR,
    oldest_snapshot BIGINT,
    PRIMARY KEY (catalog_id)
);

-- Flattened ancestry: catalog_id sees the rows of source_catalog_id that began up to max_snapshot.
-- A root has one row, itself without bound. depth counts from the root. Where an ancestor's rows were copied,
-- max_snapshot is -1, and copied_snapshot says up to where its history is that of the catalog.
CREATE TABLE ducklake_catalog_lineage (
    catalog_id BIGINT NOT NULL,
    source_catalog_id BIGINT NOT NULL,
    max_snapshot BIGINT NOT NULL,
    depth BIGINT NOT NULL,
    copied_snapshot BIGINT,
    PRIMARY KEY (catalog_id, source_catalog_id)
);

-- A fork cannot end its ancestor's row, so it records here that the row ends for itself and its descendants.
-- The row is named by entity, entity_id, sub_id, sub_key (0 and '' where not needed) and its begin_snapshot.
CREATE TABLE ducklake_inherited_end (
    catalog_id BIGINT NOT NULL,
    entity VARCHAR NOT NULL,
    entity_id BIGINT NOT NULL,
    sub_id BIGINT NOT NULL,
    sub_key VARCHAR NOT NULL,
    row_begin BIGINT NOT NULL,
    end_snapshot BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, entity, entity_id, sub_id, sub_key, row_begin)
);

-- What each merge added to the version vector of its target: the commits of a catalog after one snapshot and up to
-- another, in full (table_id 0) or as far as they are about one table. Forks inherit it.
CREATE TABLE ducklake_catalog_merge (
    catalog_id BIGINT NOT NULL,
    merge_snapshot BIGINT NOT NULL,
    source_catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    base_snapshot BIGINT NOT NULL,
    source_snapshot BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, merge_snapshot, source_catalog_id, table_id)
);

-- Work that was committed under a name, so that doing it again adds nothing; forks inherit what was done before.
CREATE TABLE ducklake_commit_once (
    catalog_id BIGINT NOT NULL,
    work VARCHAR NOT NULL,
    snapshot_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, work)
);

-- Single snapshots of a catalog's history that are expired, beside those before its oldest one.
CREATE TABLE ducklake_expired_snapshot (
    catalog_id BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, snapshot_id)
);

-- Snapshots that many hosts are writing together. state: open, committed, cancelled, expired. manifest_digest tells
-- what was committed; from swept_at on, no file is left that nobody refers to.
CREATE TABLE ducklake_snapshot_reservation (
    catalog_id BIGINT NOT NULL,
    reservation_id VARCHAR NOT NULL,
    snapshot_id BIGINT NOT NULL,
    parent_snapshot_id BIGINT NOT NULL,
    commit_uuid VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    created_at VARCHAR NOT NULL,
    expires_at VARCHAR NOT NULL,
    committed_snapshot_id BIGINT,
    manifest_digest VARCHAR,
    swept_at VARCHAR,
    properties VARCHAR,
    PRIMARY KEY (catalog_id, reservation_id)
);

-- ---- Schemas, tables, columns, views, macros, tags -------------------------------------------------------

CREATE TABLE ducklake_schema (
    catalog_id BIGINT NOT NULL,
    schema_id BIGINT NOT NULL,
    schema_uuid VARCHAR,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    schema_name VARCHAR,
    path VARCHAR,
    path_is_relative BOOLEAN,
    PRIMARY KEY (catalog_id, schema_id, begin_snapshot)
);

CREATE TABLE ducklake_table (
    catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    table_uuid VARCHAR,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    schema_id BIGINT,
    table_name VARCHAR,
    path VARCHAR,
    path_is_relative BOOLEAN,
    PRIMARY KEY (catalog_id, table_id, begin_snapshot)
);

-- column_id is stable for the life of the table and is the Parquet field id; nested fields name their parent.
CREATE TABLE ducklake_column (
    catalog_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    table_id BIGINT NOT NULL,
    column_order BIGINT,
    column_name VARCHAR,
    column_type VARCHAR,
    initial_default VARCHAR,
    default_value VARCHAR,
    nulls_allowed BOOLEAN,
    parent_column BIGINT,
    default_value_type VARCHAR,
    default_value_dialect VARCHAR,
    PRIMARY KEY (catalog_id, table_id, column_id, begin_snapshot)
);

CREATE TABLE ducklake_view (
    catalog_id BIGINT NOT NULL,
    view_id BIGINT NOT NULL,
    view_uuid VARCHAR,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    schema_id BIGINT,
    view_name VARCHAR,
    dialect VARCHAR,
    sql VARCHAR,
    column_aliases VARCHAR,
    PRIMARY KEY (catalog_id, view_id, begin_snapshot)
);

CREATE TABLE ducklake_macro (
    catalog_id BIGINT NOT NULL,
    schema_id BIGINT,
    macro_id BIGINT NOT NULL,
    macro_name VARCHAR,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    PRIMARY KEY (catalog_id, macro_id, begin_snapshot)
);

-- Overloads of a macro. They never change: a new body is a new macro.
CREATE TABLE ducklake_macro_impl (
    catalog_id BIGINT NOT NULL,
    macro_id BIGINT NOT NULL,
    impl_id BIGINT NOT NULL,
    dialect VARCHAR,
    sql VARCHAR,
    type VARCHAR,
    PRIMARY KEY (catalog_id, macro_id, impl_id)
);

CREATE TABLE ducklake_macro_parameters (
    catalog_id BIGINT NOT NULL,
    macro_id BIGINT NOT NULL,
    impl_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    parameter_name VARCHAR,
    parameter_type VARCHAR,
    default_value VARCHAR,
    default_value_type VARCHAR,
    PRIMARY KEY (catalog_id, macro_id, impl_id, column_id)
);

-- Free key-value tags; a comment is the tag "comment".
CREATE TABLE ducklake_tag (
    catalog_id BIGINT NOT NULL,
    object_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    key VARCHAR NOT NULL,
    value VARCHAR,
    PRIMARY KEY (catalog_id, object_id, key, begin_snapshot)
);

CREATE TABLE ducklake_column_tag (
    catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    key VARCHAR NOT NULL,
    value VARCHAR,
    PRIMARY KEY (catalog_id, table_id, column_id, key, begin_snapshot)
);

-- When the structure of a table changed.
CREATE TABLE ducklake_schema_versions (
    catalog_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    schema_version BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, table_id, begin_snapshot)
);

-- ---- Partitioning and sort order -------------------------------------------------------------------------

CREATE TABLE ducklake_partition_info (
    catalog_id BIGINT NOT NULL,
    partition_id BIGINT NOT NULL,
    table_id BIGINT,
    begin_snapshot BIGINT,
    end_snapshot BIGINT,
    PRIMARY KEY (catalog_id, partition_id)
);

CREATE TABLE ducklake_partition_column (
    catalog_id BIGINT NOT NULL,
    partition_id BIGINT NOT NULL,
    table_id BIGINT,
    partition_key_index BIGINT NOT NULL,
    column_id BIGINT,
    transform VARCHAR,
    PRIMARY KEY (catalog_id, partition_id, partition_key_index)
);

CREATE TABLE ducklake_sort_info (
    catalog_id BIGINT NOT NULL,
    sort_id BIGINT NOT NULL,
    table_id BIGINT,
    begin_snapshot BIGINT,
    end_snapshot BIGINT,
    PRIMARY KEY (catalog_id, sort_id)
);

CREATE TABLE ducklake_sort_expression (
    catalog_id BIGINT NOT NULL,
    sort_id BIGINT NOT NULL,
    table_id BIGINT,
    sort_key_index BIGINT NOT NULL,
    expression VARCHAR,
    dialect VARCHAR,
    sort_direction VARCHAR,
    null_order VARCHAR,
    PRIMARY KEY (catalog_id, sort_id, sort_key_index)
);

-- ---- Files and statistics --------------------------------------------------------------------------------

-- The same data_file_id in two catalogs is the same physical file.
CREATE TABLE ducklake_data_file (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    table_id BIGINT,
    begin_snapshot BIGINT,
    end_snapshot BIGINT,
    file_order BIGINT,
    path VARCHAR,
    path_is_relative BOOLEAN,
    file_format VARCHAR,
    record_count BIGINT,
    file_size_bytes BIGINT,
    footer_size BIGINT,
    row_id_start BIGINT,
    partition_id BIGINT,
    encryption_key VARCHAR,
    partial_file_info VARCHAR,
    mapping_id BIGINT,
    partial_max BIGINT,
    PRIMARY KEY (catalog_id, data_file_id)
);

CREATE TABLE ducklake_delete_file (
    catalog_id BIGINT NOT NULL,
    delete_file_id BIGINT NOT NULL,
    table_id BIGINT,
    begin_snapshot BIGINT,
    end_snapshot BIGINT,
    data_file_id BIGINT,
    path VARCHAR,
    path_is_relative BOOLEAN,
    format VARCHAR,
    delete_count BIGINT,
    file_size_bytes BIGINT,
    footer_size BIGINT,
    encryption_key VARCHAR,
    partial_max BIGINT,
    PRIMARY KEY (catalog_id, delete_file_id)
);

-- min_key and max_key are order-preserving text, so that every backend prunes with plain comparisons.
CREATE TABLE ducklake_file_column_stats (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    table_id BIGINT,
    column_id BIGINT NOT NULL,
    column_size_bytes BIGINT,
    value_count BIGINT,
    null_count BIGINT,
    min_value VARCHAR,
    max_value VARCHAR,
    contains_nan BOOLEAN,
    extra_stats VARCHAR,
    distinct_count BIGINT,
    min_key VARCHAR,
    max_key VARCHAR,
    PRIMARY KEY (catalog_id, data_file_id, column_id)
);

CREATE TABLE ducklake_file_variant_stats (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    table_id BIGINT,
    column_id BIGINT NOT NULL,
    variant_path VARCHAR NOT NULL,
    shredded_type VARCHAR,
    column_size_bytes BIGINT,
    value_count BIGINT,
    null_count BIGINT,
    min_value VARCHAR,
    max_value VARCHAR,
    contains_nan BOOLEAN,
    extra_stats VARCHAR,
    PRIMARY KEY (catalog_id, data_file_id, column_id, variant_path)
);

CREATE TABLE ducklake_file_partition_value (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    table_id BIGINT,
    partition_key_index BIGINT NOT NULL,
    partition_value VARCHAR,
    PRIMARY KEY (catalog_id, data_file_id, partition_key_index)
);

-- Each catalog keeps its own statistics: a parent's row moves on after a fork.
CREATE TABLE ducklake_table_stats (
    catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    record_count BIGINT,
    next_row_id BIGINT,
    file_size_bytes BIGINT,
    PRIMARY KEY (catalog_id, table_id)
);

CREATE TABLE ducklake_table_column_stats (
    catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    contains_null BOOLEAN,
    contains_nan BOOLEAN,
    min_value VARCHAR,
    max_value VARCHAR,
    extra_stats VARCHAR,
    min_key VARCHAR,
    max_key VARCHAR,
    PRIMARY KEY (catalog_id, table_id, column_id)
);

-- How columns of files without field ids are found.
CREATE TABLE ducklake_column_mapping (
    catalog_id BIGINT NOT NULL,
    mapping_id BIGINT NOT NULL,
    table_id BIGINT,
    type VARCHAR,
    begin_snapshot BIGINT,
    PRIMARY KEY (catalog_id, mapping_id)
);

CREATE TABLE ducklake_name_mapping (
    catalog_id BIGINT NOT NULL,
    mapping_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    source_name VARCHAR,
    target_field_id BIGINT,
    parent_column BIGINT,
    is_partition BOOLEAN,
    PRIMARY KEY (catalog_id, mapping_id, column_id)
);

-- Tables of this database that hold small writes until they are flushed to Parquet.
CREATE TABLE ducklake_inlined_data_tables (
    catalog_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    table_name VARCHAR,
    schema_version BIGINT NOT NULL,
    begin_snapshot BIGINT,
    PRIMARY KEY (catalog_id, table_id, schema_version)
);

-- Small writes: files whose rows live here, as an Arrow stream in base 64, until they are flushed to Parquet. Their
-- ducklake_data_file has the format 'inlined' and no path.
CREATE TABLE ducklake_inlined_file (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    content VARCHAR NOT NULL,
    PRIMARY KEY (catalog_id, data_file_id)
);

-- Small deletes: positions in a data file, beside those that its delete file names. Delete files of earlier versions,
-- which do not end in -deletes.parquet, name positions again that were deleted here before.
CREATE TABLE ducklake_inlined_delete (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, data_file_id, position)
);

-- ---- Indexes of tables -----------------------------------------------------------------------------------

-- An index of a table, by which rows are found without reading all files. One that is changed is another index.
CREATE TABLE ducklake_index (
    catalog_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    index_uuid VARCHAR,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    table_id BIGINT NOT NULL,
    index_name VARCHAR,
    kind VARCHAR,
    maintain VARCHAR,
    params VARCHAR,
    PRIMARY KEY (catalog_id, index_id, begin_snapshot)
);

-- Its columns in order, with the role 'key' or 'include'.
CREATE TABLE ducklake_index_column (
    catalog_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    role VARCHAR NOT NULL,
    PRIMARY KEY (catalog_id, index_id, ordinal)
);

-- Files of an index: a segment finds rows of some data files, a model is what segments share. The same index_file_id in two
-- catalogs is the same physical file.
CREATE TABLE ducklake_index_file (
    catalog_id BIGINT NOT NULL,
    index_file_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    table_id BIGINT NOT NULL,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    path VARCHAR NOT NULL,
    path_is_relative BOOLEAN,
    file_size_bytes BIGINT,
    footer_size BIGINT,
    role VARCHAR,
    format VARCHAR,
    format_version BIGINT,
    level BIGINT,
    entry_count BIGINT,
    min_key VARCHAR,
    max_key VARCHAR,
    model_file_id BIGINT,
    summary VARCHAR,
    PRIMARY KEY (catalog_id, index_file_id)
);

-- The data files whose rows a segment has. Its entries name them by ordinal.
CREATE TABLE ducklake_index_coverage (
    catalog_id BIGINT NOT NULL,
    index_file_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, index_file_id, ordinal)
);

-- ---- Cleaning ---------------------------------------------------------------------------------------------

-- Files that nothing may need any more; removed after a retention time, if still nothing does. From claimed_at on, a file
-- is being removed, and nobody may refer to it any more.
CREATE TABLE ducklake_files_scheduled_for_deletion (
    catalog_id BIGINT NOT NULL,
    data_file_id BIGINT,
    path VARCHAR NOT NULL,
    path_is_relative BOOLEAN,
    schedule_start VARCHAR,
    reason VARCHAR,
    claimed_at VARCHAR,
    PRIMARY KEY (catalog_id, path)
);

-- Where a collection of garbage notes what is in reach: rows of a catalog that are valid at a snapshot from low to high. If
-- only one catalog, the viewer, has them in reach, what it has expired and ended itself counts too. A catalog that is looked
-- at has a row with high below low. Empty between collections.
CREATE TABLE ducklake_reach (
    catalog_id BIGINT NOT NULL,
    low BIGINT NOT NULL,
    high BIGINT NOT NULL,
    viewer_id BIGINT,
    oldest_snapshot BIGINT
);

-- ---- Indexes --------------------------------------------------------------------------------------------

CREATE UNIQUE INDEX ducklake_metadata_of_lake ON ducklake_metadata (key) WHERE scope IS NULL;
CREATE INDEX ducklake_snapshot_by_time ON ducklake_snapshot (snapshot_time);
CREATE INDEX ducklake_snapshot_changes_by_catalog ON ducklake_snapshot_changes (catalog_id, snapshot_id);
CREATE UNIQUE INDEX ducklake_catalog_live_name ON ducklake_catalog (catalog_name) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_catalog_by_name ON ducklake_catalog (catalog_name COLLATE NOCASE);
CREATE INDEX ducklake_catalog_lineage_by_source ON ducklake_catalog_lineage (source_catalog_id)
    WHERE source_catalog_id <> catalog_id;
CREATE INDEX ducklake_catalog_merge_by_source ON ducklake_catalog_merge (source_catalog_id, catalog_id);
CREATE INDEX ducklake_snapshot_reservation_unswept ON ducklake_snapshot_reservation (expires_at) WHERE swept_at IS NULL;
CREATE UNIQUE INDEX ducklake_schema_live_name ON ducklake_schema (catalog_id, schema_name) WHERE end_snapshot IS NULL;
CREATE UNIQUE INDEX ducklake_table_live_name ON ducklake_table (catalog_id, schema_id, table_name) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_table_by_name ON ducklake_table (catalog_id, schema_id, table_name COLLATE NOCASE);
CREATE UNIQUE INDEX ducklake_view_live_name ON ducklake_view (catalog_id, schema_id, view_name) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_view_by_name ON ducklake_view (catalog_id, schema_id, view_name COLLATE NOCASE);
CREATE INDEX ducklake_macro_live_name ON ducklake_macro (catalog_id, schema_id, macro_name) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_partition_info_by_table ON ducklake_partition_info (catalog_id, table_id);
CREATE INDEX ducklake_sort_info_by_table ON ducklake_sort_info (catalog_id, table_id);
CREATE INDEX ducklake_data_file_by_table ON ducklake_data_file (catalog_id, table_id, begin_snapshot);
CREATE INDEX ducklake_data_file_live ON ducklake_data_file (catalog_id, table_id) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_data_file_by_id ON ducklake_data_file (data_file_id);
CREATE INDEX ducklake_delete_file_by_table ON ducklake_delete_file (catalog_id, table_id, begin_snapshot);
CREATE INDEX ducklake_delete_file_live ON ducklake_delete_file (catalog_id, table_id, data_file_id) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_file_column_stats_by_key ON ducklake_file_column_stats (catalog_id, table_id, column_id, min_key, max_key);
CREATE INDEX ducklake_data_file_inlined ON ducklake_data_file (catalog_id, table_id, begin_snapshot) WHERE file_format = 'inlined';
CREATE INDEX ducklake_data_file_by_row_id ON ducklake_data_file (catalog_id, table_id, row_id_start);
CREATE INDEX ducklake_file_partition_value_by_value ON ducklake_file_partition_value (catalog_id, table_id, partition_key_index, partition_value);
CREATE INDEX ducklake_inlined_delete_by_table ON ducklake_inlined_delete (catalog_id, table_id, begin_snapshot);
CREATE INDEX ducklake_column_mapping_by_table ON ducklake_column_mapping (catalog_id, table_id);
CREATE UNIQUE INDEX ducklake_index_live_name ON ducklake_index (catalog_id, table_id, index_name) WHERE end_snapshot IS NULL;
CREATE INDEX ducklake_index_file_by_table ON ducklake_index_file (catalog_id, table_id);
CREATE INDEX ducklake_reach_by_catalog ON ducklake_reach (catalog_id, high);
CREATE INDEX ducklake_files_scheduled_by_time ON ducklake_files_scheduled_for_deletion (schedule_start);

-- ---- What each catalog sees ------------------------------------------------------------------------------

-- Ends that a catalog or one of its ancestors has set for rows it inherited.
CREATE VIEW visible_mask AS
SELECT l.catalog_id, m.entity, m.entity_id, m.sub_id, m.sub_key, m.row_begin, m.end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_inherited_end m ON m.catalog_id = l.source_catalog_id AND m.end_snapshot <= l.max_snapshot;

CREATE VIEW visible_schema AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.schema_id, e.schema_uuid, e.begin_snapshot,
       e.schema_name, e.path, e.path_is_relative,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'schema' AND m.entity_id = e.schema_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_schema e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_table AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.table_id, e.table_uuid, e.begin_snapshot, e.schema_id,
       e.table_name, e.path, e.path_is_relative,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'table' AND m.entity_id = e.table_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_table e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_column AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.column_id, e.begin_snapshot, e.table_id,
       e.column_order, e.column_name, e.column_type, e.initial_default, e.default_value, e.nulls_allowed,
       e.parent_column, e.default_value_type, e.default_value_dialect,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'column' AND m.entity_id = e.table_id AND m.sub_id = e.column_id AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_column e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_view AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.view_id, e.view_uuid, e.begin_snapshot, e.schema_id,
       e.view_name, e.dialect, e.sql, e.column_aliases,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'view' AND m.entity_id = e.view_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_view e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_macro AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.schema_id, e.macro_id, e.macro_name, e.begin_snapshot,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'macro' AND m.entity_id = e.macro_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_macro e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_tag AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.object_id, e.begin_snapshot, e.key, e.value,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'tag' AND m.entity_id = e.object_id AND m.sub_id = 0 AND m.sub_key = e.key
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_tag e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_column_tag AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.table_id, e.column_id, e.begin_snapshot, e.key,
       e.value,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'column_tag' AND m.entity_id = e.table_id AND m.sub_id = e.column_id AND m.sub_key = e.key
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_column_tag e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_partition_info AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.partition_id, e.table_id, e.begin_snapshot,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'partition_info' AND m.entity_id = e.partition_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_partition_info e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_sort_info AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.sort_id, e.table_id, e.begin_snapshot,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'sort_info' AND m.entity_id = e.sort_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_sort_info e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_index AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.index_id, e.index_uuid, e.begin_snapshot, e.table_id, e.index_name, e.kind,
       e.maintain, e.params,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'index' AND m.entity_id = e.index_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_index e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_index_file AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.index_file_id, e.index_id, e.table_id, e.begin_snapshot, e.path,
       e.path_is_relative, e.file_size_bytes, e.footer_size, e.role, e.format, e.format_version, e.level,
       e.entry_count, e.min_key, e.max_key, e.model_file_id, e.summary,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'index_file' AND m.entity_id = e.index_file_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_index_file e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

-- Where all files of a table are read, it is quicker to know all masks than to look for the mask of each: these views
-- leave them to the reader.
CREATE VIEW visible_data_file_unmasked AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.begin_snapshot,
       e.file_order, e.path, e.path_is_relative, e.file_format, e.record_count, e.file_size_bytes,
       e.footer_size, e.row_id_start, e.partition_id, e.encryption_key, e.partial_file_info, e.mapping_id,
       e.partial_max,
       CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_data_file AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.begin_snapshot,
       e.file_order, e.path, e.path_is_relative, e.file_format, e.record_count, e.file_size_bytes,
       e.footer_size, e.row_id_start, e.partition_id, e.encryption_key, e.partial_file_info, e.mapping_id,
       e.partial_max,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'data_file' AND m.entity_id = e.data_file_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_delete_file_unmasked AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.delete_file_id, e.table_id, e.begin_snapshot,
       e.data_file_id, e.path, e.path_is_relative, e.format, e.delete_count, e.file_size_bytes, e.footer_size,
       e.encryption_key, e.partial_max,
       CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_delete_file e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_delete_file AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.delete_file_id, e.table_id, e.begin_snapshot,
       e.data_file_id, e.path, e.path_is_relative, e.format, e.delete_count, e.file_size_bytes, e.footer_size,
       e.encryption_key, e.partial_max,
       COALESCE(CASE WHEN e.end_snapshot <= l.max_snapshot THEN e.end_snapshot END,
                (SELECT m.end_snapshot
                   FROM ducklake_catalog_lineage a
                  CROSS JOIN ducklake_inherited_end m
                  WHERE a.catalog_id = l.catalog_id AND m.catalog_id = a.source_catalog_id
                    AND m.end_snapshot <= a.max_snapshot AND m.entity = 'delete_file' AND m.entity_id = e.delete_file_id AND m.sub_id = 0 AND m.sub_key = ''
                    AND m.row_begin = e.begin_snapshot)) AS end_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_delete_file e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

-- Rows without an end of their own: visible with what they belong to.

CREATE VIEW visible_macro_impl AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.macro_id, e.impl_id, e.dialect, e.sql, e.type
  FROM ducklake_catalog_lineage l
  JOIN ducklake_macro_impl e ON e.catalog_id = l.source_catalog_id
 WHERE EXISTS (SELECT 1 FROM ducklake_macro o WHERE o.catalog_id = e.catalog_id AND o.macro_id = e.macro_id
                  AND o.begin_snapshot <= l.max_snapshot);

CREATE VIEW visible_macro_parameters AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.macro_id, e.impl_id, e.column_id, e.parameter_name,
       e.parameter_type, e.default_value, e.default_value_type
  FROM ducklake_catalog_lineage l
  JOIN ducklake_macro_parameters e ON e.catalog_id = l.source_catalog_id
 WHERE EXISTS (SELECT 1 FROM ducklake_macro o WHERE o.catalog_id = e.catalog_id AND o.macro_id = e.macro_id
                  AND o.begin_snapshot <= l.max_snapshot);

CREATE VIEW visible_schema_versions AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.begin_snapshot, e.schema_version, e.table_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_schema_versions e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_partition_column AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.partition_id, e.table_id, e.partition_key_index,
       e.column_id, e.transform
  FROM ducklake_catalog_lineage l
  JOIN ducklake_partition_info o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_partition_column e ON e.catalog_id = o.catalog_id AND e.partition_id = o.partition_id;

CREATE VIEW visible_sort_expression AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.sort_id, e.table_id, e.sort_key_index, e.expression,
       e.dialect, e.sort_direction, e.null_order
  FROM ducklake_catalog_lineage l
  JOIN ducklake_sort_info o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_sort_expression e ON e.catalog_id = o.catalog_id AND e.sort_id = o.sort_id;

CREATE VIEW visible_file_column_stats AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.column_id,
       e.column_size_bytes, e.value_count, e.null_count, e.min_value, e.max_value, e.contains_nan,
       e.extra_stats, e.distinct_count, e.min_key, e.max_key
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_file_column_stats e ON e.catalog_id = o.catalog_id AND e.data_file_id = o.data_file_id;

CREATE VIEW visible_file_variant_stats AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.column_id, e.variant_path,
       e.shredded_type, e.column_size_bytes, e.value_count, e.null_count, e.min_value, e.max_value,
       e.contains_nan, e.extra_stats
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_file_variant_stats e ON e.catalog_id = o.catalog_id AND e.data_file_id = o.data_file_id;

CREATE VIEW visible_file_partition_value AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.partition_key_index,
       e.partition_value
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_file_partition_value e ON e.catalog_id = o.catalog_id AND e.data_file_id = o.data_file_id;

CREATE VIEW visible_column_mapping AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.mapping_id, e.table_id, e.type, e.begin_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_column_mapping e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_name_mapping AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.mapping_id, e.column_id, e.source_name,
       e.target_field_id, e.parent_column, e.is_partition
  FROM ducklake_catalog_lineage l
  JOIN ducklake_column_mapping o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_name_mapping e ON e.catalog_id = o.catalog_id AND e.mapping_id = o.mapping_id;

CREATE VIEW visible_index_column AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.index_id, e.ordinal, e.column_id, e.role
  FROM ducklake_catalog_lineage l
  JOIN ducklake_index_column e ON e.catalog_id = l.source_catalog_id
 WHERE EXISTS (SELECT 1 FROM ducklake_index o WHERE o.catalog_id = e.catalog_id AND o.index_id = e.index_id
                  AND o.begin_snapshot <= l.max_snapshot);

CREATE VIEW visible_index_coverage AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.index_file_id, e.ordinal, e.data_file_id
  FROM ducklake_catalog_lineage l
  JOIN ducklake_index_file o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_index_coverage e ON e.catalog_id = o.catalog_id AND e.index_file_id = o.index_file_id;

CREATE VIEW visible_inlined_data_tables AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.table_id, e.table_name, e.schema_version,
       e.begin_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_inlined_data_tables e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

CREATE VIEW visible_inlined_file AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.table_id, e.content
  FROM ducklake_catalog_lineage l
  JOIN ducklake_data_file o ON o.catalog_id = l.source_catalog_id AND o.begin_snapshot <= l.max_snapshot
  JOIN ducklake_inlined_file e ON e.catalog_id = o.catalog_id AND e.data_file_id = o.data_file_id;

CREATE VIEW visible_inlined_delete AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.data_file_id, e.position, e.table_id, e.begin_snapshot
  FROM ducklake_catalog_lineage l
  JOIN ducklake_inlined_delete e ON e.catalog_id = l.source_catalog_id AND e.begin_snapshot <= l.max_snapshot;

-- Figures are a catalog's own: an ancestor's have moved on since the fork.

-- What a catalog has counted itself; where it has not, because it was forked from one that had, it is counted here.
CREATE VIEW visible_table_stats AS
SELECT e.catalog_id, e.catalog_id AS source_catalog_id, e.table_id, e.record_count, e.next_row_id,
       e.file_size_bytes
  FROM ducklake_table_stats e
 WHERE e.record_count IS NOT NULL
UNION ALL
SELECT t.catalog_id, t.catalog_id AS source_catalog_id, t.table_id,
       CAST((SELECT COALESCE(sum(f.record_count), 0)
               FROM visible_data_file f
              WHERE f.catalog_id = t.catalog_id AND f.table_id = t.table_id AND f.end_snapshot IS NULL)
          - (SELECT COALESCE(sum(d.delete_count), 0)
               FROM visible_delete_file d
              WHERE d.catalog_id = t.catalog_id AND d.table_id = t.table_id AND d.end_snapshot IS NULL)
          - (SELECT count(*)
               FROM visible_inlined_delete i
               JOIN visible_data_file o ON o.catalog_id = i.catalog_id AND o.data_file_id = i.data_file_id
                                       AND o.end_snapshot IS NULL
              WHERE i.catalog_id = t.catalog_id AND i.table_id = t.table_id
                AND NOT EXISTS (SELECT 1 FROM visible_delete_file n
                                 WHERE n.catalog_id = i.catalog_id AND n.data_file_id = i.data_file_id
                                   AND n.begin_snapshot > i.begin_snapshot AND n.end_snapshot IS NULL
                                   AND n.path NOT LIKE '%-deletes.parquet')) AS BIGINT),
       COALESCE(c.next_row_id, (SELECT max(f.row_id_start + f.record_count)
                                  FROM visible_data_file f
                                 WHERE f.catalog_id = t.catalog_id AND f.table_id = t.table_id)),
       CAST((SELECT COALESCE(sum(f.file_size_bytes), 0)
               FROM visible_data_file f
              WHERE f.catalog_id = t.catalog_id AND f.table_id = t.table_id AND f.end_snapshot IS NULL) AS BIGINT)
  FROM visible_table t
  LEFT JOIN ducklake_table_stats c ON c.catalog_id = t.catalog_id AND c.table_id = t.table_id
 WHERE t.end_snapshot IS NULL AND c.record_count IS NULL
   AND EXISTS (SELECT 1 FROM visible_data_file f WHERE f.catalog_id = t.catalog_id AND f.table_id = t.table_id);

CREATE VIEW visible_table_column_stats AS
SELECT l.catalog_id, e.catalog_id AS source_catalog_id, e.table_id, e.column_id, e.contains_null,
       e.contains_nan, e.min_value, e.max_value, e.extra_stats, e.min_key, e.max_key
  FROM ducklake_catalog_lineage l
  JOIN ducklake_table_column_stats e ON e.catalog_id = l.source_catalog_id AND l.source_catalog_id = l.catalog_id;

-- The history of a catalog: its own commits and, up to the fork point, its ancestors'.
CREATE VIEW visible_snapshot AS
SELECT l.catalog_id, c.catalog_id AS source_catalog_id, s.snapshot_id, s.snapshot_time, s.schema_version,
       s.next_catalog_id, s.next_file_id, c.changes_made, c.author, c.commit_message, c.commit_extra_info, c.footprint
  FROM ducklake_catalog_lineage l
  JOIN ducklake_snapshot_changes c ON c.catalog_id = l.source_catalog_id
                                  AND c.snapshot_id <= COALESCE(l.copied_snapshot, l.max_snapshot)
  JOIN ducklake_snapshot s ON s.snapshot_id = c.snapshot_id;

-- ---- The empty lake -------------------------------------------------------------------------------------

INSERT INTO ducklake_snapshot (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
VALUES (0, strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'), 0, 0, 0);

-- Last, so that a lake without it was never finished.
INSERT INTO ducklake_metadata (key, value) VALUES ('version', '0.5-dev6');

-- forklake:end
COMMIT;
