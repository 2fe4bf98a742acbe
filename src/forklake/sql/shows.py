"""SHOW and DESCRIBE: what there is, and the columns of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forklake.engine.query.tree import Node, TableRef
from forklake.errors import InvalidSql, SchemaNotFound
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.time_travel import AsOf
from forklake.sql.described import described
from forklake.sql.names import Names

_LISTINGS = {
    "tables": "show_tables",
    "schemas": "show_schemas",
    "databases": "show_databases",
    "": "show_all_tables",
    "__show_tables_expanded": "show_all_tables",
}
"""What SHOW is followed by, and the function that lists it."""


def shown(
    node: Node,
    names: Names,
    call: Callable[[Sequence[str], Sequence[Any], dict[str, Any]], pa.Table | None],
    as_of: Callable[[TableRef], AsOf | None],
) -> pa.Table | None:
    """The rows of SHOW or DESCRIBE; None if they are DuckDB's to find, as of SUMMARIZE and of queries."""
    if node.get("query") is not None:
        return _described(node, names, as_of)
    if node["show_type"] == "SHOW_FROM":
        return _tables_of(node, names)
    what = str(node["table_name"]).strip('"').lower()
    rows = call((_LISTINGS[what],), (), {}) if what in _LISTINGS else None
    if rows is None:
        if node["show_type"] == "SHOW_UNQUALIFIED" and names.relation((what,)) is None:
            raise InvalidSql(
                f"SHOW {what.upper()} is not supported: "
                "SHOW TABLES, SHOW ALL TABLES, SHOW SCHEMAS and SHOW DATABASES are"
            )
        raise names.unknown((what,))
    return rows


def replace_show(node: Node, table: str) -> None:
    """Let a table stand for what SHOW or DESCRIBE returns."""
    place, alias = node["query_location"], node["alias"]
    node.clear()
    node.update(
        type="BASE_TABLE", alias=alias, sample=None, query_location=place, schema_name="",
        table_name=table, column_name_alias=[], catalog_name="", at_clause=None,
    )  # fmt: skip


def _tables_of(node: Node, names: Names) -> pa.Table:
    """SHOW TABLES FROM a schema, or a catalog, of which it lists the schema `main`."""
    parts = tuple(filter(None, (node["catalog_name"], node["schema_name"])))
    for catalog, schema, _ in names.places((*parts, "")):
        draft = names.draft(catalog)
        found = None if draft is None else draft.find_schema(schema)
        if draft is not None and found is not None:
            listed = [one.name for one in draft.tables() if one.schema == found.name]
            listed += [view.name for view in draft.views() if view.schema_id == found.id]
            return pa.table({"name": pa.array(sorted(listed), pa.string())})
    raise SchemaNotFound(f'there is no schema "{".".join(parts)}": SHOW SCHEMAS lists what there is')


def _described(node: Node, names: Names, as_of: Callable[[TableRef], AsOf | None]) -> pa.Table | None:
    """What DESCRIBE says of a table, which DuckDB does not know of a view."""
    select = node["query"]
    source = select.get("from_table") or {}
    if node["show_type"] != "DESCRIBE" or source.get("type") != "BASE_TABLE" or not _is_all_of_it(select):
        return None
    ref = TableRef(source)
    found = names.relation(ref.parts, as_of(ref))
    if found is None or not isinstance(found.item, Table):
        return None
    return described(found.item.columns)


def _is_all_of_it(select: Node) -> bool:
    """Whether a query is a table with all of its columns, under their names."""
    if (
        select["cte_map"]["map"]
        or select["from_table"]["column_name_alias"]
        or len(select["select_list"]) != 1
    ):
        return False
    (star,) = select["select_list"]
    changes = ("exclude_list", "replace_list", "rename_list", "qualified_exclude_list", "columns", "expr")
    return star["class"] == "STAR" and not any(star.get(key) for key in changes)
