"""SQL that is stored to be run later, read by DuckDB's own parser before it is stored. Nothing is run."""

from __future__ import annotations

import json
import os
import threading
from functools import lru_cache

from forklake.errors import InvalidArgument
from forklake.lazy.duckdb import duckdb

_LOCK = threading.Lock()


def check_query(text: str, what: str) -> None:
    """Refuse what is not exactly one query. `what` says whose SQL it is."""
    found = _statements(text, what, "a query")
    if not found:
        raise InvalidArgument(f"{what} is empty: write a query, such as SELECT 1")
    # A view takes less than what gives rows: no DESCRIBE, no PRAGMA.
    wrapped = _statements(text, what, "a query", before="CREATE VIEW v AS\n")
    if len(found) != 1 or len(wrapped) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise InvalidArgument(f"{what} holds {len(found)} statements: write one query")
    _refuse_parameters(found[0], what)


def check_expression(text: str, what: str) -> None:
    """Refuse what is not exactly one expression."""
    if not _statements(text, what, "an expression", before="SELECT\n"):
        raise InvalidArgument(f"{what} is empty: write an expression, such as x + 1")
    _statements(text, what, "an expression", before="CREATE MACRO m() AS\n")
    # With brackets nothing but one expression is read, and without them it is certain that they match.
    found = _statements(text, what, "an expression", before="SELECT (\n", after="\n)")
    if len(found) != 1:
        raise InvalidArgument(f"{what} holds {len(found)} statements: write one expression")
    _refuse_parameters(found[0], what)


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
        raise InvalidArgument(f"{what} is not {kind}: {_reason(text, str(error), len(before))}") from None


def _reason(text: str, message: str, before: int) -> str:
    """What the parser says, and where in the text that is."""
    try:
        told = json.loads(message[message.index("{") :])
    except ValueError:
        return message.partition("\n")[0]
    reason = str(told["exception_message"]).partition("\n")[0]
    if "position" not in told:
        return reason
    at = min(max(int(told["position"]) - before, 0), len(text))
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return f"{reason} (line {line}, column {column})"


@lru_cache(1)
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds nothing. A forked child has one of its own."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET errors_as_json = true")
    return connection
