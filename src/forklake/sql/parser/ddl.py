"""CREATE and DROP of schemas, tables, views and indexes."""

from __future__ import annotations

from typing import Literal

from forklake.errors import InvalidSql
from forklake.sql.parser import columns, macros, refused, tokens
from forklake.sql.parser.keywords import QUERIES
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.parser.values import options, plain
from forklake.sql.statements import (
    ColumnPath,
    CreateIndex,
    CreateSchema,
    CreateTable,
    CreateView,
    DropCatalog,
    DropObject,
    Fragment,
    ObjectName,
    Statement,
)


def create(reader: Reader) -> Statement:
    """CREATE, whose word was read."""
    begin = reader.past
    or_replace = reader.take("OR", "REPLACE")
    refused.check_created(reader)
    match reader.word:
        case "TABLE":
            reader.next()
            return _create_table(reader, or_replace)
        case "VIEW":
            reader.next()
            return _create_view(reader, or_replace)
        case "MACRO" | "FUNCTION":
            reader.next()
            return macros.create(reader, or_replace, _if_not_exists(reader, or_replace))
        case "SCHEMA":
            reader.next()
            if or_replace:
                raise syntax_error(reader.text, begin, "a schema cannot be replaced: DROP SCHEMA comes first")
            exists = _if_not_exists(reader, or_replace)
            return CreateSchema(reader.object_name("the name of a schema", 2), if_not_exists=exists)
        case "INDEX" | "UNIQUE":
            if or_replace:
                raise syntax_error(reader.text, begin, "an index cannot be replaced: DROP INDEX comes first")
            return _create_index(reader)
        case _:
            raise reader.expected("TABLE, VIEW, MACRO, SCHEMA or INDEX")


def _if_not_exists(reader: Reader, or_replace: bool) -> bool:
    at = reader.start
    if not reader.take("IF", "NOT", "EXISTS"):
        return False
    if or_replace:
        raise syntax_error(reader.text, at, "OR REPLACE and IF NOT EXISTS exclude each other", "IF")
    return True


# ---- Tables ---


def _create_table(reader: Reader, or_replace: bool) -> CreateTable:
    if_not_exists = _if_not_exists(reader, or_replace)
    name = reader.object_name("the name of a table")
    like: ObjectName | None = None
    names: tuple[str, ...] = ()
    defined: Fragment | None = None
    query: Fragment | None = None
    with_data = True
    if reader.take("LIKE"):
        like = _like(reader)
    elif reader.take("(", "LIKE"):
        like = _like(reader)
        reader.expect(")")
    elif reader.word == "(":
        names = _only_names(reader)
        if not names:
            defined = columns.definitions(reader)
    partitioned_by, sorted_by = _layout(reader)
    given = options(reader) if reader.take("WITH") else ()
    if reader.sees("ON", "COMMIT"):
        raise reader.refuse("ON COMMIT", "it is for temporary tables; rows of this one stay")
    if defined is None and like is None:
        reader.expect("AS")
        query, with_data = _query_of_table(reader)
    return CreateTable(
        name,
        columns=defined,
        names=names,
        query=query,
        with_data=with_data,
        like=like,
        partitioned_by=partitioned_by,
        sorted_by=sorted_by,
        options=given,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
    )


def _like(reader: Reader) -> ObjectName:
    name = reader.object_name("the name of a table")
    if reader.word in ("INCLUDING", "EXCLUDING"):
        raise reader.refuse(f"LIKE … {reader.word}", "LIKE takes columns, their types, defaults and NOT NULL")
    return name


def _only_names(reader: Reader) -> tuple[str, ...]:
    """Names in brackets, if there is nothing else in them: types would make definitions of them."""
    place = reader.place
    try:
        names = reader.names()
    except InvalidSql:
        names = ()
    if names and (reader.word in ("AS", "PARTITIONED", "SORTED", "WITH")):
        return names
    reader.back(place)
    return ()


def _layout(reader: Reader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """PARTITIONED BY and SORTED BY, in any order."""
    found: dict[str, tuple[str, ...]] = {}
    while reader.word in ("PARTITIONED", "SORTED"):
        if reader.word in found:
            raise reader.expected(f"{reader.word} BY only once, or the end of the statement")
        word = reader.word
        reader.next()
        reader.expect("BY")
        found[word] = keys(reader)
    return found.get("PARTITIONED", ()), found.get("SORTED", ())


def keys(reader: Reader) -> tuple[str, ...]:
    """Fields of a partition key or of a sort order, in brackets."""
    return tuple(
        plain(part)
        for part in reader.list(lambda: reader.until(comma=True, what="a column or an expression"))
    )


def _query_of_table(reader: Reader) -> tuple[Fragment, bool]:
    """A query, without the WITH DATA or WITH NO DATA at its end."""
    whole = query(reader)
    cut, with_data = tokens.without_data(whole.text)
    return Fragment(cut, whole.start), with_data


def query(reader: Reader, *stops: str) -> Fragment:
    """A query that a table or a view is made of."""
    if reader.word not in QUERIES:
        raise reader.expected("a query")
    return reader.until(*stops, what="a query")


# ---- Views, indexes, and what is dropped ---


def _create_view(reader: Reader, or_replace: bool) -> CreateView:
    if_not_exists = _if_not_exists(reader, or_replace)
    name = reader.object_name("the name of a view")
    names = reader.names() if reader.word == "(" else ()
    if reader.word == "WITH":
        raise reader.refuse("WITH (…) before AS", "a view has no options")
    reader.expect("AS")
    return CreateView(name, query(reader), names, or_replace, if_not_exists)


def _create_index(reader: Reader) -> CreateIndex:
    unique = reader.take("UNIQUE")
    reader.expect("INDEX")
    reader.take("CONCURRENTLY")
    if_not_exists = _if_not_exists(reader, False)
    name = reader.name("the name of an index")
    reader.expect("ON")
    table = reader.object_name("the name of a table")
    kind = reader.name("a kind of index").lower() if reader.take("USING") else None
    indexed = reader.list(lambda: _indexed(reader))
    include = reader.list(reader.path) if reader.take("INCLUDE") else ()
    given = options(reader) if reader.take("WITH") else ()
    if reader.word == "WHERE":
        raise reader.refuse("CREATE INDEX … WHERE", "an index covers all rows of its table")
    return CreateIndex(name, table, kind, indexed, include, given, unique, if_not_exists)


def _indexed(reader: Reader) -> ColumnPath:
    path = () if reader.word == "(" else reader.path()
    if reader.word == "(":
        raise reader.refuse(
            "an index on an expression", "an index is on columns; a table can have one with the values"
        )
    if reader.word in ("ASC", "DESC", "NULLS"):
        raise reader.refuse(f"{reader.word} in an index", "its kind says how it is sorted: leave it out")
    return path


_KINDS: dict[str, Literal["schema", "table", "view", "macro", "index"]] = {
    "SCHEMA": "schema",
    "TABLE": "table",
    "VIEW": "view",
    "MACRO": "macro",
    "FUNCTION": "macro",
    "INDEX": "index",
}


def drop(reader: Reader) -> DropObject | DropCatalog:
    """DROP, whose word was read."""
    refused.check_dropped(reader)
    if reader.take("CATALOG"):
        if_exists = reader.take("IF", "EXISTS")
        return DropCatalog(reader.catalog(), if_exists)
    word = reader.one_of(*_KINDS)
    if word is None:
        raise reader.expected("TABLE, VIEW, MACRO, SCHEMA, INDEX or CATALOG")
    kind = _KINDS[word]
    macro_table = word == "MACRO" and reader.take("TABLE")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.object_name(
        f"the name of {'an' if kind == 'index' else 'a'} {kind}", 2 if kind == "schema" else 3
    )
    table = reader.object_name("the name of a table") if kind == "index" and reader.take("ON") else None
    if reader.word == ",":
        raise reader.refuse("DROP of several at once", "write a DROP for each, with semicolons between them")
    cascade = reader.one_of("CASCADE", "RESTRICT") == "CASCADE"
    return DropObject("macro table" if macro_table else kind, name, if_exists, cascade, table)
