"""Frozen values as JSON and back: what travels to another process says all that is needed there. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from forklake.errors import InvalidArgument

T = TypeVar("T")


def to_text(value: object) -> str:
    """A frozen value as one line of JSON."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)


def from_text(kind: type[T], text: str | bytes) -> T:
    """Read back what `to_text` wrote of a value of some kind."""
    try:
        return _value(kind, json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"this is no {kind.__name__}: {type(error).__name__} at {error}") from error


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [_plain(item) for item in value] if is_list else value  # pyright: ignore[reportUnknownVariableType]


def _value(kind: Any, plain: Any) -> Any:
    if is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _value(hints[name], item) for name, item in plain.items()})  # type: ignore[operator]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (inner,) = (part for part in parts if part is not NoneType)
        return None if plain is None else _value(inner, plain)
    if origin in (tuple, Sequence):
        return tuple(_value(parts[0], item) for item in plain)
    if origin is Literal:
        if plain not in parts:
            raise ValueError(plain)
        return plain
    expected = getattr(kind, "__supertype__", kind)
    if type(plain) is not expected:
        raise TypeError(f"{plain!r}, which is not {expected.__name__}")
    return plain


@lru_cache(256)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
