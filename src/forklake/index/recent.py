"""What was used lately, in memory of limited size, for many threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by key; those that were used longest ago make room. Keys hold for ever."""

    def __init__(self, size: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        """Keep values that weigh `size` in all, and always the last one."""
        self._size = size
        self._weigh = weigh
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key. Two threads that miss it at once may both make it."""
        known = self.peek(key)
        if known is not None:
            return known
        made = make()
        self.put(key, made)
        return made

    def peek(self, key: Hashable) -> T | None:
        """The value of a key if it is there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value."""
        weight = self._weigh(value)
        with self._lock:
            if key not in self._values:
                self._values[key] = value, weight
                self._weight += weight
            while self._weight > self._size and len(self._values) > 1:
                _, (_, gone) = self._values.popitem(last=False)
                self._weight -= gone

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._values.clear()
            self._weight = 0
