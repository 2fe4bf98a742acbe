"""A catalog at one snapshot, with its objects by their ids: one side of a comparison."""

from __future__ import annotations

from typing import Literal

from forklake.lazy.properties import lazy_property
from forklake.model.alike import alike, pick
from forklake.model.changes import Change
from forklake.model.entities import Macro, Schema, Table, View
from forklake.model.ids import ColumnId, SchemaId, SnapshotId, TableId
from forklake.model.index import Index
from forklake.model.names import QualifiedName
from forklake.model.snapshots import Head
from forklake.model.table.layout import Partitioning, SortOrder
from forklake.store.backend import Database
from forklake.store.catalog_state import CatalogState
from forklake.store.catalogs import head_at

Kind = Literal["schema", "table", "view", "macro"]
Object = Schema | Table | View | Macro
KINDS: tuple[Kind, ...] = ("schema", "table", "view", "macro")


class Side:
    """What is looked up once is kept."""

    def __init__(self, state: CatalogState, head: Head) -> None:
        """Read nothing yet. The structure may have been read at an earlier snapshot than the head's."""
        self.state = state
        self.head = head

    @classmethod
    def at(cls, database: Database, head: Head, snapshot: SnapshotId) -> Side:
        """A catalog as it was at a snapshot of its own or of an ancestor."""
        past = head_at(database, head, snapshot, or_expired=True)
        return cls(CatalogState(database, past), past)

    def find(self, kind: Kind, number: int) -> Object | None:
        """An object, if it is there."""
        match kind:
            case "schema":
                return self.state.schemas().get(number)
            case "table":
                return self.state.table(TableId(number))
            case "view":
                return self._views.get(number)
            case "macro":
                return self._macros.get(number)

    def table(self, number: int) -> Table | None:
        """A table, if it is there."""
        return self.state.table(TableId(number))

    def table_named(self, name: QualifiedName) -> Table | None:
        """The table of a name, if there is one."""
        schema = pick(name.schema, self.state.schemas().values(), "schema")
        return None if schema is None else self.state.table_named(schema.id, name.name)

    def tags(self, kind: Kind, number: int) -> dict[tuple[ColumnId | None, str], str]:
        """The tags of an object and of its columns."""
        found = {(tag.column_id, tag.key): tag.value for tag in self.state.tags(number)}
        if kind == "table":
            found |= {(tag.column_id, tag.key): tag.value for tag in self.state.column_tags(TableId(number))}
        return found

    def layout(self, table: int) -> tuple[Partitioning | None, SortOrder | None]:
        """How new files of a table are laid out."""
        return self.state.layout(TableId(table))

    def indexes(self, table: int) -> list[Index]:
        """The indexes of a table; none of one that is not there."""
        return self.state.indexes(TableId(table))

    def holders(self, change: Change) -> set[int]:
        """The objects that have the name that a change claims, whatever its case: mostly one or none."""
        name, schema = change.name or "", SchemaId(change.schema_id or 0)
        match change.verb.partition("_")[2]:
            case "schema":
                found = alike(name, self.state.schemas().values())
            case "macro":
                macros = (item for item in self._macros.values() if item.schema_id == schema)
                found = alike(name, (item for item in macros if item.kind == change.detail))
            case _:
                found = [*self.state.tables_named(schema, name), *self.state.views_named(schema, name)]
        return {item.id for item in found}

    def name_of(self, item: Object) -> str:
        """The name of an object, with that of its schema."""
        if isinstance(item, Schema):
            return item.name
        schema = self.state.schemas().get(item.schema_id)
        return str(QualifiedName(schema.name if schema else "?", item.name))

    @lazy_property
    def _views(self) -> dict[int, View]:
        return {view.id: view for view in self.state.views()}

    @lazy_property
    def _macros(self) -> dict[int, Macro]:
        return {macro.id: macro for macro in self.state.macros()}
