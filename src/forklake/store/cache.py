"""Catalog states that were read before: a structure that has not changed is not read again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from forklake.model.ids import CatalogId
from forklake.model.snapshots import Head
from forklake.store.backend import Database
from forklake.store.catalog_state import CatalogState


class StateCache:
    """The states used last, of any catalog."""

    def __init__(self, database: Database, size: int = 128) -> None:
        """Start empty."""
        self._database = database
        self._size = size
        self._states: OrderedDict[tuple[CatalogId, int], CatalogState] = OrderedDict()
        self._latest: OrderedDict[CatalogId, CatalogState] = OrderedDict()
        self._lock = Lock()

    def get(self, head: Head) -> CatalogState:
        """The state of a catalog at its head, or at an older one."""
        key = (head.catalog_id, head.schema_version)
        with self._lock:
            state = self._states.get(key)
            if state is not None:
                self._states.move_to_end(key)
                return state
        return self.put(CatalogState(self._database, head))

    def latest(self, catalog: CatalogId) -> CatalogState | None:
        """The state that our own last commit to a catalog led to; others may have committed since."""
        return self._latest.get(catalog)

    def put(self, state: CatalogState, *, latest: bool = False) -> CatalogState:
        """Keep a state, and forget the one that was used longest ago."""
        with self._lock:
            self._states[state.head.catalog_id, state.head.schema_version] = state
            if latest:
                self._latest[state.head.catalog_id] = state
                self._latest.move_to_end(state.head.catalog_id)
                if len(self._latest) > self._size:
                    self._latest.popitem(last=False)
            if len(self._states) > self._size:
                self._states.popitem(last=False)
        return state
