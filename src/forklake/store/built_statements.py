"""Statements that are built from the names of tables and columns: set-based writes, copies, adoptions."""

from __future__ import annotations

from collections.abc import Sequence

from forklake.store.tables import TABLES

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
    source = _visible(table)
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
    source = _visible(table)
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


RETURNED = {
    "ducklake_data_file": "data_file_id",
    "ducklake_file_column_stats": "data_file_id",
    "ducklake_file_variant_stats": "data_file_id",
    "ducklake_file_partition_value": "data_file_id",
    "ducklake_inlined_file": "data_file_id",
    "ducklake_delete_file": "delete_file_id",
}
"""What is stored again of a file that counts again, and by which number it is found."""


def return_rows(table: str) -> str:
    """An INSERT of rows that a catalog sees, its past included, as rows of its own from now on.

    Rows that come back are new in the change feed, whenever they were inserted first. Parameters: $catalog,
    $files with the old id, the new one and that of the data file, $snapshot.
    """
    key = RETURNED[table]
    written = {**_ON_ADOPTION, "data_file_id": "k.data_file_id", key: "k.new_id"}
    columns = [column for column in TABLES[table] if column != "catalog_id"]
    values = [written.get(column, f"v.{column}") for column in columns]
    source = table.replace("ducklake_", "visible_")
    return " ".join(
        (
            "INSERT INTO",
            table,
            _listed(["catalog_id", *columns]),
            "SELECT",
            ", ".join(["CAST($catalog AS BIGINT)", *values]),
            "FROM copies($files) JOIN",
            source,
            f"AS v ON v.catalog_id = $catalog AND v.{key} = k.old_id",
        )
    )


def not_masked(entity: str, *, of: str, among: str | None, as_array: bool) -> str:
    """A condition on a file: no catalog that $catalog reads of has ended it by $at.

    A catalog never has a file twice, so its id is enough. The set of masks is made once, and only if there is
    a row to ask it for. `among` names a CTE whose files are all that matter: their ids are an array for
    PostgreSQL, which looks them up in an index one by one.
    """
    mask = f"m.catalog_id = $catalog AND m.entity = '{entity}' AND m.end_snapshot <= $at"
    if among is not None:
        ids = " ".join(("(SELECT data_file_id FROM", among, ")"))
        mask += f" AND m.entity_id = ANY (ARRAY{ids})" if as_array else f" AND m.entity_id IN {ids}"
    return " ".join(
        (
            f"{of}{entity}_id NOT IN (SELECT m.entity_id FROM",
            "visible_mask",
            f"AS m WHERE {mask})",
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


def _visible(table: str) -> str:
    """The view that shows each catalog its own rows of a table and those that it inherits."""
    return "visible_" + table.removeprefix("ducklake_")


def _listed(parts: Sequence[str]) -> str:
    return "(" + ", ".join(parts) + ")"


def _check(table: str, columns: tuple[str, ...]) -> None:
    # These texts are built from names; only names that stand above can get into them.
    unknown = set(columns) - TABLES[table].keys()
    if unknown:
        raise KeyError(f"{table} has no columns {sorted(unknown)}")
