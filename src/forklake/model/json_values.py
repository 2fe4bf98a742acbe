"""Frozen dataclasses as JSON and back, for other processes. Pure.

What is read is checked against the types of the fields: a text that another version or another program wrote
is refused rather than half understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from forklake.errors import InvalidArgument
from forklake.lazy.msgspec import msgspec

if TYPE_CHECKING:
    from msgspec.json import Decoder

T = TypeVar("T")


def to_text(value: object, *, format: str | None = None) -> str:
    """A value as one line of JSON, which begins with the name of its format if it has one."""
    if format is not None:
        value = {"format": format, **msgspec.to_builtins(value)}
    return msgspec.json.encode(value).decode()


def from_text(kind: type[T], text: str | bytes, *, format: str | None = None) -> T:
    """Read back what `to_text` wrote of a value of some kind."""
    try:
        if format is not None and (found := _decoder(_Head).decode(text).format) != format:
            raise InvalidArgument(f"this is no {kind.__name__}: its format is {found!r}, not {format!r}")
        return _decoder(kind).decode(text)
    except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
        raise InvalidArgument(f"this is no {kind.__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Head:
    format: str


@lru_cache(64)
def _decoder(kind: type[T]) -> Decoder[Any]:
    return msgspec.json.Decoder(kind)
