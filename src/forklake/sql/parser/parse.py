"""The way into the grammar: a text becomes statements."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from forklake.sql.parser import alter, catalogs, control, copy, ddl, dml, merge, refused, tokens
from forklake.sql.parser.keywords import QUERIES
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.statements import (
    CopyFrom,
    CopyTo,
    Delete,
    Explain,
    Fragment,
    Insert,
    Merge,
    Parsed,
    Prepare,
    Query,
    Statement,
    Truncate,
    Update,
)

_QUERIES = QUERIES - {"WITH"} | {"DESCRIBE", "DESC", "SHOW", "SUMMARIZE"}
_CHANGES: dict[str, Callable[[Reader, Fragment | None], Statement]] = {
    "INSERT": dml.insert,
    "UPDATE": dml.update,
    "DELETE": dml.delete,
    "MERGE": merge.merge,
}
"""Statements that may have WITH before them."""
_OTHERS: dict[str, Callable[[Reader], Statement]] = {
    "CREATE": ddl.create,
    "DROP": ddl.drop,
    "ALTER": alter.alter,
    "COMMENT": alter.comment,
    "TRUNCATE": dml.truncate,
    "COPY": copy.copy,
    "BEGIN": control.begin,
    "START": control.begin,
    "COMMIT": control.commit,
    "END": control.commit,
    "ROLLBACK": control.rollback,
    "ABORT": control.rollback,
    "USE": control.use,
    "SET": control.set_,
    "RESET": control.reset,
    "CALL": control.call,
    "CHECKPOINT": control.checkpoint,
    "EXECUTE": control.execute,
    "DEALLOCATE": control.deallocate,
}
_PREPARED = (Query, Insert, Update, Delete, Merge, CopyTo, CopyFrom, Truncate)


def parse(text: str) -> list[Parsed]:
    """The statements of a text. What is wrong in queries and expressions, DuckDB says later."""
    reader = Reader(text)
    found: list[Parsed] = []
    while True:
        while reader.take(";"):
            pass
        if reader.at_end:
            return found
        found.append(_parsed(reader))


def split(text: str) -> list[Fragment]:
    """The statements of a text, as they were written, whatever they say."""
    reader = Reader(text)
    found: list[Fragment] = []
    while True:
        while reader.take(";"):
            pass
        if reader.at_end:
            return found
        found.append(reader.until())
        if reader.word and reader.word != ";":
            raise syntax_error(text, reader.start, f'"{reader.word}" closes no bracket', reader.word)


def _parsed(reader: Reader) -> Parsed:
    start = reader.start
    statement = _statement(reader)
    reader.expect_end()
    text, end = reader.text, reader.past
    if isinstance(statement, Prepare):
        return Parsed(statement, text[start:end], start)
    places = tokens.parameters_in(text, start, end)
    if not isinstance(statement, Query) and any(text[place] == "?" for place, _, _ in places):
        statement = _statement(Reader(_numbered(text, places, end), start))
    return Parsed(statement, text[start:end], start, frozenset(name for _, _, name in places))


def numbered(text: str) -> str:
    """A query whose parameters all say which ones they are."""
    return _numbered(text, tokens.parameters_in(text, 0, len(text)), len(text)) if "?" in text else text


def _numbered(text: str, places: list[tuple[int, int, str]], end: int) -> str:
    """A text up to the end of a statement, in which every parameter says which one it is."""
    made: list[str] = []
    done = 0
    for start, stop, name in places:
        made += [text[done:start], f"${name}"]
        done = stop
    return "".join([*made, text[done:end]])


def _statement(reader: Reader) -> Statement:
    if reader.take("SHOW", "INDEXES"):
        return control.show_indexes(reader)
    word = reader.word
    if word in _QUERIES:
        return Query(_query(reader))
    if word in _OTHERS:
        reader.next()
        return _OTHERS[word](reader)
    if word == "WITH":
        return _with(reader)
    if reader.take("MERGE", "CATALOG"):
        return catalogs.merge(reader)
    if reader.sees("UPDATE", "EXTENSIONS"):
        raise reader.refuse("UPDATE EXTENSIONS", "extensions are installed with Python's packages")
    if word in _CHANGES:
        reader.next()
        return _CHANGES[word](reader, None)
    return _rarer(reader)


def _rarer(reader: Reader) -> Statement:
    refused.check(reader)
    if reader.take("FORK", "CATALOG"):
        return catalogs.fork(reader)
    if reader.take("EXPLAIN"):
        return _explain(reader)
    if reader.take("PREPARE"):
        return _prepare(reader)
    if reader.take("FORCE", "CHECKPOINT"):
        return control.checkpoint(reader)
    words = [*_QUERIES, *_CHANGES, *_OTHERS, "WITH", "FORK", "EXPLAIN", "PREPARE"]
    close = get_close_matches(reader.word, words, 1) if reader.kind == "word" else []
    raise reader.expected(f"a statement, such as {close[0]}" if close else "a statement")


def _query(reader: Reader) -> Fragment:
    return reader.until(what="a query")


def _with(reader: Reader) -> Statement:
    """WITH before a query or before a change."""
    start, place = reader.start, reader.place
    reader.next()
    while not reader.at_end:
        if reader.word == "(":
            reader.skip_brackets()
            if reader.word in _CHANGES:
                with_ = Fragment(reader.text[start : reader.past], start)
                word = reader.word
                reader.next()
                return _CHANGES[word](reader, with_)
            if not _goes_on(reader):
                _expect_query(reader)
                break
        else:
            reader.next()
    reader.back(place)
    return Query(_query(reader))


def _expect_query(reader: Reader) -> None:
    if reader.word not in QUERIES:
        raise reader.expected("a query, INSERT, UPDATE, DELETE or MERGE INTO")


def _goes_on(reader: Reader) -> bool:
    """Whether WITH goes on after a bracket."""
    return reader.word in ("AS", "USING", ",")


def _explain(reader: Reader) -> Explain:
    analyze = reader.one_of("ANALYZE", "ANALYSE") is not None
    form: str | None = None
    if not analyze and reader.word == "(" and not _is_query(reader):
        for name, value in reader.list(lambda: _explain_option(reader)):
            if name in ("analyze", "analyse"):
                analyze = True
            elif name == "format":
                form = value
    if reader.word in ("EXPLAIN", "PREPARE"):
        raise reader.expected("a statement")
    return Explain(_statement(reader), analyze, form)


def _is_query(reader: Reader) -> bool:
    place = reader.place
    reader.next()
    found = reader.word in _QUERIES or reader.word == "WITH"
    reader.back(place)
    return found


def _explain_option(reader: Reader) -> tuple[str, str | None]:
    start = reader.start
    name = reader.label("ANALYZE or FORMAT").lower()
    value = None if reader.word in (",", ")") else reader.label_or_string().lower()
    if name not in ("analyze", "analyse", "format"):
        raise reader.refuse(f"EXPLAIN ({name})", "there are ANALYZE and FORMAT", start)
    return name, value


def _prepare(reader: Reader) -> Prepare:
    name = reader.name("the name of a prepared statement")
    if reader.word == "(":
        raise reader.refuse("types of parameters", "write casts where they stand, as in $1::BIGINT")
    reader.expect("AS")
    at = reader.start
    prepared = _parsed(reader)
    if not isinstance(prepared.statement, _PREPARED):
        raise syntax_error(
            reader.text,
            at,
            "only queries, INSERT, UPDATE, DELETE, MERGE INTO, TRUNCATE and COPY can be prepared",
        )
    return Prepare(name, prepared)
