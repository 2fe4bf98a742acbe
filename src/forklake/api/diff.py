"""How a catalog differs from what it was, or from another: counts at once, rows when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import NoReturn

from forklake.api.change_feed import ChangeFeed, check_names
from forklake.api.handle import Handle
from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.display import Shown
from forklake.fork.definition_changes import DefinitionChanges
from forklake.fork.diff import (
    ObjectDiff,
    Sides,
    TableChanges,
    dropped_plan,
    object_diffs,
    row_plan,
    table_changes,
)
from forklake.fork.net_rows import RowChanges
from forklake.model.alike import fold
from forklake.model.ids import SnapshotId, TableId
from forklake.model.names import QualifiedName
from forklake.scan.change_plan import ChangePlan


def _unknown() -> NoReturn:
    raise TypeError("a difference is made by Catalog.diff")


@dataclass(frozen=True, slots=True, repr=False)
class RowDiff(ChangeFeed):
    """The rows that differ, by row id: inserted, deleted, and both versions of updated ones."""

    _plan: Callable[[], ChangePlan] = _unknown

    def plan(self) -> ChangePlan:
        """Plan the feed: files that were added and removed, and deleted positions."""
        return self._plan()


@dataclass(frozen=True, slots=True)
class TableDiff(Handle, TableChanges, Shown):
    """A table that was created, dropped or changed."""

    _rows: Callable[[], RowDiff] = field(default=_unknown, repr=False, compare=False)

    def rows(self) -> RowDiff:
        """The changed rows, net, with `change_type` as in the change feed."""
        return self._rows()


@dataclass(frozen=True, slots=True)
class CatalogDiff(Shown):
    """What a catalog changed since its fork point, or that another catalog has not seen."""

    catalog: str
    snapshot: SnapshotId
    base_snapshot: SnapshotId
    """The snapshot that it is compared with: the fork point, or that of the other catalog."""
    objects: tuple[ObjectDiff, ...] = ()
    """Schemas, views and macros."""
    tables: tuple[TableDiff, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is no difference."""
        return not (self.objects or self.tables)

    @property
    def rows_added(self) -> int:
        """Rows added, over all tables."""
        return sum(table.rows_added for table in self.tables)

    @property
    def rows_removed(self) -> int:
        """Rows removed, over all tables."""
        return sum(table.rows_removed for table in self.tables)

    def table(self, name: str | tuple[str, str] | QualifiedName) -> TableDiff | None:
        """The difference of one table, or None; of the live one, if another of that name was dropped."""
        wanted = QualifiedName.parse(name)
        found = [table for table in self.tables if table.name == str(wanted)]
        found = found or [table for table in self.tables if fold(table.name) == fold(str(wanted))]
        return min(found, key=lambda table: table.change == "dropped", default=None)


def catalog_diff(
    context: LakeContext, name: str, sides: Sides, net: DefinitionChanges, rows: Sequence[RowChanges]
) -> CatalogDiff:
    """What was done in one of the sides that are compared."""
    at = sides.ours.head.snapshot_id
    by_table = {changes.table: changes for changes in rows}

    def rows_of(number: TableId) -> Callable[[], RowDiff]:
        return lambda: _rows(context, by_table.get(number), sides, number)

    tables = tuple(
        TableDiff(*(getattr(changed, each.name) for each in fields(changed)), _rows=rows_of(number))
        for number, changed in table_changes(context.database, net, rows, sides).items()
    )
    objects = tuple(object_diffs(net, sides.base, sides.ours))
    return CatalogDiff(name, at, sides.base.head.snapshot_id, objects, tables)


def _rows(context: LakeContext, changes: RowChanges | None, sides: Sides, number: TableId) -> RowDiff:
    at = sides.ours.head.snapshot_id
    table = sides.ours.table(number)
    side = sides.ours if table is not None else sides.base
    draft = Draft(side.state, side.head)
    source = draft.source(draft.table(number))
    check_names(source)

    def plan() -> ChangePlan:
        if table is None:
            return dropped_plan(draft, source.table, at)
        return row_plan(source, sides.base, changes, at)

    return RowDiff(source, context, sides.base.head.snapshot_id, at, _plan=plan)
