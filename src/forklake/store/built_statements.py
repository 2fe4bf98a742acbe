"""Statements that are built from the names of tables and columns: set-based writes, copies, adoptions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Literal

from forklake.store.row_sets import RowSet
from forklake.store.tables import TABLES

Dialect = Literal["sqlite", "duckdb", "postgresql"]

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
    "ducklake_index",
    "ducklake_index_column",
    "ducklake_index_file",
    "ducklake_index_coverage",
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
"""What a catalog has of its ancestors. Statistics are not among it: they are counted anew."""


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
    "ducklake_index_file": "index_file_id",
    "ducklake_index_coverage": "index_file_id",
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


_ARRAYS = {
    "int": "bigint[]",
    "text": "text[]",
    "uuid": "uuid[]",
    "bool": "boolean[]",
    "time": "timestamptz[]",
}
_DUCKDB_TYPES = {
    "int": "BIGINT",
    "text": "VARCHAR",
    "uuid": "UUID",
    "bool": "BOOLEAN",
    "time": "TIMESTAMPTZ",
}


@cache
def insert_text(dialect: Dialect, rows: RowSet) -> str:
    """An INSERT of a set of rows.

    SQLite takes one row after the other, by position; DuckDB all as JSON in $rows, one array for each column;
    PostgreSQL an array for each column, by its name.
    """
    start = _insert_into(rows)
    if dialect == "sqlite":
        return " ".join((start, "VALUES", _listed("?" * len(rows.columns))))
    unnested = ", ".join(f"unnest({array})" for array in _arrays(dialect, rows))
    return " ".join((start, "SELECT", unnested, *_source(dialect, rows)))


@cache
def insert_values_text(rows: RowSet) -> str:
    """An INSERT before rows that are written out as SQL, for DuckDB."""
    return _insert_into(rows) + " VALUES "


@cache
def update_text(dialect: Dialect, rows: RowSet) -> str:
    """An UPDATE of a set of rows that are there.

    SQLite takes the values of one row and then its keys, by position; DuckDB rows that are written out as SQL
    in $rows; PostgreSQL an array for each column, by its name.
    """
    if dialect == "sqlite":
        values = ", ".join(f"{column} = ?" for column in rows.values)
        return " ".join(("UPDATE", rows.table, "SET", values, "WHERE", _all_given(rows.keys)))
    arrays = ", ".join(_arrays(dialect, rows))
    source = "(VALUES $rows)" if dialect == "duckdb" else f"unnest({arrays})"
    values = ", ".join(f"{column} = n.{column}" for column in rows.values)
    same = " AND ".join(f"e.{key} = n.{key}" for key in rows.keys)
    named = f"n{_listed(rows.columns)}"
    return " ".join(("UPDATE", rows.table, "AS e SET", values, "FROM", source, "AS", named, "WHERE", same))


@cache
def end_text(dialect: Dialect, rows: RowSet) -> str:
    """An UPDATE that ends live rows of one catalog.

    SQLite takes the end, the catalog and the keys of one row, by position; the others $end, $catalog, and the
    keys as `insert_text` has them.
    """
    if dialect == "sqlite":
        live = "SET end_snapshot = ? WHERE catalog_id = ? AND end_snapshot IS NULL AND"
        return " ".join(("UPDATE", rows.table, live, _all_given(rows.keys)))
    arrays = zip(rows.keys, _arrays(dialect, rows), strict=True)
    unnested = ", ".join(f"unnest({array}) AS {key}" for key, array in arrays)
    ended = " ".join(("(SELECT", unnested, *_source(dialect, rows), ") AS ended"))
    same = " AND ".join(f"e.{key} = ended.{key}" for key in rows.keys)
    live = "WHERE e.end_snapshot IS NULL AND e.catalog_id = $catalog AND"
    return " ".join(("UPDATE", rows.table, "AS e SET end_snapshot = $end FROM", ended, live, same))


def _insert_into(rows: RowSet) -> str:
    return " ".join(("INSERT INTO", rows.table, _listed(rows.columns)))


def _all_given(columns: Sequence[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns)


def _arrays(dialect: Dialect, rows: RowSet) -> list[str]:
    """The values of each column."""
    if dialect == "duckdb":
        return [f"r.{column}" for column in rows.columns]
    types = TABLES[rows.table]
    return [f"${column}::{_ARRAYS[types[column]]}" for column in rows.columns]


def _source(dialect: Dialect, rows: RowSet) -> tuple[str, ...]:
    """What the arrays are read from; PostgreSQL has them as parameters."""
    if dialect != "duckdb":
        return ()
    shape = json.dumps({column: [_DUCKDB_TYPES[TABLES[rows.table][column]]] for column in rows.columns})
    return ("FROM (SELECT from_json($rows,", f"'{shape}'", ") AS r)")


def _visible(table: str) -> str:
    """The view that shows each catalog its own rows of a table and those that it inherits."""
    return "visible_" + table.removeprefix("ducklake_")


def _listed(parts: Sequence[str]) -> str:
    return "(" + ", ".join(parts) + ")"
