"""Conditions as people give them, read and checked before anything is planned."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from forklake.engine.local import Engine
from forklake.errors import InvalidPredicate
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate, parse_predicate
from forklake.model.table.columns import Columns
from forklake.model.types.data_types import to_sql

_TRUTH = ("BOOLEAN", "NULL", '"NULL"')
_MOST_KNOWN = 1024
_known: dict[str, str] = {}
"""What DuckDB said; it depends on nothing but the text and the types in it."""


def condition_of(engine: Engine, text: str | None, columns: Columns) -> Predicate | None:
    """A condition, or None; refused if it is neither TRUE nor FALSE nor NULL."""
    if text is None:
        return None
    predicate = parse_predicate(text, columns)
    if not predicate.is_truth:
        _ask(engine, predicate, columns)
    return predicate


def _ask(engine: Engine, predicate: Predicate, columns: Columns) -> None:
    """DuckDB would take a number for a condition; here it says what type comes of it, and reads nothing."""
    nulls = [
        f"CAST(NULL AS {to_sql(column.data_type)}) AS {quoted(column.name)}"
        for column in columns
        if column.name in predicate.columns
    ]
    sql = f"DESCRIBE SELECT {predicate.sql} AS v FROM (SELECT {', '.join(nulls or ['1'])})"
    type = _known.get(sql)
    if type is None:
        with naming(predicate):
            type = engine.table(sql, {}).column("column_type")[0].as_py()
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[sql] = type
    if type not in _TRUTH:
        raise InvalidPredicate(
            f"the predicate {predicate.text[:80]!r} is no condition, it gives {type}: "
            "write a comparison, such as id = 7"
        )


@contextmanager
def naming(predicate: Predicate | None) -> Generator[None]:
    """Errors of the block name the condition that they come from."""
    try:
        yield
    except InvalidPredicate as error:
        if predicate is None or not predicate.text or repr(predicate.text[:80]) in str(error):
            raise
        raise InvalidPredicate(f"the predicate {predicate.text[:80]!r} cannot be used: {error}") from error
