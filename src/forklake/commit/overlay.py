"""Entities of one kind that a draft has touched."""

from __future__ import annotations

from typing import Generic, TypeVar

from forklake.model.entities import Macro, Schema, Table, Tag, View
from forklake.model.index import Index
from forklake.model.table.layout import Partitioning, SortOrder

K = TypeVar("K")
E = TypeVar("E", Schema, Table, View, Macro, Tag, Partitioning, SortOrder, Index)


class Overlay(Generic[K, E]):
    """Entities of one kind that a draft has touched: how each was at the base, and how it is now."""

    def __init__(self) -> None:
        """Nothing touched."""
        self.base: dict[K, E | None] = {}
        self.now: dict[K, E | None] = {}

    def put(self, key: K, before: E | None, after: E | None) -> None:
        """Stage a change; `before` counts only the first time."""
        self.base.setdefault(key, before)
        self.now[key] = after

    def pairs(self) -> list[tuple[E | None, E | None]]:
        """Before and after of everything that differs."""
        return [(self.base[key], now) for key, now in self.now.items() if self.base[key] != now]

    def forget(self, key: K) -> None:
        """Drop what was staged: what it belongs to is gone."""
        self.base.pop(key, None)
        self.now.pop(key, None)

    def live(self) -> list[E]:
        """What was touched and is there."""
        return [entity for entity in self.now.values() if entity is not None]
