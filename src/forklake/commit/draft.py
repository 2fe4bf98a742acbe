"""Staged changes: a catalog as it was at some snapshot, and as a transaction would leave it.

A draft reads the base through a `CatalogState` and keeps what was changed beside it. It holds no database
transaction and no lock, so it may live as long as its owner likes. New objects have provisional, negative ids
until the commit draws real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar
from uuid import uuid4

from forklake.commit.changes import Pair, changes_of
from forklake.commit.settle import TableWrites
from forklake.commit.staged import NOT_YET, StagedRows
from forklake.commit.write_rows import changes_of_rows
from forklake.errors import (
    InvalidSchemaChange,
    MacroExists,
    MacroNotFound,
    SchemaExists,
    SchemaNotEmpty,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    ViewExists,
    ViewNotFound,
)
from forklake.model.changes import Change
from forklake.model.entities import Column, Macro, MacroImpl, Origin, Schema, Table, TableInfo, Tag, View
from forklake.model.ids import ColumnId, MacroId, SchemaId, SnapshotId, TableId, ViewId
from forklake.model.layout import PartitionField, Partitioning, SortKey, SortOrder
from forklake.model.names import QualifiedName, check_name, check_text, folder_for
from forklake.model.snapshots import Head
from forklake.scan.plan import Source, Uncommitted
from forklake.store.files import FileReader
from forklake.store.read import CatalogState
from forklake.store.rows import RowKey

Tagged = Schema | Table | View | Macro
_KINDS: dict[type, Literal["schema", "table", "view", "macro"]] = {
    Schema: "schema",
    Table: "table",
    View: "view",
    Macro: "macro",
}

K = TypeVar("K")
E = TypeVar("E", Schema, Table, View, Macro, Tag, Partitioning, SortOrder)
R = TypeVar("R", Table, View)


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


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit has to write."""

    changes: tuple[Change, ...]
    pairs: tuple[Pair, ...]
    dropped_rows: dict[RowKey, Origin]
    """Rows of dropped objects that the draft never looked at, such as columns."""
    new_ids: tuple[int, ...]
    """Provisional ids, in the order in which they were given out."""
    rows: tuple[TableWrites, ...] = ()
    """What becomes of the rows of tables."""
    dropped_tables: tuple[int, ...] = ()
    burnt_columns: tuple[tuple[int, int], ...] = ()
    """Tables with the highest column id that files may know, where no column has it any more."""


class Draft:
    """A catalog at its base, with what was changed since."""

    def __init__(self, state: CatalogState, head: Head | None = None) -> None:
        """Start from a catalog as it is; its structure may have been read at an earlier snapshot."""
        self.state = state
        self.head = state.head if head is None else head
        self._rows: dict[int, StagedRows] = {}
        self._partitionings: Overlay[int, Partitioning] = Overlay()
        self._sort_orders: Overlay[int, SortOrder] = Overlay()
        self.written: list[str] = []
        """Files that were written for this draft, relative to the data path of the lake."""
        self._schemas: Overlay[int, Schema] = Overlay()
        self._tables: Overlay[int, Table] = Overlay()
        self._views: Overlay[int, View] = Overlay()
        self._macros: Overlay[int, Macro] = Overlay()
        self._tags: Overlay[tuple[int, ColumnId | None, str], Tag] = Overlay()
        self._dropped_rows: dict[RowKey, Origin] = {}
        self._new_ids: list[int] = []
        self._highest_column: dict[int, int] = {}
        self._base_macros: list[Macro] | None = None

    # ---- Reading ---

    def schemas(self) -> list[Schema]:
        """Every schema, in the order in which they were created."""
        schemas = _merged(self.state.schemas(), self._schemas)
        return sorted(schemas, key=lambda schema: (schema.id < 0, abs(schema.id)))

    def schema_named(self, name: str) -> Schema:
        """A schema by name."""
        found = self._find_schema(check_name(name, "schema"))
        if found is None:
            raise SchemaNotFound(f'there is no schema "{name}" in this catalog')
        return found

    def tables(self) -> list[TableInfo]:
        """Every table, by schema and name."""
        names = {schema.id: schema.name for schema in self.schemas()}
        stored = [table for table in self.state.table_list() if table.id not in self._tables.now]
        if self._schemas.now:
            current = {schema.name: names.get(schema.id) for schema in self.state.schemas().values()}
            stored = [replace(table, schema=current[table.schema] or table.schema) for table in stored]
        staged = [TableInfo(names[t.schema_id], t.name, t.id, t.uuid) for t in self._tables.live()]
        return sorted(stored + staged, key=lambda table: (table.schema, table.name))

    def table(self, table: TableId) -> Table:
        """A table with its columns."""
        found = self._tables.now[table] if table in self._tables.now else self.state.table(table)
        if found is None:
            raise TableNotFound(
                f"table {table} is not there at snapshot {self.head.snapshot_id}: it was dropped or is newer"
            )
        return found

    def find_table(self, name: QualifiedName) -> Table | None:
        """A table, if there is one of this name."""
        schema = self._find_schema(name.schema)
        return None if schema is None else self._find_table(schema.id, name.name)

    def table_named(self, name: QualifiedName) -> Table:
        """A table with its columns, by name."""
        found = self._find_table(self.schema_named(name.schema).id, name.name)
        if found is None:
            raise TableNotFound(f'there is no table "{name}": `forklake tables` lists those that are')
        return found

    def views(self) -> list[View]:
        """Every view."""
        return _merged({view.id: view for view in self.state.views()}, self._views)

    def find_view(self, name: QualifiedName) -> View | None:
        """A view, if there is one of this name."""
        schema = self._find_schema(name.schema)
        return None if schema is None else self._find_view(schema.id, name.name)

    def view_named(self, name: QualifiedName) -> View:
        """A view by name."""
        found = self._find_view(self.schema_named(name.schema).id, name.name)
        if found is None:
            raise ViewNotFound(f'there is no view "{name}"')
        return found

    def macros(self) -> list[Macro]:
        """Every macro with its overloads."""
        if self._base_macros is None:
            self._base_macros = self.state.macros()
        return _merged({macro.id: macro for macro in self._base_macros}, self._macros)

    def find_macro(self, name: QualifiedName) -> Macro | None:
        """A macro, if there is one of this name."""
        schema = self._find_schema(name.schema)
        return None if schema is None else self._find_macro(schema.id, name.name)

    def macro_named(self, name: QualifiedName) -> Macro:
        """A macro by name."""
        found = self._find_macro(self.schema_named(name.schema).id, name.name)
        if found is None:
            raise MacroNotFound(f'there is no macro "{name}"')
        return found

    def name_of(self, item: Table | View | Macro) -> QualifiedName:
        """The name of an object with that of its schema."""
        schema = next(schema for schema in self.schemas() if schema.id == item.schema_id)
        return QualifiedName(schema.name, item.name)

    def tags(self, object_id: int) -> dict[str, str]:
        """The tags of a schema, table, view or macro."""
        stored = [] if object_id < 0 else self.state.tags(object_id)
        tags = {tag.key: tag.value for tag in stored}
        for (owner, column, key), tag in self._tags.now.items():
            if owner == object_id and column is None:
                tags.pop(key, None)
                tags |= {} if tag is None else {key: tag.value}
        return tags

    def column_tags(self, table: TableId) -> dict[ColumnId, dict[str, str]]:
        """The tags of the columns of a table."""
        tags: dict[ColumnId, dict[str, str]] = {}
        for tag in [] if table < 0 else self.state.column_tags(table):
            tags.setdefault(tag.column_id or ColumnId(0), {})[tag.key] = tag.value
        for (owner, column, key), tag in self._tags.now.items():
            if owner == table and column is not None:
                tags.setdefault(column, {}).pop(key, None)
                tags[column] |= {} if tag is None else {key: tag.value}
        return tags

    # ---- Schemas ---

    def create_schema(self, name: str) -> Schema:
        """Stage a new schema."""
        self._refuse_taken_schema(check_name(name, "schema"))
        uuid = str(uuid4())
        schema = Schema(SchemaId(self._new_id()), uuid, name, self.head.data_path + folder_for(name, uuid))
        self._schemas.put(schema.id, None, schema)
        return schema

    def rename_schema(self, schema: Schema, name: str) -> None:
        """Stage a new name; the folder keeps the old one."""
        if name != schema.name:
            self._refuse_taken_schema(check_name(name, "schema"))
            self._schemas.put(schema.id, schema, replace(schema, name=name))

    def drop_schema(self, schema: Schema, *, cascade: bool) -> None:
        """Stage the end of a schema, and with `cascade` of everything in it."""
        tables = [table for table in self._stored_tables_in(schema.id) if table.id not in self._tables.now]
        tables += [table for table in self._tables.live() if table.schema_id == schema.id]
        views = [view for view in self.views() if view.schema_id == schema.id]
        macros = [macro for macro in self.macros() if macro.schema_id == schema.id]
        if not cascade and (tables or views or macros):
            count = len(tables) + len(views) + len(macros)
            raise SchemaNotEmpty(
                f'schema "{schema.name}" still holds {count} objects: drop them, or pass cascade=True'
            )
        touched = self._tables.now.keys() | self._views.now.keys() | self._macros.now.keys()
        if schema.id >= 0 and cascade:
            self._dropped_rows |= self.state.rows_in_schema(schema.id, but=touched)
        for item in (*tables, *views, *macros):
            if item.id in touched:
                self._drop_rows_of(item.id)
        self._drop_rows_of(schema.id)
        for table in tables:
            self._forget_rows(table.id)
            self._tables.put(table.id, table, None)
        for view in views:
            self._views.put(view.id, view, None)
        for macro in macros:
            self._macros.put(macro.id, macro, None)
        self._forget_tags({item.id for item in (*tables, *views, *macros)})
        self._schemas.put(schema.id, schema, None)

    # ---- Tables ---

    def create_table(self, name: QualifiedName, columns: tuple[Column, ...]) -> Table:
        """Stage a new table."""
        schema = self.schema_named(name.schema)
        self._refuse_taken_relation(schema.id, name)
        uuid = str(uuid4())
        path = schema.path + folder_for(name.name, uuid)
        table = Table(TableId(self._new_id()), uuid, schema.id, name.name, path, columns)
        self._tables.put(table.id, None, table)
        return table

    def rename_table(self, table: Table, name: QualifiedName) -> None:
        """Stage a new name, in the same or another schema; the folder stays."""
        schema = self.schema_named(name.schema)
        if (schema.id, name.name) != (table.schema_id, table.name):
            self._refuse_taken_relation(schema.id, name)
            self._tables.put(table.id, table, replace(table, schema_id=schema.id, name=name.name))

    def set_columns(self, table: Table, columns: tuple[Column, ...]) -> None:
        """Stage a new structure."""
        kept = {column.id for column in replace(table, columns=columns).walk()}
        self._check_layout(table, columns)
        self._check_written_names(table, columns)
        self._highest_column[table.id] = max(self.last_column_id(table), *kept)
        for column in table.walk():
            if column.id not in kept:
                self._drop_column_tags(table, column.id)
        self._tables.put(table.id, table, replace(table, columns=columns))

    def drop_table(self, table: Table) -> None:
        """Stage the end of a table and of all that belongs to it."""
        self._forget_rows(table.id)
        self._drop_rows_of(table.id)
        self._tables.put(table.id, table, None)

    def last_column_id(self, table: Table) -> int:
        """The highest column id that the table ever used, here or in the base."""
        if table.id not in self._highest_column:
            stored = self.state.last_column_id(table.id) if table.id >= 0 else 0
            self._highest_column[table.id] = max(stored, *(column.id for column in table.walk()))
        return self._highest_column[table.id]

    # ---- Rows and how they are laid out ---

    def staged(self, table: Table) -> StagedRows:
        """What this draft does to the rows of a table."""
        return self._rows.setdefault(table.id, StagedRows())

    def staged_rows(self) -> list[tuple[Table, StagedRows]]:
        """Every table whose rows this draft changes."""
        return [(self.table(TableId(key)), rows) for key, rows in self._rows.items() if not rows.is_empty]

    def source(self, table: Table) -> Source:
        """The table for a scan, with what this draft has changed."""
        rows = self._rows.get(table.id)
        begins, has_old_names = self._column_begins(table)
        stored = {} if table.id < 0 else self.state.partitionings(table.id)
        return Source(
            table,
            FileReader(self.state.database, self.head.catalog_id, table.id, self.head.snapshot_id),
            begins,
            stored,
            self.partitioning(table),
            has_old_names,
            Uncommitted() if rows is None else rows.seen(),
            table.id >= 0,
        )

    def inlined_tables(self) -> list[TableId]:
        """The tables with rows that live in the database, apart from those that this draft dropped."""
        found = self.state.database.rows(
            "inlined_tables", catalog=self.head.catalog_id, at=self.head.snapshot_id
        )
        return [TableId(row[0]) for row in found if self._tables.now.get(row[0], True) is not None]

    def has_figures(self, table: Table) -> bool:
        """Whether this catalog itself has counted rows of the table before."""
        listed = json.dumps([table.id])
        return bool(self.state.database.rows("figures", catalog=self.head.catalog_id, tables=listed))

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
        if order is None:
            return
        by_name = {column.name: column.id for column in table.columns}
        now = {column.id: column.name for column in columns}
        for key in order.keys:
            if by_name[key.name] not in now:
                raise InvalidSchemaChange(f'the table is sorted by "{key.name}": change its sort order first')
        self.set_sort_order(table, tuple(replace(key, name=now[by_name[key.name]]) for key in order.keys))

    def _check_written_names(self, table: Table, columns: tuple[Column, ...]) -> None:
        """Inside structs, files are read by name: one with names that were never committed could not be."""
        rows = self._rows.get(table.id)
        if rows is None or not rows.added:
            return
        stored = set() if table.id < 0 else {entry.column_id for entry in self.state.column_history(table.id)}
        before = {
            column.id: column.name for top in table.columns for column in top.walk() if column is not top
        }
        for top in columns:
            for column in top.walk():
                if before.get(column.id, column.name) != column.name and column.id not in stored:
                    raise InvalidSchemaChange(
                        f'"{before[column.id]}" is new and this transaction has written rows with it: '
                        "commit before you rename it"
                    )

    def _column_begins(self, table: Table) -> tuple[dict[ColumnId, SnapshotId], bool]:
        """When columns first appeared, and whether fields of structs ever had other names."""
        begins: dict[ColumnId, SnapshotId] = {}
        history = [] if table.id < 0 else self.state.column_history(table.id)
        names: dict[ColumnId, set[str]] = {}
        for entry in history:
            begins[entry.column_id] = min(entry.begin, begins.get(entry.column_id, entry.begin))
            names.setdefault(entry.column_id, set()).add(entry.name)
        old = False
        for parent in table.walk():
            begins.setdefault(parent.id, NOT_YET)
            for child in parent.children if parent.type == "struct" else ():
                others = {
                    entry.column_id
                    for entry in history
                    if entry.parent == parent.id and entry.name.lower() == child.name.lower()
                }
                old = old or names.get(child.id, {child.name}) != {child.name} or bool(others - {child.id})
        return begins, old

    def _forget_rows(self, table: int) -> None:
        self._rows.pop(table, None)
        self._partitionings.forget(table)
        self._sort_orders.forget(table)

    # ---- Views and macros ---

    def create_view(
        self, name: QualifiedName, sql: str, *, aliases: tuple[str, ...], or_replace: bool
    ) -> View:
        """Stage a new view, or a new body for one."""
        schema = self.schema_named(name.schema)
        existing = self._find_view(schema.id, name.name)
        if existing is not None and or_replace:
            view = replace(existing, sql=sql, column_aliases=aliases)
            self._views.put(view.id, existing, view)
            return view
        self._refuse_taken_relation(schema.id, name)
        view = View(ViewId(self._new_id()), str(uuid4()), schema.id, name.name, sql, column_aliases=aliases)
        self._views.put(view.id, None, view)
        return view

    def rename_view(self, view: View, name: QualifiedName) -> None:
        """Stage a new name, in the same or another schema."""
        schema = self.schema_named(name.schema)
        if (schema.id, name.name) != (view.schema_id, view.name):
            self._refuse_taken_relation(schema.id, name)
            self._views.put(view.id, view, replace(view, schema_id=schema.id, name=name.name))

    def drop_view(self, view: View) -> None:
        """Stage the end of a view."""
        self._drop_rows_of(view.id)
        self._views.put(view.id, view, None)

    def create_macro(self, name: QualifiedName, impls: tuple[MacroImpl, ...], *, or_replace: bool) -> Macro:
        """Stage a new macro; replacing one gives it a new id, since overloads never change."""
        schema = self.schema_named(name.schema)
        existing = self._find_macro(schema.id, name.name)
        if existing is not None:
            if not or_replace:
                raise MacroExists(f'macro "{name}" exists: choose another name, or pass or_replace=True')
            if existing.implementations == impls:
                return existing
            self.drop_macro(existing)
        macro = Macro(MacroId(self._new_id()), schema.id, name.name, impls)
        self._macros.put(macro.id, None, macro)
        return macro

    def rename_macro(self, macro: Macro, name: QualifiedName) -> None:
        """Stage a new name, in the same or another schema."""
        schema = self.schema_named(name.schema)
        if (schema.id, name.name) != (macro.schema_id, macro.name):
            if self._find_macro(schema.id, name.name) is not None:
                raise MacroExists(f'macro "{name}" exists: choose another name')
            self._macros.put(macro.id, macro, replace(macro, schema_id=schema.id, name=name.name))

    def drop_macro(self, macro: Macro) -> None:
        """Stage the end of a macro."""
        self._drop_rows_of(macro.id)
        self._macros.put(macro.id, macro, None)

    # ---- Tags ---

    def set_tag(self, owner: Tagged, column: ColumnId | None, key: str, value: str | None) -> None:
        """Stage a tag; None removes it."""
        if value is not None:
            check_text(value, "tag")
        place = (owner.id, column, check_name(key, "tag"))
        if place in self._tags.now:
            before = self._tags.base[place]
        elif owner.id < 0:
            before = None
        else:
            stored = (
                self.state.tags(owner.id) if column is None else self.state.column_tags(TableId(owner.id))
            )
            before = next((tag for tag in stored if (tag.column_id, tag.key) == (column, key)), None)
        kind = _KINDS[type(owner)]
        if before is not None:
            before = replace(before, kind=kind, label=owner.name)
        after = None if value is None else Tag(owner.id, key, value, column, kind, owner.name)
        self._tags.put(place, before, after)

    # ---- Ending ---

    def plan(self, rows: tuple[TableWrites, ...] = ()) -> Plan:
        """What a commit has to write; nothing at all if every change was undone."""
        pairs: list[Pair] = [
            *self._schemas.pairs(),
            *self._tables.pairs(),
            *self._layout_pairs(),
            *self._views.pairs(),
            *self._macros.pairs(),
            *self._tags.pairs(),
        ]
        names: dict[int, str] = (
            {schema.id: schema.name for schema in self.state.schemas().values()} if pairs or rows else {}
        )
        names |= {schema.id: schema.name for schema in self._schemas.live()}
        created = {
            entity.id for before, entity in pairs if before is None and not isinstance(entity, Tag | None)
        }
        new_ids = tuple(new for new in self._new_ids if new in created)
        changes = changes_of(pairs, names.get)

        def about(table: int) -> dict[str, Any]:
            found = self.table(TableId(table))
            return {"schema_id": found.schema_id, "schema": names.get(found.schema_id), "name": found.name}

        return Plan(
            (*changes, *changes_of_rows(rows, about)),
            tuple(pairs),
            dict(self._dropped_rows),
            new_ids,
            rows,
            tuple(b.id for b, after in pairs if isinstance(b, Table) and after is None),
            tuple(self._burnt()),
        )

    def _layout_pairs(self) -> list[Pair]:
        """Another layout is another object: the old one ends and the new one begins."""
        changed = (*self._partitionings.pairs(), *self._sort_orders.pairs())
        return [pair for before, after in changed for pair in ((before, None), (None, after)) if any(pair)]

    def _burnt(self) -> Iterator[tuple[int, int]]:
        """An id that a column had within this transaction is not given again: files may know it."""
        for table in self._tables.live():
            highest = self._highest_column.get(table.id, 0)
            stored = self.state.last_column_id(table.id) if table.id >= 0 and highest else 0
            if highest > max(stored, *(column.id for column in table.walk())):
                yield table.id, highest

    # ---- Details ---

    def _new_id(self) -> int:
        self._new_ids.append(-1 - len(self._new_ids))
        return self._new_ids[-1]

    def _find_schema(self, name: str) -> Schema | None:
        return next((schema for schema in self.schemas() if schema.name == name), None)

    def _find_table(self, schema: SchemaId, name: str) -> Table | None:
        staged = _staged(self._tables, schema, name)
        if staged is not None or schema < 0:
            return staged
        found = self.state.table_named(schema, name)
        return None if found is None or found.id in self._tables.now else found

    def _find_view(self, schema: SchemaId, name: str) -> View | None:
        staged = _staged(self._views, schema, name)
        if staged is not None or schema < 0:
            return staged
        found = self.state.view_named(schema, name)
        return None if found is None or found.id in self._views.now else found

    def _find_macro(self, schema: SchemaId, name: str) -> Macro | None:
        return next(
            (macro for macro in self.macros() if (macro.schema_id, macro.name) == (schema, name)), None
        )

    def _stored_tables_in(self, schema: SchemaId) -> list[Table]:
        return [] if schema < 0 else self.state.tables_in(schema)

    def _refuse_taken_schema(self, name: str) -> None:
        if self._find_schema(name) is not None:
            raise SchemaExists(f'schema "{name}" exists: choose another name')

    def _refuse_taken_relation(self, schema: SchemaId, name: QualifiedName) -> None:
        # One look decides the common case; the staged changes matter only if there are any.
        touched = self._tables.now or self._views.now
        if not touched and (schema < 0 or self.state.taken(schema, name.name) is None):
            return
        if self._find_table(schema, name.name) is not None:
            raise TableExists(f'table "{name}" exists: choose another name, or drop it first')
        if self._find_view(schema, name.name) is not None:
            raise ViewExists(f'view "{name}" exists: choose another name, or drop it first')

    def _drop_rows_of(self, object_id: int) -> None:
        if object_id >= 0:
            self._dropped_rows |= self.state.rows_of_object(object_id)
        self._forget_tags({object_id})

    def _forget_tags(self, objects: set[int]) -> None:
        """Staged tags of dropped objects vanish; stored ones end with their rows."""
        for place in [place for place in self._tags.now if place[0] in objects]:
            del self._tags.now[place], self._tags.base[place]

    def _drop_column_tags(self, table: Table, column: ColumnId) -> None:
        for key in self.column_tags(table.id).get(column, {}):
            self.set_tag(table, column, key, None)


def _merged(stored: dict[int, E], overlay: Overlay[int, E]) -> list[E]:
    kept = [entity for key, entity in stored.items() if key not in overlay.now]
    return kept + overlay.live()


def _staged(overlay: Overlay[int, R], schema: SchemaId, name: str) -> R | None:
    return next((item for item in overlay.live() if (item.schema_id, item.name) == (schema, name)), None)
