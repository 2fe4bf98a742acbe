"""Attributes that are worked out when they are first asked for, by each thread that asks before one is done.

`functools.cached_property` of Python 3.11 has one lock for all objects of a class: while the database answers
one thread, no other would get on, and two may wait for each other's locks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy_property(Generic[T]):
    """A property whose value is kept in the object; for what is the same whoever works it out."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        """Decorate the method that finds the value."""
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn where the value is kept."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Find the value. The next time it is found before anybody asks here."""
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._find(instance))
