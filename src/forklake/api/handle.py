"""What all handles have in common: they belong to the process that opened them."""

from __future__ import annotations

from typing import NoReturn, Self, SupportsIndex

from forklake.errors import NotPicklable


class Handle:
    """Something that reads or writes a lake through connections of this process.

    Like a connection of a database, it is not pickled: another process could not use what is behind it, and
    opening it again there would take the password along.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Refuse, and say how other processes get at the lake."""
        raise NotPicklable(f"a {type(self).__name__} {self._stays()}")

    def __copy__(self) -> Self:
        """The same handle: there is nothing to copy."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """The same handle."""
        return self

    def _stays(self) -> str:
        return (
            "uses connections of this process and cannot be pickled: call forklake.connect(url) in each "
            "process and look it up there by name, or hand out work by Catalog.begin_distributed"
        )
