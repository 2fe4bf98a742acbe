"""What a query on a single table reads of it: which columns, and the first rows of which order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forklake.engine.query.plain_conditions import plain_condition
from forklake.engine.query.tree import Node as TreeNode
from forklake.engine.query.tree import QueryTree
from forklake.model.ids import ColumnId
from forklake.model.sql.predicate_tree import Node
from forklake.model.table.columns import Columns
from forklake.scan.first_rows import FirstRows

_MOST = 10_000
"""How many first rows an index is asked for."""
_ONCE = ("group_expressions", "group_sets", "having", "qualify", "sample")
"""Parts of a query without which each row of the table is a row of the result."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What a query reads of a table."""

    columns: frozenset[ColumnId] | None = None
    """None if it may be all of them."""
    first: FirstRows | None = None
    condition: Node | None = None
    """All that is asked of those rows."""


def reads_of(tree: QueryTree, columns: Columns, params: Sequence[Any] | Mapping[str, Any] | None) -> Reads:
    """What a query reads, if it is a simple one."""
    if len(tree.selects) != 1:
        return Reads()
    select = tree.selects[0]
    table = select["from_table"]
    if table.get("type") != "BASE_TABLE" or table["column_name_alias"] or select is not _root(tree):
        return Reads()
    name = str(table["alias"] or table["table_name"]).lower()
    read = _columns(select, name, columns)
    first = _first(select, name, columns, params)
    if first is None:
        return Reads(read)
    condition = select["where_clause"]
    node = None if condition is None else plain_condition(condition, name, columns, params)
    if condition is not None and node is None:
        return Reads(read)
    return Reads(read, first, node)


def _root(tree: QueryTree) -> TreeNode:
    return tree.root["statements"][0]["node"]


def _columns(select: TreeNode, table: str, columns: Columns) -> frozenset[ColumnId] | None:
    known = {column.name.lower(): column.id for column in columns}
    found: set[ColumnId] = set()
    for node in _nodes(select):
        if node.get("class") in ("STAR", "POSITIONAL_REFERENCE", "SUBQUERY"):
            return None
        if node.get("class") == "COLUMN_REF":
            names = [str(name).lower() for name in node["column_names"]]
            if names == [table] and table not in known:
                # The whole row.
                return None
            # A part may be a column, or a field inside of one.
            found |= {known[name] for name in names if name in known}
    return frozenset(found)


def _nodes(value: Any) -> Iterator[TreeNode]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)


def _first(
    select: TreeNode, table: str, columns: Columns, params: Sequence[Any] | Mapping[str, Any] | None
) -> FirstRows | None:
    match select["modifiers"]:
        case [{"type": "ORDER_MODIFIER", "orders": orders}, {"type": "LIMIT_MODIFIER"} as limit]:
            pass
        case _:
            return None
    if any(select[part] for part in _ONCE) or select["from_table"]["sample"]:
        return None
    if select["aggregate_handling"] != "STANDARD_HANDLING":
        # GROUP BY ALL.
        return None
    if any(node.get("class") not in ("COLUMN_REF", "STAR") for node in select["select_list"]):
        # Some functions make one row of many, or many of one.
        return None
    counts = [
        _count(limit["limit"], params),
        0 if limit["offset"] is None else _count(limit["offset"], params),
    ]
    if None in counts or not 0 < (count := sum(each or 0 for each in counts)) <= _MOST:
        return None
    keys = [_key(order["expression"], select, table, columns) for order in orders]
    directions = {(order["type"] == "DESCENDING", order["null_order"] != "NULLS FIRST") for order in orders}
    if None in keys or len(directions) != 1:
        return None
    ((descending, nulls_last),) = directions
    return FirstRows(tuple(key for key in keys if key is not None), count, descending, nulls_last)


def _count(node: Any, params: Sequence[Any] | Mapping[str, Any] | None) -> int | None:
    match node:
        case {"type": "VALUE_CONSTANT", "value": {"is_null": False, "type": kind, "value": int() as value}}:
            is_whole = kind["id"] in ("INTEGER", "BIGINT") and kind["type_info"] is None
            return value if is_whole and value >= 0 else None
        case {"type": "VALUE_PARAMETER", "identifier": str(name)} if params is not None:
            value = params[name] if isinstance(params, Mapping) else params[int(name) - 1]
            return value if type(value) is int and value >= 0 else None
        case _:
            return None


def _key(node: Any, select: TreeNode, table: str, columns: Columns) -> ColumnId | None:
    """The column that rows are ordered by, if it is one, and no other goes by its name in the result."""
    known = {column.name.lower(): column for column in columns}
    name = _named(node, table, known)
    if name is None:
        return None
    for item in select["select_list"]:
        if item.get("class") == "STAR":
            if any(item[part] for part in ("replace_list", "rename_list", "expr")) or item["columns"]:
                return None
        elif str(item["alias"]).lower() == name and _named(item, table, known) != name:
            return None
    column = known[name]
    return None if column.children else column.id


def _named(node: Any, table: str, known: Mapping[str, object]) -> str | None:
    if node.get("class") != "COLUMN_REF":
        return None
    names = [str(name).lower() for name in node["column_names"]]
    if len(names) == 2 and names[0] == table and table not in known:
        names = names[1:]
    return names[0] if len(names) == 1 and names[0] in known else None
