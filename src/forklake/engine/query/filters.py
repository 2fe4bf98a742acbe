"""Which rows of each table a query can use at all, as DuckDB's optimiser finds out.

The query is explained over empty stand-ins of its tables, whose columns have names that tell the table. What
the optimiser pushes down to a scan, through joins, views and sub-queries, may prune the files of that table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forklake.errors import ForklakeError
from forklake.lazy.duckdb import duckdb
from forklake.model.entities import Column
from forklake.model.sql.predicate import Predicate, parse_predicate
from forklake.model.sql.predicate_tree import Node, all_of, any_of
from forklake.model.table.columns import Columns


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
