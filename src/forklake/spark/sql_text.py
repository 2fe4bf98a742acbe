"""Pieces of Spark's SQL: names and literals. Pure.

Spark replaces `${…}` by variables of the session and of the environment in every text of SQL, before it is
parsed and wherever it stands. What is written here never holds that.
"""

from __future__ import annotations

from forklake.errors import InvalidArgument

_VARIABLE = "${"
_ESCAPES = frozenset("\\'")


def attribute(text: str) -> str:
    """A name where Spark takes nothing else, as `F.col` does."""
    return "`" + text.replace("`", "``") + "`"


def name(text: str) -> str:
    """A name in Spark's SQL."""
    return f"IDENTIFIER({_apart(attribute(text))})" if _VARIABLE in text else attribute(text)


def field_of(expression: str, text: str) -> str:
    """A field of a struct in Spark's SQL."""
    return f"{expression}[{_apart(text)}]" if _VARIABLE in text else f"{expression}.{attribute(text)}"


def _apart(text: str) -> str:
    """A text as several literals side by side, which are one: Spark replaces `${…}` wherever it stands."""
    if set(text) & _ESCAPES:
        raise InvalidArgument(
            f"the name {text!r} cannot be written in Spark's SQL: rename it, without {_VARIABLE} or without "
            "quotes and backslashes"
        )
    return "'" + "$' '{".join(text.split(_VARIABLE)) + "'"


def text(value: str) -> str:
    """A text in Spark's SQL, whatever a session makes of backslashes, and of `${…}`, which are variables."""
    if value.isascii() and value.isprintable() and _VARIABLE not in value and not set(value) & _ESCAPES:
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"
