"""CREATE MACRO: parameters with types and defaults, and one body or several."""

from __future__ import annotations

from forklake.errors import InvalidSql
from forklake.sql.parser.keywords import QUERIES, RESERVED
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.parser.values import plain
from forklake.sql.statements import CreateMacro, Fragment, MacroOverload

_Parameter = tuple[str, str | None, str | None]


def create(reader: Reader, or_replace: bool, if_not_exists: bool) -> CreateMacro:
    """CREATE MACRO, up to its name."""
    name = reader.object_name("the name of a macro")
    overloads = [_overload(reader)]
    while reader.word == ",":
        at = reader.start
        reader.next()
        overload = _overload(reader)
        if overload.is_table != overloads[0].is_table:
            raise syntax_error(
                reader.text, at, "the bodies of a macro are all expressions, or all queries", ","
            )
        overloads.append(overload)
    return CreateMacro(name, tuple(overloads), or_replace, if_not_exists)


def _overload(reader: Reader) -> MacroOverload:
    parameters = _parameters(reader)
    reader.expect("AS")
    if reader.take("TABLE"):
        return MacroOverload(parameters, _query(reader), True)
    return MacroOverload(parameters, reader.expression())


def _parameters(reader: Reader) -> tuple[_Parameter, ...]:
    reader.expect("(")
    made: list[_Parameter] = []
    while reader.word != ")":
        at = reader.start
        made.append(_parameter(reader))
        if made[-1][2] is None and len(made) > 1 and made[-2][2] is not None:
            raise syntax_error(
                reader.text, at, "a parameter without a default follows one with a default", made[-1][0]
            )
        if not reader.take(",") and reader.word != ")":
            raise reader.expected('"," or ")"')
    reader.next()
    return tuple(made)


def _parameter(reader: Reader) -> _Parameter:
    name = reader.name("the name of a parameter")
    data_type = default = None
    if reader.word not in (",", ")", ":="):
        data_type = plain(_type(reader))
    if reader.take(":="):
        default = plain(reader.expression())
    return name, data_type, default


def _type(reader: Reader) -> Fragment:
    """A type, which ends at a comma, the bracket, or the default."""
    start = reader.start
    if reader.kind not in ("word", "quoted"):
        raise reader.expected("a type")
    while reader.word not in (",", ")", ":=") and not reader.at_end:
        if reader.word in RESERVED - {"WITH"}:  # TIMESTAMP WITH TIME ZONE
            raise reader.expected('"," or ")", or ":=" and a default')
        if reader.word in ("(", "["):
            reader.skip_brackets()
        else:
            reader.next()
    return Fragment(reader.text[start : reader.past], start)


def _query(reader: Reader) -> Fragment:
    """The query of a macro; after a comma, the next body may follow instead of more of the query."""
    if reader.word not in QUERIES:
        raise reader.expected("a query")
    start = reader.start
    while True:
        reader.until(comma=True, what="a query")
        end = reader.past
        if reader.word != "," or _is_overload(reader):
            return Fragment(reader.text[start:end], start)
        reader.next()


def _is_overload(reader: Reader) -> bool:
    place = reader.place
    reader.next()
    try:
        _parameters(reader)
        return reader.take("AS", "TABLE") and reader.word in QUERIES
    except InvalidSql:
        return False
    finally:
        reader.back(place)
