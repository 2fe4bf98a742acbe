"""The part of a draft that is about rows: what was done to them, and how new ones are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from forklake.commit.changes import Pair
from forklake.commit.overlay import Overlay
from forklake.commit.staged import NOT_YET, StagedRows
from forklake.errors import InvalidSchemaChange
from forklake.model.entities import Column, Table
from forklake.model.ids import ColumnId, SnapshotId, TableId
from forklake.model.snapshots import Head
from forklake.model.sql.predicate import parse_sort_expression
from forklake.model.table.layout import PartitionField, Partitioning, SortKey, SortOrder
from forklake.model.types.data_types import can_widen, from_ducklake_name
from forklake.scan.scan_plan import Source, Uncommitted
from forklake.scan.table_indexes import TableIndexes
from forklake.store.catalog_state import CatalogState
from forklake.store.files import FileReader, tables_with_files, tables_with_inlined_rows
from forklake.store.table_statistics import has_statistics


class RowDraft:
    """Rows, partitionings and sort orders of tables, as a transaction would leave them."""

    def __init__(self, state: CatalogState, head: Head | None = None) -> None:
        """Start from a catalog as it is; its structure may have been read at an earlier snapshot."""
        self.state = state
        self.head = state.head if head is None else head
        self.written: list[str] = []
        """Files that were written for this draft, relative to the data path of the lake."""
        self.unneeded: list[str] = []
        """Those of them that nothing of this draft refers to any more."""
        self.is_past = False
        """Whether it shows what was, for reading."""
        self.prefix: str | None = None
        """What the names of files that the commit writes begin with; None for a name of their own."""
        self.may_stand = False
        """Whether it was, or may have been, committed: then its files are needed."""
        self._rows: dict[int, StagedRows] = {}
        self._partitionings: Overlay[int, Partitioning] = Overlay()
        self._sort_orders: Overlay[int, SortOrder] = Overlay()
        self._new_ids: list[int] = []

    def table(self, table: TableId) -> Table:
        """A table with its columns."""
        raise NotImplementedError

    def _is_kept(self, table: TableId) -> bool:
        """Whether a stored table is still there."""
        raise NotImplementedError

    def staged(self, table: Table) -> StagedRows:
        """What this draft does to the rows of a table."""
        return self._rows.setdefault(table.id, StagedRows())

    def staged_rows(self) -> list[tuple[Table, StagedRows]]:
        """Every table whose rows this draft changes."""
        return [(self.table(TableId(key)), rows) for key, rows in self._rows.items() if not rows.is_empty]

    def source(self, table: Table) -> Source:
        """The table for a scan, with what this draft has changed."""
        rows = self._rows.get(table.id)
        begins, has_old_names, steady = self._column_begins(table)
        stored = {} if table.id < 0 else self.state.partitionings(table.id)
        return Source(
            table,
            FileReader(self.state.database, self.head.catalog_id, table.id, self.head.snapshot_id),
            begins,
            stored,
            self.partitioning(table),
            has_old_names,
            steady,
            self._promoted(table),
            Uncommitted() if rows is None else rows.seen(),
            lambda: self.scan_indexes(table),
            table.id >= 0,
        )

    def scan_indexes(self, table: Table) -> TableIndexes:
        """The indexes that a scan of a table may use."""
        raise NotImplementedError

    def inlined_tables(self) -> list[TableId]:
        """The tables with rows that live in the database, apart from those that this draft dropped."""
        found = tables_with_inlined_rows(self.state.database, self.head.catalog_id, self.head.snapshot_id)
        return [table for table in found if self._is_kept(table)]

    def tables_with_files(self) -> list[TableId]:
        """The tables that have files or inlined rows, apart from those that this draft dropped."""
        found = tables_with_files(self.state.database, self.head.catalog_id, self.head.snapshot_id)
        return [table for table in found if self._is_kept(table)]

    def has_statistics(self, table: Table) -> bool:
        """Whether this catalog itself has counted rows of the table before."""
        return has_statistics(self.state.database, self.head.catalog_id, table.id)

    def partitioning(self, table: Table) -> Partitioning | None:
        """How new files of a table are partitioned."""
        if table.id in self._partitionings.now:
            return self._partitionings.now[table.id]
        return None if table.id < 0 else self.state.layout(table.id)[0]

    def sort_order(self, table: Table) -> SortOrder | None:
        """How rows of new files are sorted."""
        if table.id in self._sort_orders.now:
            return self._sort_orders.now[table.id]
        return None if table.id < 0 else self.state.layout(table.id)[1]

    def set_partitioning(self, table: Table, fields: tuple[PartitionField, ...]) -> None:
        """Stage another partitioning for new files; files that exist keep theirs."""
        before = self.partitioning(table)
        if fields != (() if before is None else before.fields):
            after = Partitioning(self._new_id(), table.id, fields) if fields else None
            self._partitionings.put(table.id, before, after)

    def set_sort_order(self, table: Table, keys: tuple[SortKey, ...]) -> None:
        """Stage another order for the rows of new files."""
        before = self.sort_order(table)
        if keys != (() if before is None else before.keys):
            after = SortOrder(self._new_id(), table.id, keys) if keys else None
            self._sort_orders.put(table.id, before, after)

    def _check_layout(self, table: Table, columns: tuple[Column, ...]) -> None:
        """Columns that files are laid out by must stay; a sort order follows their names."""
        ids = {column.id for column in columns}
        partitioning, order = self.partitioning(table), self.sort_order(table)
        names = {column.id: column.name for column in table.columns}
        for part in () if partitioning is None else partitioning.fields:
            if part.column_id not in ids:
                raise InvalidSchemaChange(
                    f'the table is partitioned by "{names[part.column_id]}": change its partitioning first'
                )
        if order is not None:
            now = {column.id: column.name for top in columns for column in top.walk()}
            self.set_sort_order(table, tuple(_renamed_key(key, table.columns, now) for key in order.keys))

    def _check_written_names(self, table: Table, columns: tuple[Column, ...]) -> None:
        """Inside structs, files are read by name: one with names that were never committed could not be."""
        before = {
            column.id: column.name for top in table.columns for column in top.walk() if column is not top
        }
        lost = next(self._renamed(table, before, columns), None)
        if lost is not None:
            raise InvalidSchemaChange(
                f'"{lost}" is new and this transaction has written rows with it: commit before you rename it'
            )

    def _written_names_lost(self, table: Table, columns: tuple[Column, ...]) -> list[str]:
        """Names of columns that files of this draft have, and that would never be known to anybody else.

        Columns are found by id, but an engine may give filters to a file by name: a later column of such a
        name must not be taken for this one.
        """
        return list(self._renamed(table, {column.id: column.name for column in table.columns}, columns))

    def _renamed(
        self, table: Table, before: Mapping[ColumnId, str], columns: tuple[Column, ...]
    ) -> Iterator[str]:
        """Names that were never committed, of columns that this draft has written rows with."""
        rows = self._rows.get(table.id)
        written = set[tuple[ColumnId, str]]() if rows is None else rows.names_with(table)
        if not written:
            return
        history = [] if table.id < 0 else self.state.column_history(table.id)
        unknown = written - {(entry.column_id, entry.name) for entry in history}
        for column in (column for top in columns for column in top.walk()):
            name = before.get(column.id, column.name)
            if name != column.name and (column.id, name) in unknown:
                yield name

    def _column_begins(self, table: Table) -> tuple[dict[ColumnId, SnapshotId], bool, frozenset[ColumnId]]:
        """When columns first appeared, whether fields of structs had other names, and which had none."""
        begins: dict[ColumnId, SnapshotId] = {}
        history = [] if table.id < 0 else self.state.column_history(table.id)
        names: dict[ColumnId, set[str]] = {}
        owners: dict[tuple[ColumnId | None, str], set[ColumnId]] = {}
        for entry in history:
            if entry.begin is not None:
                # One that was gone in between has the values of its last beginning.
                begins[entry.column_id] = max(entry.begin, begins.get(entry.column_id, entry.begin))
            names.setdefault(entry.column_id, set()).add(entry.name)
            owners.setdefault((entry.parent, entry.name.lower()), set()).add(entry.column_id)

        def is_steady(column: Column, parent: ColumnId | None) -> bool:
            others = owners.get((parent, column.name.lower()), set()) - {column.id}
            return names.get(column.id, {column.name}) == {column.name} and not others

        inside = {top.id: True for top in table.columns}
        for top in table.columns:
            for parent in top.walk():
                begins.setdefault(parent.id, NOT_YET)
                for child in parent.children if parent.type == "struct" else ():
                    inside[top.id] &= is_steady(child, parent.id)
        steady = frozenset(top.id for top in table.columns if inside[top.id] and is_steady(top, None))
        return begins, not all(inside.values()), steady

    def _promoted(self, table: Table) -> frozenset[ColumnId]:
        """The columns in which something had a type that only DuckDB reads as the present one."""
        history = [] if table.id < 0 else self.state.column_history(table.id)
        types: dict[ColumnId, set[str]] = {}
        for entry in history:
            types.setdefault(entry.column_id, set()).add(entry.type)

        def is_promoted(column: Column) -> bool:
            former = types.get(column.id, set()) - {column.type}
            return any(not can_widen(from_ducklake_name(old), column.data_type) for old in former)

        return frozenset(
            top.id
            for top in table.columns
            if any(is_promoted(column) for column in top.walk() if not column.children)
        )

    def restore_layout(self, table: Table, part: Partitioning | None, order: SortOrder | None) -> None:
        """Stage the layout that a table had. One that has ended is another object from now on."""
        stored = self.state.layout(table.id) if self.state.table(table.id) is not None else (None, None)
        before, after = stored[0], part
        if after is not None and (before is None or before.fields != after.fields):
            after = Partitioning(self._new_id(), table.id, after.fields)
        elif after is not None:
            after = before
        self._partitionings.put(table.id, before, after)
        first, then = stored[1], order
        if then is not None and (first is None or first.keys != then.keys):
            then = SortOrder(self._new_id(), table.id, then.keys)
        elif then is not None:
            then = first
        self._sort_orders.put(table.id, first, then)

    def forget_rows(self, table: int) -> None:
        """Take back what this draft did to the rows and the layout of a table."""
        self._forget_rows(table)

    def _forget_rows(self, table: int) -> None:
        rows = self._rows.pop(table, None)
        if rows is not None:
            # Files that were imported stand in no list of what was written, and stay.
            self.unneeded += sorted({file.written.path for file in rows.added.values()} & set(self.written))
        self._partitionings.forget(table)
        self._sort_orders.forget(table)

    def _layout_pairs(self) -> list[Pair]:
        """Another layout is another object: the old one ends and the new one begins."""
        changed = (*self._partitionings.pairs(), *self._sort_orders.pairs())
        return [pair for before, after in changed for pair in ((before, None), (None, after)) if any(pair)]

    def _new_id(self) -> int:
        self._new_ids.append(-1 - len(self._new_ids))
        return self._new_ids[-1]


def _renamed_key(key: SortKey, columns: tuple[Column, ...], now: Mapping[ColumnId, str]) -> SortKey:
    """A sort key over columns that may have other names now, or be gone."""
    names = {key.name}
    if key.is_expression:
        names = set(parse_sort_expression(key.name, columns)[1])
    ids = {column.name: column.id for column in columns}
    for name in sorted(names):
        if ids[name] not in now:
            raise InvalidSchemaChange(f'the table is sorted by "{name}": change its sort order first')
    if key.is_expression:
        return replace(key, name=parse_sort_expression(key.name, columns, now)[0])
    return replace(key, name=now[ids[key.name]])
