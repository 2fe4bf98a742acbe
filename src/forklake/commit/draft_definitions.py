"""The definitions that a draft shows: those of its base, with what was changed beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from forklake.commit.overlay import Overlay
from forklake.commit.row_draft import RowDraft
from forklake.errors import MacroNotFound, SchemaNotFound, TableNotFound, ViewNotFound
from forklake.model.alike import alike, instead, instead_of, pick
from forklake.model.entities import Macro, MacroKind, Schema, Table, TableInfo, Tag, View
from forklake.model.ids import ColumnId, SchemaId, TableId
from forklake.model.names import QualifiedName, check_name
from forklake.model.snapshots import Head
from forklake.store.catalog_state import CatalogState, TableName

E = TypeVar("E", Schema, Table, View, Macro)
R = TypeVar("R", Table, View)


class DraftDefinitions(RowDraft):
    """Schemas, tables, views, macros and tags, by name and by id."""

    def __init__(self, state: CatalogState, head: Head | None = None) -> None:
        """Nothing is changed yet."""
        super().__init__(state, head)
        self._schemas: Overlay[int, Schema] = Overlay()
        self._tables: Overlay[int, Table] = Overlay()
        self._views: Overlay[int, View] = Overlay()
        self._macros: Overlay[int, Macro] = Overlay()
        self._tags: Overlay[tuple[int, ColumnId | None, str], Tag] = Overlay()
        self._base_macros: list[Macro] | None = None

    def schemas(self) -> list[Schema]:
        """Every schema, in the order in which they were created."""
        schemas = _merged(self.state.schemas(), self._schemas)
        return sorted(schemas, key=lambda schema: (schema.id < 0, abs(schema.id)))

    def schema_named(self, name: str) -> Schema:
        """A schema by name."""
        found = self.find_schema(check_name(name, "schema"))
        if found is None:
            known = [schema.name for schema in self.schemas()]
            raise SchemaNotFound(f'there is no schema "{name}" in this catalog: {instead(name, known)}')
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
        found = self.table_if_there(table)
        if found is None:
            raise TableNotFound(
                f"table {table} is not there at snapshot {self.head.snapshot_id}: it was dropped or is newer"
            )
        return found

    def table_if_there(self, table: TableId) -> Table | None:
        """A table with its columns, unless it was dropped or is newer."""
        return self._tables.now[table] if table in self._tables.now else self.state.table(table)

    def _is_kept(self, table: TableId) -> bool:
        return self._tables.now.get(table, True) is not None

    def find_schema(self, name: str) -> Schema | None:
        """A schema, if there is one of this name. As with all names, case makes no difference."""
        return pick(name, self.schemas(), "schema")

    def find_table(self, name: QualifiedName) -> Table | None:
        """A table, if there is one of this name."""
        schema = self.find_schema(name.schema)
        return None if schema is None else self._find_table(schema.id, name.name)

    def find_relation(self, name: QualifiedName) -> Table | View | None:
        """The table or view of this name, if there is one."""
        schema = self.find_schema(name.schema)
        if schema is None:
            return None
        found = pick(name.name, self.relations_named(schema.id, name.name), "table or view")
        return self.table(found.id) if isinstance(found, TableName) else found

    def relations_named(self, schema: SchemaId, name: str) -> list[TableName | View]:
        """All tables and views that have a name, or one that differs from it only in case."""
        return [*self._tables_named(schema, name), *self._views_named(schema, name)]

    def table_named(self, name: QualifiedName) -> Table:
        """A table with its columns, by name."""
        found = self._find_table(self.schema_named(name.schema).id, name.name)
        if found is None:
            if self.find_view(name) is not None:
                raise TableNotFound(f'"{name}" is a view, and a table is wanted: change what it reads')
            known = [QualifiedName(table.schema, table.name) for table in self.tables()]
            meant = instead_of(name, known) if known else "this catalog has no tables yet"
            raise TableNotFound(f'there is no table "{name}": {meant}')
        return found

    def views(self) -> list[View]:
        """Every view."""
        return _merged({view.id: view for view in self.state.views()}, self._views)

    def find_view(self, name: QualifiedName) -> View | None:
        """A view, if there is one of this name."""
        schema = self.find_schema(name.schema)
        return None if schema is None else self._find_view(schema.id, name.name)

    def view_named(self, name: QualifiedName) -> View:
        """A view by name."""
        found = self._find_view(self.schema_named(name.schema).id, name.name)
        if found is None:
            known = [self.name_of(view) for view in self.views()]
            raise ViewNotFound(f'there is no view "{name}": {instead_of(name, known)}')
        return found

    def macros(self) -> list[Macro]:
        """Every macro with its overloads."""
        if self._base_macros is None:
            self._base_macros = self.state.macros()
        return _merged({macro.id: macro for macro in self._base_macros}, self._macros)

    def find_macro(self, name: QualifiedName, kind: MacroKind | None = None) -> Macro | None:
        """A macro, if there is one of this name; of two, the scalar one unless `kind` says which."""
        schema = self.find_schema(name.schema)
        return None if schema is None else self._find_macro(schema.id, name.name, kind)

    def macro_named(self, name: QualifiedName, kind: MacroKind | None = None) -> Macro:
        """A macro by name; of two, the scalar one unless `kind` says which."""
        found = self._find_macro(self.schema_named(name.schema).id, name.name, kind)
        if found is None:
            known = [self.name_of(macro) for macro in self.macros() if kind in (None, macro.kind)]
            raise MacroNotFound(f'there is no macro "{name}": {instead_of(name, known)}')
        return found

    def name_of(self, item: Table | View | Macro) -> QualifiedName:
        """The name of an object with that of its schema."""
        schema = next((schema for schema in self.schemas() if schema.id == item.schema_id), None)
        if schema is None:
            raise SchemaNotFound(f'the schema of "{item.name}" is gone')
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

    def tags_that_begin(self, prefix: str) -> dict[tuple[int, str], str]:
        """The tags of all objects whose keys begin with some text, by object and key."""
        tags = {(tag.object_id, tag.key): tag.value for tag in self.state.tags_that_begin(prefix)}
        for (owner, column, key), tag in self._tags.now.items():
            if column is None and key.startswith(prefix):
                tags.pop((owner, key), None)
                tags |= {} if tag is None else {(owner, key): tag.value}
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

    def _find_table(self, schema: SchemaId, name: str) -> Table | None:
        found = pick(name, self._tables_named(schema, name), "table")
        return None if found is None else self.table(found.id)

    def _tables_named(self, schema: SchemaId, name: str) -> list[TableName]:
        stored = () if schema < 0 else self.state.tables_named(schema, name)
        kept = [table for table in stored if table.id not in self._tables.now]
        staged = _staged(self._tables, schema, name)
        return kept + [TableName(table.id, table.name) for table in staged]

    def _find_view(self, schema: SchemaId, name: str) -> View | None:
        return pick(name, self._views_named(schema, name), "view")

    def _views_named(self, schema: SchemaId, name: str) -> list[View]:
        stored = [] if schema < 0 else self.state.views_named(schema, name)
        kept = [view for view in stored if view.id not in self._views.now]
        return kept + _staged(self._views, schema, name)

    def _find_macro(self, schema: SchemaId, name: str, kind: MacroKind | None) -> Macro | None:
        here = [macro for macro in self.macros() if macro.schema_id == schema]
        kinds: tuple[MacroKind, ...] = ("scalar", "table") if kind is None else (kind,)
        for each in kinds:
            found = pick(name, (macro for macro in here if macro.kind == each), "macro")
            if found is not None:
                return found
        return None


def _merged(stored: dict[int, E], overlay: Overlay[int, E]) -> list[E]:
    kept = [entity for key, entity in stored.items() if key not in overlay.now]
    return kept + overlay.live()


def _staged(overlay: Overlay[int, R], schema: SchemaId, name: str) -> list[R]:
    return alike(name, (item for item in overlay.live() if item.schema_id == schema))
