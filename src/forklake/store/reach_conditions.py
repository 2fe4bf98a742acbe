"""Conditions on rows that nobody can reach, and statements that remove them, built for each table.

What is in reach stands in `ducklake_reach` while garbage is collected.
"""

from __future__ import annotations

from forklake.model.ids import FOREVER
from forklake.store.entity_rows import STORED, EntityName
from forklake.store.tables import TABLES

PARTS: dict[str, tuple[str, str]] = {
    "ducklake_file_column_stats": ("data_file", "data_file_id"),
    "ducklake_file_variant_stats": ("data_file", "data_file_id"),
    "ducklake_file_partition_value": ("data_file", "data_file_id"),
    "ducklake_inlined_file": ("data_file", "data_file_id"),
    "ducklake_macro_impl": ("macro", "macro_id"),
    "ducklake_macro_parameters": ("macro", "macro_id"),
    "ducklake_partition_column": ("partition_info", "partition_id"),
    "ducklake_sort_expression": ("sort_info", "sort_id"),
    "ducklake_index_column": ("index", "index_id"),
    "ducklake_index_coverage": ("index_file", "index_file_id"),
}
"""Rows that belong to others and go with them: to which entity, and by which number."""
FILES = ("data_file", "delete_file", "index_file")
"""Entities of which there are so many that their rows are found batch by batch, and go by their keys."""
VERSIONED: tuple[EntityName, ...] = tuple(name for name in STORED if name != "column")
"""Entities whose rows go when nobody reaches them; columns go with their table."""


def out_of_reach(entity: str) -> str:
    """A condition on a row `e`: no catalog reaches it at any snapshot that is not expired."""
    keys = dict(zip(STORED[entity].parts, STORED[entity].keys, strict=True))  # type: ignore[index]
    named = " AND ".join(
        f"m.{column} = {f'e.{keys[column]}' if column in keys else default}"
        for column, default in (("entity_id", "0"), ("sub_id", "0"), ("sub_key", "''"))
    )
    return " ".join(
        (
            "e.catalog_id IN (SELECT catalog_id FROM ducklake_reach)",
            # What has not ended is there at the latest snapshot of its own catalog: nobody has masked it.
            # Most rows are such, and need not be looked up one by one.
            "AND (e.end_snapshot IS NOT NULL",
            "OR e.catalog_id NOT IN (SELECT catalog_id FROM ducklake_reach WHERE viewer_id = catalog_id))",
            "AND NOT EXISTS (SELECT 1 FROM ducklake_reach r WHERE r.catalog_id = e.catalog_id",
            "AND r.high >= e.begin_snapshot",
            f"AND r.low < COALESCE(e.end_snapshot, {FOREVER})",
            "AND (r.viewer_id IS NULL",
            f"OR (NOT EXISTS (SELECT 1 FROM visible_mask m WHERE m.catalog_id = r.viewer_id AND m.entity = '{entity}'",  # noqa: E501, S608
            f"AND {named} AND m.row_begin = e.begin_snapshot AND m.end_snapshot <= r.oldest_snapshot)",
            "AND (e.begin_snapshot <= r.oldest_snapshot",
            "OR NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x WHERE x.catalog_id = r.viewer_id",
            "AND x.snapshot_id = e.begin_snapshot)",
            "OR EXISTS (SELECT 1 FROM visible_snapshot s WHERE s.catalog_id = r.viewer_id",
            f"AND s.snapshot_id >= e.begin_snapshot AND s.snapshot_id < COALESCE(e.end_snapshot, {FOREVER})",
            "AND NOT EXISTS (SELECT 1 FROM ducklake_expired_snapshot x WHERE x.catalog_id = r.viewer_id",
            "AND x.snapshot_id = s.snapshot_id))))))",
        )
    )


def unseen(catalog: str) -> str:
    """A condition: nobody has anything of a catalog any more, not even that itself.

    Its own lineage is found by its key, and that of others by an index that is about others alone.
    """
    return " ".join(
        (
            "(NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l",
            f"WHERE l.catalog_id = {catalog} AND l.source_catalog_id = {catalog})",
            "AND NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l",
            f"WHERE l.source_catalog_id = {catalog} AND l.source_catalog_id <> l.catalog_id))",
        )
    )


_TOLD_OTHERWISE = {
    "ducklake_catalog",
    "ducklake_catalog_lineage",
    "ducklake_reach",
    "ducklake_files_scheduled_for_deletion",
}
"""Tables that tell nothing of what a catalog that nobody sees still has."""
_OF_ITSELF = {
    "ducklake_catalog_head",
    "ducklake_expired_snapshot",
    "ducklake_snapshot_changes",
    "ducklake_snapshot_reservation",
    "ducklake_table_stats",
    "ducklake_table_column_stats",
}
"""Tables of what a catalog did and counted itself: no descendant sees any of it when it reads tables."""


def nothing_left(catalog: str) -> str:
    """A condition: no table has a row of a catalog, but for its name."""
    return _no_rows(catalog, _TOLD_OTHERWISE)


def nothing_to_see(catalog: str) -> str:
    """A condition: no table has a row of a catalog that others might see, or ask for."""
    return _no_rows(catalog, _TOLD_OTHERWISE | _OF_ITSELF)


def _no_rows(catalog: str, but_in: set[str]) -> str:
    owned = [name for name, columns in TABLES.items() if "catalog_id" in columns and name not in but_in]
    return " AND ".join(
        " ".join(("NOT EXISTS (SELECT 1 FROM", name, f"AS o WHERE o.catalog_id = {catalog})"))
        for name in owned
    )


REASON = " ".join(
    (
        "CASE WHEN NOT EXISTS (SELECT 1 FROM ducklake_catalog_lineage l",
        "WHERE l.catalog_id = e.catalog_id AND l.source_catalog_id = e.catalog_id) THEN 'catalog dropped'",
        "ELSE COALESCE((SELECT CASE WHEN c.changes_made LIKE '%merge_adjacent%'",
        "OR c.changes_made LIKE '%rewrite_delete%' OR c.changes_made LIKE '%inline_flush%'",
        "THEN 'compacted' WHEN c.changes_made LIKE '%dropped_table%' THEN 'table dropped'",
        "WHEN c.changes_made LIKE '%deleted_from_table%' OR c.changes_made LIKE '%inlined_delete%'",
        "THEN 'replaced' END",
        "FROM ducklake_snapshot_changes c WHERE c.catalog_id = e.catalog_id AND c.snapshot_id = e.end_snapshot),",  # noqa: E501
        "'snapshot expired') END",
    )
)
"""Why a row `e` of a file is out of reach."""


def drop_rows(entity: EntityName) -> str:
    """A DELETE of the rows of an entity that are out of reach, or of files by their keys."""
    if entity in FILES:
        return _drop_keys(STORED[entity].table, f"{entity}_id")
    return " ".join(("DELETE FROM", STORED[entity].table, "AS e WHERE", out_of_reach(entity)))


def drop_parts(table: str) -> str:
    """A DELETE of rows that belong to others: to files by their keys, or else to what is gone."""
    entity, key = PARTS[table]
    if entity in FILES:
        return _drop_keys(table, key)
    whole = STORED[entity].table  # type: ignore[index]
    return " ".join(
        (
            "DELETE FROM",
            table,
            "WHERE catalog_id IN (SELECT catalog_id FROM ducklake_reach) AND NOT EXISTS (SELECT 1 FROM",
            whole,
            f"AS o WHERE o.catalog_id = {table}.catalog_id AND o.{key} = {table}.{key})",
        )
    )


def _drop_keys(table: str, key: str) -> str:
    named = f"WHERE (catalog_id, {key}) IN (SELECT k.catalog_id, k.id FROM keys($keys))"  # noqa: S608
    return " ".join(("DELETE FROM", table, named))


def drop_masks(entity: EntityName) -> str:
    """A DELETE of ends of inherited rows that are gone, or that nobody sees."""
    keys = dict(zip(STORED[entity].parts, STORED[entity].keys, strict=True))
    same = " AND ".join(f"o.{key} = ducklake_inherited_end.{column}" for column, key in keys.items())
    return " ".join(
        (
            f"DELETE FROM ducklake_inherited_end WHERE entity = '{entity}' AND (NOT EXISTS (SELECT 1 FROM",  # noqa: S608
            STORED[entity].table,
            f"AS o WHERE {same} AND o.begin_snapshot = ducklake_inherited_end.row_begin)",
            f"OR {unseen('ducklake_inherited_end.catalog_id')})",
        )
    )


def masks_of_nothing(entity: EntityName) -> str:
    """A SELECT of ends of inherited rows that are nowhere: catalog, table, path, the row and its begin."""
    keys = dict(zip(STORED[entity].parts, STORED[entity].keys, strict=True))
    same = " AND ".join(f"o.{key} = m.{column}" for column, key in keys.items())
    table = "m.entity_id" if "table_id" in keys.values() else "CAST(NULL AS BIGINT)"
    return " ".join(
        (
            f"SELECT m.catalog_id, {table}, CAST(NULL AS VARCHAR), m.entity_id, m.row_begin",
            f"FROM ducklake_inherited_end m WHERE m.entity = '{entity}' AND NOT EXISTS (SELECT 1 FROM",
            STORED[entity].table,
            f"AS o WHERE {same} AND o.begin_snapshot = m.row_begin) LIMIT $most",
        )
    )
