"""Parts that statements share: text as it was written, names, options, paths of columns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a statement as it was written: a query, an expression, a list of tables."""

    text: str
    start: int = 0
    """Where it begins in the text that was handed over, in characters."""

    def __str__(self) -> str:
        """As it was written."""
        return self.text


@dataclass(frozen=True, slots=True)
class ObjectName:
    """`orders`, `sales.orders` or `shop.sales.orders`: as written, without quotes."""

    parts: tuple[str, ...]
    start: int = 0

    def __str__(self) -> str:
        """With dots."""
        return ".".join(self.parts)


Options = tuple[tuple[str, object], ...]
"""Names with numbers, strings, truth values, None, or the Fragment of a parameter."""


ColumnPath = tuple[str, ...]
"""A column, or a field of a struct: `("address", "zip")`. Elements of lists are named `element`."""
