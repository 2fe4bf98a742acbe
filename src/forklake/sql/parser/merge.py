"""MERGE INTO: a source, a condition, and any number of WHEN clauses."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from forklake.sql.parser.dml import assignments, returning, target, value
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.statements import Fragment, Merge, When

_Match = Literal["matched", "not matched", "not matched by source"]
_ALLOWED: dict[_Match, frozenset[str]] = {
    "matched": frozenset({"UPDATE", "DELETE", "DO", "ERROR"}),
    "not matched": frozenset({"INSERT", "DO", "ERROR"}),
    "not matched by source": frozenset({"UPDATE", "DELETE", "DO", "ERROR"}),
}


def merge(reader: Reader, with_: Fragment | None = None) -> Merge:
    """MERGE INTO, whose first word was read."""
    reader.expect("INTO")
    table, alias = target(reader)
    reader.expect("USING")
    source = _source(reader)
    on, using = None, ()
    if reader.take("ON"):
        on = reader.expression("WHEN", "RETURNING")
    else:
        reader.expect("USING")
        using = reader.list(lambda: reader.name("a column name"), trailing=True)
    clauses: list[When] = []
    while reader.word == "WHEN":
        at = reader.start
        reader.next()
        clauses.append(_when(reader))
        last = clauses[-1]
        if sum(one.match == last.match and one.condition is None for one in clauses) > 1:
            problem = f"there is a WHEN {last.match.upper()} without a condition already, and one is enough"
            raise syntax_error(reader.text, at, problem, "WHEN")
    if not clauses:
        raise reader.expected("WHEN MATCHED or WHEN NOT MATCHED")
    return Merge(table, source, on, tuple(clauses), alias, using, with_, returning(reader))


def _source(reader: Reader) -> Fragment:
    """What follows USING. Joins have conditions too, so that of the merge is the last one before WHEN."""
    start = reader.start
    place, end = None, start
    while not reader.at_end and reader.word != "WHEN":
        if reader.word in ("ON", "USING"):
            place, end = reader.place, reader.past
            reader.next()
        else:
            reader.until("ON", "USING", "WHEN", comma=True, what="a table or a query")
            if reader.word in (")", ","):
                break
    if place is None or place[0] == start or reader.word in (")", ","):
        raise reader.expected("ON or USING" if reader.start > start else "a table or a query")
    reader.back(place)
    return Fragment(reader.text[start:end], start)


def _when(reader: Reader) -> When:
    match: _Match = "matched"
    if reader.take("NOT"):
        match = "not matched"
    reader.expect("MATCHED")
    if match == "not matched" and reader.take("BY"):
        side = reader.one_of("SOURCE", "TARGET")
        if side is None:
            raise reader.expected("SOURCE or TARGET")
        match = "not matched by source" if side == "SOURCE" else match
    condition = reader.expression("THEN") if reader.take("AND") else None
    reader.expect("THEN")
    at, word = reader.start, reader.word
    if word not in ("UPDATE", "DELETE", "INSERT", "DO", "ERROR"):
        raise reader.expected("UPDATE, DELETE, INSERT, DO NOTHING or ERROR")
    if word not in _ALLOWED[match]:
        allowed = "INSERT" if match == "not matched" else "UPDATE, DELETE"
        raise syntax_error(
            reader.text,
            at,
            f"WHEN {match.upper()} takes {allowed}, DO NOTHING or ERROR, not {word}",
            reader.token,
        )
    reader.next()
    return replace(_action(reader, match, word), condition=condition)


def _action(reader: Reader, match: _Match, word: str) -> When:
    match word:
        case "UPDATE":
            return _update(reader, match)
        case "DELETE":
            return When(match, "delete")
        case "INSERT":
            return _insert(reader, match)
        case "DO":
            reader.expect("NOTHING")
            return When(match, "nothing")
        case _:
            return When(match, "error", message=_message(reader))


def _message(reader: Reader) -> Fragment | None:
    if reader.at_end or reader.word in ("WHEN", "RETURNING"):
        return None
    return reader.expression("WHEN", "RETURNING")


def _update(reader: Reader, match: _Match) -> When:
    if not reader.take("SET"):
        return When(match, "update", by_name=_by_name(reader))
    if reader.take("*"):
        return When(match, "update")
    return When(match, "update", assignments=assignments(reader, "WHEN", "RETURNING"))


def _by_name(reader: Reader) -> bool:
    if not reader.take("BY"):
        return False
    word = reader.one_of("NAME", "POSITION")
    if word is None:
        raise reader.expected("NAME or POSITION")
    return word == "NAME"


def _insert(reader: Reader, match: _Match) -> When:
    if reader.take("DEFAULT"):
        reader.expect("VALUES")
        return When(match, "insert", default_values=True)
    columns = reader.names() if reader.word == "(" else ()
    at = reader.start
    if columns or reader.word == "VALUES":
        reader.expect("VALUES")
        values = reader.list(lambda: value(reader), trailing=True)
        if columns and len(columns) != len(values):
            problem = f"{len(columns)} columns are named, and there are {len(values)} values"
            raise syntax_error(reader.text, at, problem, "VALUES")
        return When(match, "insert", columns=columns, values=values)
    by_name = _by_name(reader)
    reader.take("*")
    return When(match, "insert", by_name=by_name)
