"""COPY … TO and COPY … FROM."""

from __future__ import annotations

from forklake.sql.parser.keywords import QUERIES
from forklake.sql.parser.reader import Reader
from forklake.sql.statements import CopyFrom, CopyTo, Fragment

_WITH_STRING = frozenset({"DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING"})


def copy(reader: Reader) -> CopyTo | CopyFrom:
    """COPY, whose word was read."""
    if reader.sees("FROM", "DATABASE"):
        raise reader.refuse(
            "COPY FROM DATABASE", "FORK CATALOG a AS b makes a catalog with everything of another"
        )
    if reader.word == "(":
        query = _query(reader)
        reader.expect("TO")
        return CopyTo(query, _file(reader), _options(reader))
    start = reader.start
    table = reader.object_name("the name of a table, or a query in brackets")
    named = Fragment(reader.text[start : reader.past], start)
    columns: tuple[str, ...] = ()
    listed = "*"
    if reader.word == "(":
        opened = reader.end
        columns = reader.names()
        listed = reader.text[opened : reader.past - 1]
    word = reader.one_of("TO", "FROM")
    if word is None:
        raise reader.expected("TO or FROM")
    path = _file(reader)
    if word == "FROM":
        return CopyFrom(table, path, columns, _options(reader))
    query = Fragment(f"FROM {named}" if not columns else f"SELECT {listed}\nFROM {named}", start)
    return CopyTo(query, path, _options(reader))


def _query(reader: Reader) -> Fragment:
    place = reader.place
    reader.next()
    if reader.word not in QUERIES | {"DESCRIBE", "SHOW", "SUMMARIZE"}:
        raise reader.expected("a query")
    reader.back(place)
    return reader.inside()


def _file(reader: Reader) -> str | Fragment:
    if reader.word in ("STDIN", "STDOUT", "PROGRAM"):
        raise reader.refuse(
            reader.word, "name a file; in Python, sql(…) returns rows and table.append(…) takes them"
        )
    if reader.word == "(":
        start = reader.start
        reader.skip_brackets()
        return Fragment(reader.text[start : reader.past], start)
    if reader.kind in ("word", "quoted"):
        return ".".join(reader.parts("a file"))
    return reader.string_or_parameter("a file in single quotes")


def _options(reader: Reader) -> Fragment | None:
    with_ = reader.take("WITH")
    if reader.word == "(":
        place = reader.place
        reader.next()
        if reader.kind not in ("word", "quoted"):
            raise reader.expected("the name of an option")
        reader.back(place)
        return reader.inside()
    start = reader.start
    made: list[str] = []
    while not reader.at_end:
        made.append(_option(reader))
    if not made and with_:
        raise reader.expected("options")
    return Fragment(", ".join(made), start) if made else None


def _option(reader: Reader) -> str:
    """An option as PostgreSQL writes them, without brackets."""
    word = reader.word
    if word in ("CSV", "BINARY"):
        reader.next()
        return f"FORMAT {word.lower()}"
    if word == "HEADER":
        reader.next()
        return "HEADER true"
    if word in _WITH_STRING:
        reader.next()
        reader.take("AS")
        start = reader.start
        reader.string()
        name = "NULLSTR" if word == "NULL" else word
        return f"{name} {reader.text[start : reader.past]}"
    if reader.take("PARTITION", "BY"):
        return f"PARTITION_BY {_columns(reader)}"
    if reader.take("FORCE", "QUOTE"):
        return f"FORCE_QUOTE {_columns(reader)}"
    if reader.take("FORCE", "NOT", "NULL"):
        return f"FORCE_NOT_NULL {_columns(reader)}"
    raise reader.expected("options in brackets, as in (FORMAT parquet)")


def _columns(reader: Reader) -> str:
    start = reader.start
    if reader.take("*"):
        return "*"
    reader.names()
    return reader.text[start : reader.past]
