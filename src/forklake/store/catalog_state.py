"""What a catalog looks like at one snapshot, read on demand and kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from forklake.model.alike import fold, pick
from forklake.model.entities import (
    Macro,
    MacroImpl,
    MacroParameter,
    Origin,
    Schema,
    Table,
    TableInfo,
    Tag,
    View,
)
from forklake.model.ids import ColumnId, MacroId, SchemaId, TableId
from forklake.model.index import Index
from forklake.model.snapshots import Head
from forklake.model.sql.macro_sql import default_sql
from forklake.model.table.layout import PartitionField, Partitioning, SortOrder
from forklake.model.table.partition_and_sort import stored_sort_key
from forklake.store.backend import Database, Row
from forklake.store.entity_rows import Entity, RowKey
from forklake.store.entity_values import (
    ColumnName,
    build_columns,
    by_table,
    column_names,
    column_tag_of,
    origin_of,
    row_keys,
    schema_of,
    table_of,
    tag_of,
    view_of,
)
from forklake.store.index_values import indexes_of

MOST_KEPT = 256
"""How many tables a state hands on to the next: more would cost more than reading them again."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table by its id, and its name as it was written."""

    id: TableId
    name: str


class CatalogState:
    """The structure of a catalog at one schema version. It never changes, so what was read once is kept."""

    def __init__(self, database: Database, head: Head) -> None:
        """Read nothing yet."""
        self._database = database
        self.head = head
        self._schemas: dict[int, Schema] | None = None
        self._tables: dict[int, Table | None] = {}
        self._table_names: dict[tuple[int, str], tuple[TableName, ...]] = {}
        """By schema and folded name: all that differ from each other only in case, mostly one or none."""
        self._found: dict[int, Row] = {}
        """Tables that were found by name, and whose columns were not read yet."""
        self._last_columns: dict[int, int] = {}
        self._histories: dict[int, list[ColumnName]] = {}
        self._partitionings: dict[int, dict[int, Partitioning]] = {}
        self._layouts: dict[int, tuple[Partitioning | None, SortOrder | None]] = {}
        self._indexes: dict[int, list[Index]] = {}
        self._tags: dict[int, list[Tag]] = {}
        self._column_tags: dict[int, list[Tag]] = {}

    @property
    def database(self) -> Database:
        """Where it is read from."""
        return self._database

    def schemas(self) -> dict[int, Schema]:
        """Every schema, by id."""
        if self._schemas is None:
            self._schemas = {row[2]: schema_of(row) for row in self._rows("schemas")}
        return self._schemas

    def table_list(self) -> list[TableInfo]:
        """Every table, for listings."""
        return [
            TableInfo(schema, name, TableId(table), str(uuid))
            for schema, name, table, uuid in self._rows("tables")
        ]

    def table(self, table: TableId) -> Table | None:
        """A table with its columns."""
        if table not in self._tables:
            found = self._found.get(table)
            self._keep(self._rows("table_by_id", table=table) if found is None else [found], table)
        return self._tables[table]

    def table_named(self, schema: SchemaId, name: str) -> Table | None:
        """A table with its columns, by name."""
        found = pick(name, self.tables_named(schema, name), "table")
        return None if found is None else self.table(found.id)

    def tables_named(self, schema: SchemaId, name: str) -> tuple[TableName, ...]:
        """The tables of a name, and of names that differ from it only in case."""
        key = (schema, fold(name))
        if key not in self._table_names:
            found = {row[2]: row for row in self._rows("table_by_name", schema=schema, name=name)}
            self._found |= found
            named = (TableName(TableId(table), row[5]) for table, row in found.items())
            self._table_names[key] = tuple(one for one in named if fold(one.name) == key[1])
        return self._table_names[key]

    def prepare(self, numbers: Sequence[int]) -> None:
        """Read what is known of many tables, and the tags of any objects, in as many steps as of one."""
        wanted = {
            number for number in numbers if number not in self._column_tags or number not in self._layouts
        }
        if wanted:
            self._prepare_tables(wanted)
        self.prepare_tags(numbers)

    def prepare_tags(self, numbers: Iterable[int]) -> None:
        """Read the tags of several objects in one step."""
        objects = {number for number in numbers if number not in self._tags}
        if objects:
            tags: dict[int, list[Tag]] = {number: [] for number in objects}
            for row in self._rows("tags_of_objects", objects=json.dumps(sorted(objects))):
                tags[row[2]].append(tag_of(row))
            self._tags |= tags

    def _prepare_tables(self, wanted: set[int]) -> None:
        listed = json.dumps(sorted(wanted))
        columns = by_table(self._rows("columns_of_tables", tables=listed))
        partitionings = by_table(self._rows("partitionings_of_tables", tables=listed))
        orders = by_table(self._rows("sort_orders_of_tables", tables=listed))
        tables: dict[int, Table | None] = dict.fromkeys(wanted)
        for row in self._rows("tables_by_ids", tables=listed):
            tables[row[2]] = table_of(row, build_columns(columns.get(row[2], ())))
        tags: dict[int, list[Tag]] = {table: [] for table in wanted}
        for row in self._rows("tags_of_columns_of_tables", tables=listed):
            tags[row[2]].append(column_tag_of(row))
        for table in wanted:
            self._keep_layout(TableId(table), partitionings.get(table, ()), orders.get(table, ()))
        self._keep_indexes(wanted)
        # Others may read the same state meanwhile: they find all of a table or nothing.
        self._tables |= tables
        self._column_tags |= tags

    def tables_in(self, schema: SchemaId) -> list[Table]:
        """Every table of a schema, without columns."""
        return [table_of(row, ()) for row in self._rows("tables_in_schema", schema=schema)]

    def taken(self, schema: SchemaId, name: str) -> bool:
        """Whether a table or a view has a name, or one that differs from it only in case."""
        key = (schema, fold(name))
        if self._table_names.get(key):
            return True
        found = [row for row in self._rows("name_taken", schema=schema, name=name) if fold(row[2]) == key[1]]
        tables = (TableName(TableId(table), written) for kind, table, written in found if kind == "table")
        self._table_names[key] = tuple(tables)
        return bool(found)

    def last_column_id(self, table: TableId) -> int:
        """The highest column id that a table ever used up to the present, so that none is used twice."""
        if table not in self._last_columns:
            found = self._database.rows("last_column_id", catalog=self.head.catalog_id, table=table)
            self._last_columns[table] = found[0][0] or 0
        return self._last_columns[table]

    def views(self) -> list[View]:
        """Every view."""
        return [view_of(row) for row in self._rows("views")]

    def views_named(self, schema: SchemaId, name: str) -> list[View]:
        """The views of a name, and of names that differ from it only in case."""
        found = map(view_of, self._rows("view_by_name", schema=schema, name=name))
        return [view for view in found if fold(view.name) == fold(name)]

    def macros(self) -> list[Macro]:
        """Every macro with its overloads."""
        found = self._rows("macros")
        if not found:
            return []
        catalog = self.head.catalog_id
        parameters: dict[tuple[int, int], list[MacroParameter]] = {}
        for macro, impl, name, kind, *default in self._database.rows("macro_parameters", catalog=catalog):
            given = MacroParameter(name, kind, default_sql(*default))
            parameters.setdefault((macro, impl), []).append(given)
        impls: dict[int, list[MacroImpl]] = {}
        for macro, impl, dialect, sql, kind in self._database.rows("macro_implementations", catalog=catalog):
            of_macro = tuple(parameters.get((macro, impl), ()))
            impls.setdefault(macro, []).append(MacroImpl(sql, of_macro, kind, dialect))
        return [
            Macro(
                MacroId(macro), SchemaId(schema), name, tuple(impls.get(macro, ())), origin_of(source, begin)
            )
            for source, begin, macro, schema, name in found
        ]

    def tags(self, object_id: int) -> list[Tag]:
        """The tags of a schema, table, view or macro."""
        if object_id not in self._tags:
            self._tags[object_id] = [tag_of(row) for row in self._rows("tags_of_object", object=object_id)]
        return self._tags[object_id]

    def tags_that_begin(self, prefix: str) -> list[Tag]:
        """The tags of all objects whose keys begin with some text."""
        return [tag_of(row) for row in self._rows("tags_that_begin", prefix=prefix)]

    def column_history(self, table: TableId) -> list[ColumnName]:
        """Every name that a column or nested field ever had, with the snapshot that gave it."""
        if table not in self._histories:
            found = self._database.rows("column_names", catalog=self.head.catalog_id, table=table)
            self._histories[table] = column_names(found)
        return self._histories[table]

    def partitionings(self, table: TableId) -> dict[int, Partitioning]:
        """Every partitioning that a table had up to now, by id."""
        self._read_layout(table)
        return self._partitionings[table]

    def layout(self, table: TableId) -> tuple[Partitioning | None, SortOrder | None]:
        """How a table is partitioned and sorted."""
        self._read_layout(table)
        return self._layouts[table]

    def indexes(self, table: TableId) -> list[Index]:
        """The indexes of a table, in the order in which they were created."""
        if table not in self._indexes:
            self._keep_indexes([table])
        return self._indexes[table]

    def all_indexes(self) -> list[Index]:
        """The indexes of all tables."""
        return [index for indexes in indexes_of(self._rows("indexes")).values() for index in indexes]

    def _keep_indexes(self, tables: Iterable[int]) -> None:
        numbers = sorted(tables)
        found = indexes_of(self._rows("indexes_of_tables", tables=json.dumps(numbers)))
        self._indexes |= {table: found.get(TableId(table), []) for table in numbers}

    def _read_layout(self, table: TableId) -> None:
        if table not in self._layouts:
            parts, orders = self._rows("partitionings", table=table), self._rows("sort_orders", table=table)
            self._keep_layout(table, parts, orders)

    def _keep_layout(self, table: TableId, parts: Iterable[Row], orders: Iterable[Row]) -> None:
        at = self.head.snapshot_id
        partitionings: dict[int, Partitioning] = {}
        live: set[int] = set()
        for number, source, begin, end, _, column, transform in parts:
            known = partitionings.get(number) or Partitioning(number, table, (), origin_of(source, begin))
            part = PartitionField(ColumnId(column), transform)
            partitionings[number] = replace(known, fields=(*known.fields, part))
            live |= {number} if end is None or at < end else set()
        order: SortOrder | None = None
        for number, source, begin, _, expression, direction, nulls in orders:
            known_order = order or SortOrder(number, table, (), origin_of(source, begin))
            key = stored_sort_key(expression, direction, nulls)
            order = replace(known_order, keys=(*known_order.keys, key))
        current = partitionings[max(live)] if live else None
        self._partitionings[table], self._layouts[table] = partitionings, (current, order)

    def column_tags(self, table: TableId) -> list[Tag]:
        """The tags of every column of a table."""
        if table not in self._column_tags:
            self._column_tags[table] = [
                column_tag_of(row) for row in self._rows("tags_of_columns", table=table)
            ]
        return self._column_tags[table]

    def rows_of_object(self, object_id: int) -> dict[RowKey, Origin]:
        """The stored rows that end when an object is dropped, other than its own."""
        return row_keys(self._rows("rows_of_object", object=object_id))

    def rows_in_schema(self, schema: SchemaId, *, but: Set[int]) -> dict[RowKey, Origin]:
        """The stored rows that end when all in a schema is dropped, `but` what belongs to some objects."""
        return row_keys(row for row in self._rows("rows_in_schema", schema=schema) if row[0] not in but)

    def after(self, head: Head, pairs: Sequence[tuple[Entity | None, Entity | None]]) -> CatalogState:
        """The state that a commit of these changes leads to, with what is known already."""
        state = CatalogState(self._database, head)
        state._schemas = None if self._schemas is None else dict(self._schemas)
        if len(self._table_names) < MOST_KEPT:
            state._tables = dict(self._tables)
            state._table_names = dict(self._table_names)
            state._last_columns = dict(self._last_columns)
        if not pairs:
            # Rows came or went, and the structure is the same.
            state._histories, state._tags = self._histories, self._tags
            state._column_tags, state._indexes = self._column_tags, self._indexes
            state._partitionings, state._layouts = self._partitionings, self._layouts
        for before, _ in pairs:
            if isinstance(before, Table):
                state._tables[before.id] = None
                state._name(before, there=False)
            elif isinstance(before, Schema) and state._schemas is not None:
                del state._schemas[before.id]
        # All that left comes first: a name may pass from one table to another.
        for _, after in pairs:
            if isinstance(after, Table):
                state._tables[after.id] = after
                state._name(after, there=True)
                self._count_columns(state, after)
            elif isinstance(after, Schema) and state._schemas is not None:
                state._schemas[after.id] = after
        return state

    def _name(self, table: Table, *, there: bool) -> None:
        """Keep a name that a table has now, or has no more, if it is known what else is named so."""
        key = (table.schema_id, fold(table.name))
        if key in self._table_names:
            others = tuple(one for one in self._table_names[key] if one.id != table.id)
            self._table_names[key] = (*others, TableName(table.id, table.name)) if there else others

    def _count_columns(self, state: CatalogState, table: Table) -> None:
        """A table that is new, or whose columns were counted before, need not be asked again."""
        used = self._last_columns.get(table.id, 0 if table.id not in self._tables else None)
        if used is not None:
            state._last_columns[table.id] = max(used, *(column.id for column in table.walk()))

    def _keep(self, found: list[Row], table: int) -> None:
        if not found:
            self._tables[table] = None
            return
        columns = build_columns(self._rows("columns_of_table", table=table))
        self._tables[table] = table_of(found[0], columns)

    def _rows(self, statement: str, **params: object) -> list[Row]:
        return self._database.rows(
            statement, catalog=self.head.catalog_id, at=self.head.snapshot_id, **params
        )
