"""Names that differ only in case, and names that are close to one that is not there. Pure.

A name is found whatever its case and kept as it was written. The exact one counts first: lakes may hold two
that differ only in case, from times when that was allowed. As in DuckDB and PostgreSQL, only the letters of
ASCII have a case in names of catalogs, schemas, tables, views and macros: that is the same in every database
that keeps them. Columns and fields are compared with all letters, as Spark compares them.
"""

from __future__ import annotations

import heapq
import string
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from forklake.errors import AmbiguousName
from forklake.lazy import LazyModule
from forklake.model.names import QualifiedName

if TYPE_CHECKING:
    import difflib
else:
    # Few look-ups find nothing.
    difflib = LazyModule("difflib")

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_SHOWN = 10
"""How many names an error lists."""
_COMPARED = 100
_SHORTEST = 0.6
"""How alike two names are at least that are taken for one another."""


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str:
        """Its name, as it was written."""
        ...


N = TypeVar("N", bound="Named | str")
Fold = Callable[[str], str]


def fold(name: str) -> str:
    """What all names have in common that are found for one another."""
    return name.lower() if name.isascii() else name.translate(_LOWER)


def all_letters(name: str) -> str:
    """The same for columns and fields."""
    return name.lower()


def alike(name: str, items: Iterable[N], folded: Fold = fold) -> list[N]:
    """What has a name, or one that differs from it only in case: names, or what has one."""
    wanted = folded(name)
    return [item for item in items if folded(_name(item)) == wanted]


def pick(name: str, items: Iterable[N], what: str, folded: Fold = fold) -> N | None:
    """What is meant by a name: what has it, or else the only one that differs from it only in case."""
    found = alike(name, items, folded)
    for item in found:
        if _name(item) == name:
            return item
    if len(found) > 1:
        raise ambiguous(name, map(_name, found), what)
    return found[0] if found else None


def _name(item: Named | str) -> str:
    return item if isinstance(item, str) else item.name


def ambiguous(name: str, found: Iterable[str], what: str) -> AmbiguousName:
    """The error for a name that two things have, if case makes no difference."""
    shown = " and ".join(f'"{each}"' for each in sorted(found))
    return AmbiguousName(f'{what} "{name}" may be {shown}, which differ only in case: write it as it is')


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant, if one is close enough."""
    wanted = all_letters(name)
    by_letters = {all_letters(each): each for each in known}
    # Comparing takes much longer than this: of many names, those are compared that begin and end alike.
    likely = heapq.nlargest(_COMPARED, by_letters, key=lambda each: _in_common(wanted, each))
    found = difflib.get_close_matches(wanted, likely, 1, _SHORTEST)
    return by_letters[found[0]] if found else None


def _in_common(one: str, other: str) -> int:
    begin = _same_letters(one, other)
    return begin + _same_letters(one[:begin:-1], other[:begin:-1]) - abs(len(one) - len(other))


def _same_letters(one: str, other: str) -> int:
    """How many letters of two names are the same before they begin to differ."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))


def instead(name: str, known: Sequence[str]) -> str:
    """What an error says about a name that is not there, after a colon: the nearest one, or some."""
    close = nearest(name, known)
    if close is not None:
        return f'did you mean "{close}"?'
    shown = ", ".join(f'"{each}"' for each in known[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"there are {shown or 'none'}{more}"


def nearest_of(name: QualifiedName, known: Sequence[QualifiedName]) -> QualifiedName | None:
    """The same for what is in schemas: in its own one, or else in another."""
    here = [each for each in known if fold(each.schema) == fold(name.schema)]
    for some in (here, known):
        by_own = {each.name: each for each in some}
        close = nearest(name.name, by_own)
        if close is not None:
            return by_own[close]
    return None


def instead_of(name: QualifiedName, known: Sequence[QualifiedName]) -> str:
    """What an error says about the name of something in a schema, as `instead` does."""
    close = nearest_of(name, known)
    return f'did you mean "{close}"?' if close else instead(str(name), [str(each) for each in known])
