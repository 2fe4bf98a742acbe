"""The order of rows in a file: Arrow sorts by plain columns, DuckDB by everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from forklake.data.parquet.schema import arrow_schema
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa, pc
from forklake.lazy.duckdb import duckdb
from forklake.model.entities import Column
from forklake.model.sql.functions import REFUSED
from forklake.model.table.columns import find
from forklake.model.table.layout import SortKey

_ROWS = "__forklake_rows"
"""No struct is called so: its fields would be taken for columns."""
_CONFIG = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def row_order(
    table: pa.Table, columns: tuple[Column, ...], keys: Sequence[SortKey], macros: Sequence[str] = ()
) -> pa.Array:
    """Where the rows of a table come from, in the order of the keys. Macros are statements that make them."""
    if all(_is_plain(key, columns) for key in keys):
        return _by_columns(table, [(find(columns, [key.name]), key) for key in keys])
    return _by_duckdb(table, keys, macros)


def check_order(columns: tuple[Column, ...], keys: Sequence[SortKey], macros: Sequence[str] = ()) -> None:
    """Refuse keys that rows of these columns cannot be sorted by."""
    if not all(_is_plain(key, columns) for key in keys):
        _by_duckdb(arrow_schema(columns).empty_table(), keys, macros)


def check_macro(body: str, what: str) -> None:
    """Refuse a macro that looks at more than its arguments: rows are sorted by what they are."""
    cursor = _database(os.getpid()).cursor()
    (answer,) = cursor.sql("SELECT json_serialize_sql($1)", params=[f"SELECT (\n{body}\n)"]).fetchall()
    tree = json.loads(answer[0])
    if tree["error"]:
        raise InvalidArgument(f"{what} cannot be read: {tree['error_message']}")
    for node in _nodes(tree["statements"][0]["node"]["select_list"]):
        called = str(node.get("function_name", "")).lower()
        if node.get("class") == "SUBQUERY" or called in REFUSED:
            told = REFUSED.get(called, "a query: only the row itself can be asked")
            shown = f"calls {called}," if called in REFUSED else "holds"
            raise InvalidArgument(f"rows cannot be sorted by {what}, which {shown} {told}")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    pending = [tree]
    while pending:
        match pending.pop():
            case dict() as node:
                yield node
                pending += node.values()
            case list() as nodes:
                pending += nodes
            case _:
                pass


def _is_plain(key: SortKey, columns: tuple[Column, ...]) -> bool:
    return not (key.is_expression or find(columns, [key.name]).children)


def _by_columns(table: pa.Table, sort: Sequence[tuple[Column, SortKey]]) -> pa.Array:
    keys: list[pa.ChunkedArray] = []
    orders: list[tuple[str, str]] = []
    for column, key in sort:
        values = table.column(column.name)
        if isinstance(values.type, pa.BaseExtensionType):
            values = pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
        if values.null_count:
            # Arrow has one place for the NULLs of all keys.
            orders.append((str(len(keys)), "descending" if key.nulls == "NULLS_FIRST" else "ascending"))
            keys.append(pc.is_null(values))
        orders.append((str(len(keys)), "descending" if key.direction == "DESC" else "ascending"))
        keys.append(values)
    return pc.sort_indices(pa.table(keys, [str(at) for at in range(len(keys))]), sort_keys=orders)


def _by_duckdb(table: pa.Table, keys: Sequence[SortKey], macros: Sequence[str]) -> pa.Array:
    position = "position"
    while position in table.column_names:
        position += "_"
    numbered = table.append_column(position, pa.array(range(table.num_rows), pa.int64()))
    terms = ", ".join((*(key.term for key in keys), f'"{position}"'))
    cursor = _database(os.getpid()).cursor()
    try:
        for macro in macros:
            cursor.sql(macro)
        cursor.register(_ROWS, numbered)
        sql = f'SELECT "{position}" FROM {_ROWS} ORDER BY {terms}'  # noqa: S608 - checked, and in a sandbox.
        found = cursor.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        shown = ", ".join(key.sql for key in keys)
        raise InvalidArgument(
            f"rows cannot be sorted by {shown}: {reason}; give the table another sort order, or none"
        ) from None
    finally:
        cursor.close()
    return found.column(0).combine_chunks()


@lru_cache(1)
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that reaches nothing but the rows it is given. A forked child has one of its own."""
    database = duckdb.connect(":memory:", config=dict(_CONFIG))
    database.sql("SET GLOBAL TimeZone = 'UTC'")
    database.sql("SET lock_configuration = true")
    return database
