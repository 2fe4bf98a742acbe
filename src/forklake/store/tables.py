"""The columns of every metadata table, as the schema files have them, and set-based writes on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Kind = Literal["int", "text", "uuid", "bool", "time"]

TABLES: dict[str, dict[str, Kind]] = {
    "ducklake_metadata": {
        "key": "text",
        "value": "text",
        "scope": "text",
        "scope_id": "int",
    },
    "ducklake_snapshot": {
        "snapshot_id": "int",
        "snapshot_time": "time",
        "schema_version": "int",
        "next_catalog_id": "int",
        "next_file_id": "int",
    },
    "ducklake_snapshot_changes": {
        "snapshot_id": "int",
        "catalog_id": "int",
        "changes_made": "text",
        "author": "text",
        "commit_message": "text",
        "commit_extra_info": "text",
        "footprint": "text",
    },
    "ducklake_catalog": {
        "catalog_id": "int",
        "catalog_uuid": "uuid",
        "catalog_name": "text",
        "begin_snapshot": "int",
        "end_snapshot": "int",
    },
    "ducklake_catalog_head": {
        "catalog_id": "int",
        "snapshot_id": "int",
        "snapshot_time": "time",
        "schema_version": "int",
        "end_snapshot": "int",
        "data_path": "text",
        "created_at": "time",
        "expires_at": "time",
    },
    "ducklake_catalog_lineage": {
        "catalog_id": "int",
        "source_catalog_id": "int",
        "max_snapshot": "int",
        "depth": "int",
        "copied_snapshot": "int",
    },
    "ducklake_catalog_merge": {
        "catalog_id": "int",
        "merge_snapshot": "int",
        "source_catalog_id": "int",
        "source_snapshot": "int",
    },
    "ducklake_inherited_end": {
        "catalog_id": "int",
        "entity": "text",
        "entity_id": "int",
        "sub_id": "int",
        "sub_key": "text",
        "row_begin": "int",
        "end_snapshot": "int",
    },
    "ducklake_snapshot_reservation": {
        "catalog_id": "int",
        "reservation_id": "uuid",
        "snapshot_id": "int",
        "parent_snapshot_id": "int",
        "commit_uuid": "uuid",
        "state": "text",
        "created_at": "time",
        "expires_at": "time",
        "committed_snapshot_id": "int",
        "properties": "text",
    },
    "ducklake_schema": {
        "catalog_id": "int",
        "schema_id": "int",
        "schema_uuid": "uuid",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "schema_name": "text",
        "path": "text",
        "path_is_relative": "bool",
    },
    "ducklake_table": {
        "catalog_id": "int",
        "table_id": "int",
        "table_uuid": "uuid",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "schema_id": "int",
        "table_name": "text",
        "path": "text",
        "path_is_relative": "bool",
    },
    "ducklake_column": {
        "catalog_id": "int",
        "column_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "table_id": "int",
        "column_order": "int",
        "column_name": "text",
        "column_type": "text",
        "initial_default": "text",
        "default_value": "text",
        "nulls_allowed": "bool",
        "parent_column": "int",
        "default_value_type": "text",
        "default_value_dialect": "text",
    },
    "ducklake_view": {
        "catalog_id": "int",
        "view_id": "int",
        "view_uuid": "uuid",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "schema_id": "int",
        "view_name": "text",
        "dialect": "text",
        "sql": "text",
        "column_aliases": "text",
    },
    "ducklake_macro": {
        "catalog_id": "int",
        "schema_id": "int",
        "macro_id": "int",
        "macro_name": "text",
        "begin_snapshot": "int",
        "end_snapshot": "int",
    },
    "ducklake_macro_impl": {
        "catalog_id": "int",
        "macro_id": "int",
        "impl_id": "int",
        "dialect": "text",
        "sql": "text",
        "type": "text",
    },
    "ducklake_macro_parameters": {
        "catalog_id": "int",
        "macro_id": "int",
        "impl_id": "int",
        "column_id": "int",
        "parameter_name": "text",
        "parameter_type": "text",
        "default_value": "text",
        "default_value_type": "text",
    },
    "ducklake_tag": {
        "catalog_id": "int",
        "object_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "key": "text",
        "value": "text",
    },
    "ducklake_column_tag": {
        "catalog_id": "int",
        "table_id": "int",
        "column_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "key": "text",
        "value": "text",
    },
    "ducklake_schema_versions": {
        "catalog_id": "int",
        "begin_snapshot": "int",
        "schema_version": "int",
        "table_id": "int",
    },
    "ducklake_partition_info": {
        "catalog_id": "int",
        "partition_id": "int",
        "table_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
    },
    "ducklake_partition_column": {
        "catalog_id": "int",
        "partition_id": "int",
        "table_id": "int",
        "partition_key_index": "int",
        "column_id": "int",
        "transform": "text",
    },
    "ducklake_sort_info": {
        "catalog_id": "int",
        "sort_id": "int",
        "table_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
    },
    "ducklake_sort_expression": {
        "catalog_id": "int",
        "sort_id": "int",
        "table_id": "int",
        "sort_key_index": "int",
        "expression": "text",
        "dialect": "text",
        "sort_direction": "text",
        "null_order": "text",
    },
    "ducklake_data_file": {
        "catalog_id": "int",
        "data_file_id": "int",
        "table_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "file_order": "int",
        "path": "text",
        "path_is_relative": "bool",
        "file_format": "text",
        "record_count": "int",
        "file_size_bytes": "int",
        "footer_size": "int",
        "row_id_start": "int",
        "partition_id": "int",
        "encryption_key": "text",
        "partial_file_info": "text",
        "mapping_id": "int",
        "partial_max": "int",
    },
    "ducklake_delete_file": {
        "catalog_id": "int",
        "delete_file_id": "int",
        "table_id": "int",
        "begin_snapshot": "int",
        "end_snapshot": "int",
        "data_file_id": "int",
        "path": "text",
        "path_is_relative": "bool",
        "format": "text",
        "delete_count": "int",
        "file_size_bytes": "int",
        "footer_size": "int",
        "encryption_key": "text",
        "partial_max": "int",
    },
    "ducklake_file_column_stats": {
        "catalog_id": "int",
        "data_file_id": "int",
        "table_id": "int",
        "column_id": "int",
        "column_size_bytes": "int",
        "value_count": "int",
        "null_count": "int",
        "min_value": "text",
        "max_value": "text",
        "contains_nan": "bool",
        "extra_stats": "text",
        "distinct_count": "int",
        "min_key": "text",
        "max_key": "text",
    },
    "ducklake_file_variant_stats": {
        "catalog_id": "int",
        "data_file_id": "int",
        "table_id": "int",
        "column_id": "int",
        "variant_path": "text",
        "shredded_type": "text",
        "column_size_bytes": "int",
        "value_count": "int",
        "null_count": "int",
        "min_value": "text",
        "max_value": "text",
        "contains_nan": "bool",
        "extra_stats": "text",
    },
    "ducklake_file_partition_value": {
        "catalog_id": "int",
        "data_file_id": "int",
        "table_id": "int",
        "partition_key_index": "int",
        "partition_value": "text",
    },
    "ducklake_table_stats": {
        "catalog_id": "int",
        "table_id": "int",
        "record_count": "int",
        "next_row_id": "int",
        "file_size_bytes": "int",
    },
    "ducklake_table_column_stats": {
        "catalog_id": "int",
        "table_id": "int",
        "column_id": "int",
        "contains_null": "bool",
        "contains_nan": "bool",
        "min_value": "text",
        "max_value": "text",
        "extra_stats": "text",
        "min_key": "text",
        "max_key": "text",
    },
    "ducklake_column_mapping": {
        "catalog_id": "int",
        "mapping_id": "int",
        "table_id": "int",
        "type": "text",
        "begin_snapshot": "int",
    },
    "ducklake_name_mapping": {
        "catalog_id": "int",
        "mapping_id": "int",
        "column_id": "int",
        "source_name": "text",
        "target_field_id": "int",
        "parent_column": "int",
        "is_partition": "bool",
    },
    "ducklake_inlined_data_tables": {
        "catalog_id": "int",
        "table_id": "int",
        "table_name": "text",
        "schema_version": "int",
        "begin_snapshot": "int",
    },
    "ducklake_inlined_file": {
        "catalog_id": "int",
        "data_file_id": "int",
        "table_id": "int",
        "content": "text",
    },
    "ducklake_inlined_delete": {
        "catalog_id": "int",
        "data_file_id": "int",
        "position": "int",
        "table_id": "int",
        "begin_snapshot": "int",
    },
    "ducklake_files_scheduled_for_deletion": {
        "catalog_id": "int",
        "data_file_id": "int",
        "path": "text",
        "path_is_relative": "bool",
        "schedule_start": "time",
        "reason": "text",
    },
}


COPIED = (
    "ducklake_schema",
    "ducklake_table",
    "ducklake_column",
    "ducklake_view",
    "ducklake_macro",
    "ducklake_macro_impl",
    "ducklake_macro_parameters",
    "ducklake_tag",
    "ducklake_column_tag",
    "ducklake_schema_versions",
    "ducklake_partition_info",
    "ducklake_partition_column",
    "ducklake_sort_info",
    "ducklake_sort_expression",
    "ducklake_data_file",
    "ducklake_delete_file",
    "ducklake_file_column_stats",
    "ducklake_file_variant_stats",
    "ducklake_file_partition_value",
    "ducklake_column_mapping",
    "ducklake_name_mapping",
    "ducklake_inlined_data_tables",
    "ducklake_inlined_file",
    "ducklake_inlined_delete",
)
"""What a catalog has of its ancestors. Figures are not among it: they are counted anew."""


def copy_rows(table: str) -> str:
    """An INSERT of what a catalog sees of its ancestors as rows of its own; parameter: $catalog."""
    columns = [column for column in TABLES[table] if column != "catalog_id"]
    source = table.replace("ducklake_", "visible_")
    return " ".join(
        (
            "INSERT INTO",
            table,
            _listed(["catalog_id", *columns]),
            "SELECT",
            ", ".join(["v.catalog_id", *(f"v.{column}" for column in columns)]),
            "FROM",
            source,
            "AS v WHERE v.catalog_id = $catalog AND v.source_catalog_id <> $catalog",
        )
    )


ADOPTED = {
    "ducklake_data_file": "data_file_id",
    "ducklake_file_column_stats": "data_file_id",
    "ducklake_file_variant_stats": "data_file_id",
    "ducklake_file_partition_value": "data_file_id",
    "ducklake_inlined_file": "data_file_id",
    "ducklake_delete_file": "delete_file_id",
    "ducklake_column_mapping": "mapping_id",
    "ducklake_name_mapping": "mapping_id",
}
"""What a merge takes over from another catalog, and by which number."""
_ON_ADOPTION = {
    "begin_snapshot": "CAST($snapshot AS BIGINT)",
    "end_snapshot": "NULL",
    "partial_max": "NULL",
}


def adopt_rows(table: str) -> str:
    """An INSERT of rows that another catalog sees, from now on.

    Nobody here has seen rows of these files before, whenever they were inserted there: so they begin here.
    Parameters: $catalog, $source, $ids, $snapshot.
    """
    columns = [column for column in TABLES[table] if column != "catalog_id"]
    values = [_ON_ADOPTION.get(column, f"v.{column}") for column in columns]
    source = table.replace("ducklake_", "visible_")
    return " ".join(
        (
            "INSERT INTO",
            table,
            _listed(["catalog_id", *columns]),
            "SELECT",
            ", ".join(["CAST($catalog AS BIGINT)", *values]),
            "FROM",
            source,
            f"AS v WHERE v.catalog_id = $source AND v.{ADOPTED[table]} IN ids($ids)",
        )
    )


def insert_row(table: str, columns: tuple[str, ...]) -> str:
    """An INSERT of one row with positional parameters."""
    _check(table, columns)
    return " ".join(("INSERT INTO", table, _listed(columns), "VALUES", _listed("?" * len(columns))))


def insert_values(table: str, columns: tuple[str, ...], values: Sequence[str]) -> str:
    """An INSERT of rows that are written out as SQL."""
    _check(table, columns)
    return " ".join(("INSERT INTO", table, _listed(columns), "VALUES", ", ".join(values)))


def insert_set(table: str, columns: tuple[str, ...], values: Sequence[str], source: str = "") -> str:
    """An INSERT of many rows, given one array for each column as SQL text, and their source."""
    _check(table, columns)
    unnested = ", ".join(f"unnest({value})" for value in values)
    return " ".join(("INSERT INTO", table, _listed(columns), "SELECT", unnested, source))


def update_row(table: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> str:
    """An UPDATE of one row; parameters: the columns, then the keys."""
    _check(table, (*keys, *columns))
    values = ", ".join(f"{column} = ?" for column in columns)
    named = " AND ".join(f"{key} = ?" for key in keys)
    return " ".join(("UPDATE", table, "SET", values, "WHERE", named))


def update_set(table: str, keys: tuple[str, ...], columns: tuple[str, ...], source: str) -> str:
    """An UPDATE of many rows from a source of keys and columns, given as SQL text that names itself `n`."""
    _check(table, (*keys, *columns))
    values = ", ".join(f"{column} = n.{column}" for column in columns)
    same = " AND ".join(f"e.{key} = n.{key}" for key in keys)
    return " ".join(("UPDATE", table, "AS e SET", values, "FROM", source, "WHERE", same))


def end_row(table: str, keys: tuple[str, ...]) -> str:
    """An UPDATE that ends one live row; parameters: the end, the catalog, the keys."""
    _check(table, keys)
    named = " AND ".join(f"{key} = ?" for key in keys)
    return " ".join(
        ("UPDATE", table, "SET end_snapshot = ? WHERE catalog_id = ? AND end_snapshot IS NULL AND", named)
    )


def end_set(table: str, keys: tuple[str, ...], values: Sequence[str], source: str = "") -> str:
    """An UPDATE that ends many live rows, given one array for each key; parameters: $end and $catalog."""
    _check(table, keys)
    arrays = ", ".join(f"unnest({value}) AS {key}" for key, value in zip(keys, values, strict=True))
    same = " AND ".join(f"e.{key} = ended.{key}" for key in keys)
    update = ("UPDATE", table, "AS e SET end_snapshot = $end FROM (SELECT", arrays, source, ") AS ended")
    return " ".join((*update, "WHERE e.end_snapshot IS NULL AND e.catalog_id = $catalog AND", same))


def _listed(parts: Sequence[str]) -> str:
    return "(" + ", ".join(parts) + ")"


def _check(table: str, columns: tuple[str, ...]) -> None:
    # These texts are built from names; only names that stand above can get into them.
    unknown = set(columns) - TABLES[table].keys()
    if unknown:
        raise KeyError(f"{table} has no columns {sorted(unknown)}")
