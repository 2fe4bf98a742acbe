"""SQL that is stored to be run later, read by DuckDB's own parser before it is stored. Nothing is run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from forklake.engine.sql_text import text as literal
from forklake.errors import InvalidArgument, InvalidSql
from forklake.lazy.duckdb import duckdb

_LOCK = threading.Lock()
_NO_VIEWS = frozenset({"DESC", "DESCRIBE", "SHOW", "SUMMARIZE"})
"""Queries that DuckDB before 2.0 does not take as a view."""
_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""What queries consist of, in DuckDB's own words."""


def check_query(text: str, what: str) -> None:
    """Refuse what is not exactly one query. `what` says whose SQL it is."""
    found = _statements(text, what, "a query")
    if not found:
        raise InvalidArgument(f"{what} is empty: write a query, such as SELECT 1")
    # A view takes less than what gives rows: no DESCRIBE, no PRAGMA.
    wrapped = _statements(text, what, "a query", before="CREATE VIEW v AS\n")
    if len(found) != 1 or len(wrapped) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise InvalidArgument(f"{what} holds {len(found)} statements: write one query")
    word = _first_word(text)
    if word in _NO_VIEWS:
        raise InvalidArgument(f"{what} is not a query: not every DuckDB takes {word} for one")
    _refuse_changes(text, what)
    _refuse_parameters(found[0], what)


def check_statement(text: str) -> None:
    """Refuse what DuckDB does not parse, with the place where that is."""
    try:
        with _LOCK:
            _parser(os.getpid()).extract_statements(text)
    except duckdb.Error as error:
        reason, line, column = _placed(text, str(error), "")
        where = "" if line is None else f" (line {line}, column {column})"
        raise InvalidSql(f"{reason}{where}", line, column) from None


def check_expression(text: str, what: str) -> None:
    """Refuse what is not exactly one expression."""
    if not _statements(text, what, "an expression", before="SELECT\n"):
        raise InvalidArgument(f"{what} is empty: write an expression, such as x + 1")
    _statements(text, what, "an expression", before="CREATE MACRO m() AS\n")
    # With brackets nothing but one expression is read, and without them it is certain that they match.
    found = _statements(text, what, "an expression", before="SELECT (\n", after="\n)")
    if len(found) != 1:
        raise InvalidArgument(f"{what} holds {len(found)} statements: write one expression")
    _refuse_changes(f"SELECT (\n{text}\n)", what)
    _refuse_parameters(found[0], what)


def _first_word(text: str) -> str:
    """The word that a statement begins with, after comments and brackets."""
    with _LOCK:
        tokens = duckdb.tokenize(text)
    # It counts bytes.
    starts = [start for start, kind in tokens if kind.name == "keyword"]
    return text.encode()[starts[0] :].decode().split(maxsplit=1)[0].upper() if starts else ""


def _refuse_changes(query: str, what: str) -> None:
    """Refuse a query with a part that is none. Since 2.0, DuckDB takes WITH a AS (DELETE …) and the like."""
    with _LOCK:
        (answer,) = _parser(os.getpid()).execute(f"SELECT json_serialize_sql({literal(query)})").fetchall()
    tree = json.loads(answer[0])
    others = sorted({kind for kind in _nodes(tree) if kind not in _QUERIES})
    if tree["error"] or others:
        reason = tree["error_message"] if tree["error"] else others[0].partition("_")[0]
        raise InvalidArgument(f"{what} is not a query: a part of it is {reason}, and a query changes nothing")


def _nodes(tree: Any) -> Iterator[str]:
    """The kinds of all queries in a tree."""
    pending = [tree]
    while pending:
        match pending.pop():
            case dict() as node:
                # Every query may begin with WITH.
                if "cte_map" in node:
                    yield str(node["type"])
                pending += node.values()
            case list() as nodes:
                pending += nodes
            case _:
                pass


def _refuse_parameters(statement: duckdb.Statement, what: str) -> None:
    if statement.named_parameters:
        shown = ", ".join(f"${name}" for name in sorted(statement.named_parameters))
        raise InvalidArgument(f"{what} has parameters ({shown}): nobody gives them values when it is run")


def _statements(
    text: str, what: str, kind: str, *, before: str = "", after: str = ""
) -> list[duckdb.Statement]:
    try:
        with _LOCK:
            return _parser(os.getpid()).extract_statements(before + text + after)
    except duckdb.Error as error:
        raise InvalidArgument(f"{what} is not {kind}: {_reason(text, str(error), before)}") from None


def _reason(text: str, message: str, before: str) -> str:
    """What the parser says, and where in the text that is."""
    reason, line, column = _placed(text, message, before)
    return reason if line is None else f"{reason} (line {line}, column {column})"


def _placed(text: str, message: str, before: str) -> tuple[str, int | None, int | None]:
    """What the parser says, and the line and column in the text."""
    try:
        answer = json.loads(message[message.index("{") :])
    except ValueError:
        return message.partition("\n")[0], None, None
    reason = str(answer["exception_message"]).partition("\n")[0]
    if "position" not in answer:
        return reason, None, None
    position = int(answer["position"])
    if "location" in answer:
        # DuckDB counts bytes since 2.0, and counted characters before.
        position = len((before + text).encode()[:position].decode(errors="ignore"))
    at = min(max(position - len(before), 0), len(text))
    return reason, text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


@lru_cache(1)
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds nothing. A forked child has one of its own."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET errors_as_json = true")
    return connection
