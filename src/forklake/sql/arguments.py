"""Arguments of table functions: they are values before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forklake.data.storage.storage import Storage
from forklake.engine.check_sql import check_statement
from forklake.engine.query.errors import refused
from forklake.engine.query.run import Parameters, TimeLimit, watched
from forklake.engine.query.tree import Node, QueryTree
from forklake.engine.query.workbench import Workbench
from forklake.engine.sql_text import text as literal
from forklake.errors import InvalidSql
from forklake.model.time_travel import AsOf
from forklake.sql.access import Access


def evaluate(
    workbench: Workbench,
    storage: Storage,
    access: Access,
    sql: str,
    used: Callable[[str], Parameters],
    limit: TimeLimit | None,
) -> Any:
    """The value of a SELECT of one expression, which reads nothing."""
    connection = workbench.connection
    with refused(storage):
        tree = QueryTree.read(connection, sql)
        if tree is None:
            check_statement(sql)
        if tree is None or tree.tables or tree.functions or tree.shows or len(tree.selects) > 1:
            raise InvalidSql("a value is wanted here, without a query: pass it as a parameter")
        access.check_calls(tree.calls)
        params = used(sql)
        with watched(connection, storage, (), limit):
            row = connection.execute(sql, *(() if not params else (params,))).fetchone()
    return None if row is None else row[0]


def constant(workbench: Workbench, value: Any) -> Node:
    """Strings as a tree has them."""
    one = literal(value) if isinstance(value, str) else f"[{', '.join(map(literal, value))}]"
    tree = QueryTree.read(workbench.connection, f"SELECT {one}")
    if tree is None:
        raise AssertionError("a constant has a tree")
    return tree.selects[0]["select_list"][0]


def named_argument(node: Node) -> tuple[str | None, Node]:
    """The name of an argument, if it has one: `end => 3`, `end := 3` or `end = 3`."""
    if node.get("alias"):
        return str(node["alias"]), node
    if node.get("type") == "COMPARE_EQUAL" and node["left"].get("class") == "COLUMN_REF":
        return str(node["left"]["column_names"][-1]), node["right"]
    return None, node


def has_column(node: Any) -> bool:
    """Whether an expression names a column, or a parameter of a macro."""
    if isinstance(node, list):
        return any(map(has_column, node))
    if not isinstance(node, dict):
        return False
    return node.get("class") == "COLUMN_REF" or any(map(has_column, node.values()))


def time_travel(unit: str, value: Any) -> AsOf:
    """What AT says: the id of a snapshot, or a time."""
    if unit == "VERSION":
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidSql(f"AT (VERSION => …) takes the id of a snapshot, not {value!r}")
        return value
    if unit == "TIMESTAMP":
        return value
    raise InvalidSql(f"AT takes VERSION or TIMESTAMP, not {unit}")
