"""Staged changes: a catalog as it was at some snapshot, and as a transaction would leave it.

A draft reads the base through a `CatalogState` and keeps what was changed beside it. It holds no database
transaction and no lock, so it may live as long as its owner likes. New objects have provisional, negative ids
until the commit draws real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar
from uuid import uuid4

from forklake.commit.changes import Pair, changes_of
from forklake.commit.commit_plan import Plan
from forklake.commit.draft_indexes import DraftIndexes
from forklake.commit.index_writes import IndexWrites, changes_of_indexes, index_writes
from forklake.commit.inlining import TableWrites
from forklake.commit.write_rows import changes_of_rows
from forklake.errors import (
    MacroExists,
    SchemaExists,
    SchemaNotEmpty,
    TableExists,
    ViewExists,
)
from forklake.model.alike import alike
from forklake.model.changes import Change, Verb
from forklake.model.entities import Column, Macro, MacroImpl, Origin, Schema, Table, Tag, View
from forklake.model.ids import ColumnId, IndexId, MacroId, SchemaId, SnapshotId, TableId, ViewId
from forklake.model.names import QualifiedName, check_name, check_text, folder_for
from forklake.model.snapshots import Head
from forklake.model.table.layout import Partitioning, SortOrder
from forklake.store.catalog_state import CatalogState
from forklake.store.entity_rows import RowKey

Tagged = Schema | Table | View | Macro
_KINDS: dict[type, Literal["schema", "table", "view", "macro"]] = {
    Schema: "schema",
    Table: "table",
    View: "view",
    Macro: "macro",
}

_WHOLE = (Verb.CREATE_TABLE, Verb.DROP_TABLE)

K = TypeVar("K")
E = TypeVar("E", Schema, Table, View, Macro, Tag, Partitioning, SortOrder)
R = TypeVar("R", Table, View)
T = TypeVar("T")


class Draft(DraftIndexes):
    """A catalog at its base, with what was changed since."""

    def __init__(self, state: CatalogState, head: Head | None = None) -> None:
        """Start from a catalog as it is; its structure may have been read at an earlier snapshot."""
        super().__init__(state, head)
        self._dropped_rows: dict[RowKey, Origin] = {}
        self._highest_column: dict[int, int] = {}
        self._gone_columns: dict[tuple[int, int], str] = {}
        """The names of columns that were dropped, and those that only files know, under ids of their own."""
        self._returning: set[int] = set()
        self.restored: dict[int, str | None] = {}
        """Tables that were restored, and how."""
        self.is_restored = False
        """Whether the whole catalog was."""
        self.past: set[SnapshotId] = set()
        """Snapshots that rows come back from."""

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
            self._refuse_taken_schema(check_name(name, "schema"), schema.id)
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
            self._forget_indexes(table.id)
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
            self._refuse_taken_relation(schema.id, name, table.id)
            self._tables.put(table.id, table, replace(table, schema_id=schema.id, name=name.name))

    def set_columns(self, table: Table, columns: tuple[Column, ...]) -> None:
        """Stage a new structure."""
        kept = {column.id for column in replace(table, columns=columns).walk()}
        self._check_layout(table, columns)
        self._check_written_names(table, columns)
        self._highest_column[table.id] = max(self.last_column_id(table), *kept)
        for name in self._written_names_lost(table, columns):
            self._highest_column[table.id] += 1
            self._gone_columns[table.id, self._highest_column[table.id]] = name
        for column in table.walk():
            if column.id not in kept:
                self._gone_columns[table.id, column.id] = column.name
                self._drop_column_tags(table, column.id)
        self._drop_indexes_of_lost_columns(table, replace(table, columns=columns))
        self._tables.put(table.id, table, replace(table, columns=columns))

    def drop_table(self, table: Table) -> None:
        """Stage the end of a table and of all that belongs to it."""
        self._forget_rows(table.id)
        self._forget_indexes(table.id)
        self._drop_rows_of(table.id)
        self._tables.put(table.id, table, None)

    def last_column_id(self, table: Table) -> int:
        """The highest column id that the table ever used, here or in the base."""
        if table.id not in self._highest_column:
            stored = self.state.last_column_id(table.id) if table.id >= 0 else 0
            self._highest_column[table.id] = max(stored, *(column.id for column in table.walk()))
        return self._highest_column[table.id]

    # ---- Views and macros ---

    def create_view(
        self, name: QualifiedName, sql: str, *, aliases: tuple[str, ...], or_replace: bool
    ) -> View:
        """Stage a new view, or a new body for one."""
        schema = self.schema_named(name.schema)
        existing = self._find_view(schema.id, name.name)
        if existing is not None and or_replace:
            view = replace(existing, name=name.name, sql=sql, column_aliases=aliases)
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
            self._refuse_taken_relation(schema.id, name, view.id)
            self._views.put(view.id, view, replace(view, schema_id=schema.id, name=name.name))

    def drop_view(self, view: View) -> None:
        """Stage the end of a view."""
        self._drop_rows_of(view.id)
        self._views.put(view.id, view, None)

    def create_macro(self, name: QualifiedName, impls: tuple[MacroImpl, ...], *, or_replace: bool) -> Macro:
        """Stage a new macro; replacing one gives it a new id, since overloads never change."""
        schema = self.schema_named(name.schema)
        existing = self._find_macro(schema.id, name.name, impls[0].kind)
        if existing is not None:
            if not or_replace:
                raise _macro_exists(name, existing, ", or pass or_replace=True")
            if (existing.name, existing.implementations) == (name.name, impls):
                return existing
            self.drop_macro(existing)
        macro = Macro(MacroId(self._new_id()), schema.id, name.name, impls)
        self._macros.put(macro.id, None, macro)
        return macro

    def rename_macro(self, macro: Macro, name: QualifiedName) -> None:
        """Stage a new name, in the same or another schema."""
        schema = self.schema_named(name.schema)
        if (schema.id, name.name) != (macro.schema_id, macro.name):
            place = (schema.id, macro.kind)
            others = [other for other in self.macros() if (other.schema_id, other.kind) == place]
            for holder in alike(name.name, (other for other in others if other.id != macro.id)):
                raise _macro_exists(name, holder)
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

    # ---- Taking over what another catalog did ---

    def adopt(self, before: Tagged | None, after: Tagged | None) -> None:
        """Stage an object as another catalog has it; it keeps its id."""
        match after if after is not None else before:
            case Schema(id=number):
                self._schemas.put(number, _as(Schema, before), _as(Schema, after))
            case Table(id=number):
                self._tables.put(number, _as(Table, before), _as(Table, after))
                self._drop_indexes_of_lost_columns(_as(Table, before), _as(Table, after))
            case View(id=number):
                self._views.put(number, _as(View, before), _as(View, after))
            case Macro(id=number):
                self._macros.put(number, _as(Macro, before), _as(Macro, after))
            case None:
                return
        if after is None and before is not None:
            self._forget_rows(before.id)
            self._forget_indexes(before.id)
            self._drop_rows_of(before.id)

    def bring_back(self, before: Tagged | None, after: Tagged) -> None:
        """Stage an object as it was; it keeps its id. `before` is how the base has it."""
        if self._dropped_rows and before is not None:
            for key in self.state.rows_of_object(after.id):
                self._dropped_rows.pop(key, None)
        # A table that was dropped with its schema was staged without its columns.
        self._tables.forget(after.id)
        self.adopt(before, after)
        if before is None:
            self._returning.add(after.id)

    def staged_objects(self) -> set[int]:
        """The ids of everything whose definition or tags this draft has touched."""
        overlays = (self._schemas, self._tables, self._views, self._macros)
        touched = {number for overlay in overlays for number in overlay.now}
        touched |= {owner for owner, _, _ in self._tags.now}
        return touched | self._partitionings.now.keys() | self._sort_orders.now.keys()

    def adopt_layout(self, table: TableId, part: Partitioning | None, order: SortOrder | None) -> None:
        """Stage the layout that a table has in another catalog; both keep their ids."""
        stored = (None, None) if self.state.table(table) is None else self.state.layout(table)
        if stored[0] != part:
            self._partitionings.put(table, stored[0], part)
        if stored[1] != order:
            self._sort_orders.put(table, stored[1], order)

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
        indexes = self._indexes.pairs()
        files = index_writes(self._index_files)
        names: dict[int, str] = (
            {schema.id: schema.name for schema in self.state.schemas().values()}
            if pairs or rows or indexes or files
            else {}
        )
        names |= {schema.id: schema.name for schema in self._schemas.live()}
        created = {
            entity.id
            for before, entity in (*pairs, *indexes)
            if before is None and not isinstance(entity, Tag | None)
        }
        new_ids = tuple(new for new in self._new_ids if new in created)
        changes = changes_of(pairs, names.get)

        def about(table: int) -> dict[str, Any]:
            found = self.table(TableId(table))
            return {"schema_id": found.schema_id, "schema": names.get(found.schema_id), "name": found.name}

        changes += changes_of_indexes(
            indexes,
            files,
            self._index_names(files),
            about,
            whole={change.object_id for change in changes if change.verb in _WHOLE},
            with_rows={table.table_id for table in rows},
        )
        changes += changes_of_rows(rows, about)
        changes += self._restorations(changes, about)
        return Plan(
            tuple(changes),
            (*pairs, *indexes),
            dict(self._dropped_rows),
            new_ids,
            rows,
            files,
            tuple(b.id for b, after in pairs if isinstance(b, Table) and after is None),
            tuple(self._burnt()),
            frozenset(self._returning),
            past=frozenset(self.past),
        )

    def _index_names(self, files: Sequence[IndexWrites]) -> dict[IndexId, str]:
        """The names of indexes that files are added to."""
        tables = [self.table(TableId(writes.table_id)) for writes in files]
        return {index.id: index.name for table in tables for index in self.indexes(table)}

    def _restorations(
        self, changes: Sequence[Change], about: Callable[[int], Mapping[str, Any]]
    ) -> Iterator[Change]:
        """That tables, or all, were made what they had been, where that changed anything."""
        changed = {change.object_id for change in changes}
        for table, detail in self.restored.items():
            if table in changed and self._is_kept(TableId(table)):
                yield Change(Verb.RESTORE_TABLE, table, detail=detail, **about(table))
        if self.is_restored and changes:
            yield Change(Verb.RESTORE_CATALOG, self.head.catalog_id)

    def _burnt(self) -> Iterator[tuple[int, int, str]]:
        """Ids and names that columns had within this transaction alone: files may know them."""
        live = {table.id: table for table in self._tables.live()}
        for (number, column), name in self._gone_columns.items():
            if number in live and (number < 0 or column > self.state.last_column_id(TableId(number))):
                yield number, column, name

    # ---- Details ---

    def _stored_tables_in(self, schema: SchemaId) -> list[Table]:
        return [] if schema < 0 else self.state.tables_in(schema)

    def _refuse_taken_schema(self, name: str, mine: int | None = None) -> None:
        """Refuse a name that another schema has, whatever its case; `mine` is renamed to it."""
        for holder in alike(name, self.schemas()):
            if holder.id != mine:
                raise SchemaExists(
                    f'schema "{holder.name}" exists: choose another name{_but_for_case(name, holder.name)}'
                )

    def _refuse_taken_relation(self, schema: SchemaId, name: QualifiedName, mine: int | None = None) -> None:
        # One look decides the common case; the staged changes matter only if there are any.
        touched = self._tables.now or self._views.now
        if not touched and (schema < 0 or not self.state.taken(schema, name.name)):
            return
        for holder in self.relations_named(schema, name.name):
            if holder.id != mine:
                kind, error = ("view", ViewExists) if isinstance(holder, View) else ("table", TableExists)
                raise error(
                    f'{kind} "{QualifiedName(name.schema, holder.name)}" exists: '
                    f"choose another name, or drop it first{_but_for_case(name.name, holder.name)}"
                )

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


def _macro_exists(name: QualifiedName, holder: Macro, or_else: str = "") -> MacroExists:
    return MacroExists(
        f'macro "{QualifiedName(name.schema, holder.name)}" exists: '
        f"choose another name{or_else}{_but_for_case(name.name, holder.name)}"
    )


def _but_for_case(name: str, taken: str) -> str:
    return "" if name == taken else "; case makes no difference"


def _as(kind: type[T], entity: object) -> T | None:
    return entity if isinstance(entity, kind) else None
