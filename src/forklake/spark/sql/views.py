"""Temporary views of a catalog's tables, which queries of `spark.sql` find by name, kept fresh.

Spark keeps the plan of a view, so a view shows one snapshot until it is registered again. That is done after
each change through the SparkCatalog, and where others commit, by a thread that looks for new snapshots.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from forklake.api.catalog import Catalog
from forklake.api.scoped import scope_of
from forklake.errors import ForklakeError, InvalidArgument
from forklake.model.names import QualifiedName, quoted
from forklake.scan.scan_plan import ScanPlan, plan_scan
from forklake.spark.sql_text import attribute

if TYPE_CHECKING:
    from forklake.spark.catalog import SparkCatalog

_LOG = logging.getLogger("forklake.spark")


class TemporaryViews:
    """The temporary views of a catalog's tables and views in a session of Spark."""

    def __init__(self, sc: SparkCatalog, prefix: str | None, every: timedelta | None) -> None:
        """Use `SparkCatalog.register_views`."""
        if not isinstance(sc.catalog, Catalog):
            raise InvalidArgument("views are of a catalog: what a transaction does is not committed yet")
        if every is not None and every <= timedelta(0):
            raise InvalidArgument(f"new snapshots are looked for every so often, not every {every}")
        self._sc = sc
        self._catalog = sc.catalog
        self._prefix = sc.catalog.name if prefix is None else prefix
        self._registered: dict[str, object] = {}
        self._refused: dict[str, str] = {}
        self._snapshot: int | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.refresh()
        if every is not None:
            watch = threading.Thread(
                target=self._watch, args=(every.total_seconds(),), name="forklake-views", daemon=True
            )
            watch.start()

    @property
    def names(self) -> list[str]:
        """The names of the views, sorted."""
        return sorted(self._registered)

    @property
    def refused(self) -> dict[str, str]:
        """Views of the catalog that Spark cannot show, and why."""
        return dict(self._refused)

    @property
    def snapshot(self) -> int | None:
        """The snapshot that the views show."""
        return self._snapshot

    def refresh(self) -> None:
        """Let the views show the current snapshot. What has not changed is left alone."""
        with self._lock:
            head = self._catalog.snapshot
            if head == self._snapshot or self._closed.is_set():
                return
            at = self._catalog.at(head)
            draft = scope_of(at).read()
            wanted: dict[str, tuple[QualifiedName, object]] = {}
            for table in draft.tables():
                plan = plan_scan(draft.source(draft.table(table.id)))
                self._add(wanted, QualifiedName(table.schema, table.name), _state(plan))
            for view in draft.views():
                # What a view reads may have changed whenever anything has.
                self._add(wanted, draft.name_of(view), (view, head))
            self._register(wanted, head)
            self._snapshot = head

    def close(self) -> None:
        """Drop the views, and look for snapshots no more."""
        self._closed.set()
        with self._lock:
            for name in self._registered:
                self._sc.spark.catalog.dropTempView(name)
            self._registered.clear()

    def __enter__(self) -> Self:
        """The views, for a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop them."""
        self.close()

    def __repr__(self) -> str:
        """The catalog, the snapshot, and how many there are."""
        count = len(self._registered)
        return f"<TemporaryViews of {self._catalog.name!r} at snapshot {self._snapshot}: {count}>"

    def _add(
        self, wanted: dict[str, tuple[QualifiedName, object]], name: QualifiedName, state: object
    ) -> None:
        parts = (self._prefix, *(() if name.schema == "main" else (name.schema,)), name.name)
        view = "_".join(part for part in parts if part)
        other = next((one for one in wanted if one.lower() == view.lower()), None)
        if other is not None:
            raise InvalidArgument(
                f'"{wanted[other][0]}" and "{name}" would both be the view {view}: rename one of them'
            )
        wanted[view] = name, state

    def _register(self, wanted: dict[str, tuple[QualifiedName, object]], head: int) -> None:
        for view in self._registered.keys() - wanted.keys():
            self._sc.spark.catalog.dropTempView(view)
            del self._registered[view]
        self._refused = {view: why for view, why in self._refused.items() if view in wanted}
        for view, (name, state) in wanted.items():
            if self._registered.get(view) == state:
                continue
            try:
                df = self._read(name, state, head)
            except ForklakeError as error:
                # Others can still be shown; this one says why it cannot be as soon as it is asked for.
                self._refused[view] = str(error)
                continue
            df.createOrReplaceTempView(view if view.isidentifier() and view.isascii() else attribute(view))
            self._registered[view] = state
            self._refused.pop(view, None)

    def _read(self, name: QualifiedName, state: object, head: int) -> DataFrame:
        if isinstance(state, _State):
            return self._sc.read(name, at=head)
        found: Any = self._sc.on(self._catalog.at(head)).sql(
            f"FROM {quoted(name.schema)}.{quoted(name.name)}"
        )
        return found

    def _watch(self, seconds: float) -> None:
        while not self._closed.wait(seconds):
            try:
                self.refresh()
            except ForklakeError as error:
                # A metadata database may come back.
                _LOG.warning(
                    "the views of catalog %r show snapshot %s: %s", self._catalog.name, self._snapshot, error
                )
            except (PySparkException, Py4JError, OSError) as error:
                if not self._closed.is_set():
                    _LOG.warning(
                        "the views of catalog %r are refreshed no more: %s", self._catalog.name, error
                    )
                return


@dataclass(frozen=True, slots=True)
class _State:
    """What a table shows: equal as long as nothing in it has changed."""

    table: object
    files: tuple[object, ...]
    positions: tuple[bytes | None, ...]


def _state(plan: ScanPlan) -> _State:
    places = (*plan.files, *plan.rows)
    positions = tuple(
        None if one.deleted is None else one.deleted.to_numpy(zero_copy_only=False).tobytes()
        for one in places
    )
    return _State(plan.table, tuple(one.file for one in places), positions)
