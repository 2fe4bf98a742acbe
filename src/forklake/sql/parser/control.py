"""Transactions, USE, variables, CALL, CHECKPOINT and EXECUTE."""

from __future__ import annotations

from forklake.errors import InvalidSql
from forklake.model.names import quoted
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.statements import (
    Call,
    Checkpoint,
    Execute,
    Fragment,
    ObjectName,
    SetVariable,
    TransactionControl,
    Use,
)

_MAIN = ObjectName(("main",))
_SETTING = (
    "settings of DuckDB belong to the process; CALL set_option(name, value) sets options of the lake, "
    "SET VARIABLE x = 1 a value for queries"
)
_OF_SCHEMAS = ("SCHEMA", "SEARCH_PATH")


def begin(reader: Reader) -> TransactionControl:
    """BEGIN or START, whose word was read."""
    reader.one_of("TRANSACTION", "WORK")
    read_only = reader.take("READ", "ONLY")
    if not read_only and reader.word == "READ" and not reader.take("READ", "WRITE"):
        reader.next()
        raise reader.expected("ONLY or WRITE")
    return TransactionControl("begin", read_only)


def commit(reader: Reader) -> TransactionControl:
    """COMMIT or END, whose word was read."""
    reader.one_of("TRANSACTION", "WORK")
    return TransactionControl("commit")


def rollback(reader: Reader) -> TransactionControl:
    """ROLLBACK or ABORT, whose word was read."""
    reader.one_of("TRANSACTION", "WORK")
    if reader.word == "TO":
        raise reader.refuse("ROLLBACK TO", "a transaction is rolled back as a whole; there are no savepoints")
    return TransactionControl("rollback")


def use(reader: Reader) -> Use:
    """USE, whose word was read."""
    return Use(reader.object_name("the name of a catalog or a schema", 2))


def set_(reader: Reader) -> Use | SetVariable:
    """SET, whose word was read."""
    if reader.take("VARIABLE"):
        name = reader.name("the name of a variable")
        if not reader.take("="):
            if reader.word != "TO":
                raise reader.expected('"=" or TO')
            reader.next()
        return SetVariable(name, reader.expression())
    begin = reader.start
    reader.one_of("SESSION", "GLOBAL")
    if reader.one_of(*_OF_SCHEMAS) is None:
        raise reader.refuse(f"SET {reader.token}", _SETTING, begin)
    if not reader.take("=") and not reader.take("TO") and reader.kind != "string":
        raise reader.expected('"=" or TO')
    return _schema(reader)


def _schema(reader: Reader) -> Use:
    start = reader.start
    if reader.take("DEFAULT"):
        return Use(_MAIN)
    if reader.kind not in ("string", "escaped", "dollar"):
        return Use(reader.object_name("the name of a schema", 2))
    text = reader.string()
    parts = _parts(text)
    if not 1 <= len(parts) <= 2:
        raise syntax_error(reader.text, start, "one schema can be set, as in 'sales' or 'shop.sales'", text)
    return Use(ObjectName(parts, start))


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a name in a string; none if it is no name."""
    try:
        reader = Reader(text)
        parts = reader.parts()
    except InvalidSql:
        return ()
    return parts if reader.kind == "end" else ()


def reset(reader: Reader) -> Use | SetVariable:
    """RESET, whose word was read."""
    if reader.take("VARIABLE"):
        return SetVariable(reader.name("the name of a variable"), None)
    begin = reader.start
    reader.one_of("SESSION", "GLOBAL")
    if reader.one_of(*_OF_SCHEMAS) is None:
        raise reader.refuse(f"RESET {reader.token}", _SETTING, begin)
    return Use(_MAIN)


def call(reader: Reader) -> Call:
    """CALL, whose word was read."""
    start = reader.start
    names = [reader.function_name()]
    while reader.take("."):
        names.append(reader.label())
    if len(names) > 3:
        raise syntax_error(reader.text, start, f'"{".".join(names)}" is no function', names[0])
    return Call(ObjectName(tuple(names), start), reader.inside())


def show_indexes(reader: Reader) -> Call:
    """SHOW INDEXES, whose words were read: the function of that name."""
    start, table = reader.start, ""
    if reader.one_of("FROM", "IN", "ON") is not None:
        parts = reader.object_name("the name of a table").parts
        name = ".".join(map(quoted, parts[-2:]))
        table = "'" + name.replace("'", "''") + "'"
    return Call(ObjectName(("indexes",), start), Fragment(table, start))


def checkpoint(reader: Reader) -> Checkpoint:
    """CHECKPOINT, whose word was read."""
    return Checkpoint(None if reader.at_end else reader.name("the name of a catalog"))


def execute(reader: Reader) -> Execute:
    """EXECUTE, whose word was read."""
    name = reader.name("the name of a prepared statement")
    if reader.word != "(":
        return Execute(name)
    at = reader.start
    arguments = reader.inside()
    if not arguments.text:
        raise syntax_error(reader.text, at, "the brackets are empty: leave them out", "(")
    return Execute(name, arguments)


def deallocate(reader: Reader) -> Execute:
    """DEALLOCATE, whose word was read."""
    reader.take("PREPARE")
    return Execute(reader.name("the name of a prepared statement"), deallocate=True)
