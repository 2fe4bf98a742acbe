"""How a catalog differs from what it was, or from another: counts at once, rows when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NoReturn

from forklake.commit.draft import Draft
from forklake.feed import ChangeFeed, check_names
from forklake.fork.diff import ObjectDiff, TableFacts, dropped_plan, object_diffs, row_plan, table_facts
from forklake.fork.knowledge import Events
from forklake.fork.net import Net, net_changes
from forklake.fork.side import Side
from forklake.model.ids import SnapshotId, TableId
from forklake.model.names import QualifiedName
from forklake.scan.changes import ChangePlan
from forklake.store.backend import Database
from forklake.workbench import Workbench


def _unknown() -> NoReturn:
    raise TypeError("a difference is made by Catalog.diff")


@dataclass(frozen=True, slots=True, repr=False)
class RowDiff(ChangeFeed):
    """Rows that are in one and not in the other, and both sides of those that differ, by row id."""

    _plan: Callable[[], ChangePlan] = _unknown

    def plan(self) -> ChangePlan:
        """The files that came and went, and the rows that were deleted from others."""
        return self._plan()


@dataclass(frozen=True, slots=True)
class TableDiff(TableFacts):
    """A table that came, went or changed."""

    _rows: Callable[[], RowDiff] = field(default=_unknown, repr=False, compare=False)

    def rows(self) -> RowDiff:
        """The rows themselves, net: `insert`, `delete`, `update_preimage` and `update_postimage`."""
        return self._rows()


@dataclass(frozen=True, slots=True)
class CatalogDiff:
    """What a catalog did since a state that it was like."""

    catalog: str
    snapshot: SnapshotId
    base_snapshot: SnapshotId
    """The state that it is compared with: its fork point, or where another catalog stands."""
    objects: tuple[ObjectDiff, ...] = ()
    """Schemas, views and macros."""
    tables: tuple[TableDiff, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is different."""
        return not (self.objects or self.tables)

    @property
    def rows_added(self) -> int:
        """Over all tables, in files that came."""
        return sum(table.rows_added for table in self.tables)

    @property
    def rows_removed(self) -> int:
        """Over all tables."""
        return sum(table.rows_removed for table in self.tables)

    def table(self, name: str | tuple[str, str] | QualifiedName) -> TableDiff | None:
        """The difference of one table, if there is any; of the one that is there, if another was dropped."""
        wanted = str(QualifiedName.parse(name))
        found = [table for table in self.tables if table.name == wanted]
        return min(found, key=lambda table: table.change == "dropped", default=None)


def catalog_diff(
    database: Database,
    workbench: Workbench,
    name: str,
    ours: Side,
    base: Side,
    done: Events,
    since: SnapshotId,
) -> CatalogDiff:
    """Compare two sides, looking at what was done in one of them."""
    net = net_changes(database, ours, base, done, since)
    at = ours.head.snapshot_id

    def rows_of(number: TableId) -> Callable[[], RowDiff]:
        return lambda: _rows(workbench, net, ours, base, number)

    tables = tuple(
        TableDiff(*(getattr(facts, each.name) for each in fields(facts)), _rows=rows_of(number))
        for number, facts in table_facts(database, net, base, ours).items()
    )
    objects = tuple(object_diffs(net, base, ours))
    return CatalogDiff(name, at, base.head.snapshot_id, objects, tables)


def _rows(workbench: Workbench, net: Net, ours: Side, base: Side, number: TableId) -> RowDiff:
    at = ours.head.snapshot_id
    table = ours.table(number)
    side = ours if table is not None else base
    draft = Draft(side.state, side.head)
    source = draft.source(draft.table(number))
    check_names(source)

    def plan() -> ChangePlan:
        if table is None:
            return dropped_plan(draft, source.table, at)
        files = next((entry for entry in net.files if entry.table == number), None)
        return row_plan(workbench.storage, source, files, at)

    return RowDiff(source, workbench, base.head.snapshot_id, at, _plan=plan)
