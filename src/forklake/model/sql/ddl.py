"""Column definitions: what a new column is called, holds and starts with. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal as Number
from functools import lru_cache
from numbers import Integral, Real
from typing import Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from forklake.errors import DuplicateColumn, InvalidSchemaChange, UnknownType
from forklake.lazy.arrow import pa
from forklake.lazy.sqlglot import sqlglot
from forklake.model.names import check_name
from forklake.model.sql.constants import check_expression, check_storable, literal
from forklake.model.types.arrow import TypeSource, from_arrow_field, type_of
from forklake.model.types.data_types import DataType, Scalar, SqlReader
from forklake.model.types.text import text_of

_MOST_BITS = 1024
"""More than any type has; Python refuses to write very long numbers out."""

DefaultSource = str | float | Number | date | time | UUID | bytes | None
"""SQL text such as `"'new'"` or `"now()"`; any other value of Python is a literal."""


def default_text(value: object) -> str | None:
    """A default as SQL; None if there is to be none."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > _MOST_BITS:
            raise InvalidSchemaChange(f"no type holds a default of {value.bit_length()} bits")
        case int() | Number():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"'{value}'"
        case Integral():
            return default_text(int(value))
        case Real():
            return default_text(float(value))
        case date() | time() | UUID():
            return f"'{value}'"
        case bytes():
            return f"'{text_of(value, Scalar('blob'))}'"
        case _:
            raise InvalidSchemaChange(
                f'a default is SQL text such as "\'new\'" or "now()", a number, True or False, a date, '
                f"time or datetime, bytes or a UUID, not {type(value).__name__}"
            )


@dataclass(frozen=True, slots=True, init=False)
class ColumnSpec:
    """The definition of a column: name, type, nullability, default and comment."""

    name: str
    type: DataType
    nullable: bool
    default: str | None
    """SQL text."""
    comment: str | None

    def __init__(
        self,
        name: str,
        type: TypeSource,
        nullable: bool = True,
        default: DefaultSource = None,
        comment: str | None = None,
    ) -> None:
        """A type is SQL text or one of Arrow; a default is SQL text, a number or a truth value."""
        given = (name, type_of(type), nullable, default_text(default), comment)
        for field, value in zip(self.__slots__, given, strict=True):
            object.__setattr__(self, field, value)


@runtime_checkable
class HasArrowSchema(Protocol):
    """Anything that shows its schema through Arrow's C interface."""

    def __arrow_c_schema__(self) -> object:
        """A capsule with the schema."""
        ...


_Pair = tuple[str, TypeSource]
ColumnSource: TypeAlias = (
    "str | pa.Schema | HasArrowSchema | Mapping[str, TypeSource] | Iterable[ColumnSpec | _Pair]"
)


def columns_of(source: ColumnSource) -> tuple[ColumnSpec, ...]:
    """Read column definitions: DDL, an Arrow schema, types by name, or a list of specs or pairs."""
    match source:
        case str():
            columns = _from_ddl(source)
        case HasArrowSchema():
            columns = tuple(_from_arrow(source))
        case Mapping():
            columns = tuple(_from_item(item) for item in source.items())
        case Iterable():
            columns = tuple(_from_item(item) for item in source)
        case _:
            raise _no_columns(source)
    if not columns:
        raise InvalidSchemaChange("a table needs at least one column")
    seen: set[str] = set()
    for column in columns:
        if check_name(column.name, "column").lower() in seen:
            raise DuplicateColumn(f"two columns are named {column.name!r}; case makes no difference")
        seen.add(column.name.lower())
        if column.default is not None:
            literal(column.default, column.type)
        check_storable(column.comment or "", "comment")
    return columns


def _no_columns(source: object) -> InvalidSchemaChange:
    return InvalidSchemaChange(
        "columns are given as DDL text, an Arrow schema, a dict of types, or a list of ColumnSpec or "
        f"(name, type) pairs, not as {type(source).__name__}"
    )


def _from_item(item: object) -> ColumnSpec:
    match item:
        case ColumnSpec():
            return item
        case (str(name), type):
            try:
                return ColumnSpec(name, type)
            except UnknownType as problem:
                raise UnknownType(f'column "{name}": {problem}') from problem
        case _:
            raise _no_columns(item)


def _from_arrow(source: HasArrowSchema) -> list[ColumnSpec]:
    try:
        schema = pa.schema(source)
    except (pa.ArrowInvalid, TypeError, ValueError) as problem:
        raise InvalidSchemaChange(f"no Arrow schema can be read from a {type(source).__name__}") from problem
    columns: list[ColumnSpec] = []
    for field in schema:
        comment = (field.metadata or {}).get(b"comment")
        try:
            kind = from_arrow_field(field)
        except UnknownType as problem:
            raise UnknownType(f'column "{field.name}": {problem}') from problem
        columns.append(
            ColumnSpec(
                field.name,
                kind,
                nullable=field.nullable,
                comment=comment.decode(errors="replace") if comment else None,
            )
        )
    return columns


# What may follow a type. The refused words are named, so that nobody believes in a constraint nobody checks.
_CONSTRAINTS = ("NOT", "NULL", "DEFAULT", "COMMENT")
_REFUSED = (
    "PRIMARY KEY", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "FOREIGN KEY", "FOREIGN", "CONSTRAINT",
    "GENERATED", "AS", "COLLATE", "USING", "EXCLUDE", "LIKE",
)  # fmt: skip


@lru_cache(256)
def _from_ddl(text: str) -> tuple[ColumnSpec, ...]:
    reader = SqlReader(text)
    if not reader.tokens:
        return ()
    columns = [_definition(reader)]
    while reader.take(","):
        columns.append(_definition(reader))
    if reader.at < len(reader.tokens):
        raise _unexpected(reader)
    return tuple(columns)


def _definition(reader: SqlReader) -> ColumnSpec:
    if (reader.word() in _REFUSED and reader.word(1) == "(") or reader.word() == "CONSTRAINT":
        raise _unexpected(reader)
    name = reader.name("column")
    type = reader.type()
    nullable: bool | None = None
    default: str | None = None
    comment: str | None = None
    while (word := reader.word()) and word != ",":
        if word in ("NULL", "NOT") and nullable is None:
            nullable = not reader.take("NOT")
            if not reader.take("NULL"):
                raise _unexpected(reader)
        elif word == "DEFAULT" and default is None:
            reader.take("DEFAULT")
            default = _default(reader)
        elif word == "COMMENT" and comment is None:
            reader.take("COMMENT")
            comment = _string(reader)
        else:
            raise _unexpected(reader)
    return ColumnSpec(name, type, nullable is not False, default, comment)


def _unexpected(reader: SqlReader) -> InvalidSchemaChange:
    word = reader.word()
    if word in _REFUSED:
        return InvalidSchemaChange(
            f"{word} is not supported: a column has a type and may have NOT NULL, DEFAULT and COMMENT"
        )
    found = repr(reader.tokens[reader.at].text[:80]) if reader.at < len(reader.tokens) else "the end"
    return InvalidSchemaChange(f"the column definitions make no sense at {found}")


def _string(reader: SqlReader) -> str:
    if reader.at >= len(reader.tokens) or reader.tokens[reader.at].token_type != sqlglot.TokenType.STRING:
        raise InvalidSchemaChange("COMMENT is followed by a string in single quotes")
    reader.at += 1
    return reader.tokens[reader.at - 1].text


def _default(reader: SqlReader) -> str:
    """Step over an expression: the shortest that parses and that another constraint, or nothing, follows."""
    start = reader.at
    depth = 0
    while reader.at < len(reader.tokens):
        word = reader.word()
        # A value may begin with NULL; where NOT follows at once, the value was forgotten.
        begun = reader.at > start or word == "NOT"
        if depth == 0 and (word == "," or (begun and word in _CONSTRAINTS + _REFUSED)):
            text = _between(reader, start)
            if word == "," or _parses(text):
                return text
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        reader.at += 1
    return _between(reader, start)


def _between(reader: SqlReader, start: int) -> str:
    if reader.at == start:
        raise InvalidSchemaChange("DEFAULT is followed by a value or an expression")
    return reader.text[reader.tokens[start].start : reader.tokens[reader.at - 1].end + 1]


def _parses(text: str) -> bool:
    try:
        check_expression(text)
    except InvalidSchemaChange:
        return False
    return True
