"""What tests of the grammar share: statements without the places of their parts."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from forklake.sql.parser.parse import parse
from forklake.sql.statements import Fragment, ObjectName

F = Fragment


def of(*parts: str) -> ObjectName:
    """A name of something."""
    return ObjectName(parts)


T = of("t")


def plain(value: Any) -> Any:
    """A statement without the places of its parts, of which other tests tell."""
    if isinstance(value, Fragment):
        return Fragment(value.text)
    if isinstance(value, ObjectName):
        return ObjectName(value.parts)
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if is_dataclass(value):
        return type(value)(**{item.name: plain(getattr(value, item.name)) for item in fields(value)})  # type: ignore
    return value


def read(text: str) -> Any:
    """The only statement of a text."""
    (parsed,) = parse(text)
    return plain(parsed.statement)
