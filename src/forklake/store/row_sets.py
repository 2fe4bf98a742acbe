"""Which rows are written as sets: every INSERT, UPDATE and end of rows that is built from names.

`built_statements.py` makes SQL of them and of nothing else, so that a test can look at all that there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from forklake.store.entity_rows import STORED, EntityName
from forklake.store.tables import TABLES


@dataclass(frozen=True, slots=True)
class RowSet:
    """Columns of a table that are written together, in this order. The first of them may be its keys."""

    table: str
    columns: tuple[str, ...]
    key_count: int = 0

    def __post_init__(self) -> None:
        """Refuse names that the schema does not have: nothing else gets into a statement."""
        unknown = set(self.columns) - TABLES[self.table].keys()
        if unknown:
            raise KeyError(f"{self.table} has no columns {sorted(unknown)}")

    @property
    def keys(self) -> tuple[str, ...]:
        """What tells rows apart."""
        return self.columns[: self.key_count]

    @property
    def values(self) -> tuple[str, ...]:
        """What an UPDATE changes."""
        return self.columns[self.key_count :]


SETTINGS = RowSet("ducklake_metadata", ("key", "value"))
SNAPSHOTS = RowSet(
    "ducklake_snapshot",
    ("snapshot_id", "snapshot_time", "schema_version", "next_catalog_id", "next_file_id"),
)
CHANGES = RowSet(
    "ducklake_snapshot_changes",
    (
        "snapshot_id",
        "catalog_id",
        "changes_made",
        "author",
        "commit_message",
        "commit_extra_info",
        "footprint",
    ),
)
CATALOGS = RowSet("ducklake_catalog", ("catalog_id", "catalog_uuid", "catalog_name", "begin_snapshot"))
HEADS = RowSet(
    "ducklake_catalog_head",
    (
        "catalog_id",
        "snapshot_id",
        "snapshot_time",
        "schema_version",
        "data_path",
        "created_at",
        "expires_at",
        "oldest_snapshot",
    ),
)
OLDEST_SNAPSHOTS = RowSet("ducklake_catalog_head", ("catalog_id", "oldest_snapshot"), key_count=1)
EXPIRED_SNAPSHOTS = RowSet("ducklake_expired_snapshot", ("catalog_id", "snapshot_id"))
LINEAGES = RowSet(
    "ducklake_catalog_lineage",
    ("catalog_id", "source_catalog_id", "max_snapshot", "depth", "copied_snapshot"),
)
MERGES = RowSet(
    "ducklake_catalog_merge",
    ("catalog_id", "merge_snapshot", "source_catalog_id", "table_id", "base_snapshot", "source_snapshot"),
)
COMMITS_ONCE = RowSet("ducklake_commit_once", ("catalog_id", "work", "snapshot_id"))
RESERVATIONS = RowSet(
    "ducklake_snapshot_reservation",
    (
        "catalog_id",
        "reservation_id",
        "snapshot_id",
        "parent_snapshot_id",
        "commit_uuid",
        "state",
        "created_at",
        "expires_at",
        "properties",
    ),
)
ABANDONED_FILES = RowSet(
    "ducklake_files_scheduled_for_deletion",
    ("catalog_id", "path", "path_is_relative", "schedule_start", "reason", "claimed_at"),
)
INHERITED_ENDS = RowSet(
    "ducklake_inherited_end",
    ("catalog_id", "entity", "entity_id", "sub_id", "sub_key", "row_begin", "end_snapshot"),
)
SCHEMA_VERSIONS = RowSet(
    "ducklake_schema_versions", ("catalog_id", "begin_snapshot", "schema_version", "table_id")
)
BURNT_COLUMNS = RowSet(
    "ducklake_column",
    ("catalog_id", "table_id", "column_id", "column_name", "begin_snapshot", "end_snapshot"),
)
MACRO_IMPLS = RowSet("ducklake_macro_impl", ("catalog_id", "macro_id", "impl_id", "dialect", "sql", "type"))
MACRO_PARAMETERS = RowSet(
    "ducklake_macro_parameters",
    (
        "catalog_id",
        "macro_id",
        "impl_id",
        "column_id",
        "parameter_name",
        "parameter_type",
        "default_value",
        "default_value_type",
    ),
)
PARTITION_COLUMNS = RowSet(
    "ducklake_partition_column",
    ("catalog_id", "partition_id", "table_id", "partition_key_index", "column_id", "transform"),
)
SORT_EXPRESSIONS = RowSet(
    "ducklake_sort_expression",
    (
        "catalog_id",
        "sort_id",
        "table_id",
        "sort_key_index",
        "expression",
        "dialect",
        "sort_direction",
        "null_order",
    ),
)
INDEX_COLUMNS = RowSet("ducklake_index_column", ("catalog_id", "index_id", "ordinal", "column_id", "role"))
INDEX_FILES = RowSet(
    "ducklake_index_file",
    (
        "catalog_id",
        "index_file_id",
        "index_id",
        "table_id",
        "begin_snapshot",
        "path",
        "path_is_relative",
        "file_size_bytes",
        "footer_size",
        "role",
        "format",
        "format_version",
        "level",
        "entry_count",
        "min_key",
        "max_key",
        "model_file_id",
        "summary",
    ),
)
INDEX_COVERAGE = RowSet("ducklake_index_coverage", ("catalog_id", "index_file_id", "ordinal", "data_file_id"))
DATA_FILES = RowSet(
    "ducklake_data_file",
    (
        "catalog_id",
        "table_id",
        "data_file_id",
        "begin_snapshot",
        "record_count",
        "row_id_start",
        "path",
        "path_is_relative",
        "file_format",
        "file_size_bytes",
        "footer_size",
        "partition_id",
        "mapping_id",
        "partial_max",
    ),
)
DELETE_FILES = RowSet(
    "ducklake_delete_file",
    (
        "catalog_id",
        "table_id",
        "delete_file_id",
        "begin_snapshot",
        "end_snapshot",
        "data_file_id",
        "path",
        "path_is_relative",
        "format",
        "delete_count",
        "file_size_bytes",
        "footer_size",
    ),
)
FILE_STATS = RowSet(
    "ducklake_file_column_stats",
    (
        "catalog_id",
        "table_id",
        "data_file_id",
        "column_id",
        "column_size_bytes",
        "value_count",
        "null_count",
        "min_value",
        "max_value",
        "contains_nan",
        "distinct_count",
        "min_key",
        "max_key",
    ),
)
MENDED_FILE_STATS = RowSet(
    "ducklake_file_column_stats",
    (
        "catalog_id",
        "data_file_id",
        "column_id",
        "value_count",
        "null_count",
        "min_value",
        "max_value",
        "min_key",
        "max_key",
        "contains_nan",
    ),
    key_count=3,
)
PARTITION_VALUES = RowSet(
    "ducklake_file_partition_value",
    ("catalog_id", "table_id", "data_file_id", "partition_key_index", "partition_value"),
)
INLINED_FILES = RowSet("ducklake_inlined_file", ("catalog_id", "table_id", "data_file_id", "content"))
INLINED_DELETES = RowSet(
    "ducklake_inlined_delete", ("catalog_id", "table_id", "data_file_id", "position", "begin_snapshot")
)
MAPPINGS = RowSet(
    "ducklake_column_mapping", ("catalog_id", "table_id", "mapping_id", "type", "begin_snapshot")
)
MAPPED_NAMES = RowSet(
    "ducklake_name_mapping",
    (
        "catalog_id",
        "mapping_id",
        "column_id",
        "source_name",
        "target_field_id",
        "parent_column",
        "is_partition",
    ),
)
TABLE_STATS = RowSet(
    "ducklake_table_stats",
    ("catalog_id", "table_id", "record_count", "next_row_id", "file_size_bytes"),
    key_count=2,
)
COLUMN_STATS = RowSet(
    "ducklake_table_column_stats",
    (
        "catalog_id",
        "table_id",
        "column_id",
        "contains_null",
        "contains_nan",
        "min_value",
        "max_value",
        "min_key",
        "max_key",
    ),
    key_count=3,
)

ENTITIES: dict[EntityName, RowSet] = {
    name: RowSet(place.table, ("catalog_id", "begin_snapshot", *place.columns))
    for name, place in STORED.items()
    if place.columns
}
"""Versions of entities that begin."""
ENDS: dict[EntityName, RowSet] = {
    name: RowSet(place.table, (*place.keys, "begin_snapshot"), len(place.keys) + 1)
    for name, place in STORED.items()
}
"""Rows that end, each named by its keys and its begin; the catalog is one for all."""

INSERTED = (
    SETTINGS,
    SNAPSHOTS,
    CHANGES,
    CATALOGS,
    HEADS,
    EXPIRED_SNAPSHOTS,
    LINEAGES,
    MERGES,
    COMMITS_ONCE,
    RESERVATIONS,
    ABANDONED_FILES,
    INHERITED_ENDS,
    SCHEMA_VERSIONS,
    BURNT_COLUMNS,
    MACRO_IMPLS,
    MACRO_PARAMETERS,
    PARTITION_COLUMNS,
    SORT_EXPRESSIONS,
    INDEX_COLUMNS,
    INDEX_FILES,
    INDEX_COVERAGE,
    DATA_FILES,
    DELETE_FILES,
    FILE_STATS,
    PARTITION_VALUES,
    INLINED_FILES,
    INLINED_DELETES,
    MAPPINGS,
    MAPPED_NAMES,
    TABLE_STATS,
    COLUMN_STATS,
    *ENTITIES.values(),
)
UPDATED = (TABLE_STATS, COLUMN_STATS, OLDEST_SNAPSHOTS, MENDED_FILE_STATS)
ENDED = tuple(ENDS.values())
