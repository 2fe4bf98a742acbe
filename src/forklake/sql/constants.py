"""Values that a statement needs before it runs: written out, given as a parameter, or computed."""

from __future__ import annotations

from typing import Any

from forklake.api.sql_result import SqlResult
from forklake.errors import InvalidSql
from forklake.sql.statement import Running
from forklake.sql.statements import Fragment


def value_of(part: str | Fragment, running: Running) -> Any:
    """A string as it is; a parameter or an expression as DuckDB computes it."""
    if isinstance(part, str):
        return part
    return SqlResult(running.query(f"SELECT {part.text}")).to_rows()[0][0]


def text_of(part: str | Fragment, running: Running) -> str:
    """The same, which has to be a string."""
    value = value_of(part, running)
    if not isinstance(value, str):
        raise InvalidSql(f"{part} is no string")
    return value
