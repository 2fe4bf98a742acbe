"""INSERT, UPDATE, DELETE and TRUNCATE."""

from __future__ import annotations

from forklake.sql.parser import tokens
from forklake.sql.parser.keywords import NO_NAMES, QUERIES
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.statements import (
    Assignment,
    ColumnPath,
    Delete,
    Fragment,
    Insert,
    ObjectName,
    Truncate,
    Update,
)

_ONLY_QUERIES = QUERIES - {"VALUES"} | {"DESCRIBE", "SHOW", "SUMMARIZE"}
"""Words after a bracket that are never the name of a column."""
_KEYLESS = (
    "rows have no enforced key; MERGE INTO … WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT does that"
)


def target(reader: Reader) -> tuple[ObjectName, str | None]:
    """A table that is changed, and its alias."""
    reader.take("ONLY")
    table = reader.object_name("the name of a table")
    if reader.take("AS"):
        return table, reader.name("an alias")
    if reader.kind == "quoted" or (reader.kind == "word" and reader.word not in NO_NAMES | {"SET"}):
        return table, reader.name("an alias")
    return table, None


def returning(reader: Reader) -> Fragment | None:
    """RETURNING, at the end of a statement."""
    return reader.until(what="expressions") if reader.take("RETURNING") else None


def insert(reader: Reader, with_: Fragment | None = None) -> Insert:
    """INSERT, whose word was read."""
    if reader.word == "OR":
        at = reader.start
        reader.next()
        raise reader.refuse(f"INSERT OR {reader.token.upper()}", _KEYLESS, at)
    reader.expect("INTO")
    table = reader.object_name("the name of a table")
    alias = reader.name("an alias") if reader.take("AS") else None
    by_name = _by_name(reader)
    if reader.take("DEFAULT", "VALUES"):
        return Insert(table, None, alias=alias, by_name=by_name, returning=returning(reader))
    columns = _columns(reader) if reader.word == "(" and not _is_query(reader) else ()
    if reader.word == "OVERRIDING":
        raise reader.refuse("OVERRIDING", "there are no generated columns: leave it out")
    query = _inserted(reader)
    places = _default_places(query) if "default" in query.text.lower() else ()
    if with_ is not None:
        query, moved = _joined(with_, query)
        places = tuple((start + moved, end + moved, column) for start, end, column in places)
    return Insert(table, query, columns, by_name, places, alias, returning(reader))


def _by_name(reader: Reader) -> bool:
    if reader.take("BY", "NAME"):
        return True
    if reader.word == "BY" and not reader.take("BY", "POSITION"):
        reader.next()
        raise reader.expected("NAME or POSITION")
    return False


def _is_query(reader: Reader) -> bool:
    """Whether what is in brackets is a query rather than the names of columns."""
    place = reader.place
    reader.next()
    found = reader.word in _ONLY_QUERIES or reader.sees("VALUES", "(")
    reader.back(place)
    return found


def _columns(reader: Reader) -> tuple[str, ...]:
    return reader.list(lambda: _column(reader))


def _column(reader: Reader) -> str:
    name = reader.name("a column name")
    if reader.word in (".", "["):
        raise reader.refuse("a field of a column", f'insert all of "{name}" as a struct')
    return name


def _inserted(reader: Reader) -> Fragment:
    """The query, up to ON CONFLICT or RETURNING."""
    if reader.word not in QUERIES:
        raise reader.expected("VALUES, a query or DEFAULT VALUES")
    start = reader.start
    while True:
        reader.until("RETURNING", "ON", what="a query")
        end = reader.past
        if reader.word != "ON":
            if reader.word not in ("RETURNING", "") and not reader.at_end:
                reader.expect_end()
            return Fragment(reader.text[start:end], start)
        at = reader.start
        if reader.take("ON", "CONFLICT") and reader.word in ("DO", "(", "ON"):
            raise reader.refuse("ON CONFLICT", _KEYLESS, at)
        if reader.start == at:
            reader.next()


def _joined(with_: Fragment, query: Fragment) -> tuple[Fragment, int]:
    """WITH and the query after INSERT as one query, with everything where it was written."""
    moved = query.start - with_.start
    between = " " * (moved - len(with_.text))
    first, text = with_.text, query.text
    reader = Reader(text)
    if reader.take("WITH"):
        # One WITH has the names of both.
        text = ",   " + text[4:]
        if reader.word == "RECURSIVE":
            text = text[: reader.start] + " " * len("RECURSIVE") + text[reader.end :]
            if not Reader(first, 4).take("RECURSIVE"):
                first, moved = f"WITH RECURSIVE{first[4:]}", moved + len(" RECURSIVE")
    return Fragment(first + between + text, with_.start), moved


def _default_places(query: Fragment) -> tuple[tuple[int, int, int], ...]:
    """Where rows of VALUES have DEFAULT instead of an expression."""
    text = query.text
    reader = Reader(text)
    places: list[tuple[int, int, int]] = []
    if not reader.take("VALUES"):
        return ()
    while reader.word == "(":
        end = tokens.closing(text, reader.start, reader.limit)
        _find_defaults(text, reader.end, end, places)
        reader.back((end + 1, end + 1))
        if not reader.take(","):
            break
    return tuple(places)


def _find_defaults(text: str, start: int, end: int, places: list[tuple[int, int, int]]) -> None:
    pattern = tokens.stops_at(frozenset({"DEFAULT"}), True)
    column = 0
    while True:
        for found in pattern.finditer(text, start, end):
            at = found.start()
            sign = text[at]
            if sign == ",":
                column += 1
            elif sign in "dD" and not tokens.is_label(text, start, at):
                places.append((at, found.end(), column))
            elif sign in "([{" and found.end() - at == 1:
                start = tokens.closing(text, at, end) + 1
                break
            elif sign == "/" and tokens.is_unfinished(text, found):
                start = tokens.comment_end(text, at, end)
                break
        else:
            return


def assignments(reader: Reader, *stops: str) -> tuple[Assignment, ...]:
    """`a = 1, (b, c) = (2, 3)`; a comma may follow the last one."""
    made: list[Assignment] = []
    while True:
        made += _assignment(reader, stops)
        if not reader.take(",") or reader.at_end or reader.word in stops:
            return tuple(made)


def _assignment(reader: Reader, stops: tuple[str, ...]) -> list[Assignment]:
    if reader.word == "(":
        start = reader.start
        columns = reader.list(lambda: _assigned(reader))
        reader.expect("=")
        return _several(reader, start, columns, stops)
    path = _assigned(reader)
    reader.expect("=")
    return [Assignment(path, value(reader, *stops))]


def _assigned(reader: Reader) -> ColumnPath:
    at = reader.start
    path = reader.path()
    if reader.word == "[":
        raise reader.refuse("SET of an element", "set the whole list: l = list_transform(l, …)", at)
    return path


def value(reader: Reader, *stops: str) -> Fragment | None:
    """An expression, or None for DEFAULT."""
    place = reader.place
    if reader.take("DEFAULT"):
        if _ends(reader, stops):
            return None
        reader.back(place)
    return reader.expression(*stops)


def _ends(reader: Reader, stops: tuple[str, ...]) -> bool:
    return reader.at_end or reader.word in (",", ")") or reader.word in stops


def _several(
    reader: Reader, start: int, columns: tuple[ColumnPath, ...], stops: tuple[str, ...]
) -> list[Assignment]:
    """Values for several columns: one each, or one for all of them."""
    place = reader.place
    is_row = reader.take("ROW")
    if reader.word == "(" and _is_query(reader):
        if len(columns) > 1 and not is_row:
            instead = "read from it: UPDATE t SET a = s.a, b = s.b FROM (SELECT …) AS s"
            raise reader.refuse("SET (a, b) = (SELECT …)", instead, start)
    elif reader.word == "(":
        values = reader.list(lambda: value(reader))
        if _ends(reader, stops):
            if len(values) != len(columns):
                problem = f"{len(columns)} columns are set, and there are {len(values)} values"
                raise syntax_error(reader.text, start, problem, "(")
            return [Assignment(path, one) for path, one in zip(columns, values, strict=True)]
    reader.back(place)
    shared = value(reader, *stops)
    return [Assignment(path, shared) for path in columns]


def update(reader: Reader, with_: Fragment | None = None) -> Update:
    """UPDATE, whose word was read."""
    table, alias = target(reader)
    reader.expect("SET")
    made = assignments(reader, "FROM", "WHERE", "RETURNING")
    source = reader.until("WHERE", "RETURNING", what="a table") if reader.take("FROM") else None
    where = reader.expression("RETURNING") if reader.take("WHERE") else None
    _refuse_limit(reader)
    return Update(table, made, alias, source, where, with_, returning(reader))


def delete(reader: Reader, with_: Fragment | None = None) -> Delete:
    """DELETE, whose word was read."""
    reader.expect("FROM")
    table, alias = target(reader)
    source = reader.until("WHERE", "RETURNING", what="a table") if reader.take("USING") else None
    where = reader.expression("RETURNING") if reader.take("WHERE") else None
    _refuse_limit(reader)
    return Delete(table, alias, source, where, with_, returning(reader))


def _refuse_limit(reader: Reader) -> None:
    if reader.word in ("ORDER", "LIMIT"):
        raise reader.refuse(
            f"{reader.word} here",
            "choose rows by the column rowid: WHERE rowid IN (SELECT rowid FROM t … LIMIT 10)",
        )


def truncate(reader: Reader) -> Truncate:
    """TRUNCATE, whose word was read."""
    reader.take("TABLE")
    table = reader.object_name("the name of a table")
    reader.one_of("CASCADE", "RESTRICT")
    if reader.word == ",":
        raise reader.refuse("TRUNCATE of several tables", "write a TRUNCATE for each, in one transaction")
    return Truncate(table)
