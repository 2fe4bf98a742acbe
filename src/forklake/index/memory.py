"""What is kept in memory of segments: by their key, up to a number of bytes. Segments never change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Memory:
    """Values with their sizes; those that were used longest ago make room for others."""

    def __init__(self, size: int) -> None:
        """Keep up to so many bytes."""
        self.size = size
        self.used = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value of a key; one that is not there is loaded, together with its size in bytes.

        Two threads may both load the same one: neither waits for the other's request.
        """
        known = self.peek(key)
        if known is not None:
            return cast("T", known)
        value, size = load()
        self.put(key, value, size)
        return value

    def peek(self, key: Hashable) -> Any:
        """The value of a key if it is there, else None."""
        with self._lock:
            known = self._kept.get(key)
            if known is None:
                return None
            self._kept.move_to_end(key)
            return known[0]

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Keep a value of this size, unless it is larger than everything may be together."""
        with self._lock:
            if key in self._kept or size > self.size:
                return
            self._kept[key] = (value, size)
            self.used += size
            while self.used > self.size:
                _, (_, freed) = self._kept.popitem(last=False)
                self.used -= freed

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self.used = 0
