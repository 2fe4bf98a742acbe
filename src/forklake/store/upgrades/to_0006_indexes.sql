-- From 0.5-dev5 to 0.5-dev6. PostgreSQL compares keys byte by byte, SQLite has no type for UUIDs.

-- name: create_index
CREATE TABLE ducklake_index (
    catalog_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    index_uuid UUID,
    begin_snapshot BIGINT NOT NULL,
    end_snapshot BIGINT,
    table_id BIGINT NOT NULL,
    index_name VARCHAR,
    kind VARCHAR,
    maintain VARCHAR,
    params VARCHAR,
    PRIMARY KEY (catalog_id, index_id, begin_snapshot)
);

-- name: create_index_text
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

-- name: create_index_column
CREATE TABLE ducklake_index_column (
    catalog_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    role VARCHAR NOT NULL,
    PRIMARY KEY (catalog_id, index_id, ordinal)
);

-- name: create_index_file
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

-- name: create_index_file_bytewise
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
    min_key VARCHAR COLLATE "C",
    max_key VARCHAR COLLATE "C",
    model_file_id BIGINT,
    summary VARCHAR,
    PRIMARY KEY (catalog_id, index_file_id)
);

-- name: create_index_coverage
CREATE TABLE ducklake_index_coverage (
    catalog_id BIGINT NOT NULL,
    index_file_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    data_file_id BIGINT NOT NULL,
    PRIMARY KEY (catalog_id, index_file_id, ordinal)
);

-- name: live_name
CREATE UNIQUE INDEX ducklake_index_live_name ON ducklake_index (catalog_id, table_id, index_name) WHERE end_snapshot IS NULL;

-- name: live_name_duckdb
CREATE INDEX ducklake_index_live_name ON ducklake_index (catalog_id, table_id, index_name);

-- name: files_by_table
CREATE INDEX ducklake_index_file_by_table ON ducklake_index_file (catalog_id, table_id);
