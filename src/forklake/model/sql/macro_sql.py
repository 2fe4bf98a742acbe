"""Macros of a catalog, as statements that make them in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from forklake.errors import InvalidSql
from forklake.model.entities import Macro, MacroImpl
from forklake.model.names import quoted


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
        type = "" if parameter.type == "unknown" else f" {parameter.type}"
        default = "" if parameter.default is None else f" := {parameter.default}"
        listed.append(f"{quoted(parameter.name)}{type}{default}")
    return ", ".join(listed)
