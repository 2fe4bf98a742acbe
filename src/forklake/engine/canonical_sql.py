"""SQL as DuckDB writes it back, which is how DuckLake stores views and macros: `(a + 1)` for `a+1`."""

from __future__ import annotations

import json
import os
import re
import threading
from functools import lru_cache
from typing import Any

from forklake.lazy.duckdb import duckdb
from forklake.model.names import quoted

_LOCK = threading.Lock()
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_PLACES = frozenset({"query_location"})
_FOREIGN = ("->", "main.")
"""DuckDB writes lambdas in the syntax that it gives up, and a schema before functions such as `row`."""


def canonical_query(sql: str) -> str:
    """A query as DuckDB writes it; as it was, if that would not mean the same."""
    tree = _tree(sql)
    if tree is None:
        return sql
    with _LOCK:
        (row,) = _writer(os.getpid()).execute("SELECT json_deserialize_sql($tree)", {"tree": tree}).fetchall()
    written = str(row[0])
    if any(sign in written and sign not in sql for sign in _FOREIGN):
        return sql
    again = _tree(written)
    return written if again is not None and _meaning(again) == _meaning(tree) else sql


def canonical_expression(sql: str) -> str:
    """An expression as DuckDB writes it."""
    text = f"SELECT (\n{sql}\n)"
    written = canonical_query(text)
    return sql if written == text else written.removeprefix("SELECT ")


def written_name(name: str) -> str:
    """A name as DuckDB writes it: in quotes if it is a keyword of any kind, or anything but small letters."""
    return name if _PLAIN.match(name) and name not in _keywords(os.getpid()) else quoted(name)


@lru_cache(1)
def _keywords(process: int) -> frozenset[str]:
    with _LOCK:
        rows = _writer(process).execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    return frozenset(str(name) for (name,) in rows)


def _tree(sql: str) -> str | None:
    """What the parser reads, if it has a tree for it."""
    with _LOCK:
        (row,) = _writer(os.getpid()).execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    answer: Any = json.loads(row[0])
    return None if answer["error"] or len(answer["statements"]) != 1 else str(row[0])


def _meaning(tree: str) -> Any:
    """The tree without the places where its parts stand."""

    def without_places(node: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in node.items() if key not in _PLACES}

    return json.loads(tree, object_hook=without_places)


@lru_cache(1)
def _writer(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds nothing. A forked child has one of its own."""
    return duckdb.connect(":memory:", config={"threads": 1})
