"""Counting the calls of a method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest import mock


@contextmanager
def calls(owner: type, method: str) -> Iterator[Callable[[], int]]:
    """How often a method is called on any object from now on, by any thread; ask as often as needed."""
    original = getattr(owner, method)
    seen: list[None] = []  # Appending cannot be interrupted by another thread.

    @wraps(original)
    def counted(*args: Any, **kwargs: Any) -> Any:
        seen.append(None)
        return original(*args, **kwargs)

    with mock.patch.object(owner, method, counted):
        yield lambda: len(seen)
