"""Which rows of each table a query can use at all, as DuckDB's optimiser finds out.

The query is explained over empty stand-ins of its tables, whose columns have names that tell the table. What
the optimiser pushes down to a scan, through joins, views and sub-queries, may prune the files of that table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forklake.engine.query.plain_conditions import plain_condition
from forklake.engine.query.tree import NOWHERE, QueryTree, expression_sql
from forklake.errors import ForklakeError
from forklake.lazy.duckdb import duckdb
from forklake.model.entities import Column
from forklake.model.sql.predicate import Predicate, parse_predicate
from forklake.model.sql.predicate_tree import Node, all_of, any_of
from forklake.model.table.columns import Columns

_KINDS: Mapping[type, str] = {int: "BIGINT", str: "VARCHAR", bool: "BOOLEAN"}
"""Values whose form in a tree is certain."""


def stand_in_column(prefix: str, column: Column) -> str:
    """The name of a column in the stand-in of its table."""
    return f"{prefix}c{column.id}"


def pushed_filters(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    params: Sequence[Any] | Mapping[str, Any] | None,
    tables: Mapping[str, Columns],
) -> dict[str, Predicate]:
    """For tables by the prefix of their stand-in: which rows the query can use, where that is some only."""
    try:
        cursor = connection.execute(f"EXPLAIN (FORMAT json) {sql}", *(() if not params else (params,)))
        plan = json.loads(cursor.fetchall()[0][1])
    except (duckdb.Error, ValueError, IndexError, TypeError):
        # It is run next, and says better what is wrong; or there is nothing to learn.
        return {}
    found: dict[str, list[Node]] = {}
    for scan in _scans(plan):
        named = " ".join(str(part) for part in scan.values())
        prefix = next((prefix for prefix in tables if f"{prefix}c" in named), None)
        if prefix is not None:
            found.setdefault(prefix, []).append(_node(scan.get("Filters"), prefix, tables[prefix]))
        elif not scan.get("Projections"):
            # Of a scan without any column nobody can tell whose it is.
            return {}
    # A table that is read twice is read for both.
    return {prefix: _predicate(any_of(nodes)) for prefix, nodes in found.items()}


def own_filter(
    connection: duckdb.DuckDBPyConnection,
    tree: QueryTree,
    params: Sequence[Any] | Mapping[str, Any] | None,
    columns: Columns,
) -> Predicate | None:
    """The condition of a query on one table, which needs no optimiser; None if it takes more to know it."""
    if len(tree.selects) != 1 or tree.selects[0]["from_table"].get("type") != "BASE_TABLE":
        return None
    condition = tree.selects[0]["where_clause"]
    if condition is None:
        return None
    table = tree.selects[0]["from_table"]
    name = str(table["alias"] or table["table_name"]).lower()
    try:
        plain = plain_condition(condition, name, columns, params)
        if plain is not None:
            return _predicate(plain)
        text = expression_sql(connection, _unqualified(condition, {name}, columns, params))
        return _predicate(parse_predicate(text, columns).tree)
    except (ForklakeError, KeyError):
        return None


def _unqualified(
    node: Any, tables: set[str], columns: Columns, params: Sequence[Any] | Mapping[str, Any] | None
) -> Any:
    """A condition whose columns are named without their table, and with the values of parameters."""
    if isinstance(node, list):
        return [_unqualified(child, tables, columns, params) for child in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "COLUMN_REF":
        names = node["column_names"]
        is_column = any(column.name.lower() == names[0].lower() for column in columns)
        if len(names) > 1 and names[0].lower() in tables and not is_column:
            return {**node, "column_names": names[1:]}
        return node
    if node.get("type") == "VALUE_PARAMETER":
        return _constant(params, node["identifier"])
    return {key: _unqualified(child, tables, columns, params) for key, child in node.items()}


def _constant(params: Sequence[Any] | Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    if params is None:
        raise KeyError(name)
    value = params[name] if isinstance(params, Mapping) else params[int(name) - 1]
    kind = _KINDS.get(type(value))
    if kind is None or (kind == "BIGINT" and not -(2**63) <= value < 2**63):
        raise KeyError(name)
    constant = {"type": {"id": kind, "type_info": None}, "is_null": False, "value": value}
    node = {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": NOWHERE}
    return {**node, "value": constant}


def _predicate(node: Node) -> Predicate:
    return Predicate("", node, frozenset())


def _scans(plan: Any) -> Iterator[dict[str, Any]]:
    for node in plan if isinstance(plan, list) else [plan]:
        info = node.get("extra_info", {})
        if node.get("name", "").strip() == "ARROW_SCAN":
            yield {key: info[key] for key in ("Filters", "Projections") if key in info}
        yield from _scans(node.get("children", []))


def _node(filters: Any, prefix: str, columns: Columns) -> Node:
    known = tuple(replace(column, name=stand_in_column(prefix, column)) for column in columns)
    listed = [filters] if isinstance(filters, str) else list(filters or ())
    parts: list[Node] = []
    for text in listed:
        try:
            parts.append(parse_predicate(str(text).removeprefix("optional: "), known).tree)
        except ForklakeError:
            # A filter that cannot be understood prunes nothing.
            continue
    return all_of(parts)
