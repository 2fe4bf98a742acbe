"""Macros of a catalog: the statements that make them, and parameters as DuckLake stores them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forklake.errors import InvalidSql, UnknownType
from forklake.model.entities import Macro, MacroImpl
from forklake.model.names import quoted
from forklake.model.types.data_types import from_ducklake_name, parse, to_ducklake_name, to_sql

UNKNOWN = "unknown"
"""The type of a parameter, or of a default, that has none."""

_INTEGER = re.compile(r"-?\d+\Z", re.ASCII)
_DECIMAL = re.compile(r"-?(\d*)\.(\d+)\Z", re.ASCII)
_STRING = re.compile(r"'((?:[^']|'')*)'\Z")
_INTEGERS = (("int32", 31), ("int64", 63), ("int128", 126))
_MOST_DIGITS = 38


def create_macro(place: str, macro: Macro, bodies: Sequence[str], *, temporary: bool = False) -> str:
    """The statement that makes a macro with all of its overloads, whose bodies were bound."""
    word = "TEMP MACRO" if temporary else "MACRO"
    made: list[str] = []
    for overload, body in zip(macro.implementations, bodies, strict=True):
        if overload.dialect != "duckdb":
            raise InvalidSql(f'macro "{macro.name}" is written for {overload.dialect}, not for DuckDB')
        kind = "TABLE " if overload.kind == "table" else ""
        made.append(f"({_parameters(overload)}) AS {kind}({body})")
    return f"CREATE OR REPLACE {word} {place} {', '.join(made)}"


def _parameters(overload: MacroImpl) -> str:
    listed: list[str] = []
    for parameter in overload.parameters:
        type = "" if parameter.type == UNKNOWN else f" {parameter_sql(parameter.type)}"
        default = "" if parameter.default is None else f" := {parameter.default}"
        listed.append(f"{quoted(parameter.name)}{type}{default}")
    return ", ".join(listed)


def parameter_type(sql: str | None) -> str:
    """The type of a parameter by DuckLake's name, if it has one: `int32`; nested ones stay SQL."""
    if sql is None:
        return UNKNOWN
    try:
        found = to_ducklake_name(parse(sql))
    except UnknownType:
        return sql
    return sql if found in ("list", "struct", "map") else found


def parameter_sql(name: str) -> str:
    """The type of a parameter in SQL."""
    try:
        return to_sql(from_ducklake_name(name))
    except UnknownType:
        return name


def stored_default(sql: str | None) -> tuple[str | None, str]:
    """A default as DuckLake stores it: a value and its type. Of what is no literal, the SQL stays."""
    if sql is None:
        return None, UNKNOWN
    if sql.lower() in ("true", "false"):
        return sql.lower(), "boolean"
    if _INTEGER.match(sql):
        size = int(sql[:_MOST_DIGITS]).bit_length() if len(sql) <= _MOST_DIGITS else _MOST_DIGITS * 4
        type = next((name for name, bits in _INTEGERS if size <= bits), UNKNOWN)
        return sql, type
    if found := _DECIMAL.match(sql):
        digits, scale = len(found[1].lstrip("0")) + len(found[2]), len(found[2])
        return sql, f"decimal({digits},{scale})" if digits <= _MOST_DIGITS else UNKNOWN
    if found := _STRING.match(sql):
        return found[1].replace("''", "'"), "varchar"
    return sql, UNKNOWN


def default_sql(value: str | None, type: str | None) -> str | None:
    """A stored default as SQL again."""
    if value is None or type in (None, UNKNOWN) or stored_default(value) == (value, type):
        return value
    literal = "'" + value.replace("'", "''") + "'"
    return literal if type == "varchar" else f"CAST({literal} AS {parameter_sql(type)})"
