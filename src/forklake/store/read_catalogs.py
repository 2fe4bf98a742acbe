"""Rows → model: what a catalog looks like at one snapshot, read on demand and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from forklake.errors import CatalogNotFound, CorruptMetadata, InvalidArgument, SnapshotNotFound
from forklake.model.entities import (
    CatalogInfo,
    Column,
    Default,
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
from forklake.model.history import other_catalogs
from forklake.model.ids import FOREVER, CatalogId, ColumnId, MacroId, SchemaId, SnapshotId, TableId, ViewId
from forklake.model.names import split_name
from forklake.model.snapshots import Head, Snapshot
from forklake.model.table.layout import PartitionField, Partitioning, SortKey, SortOrder
from forklake.store.backend import Database, Row, Session, as_time
from forklake.store.entity_rows import Entity, RowKey

MOST_KEPT = 256
"""How many tables a state hands on to the next: more would cost more than reading them again."""


class ColumnName(NamedTuple):
    """A name that a column had from some snapshot on."""

    column_id: ColumnId
    parent: ColumnId | None
    name: str
    begin: SnapshotId | None
    """None for a name that a column had only in a fork which was merged."""


Moment = int | datetime | str
"""A point in time to travel to: the id of a snapshot, a datetime, or a date or time as ISO 8601 writes it."""


def catalog_named(database: Database, name: str) -> tuple[CatalogId, str, Head]:
    """A live catalog by its name: its id, uuid and head."""
    found = database.rows("catalog_by_name", name=name)
    if not found:
        raise CatalogNotFound(f'no catalog is named "{name}": `forklake catalogs` lists those that are')
    catalog, uuid, *head = found[0]
    return CatalogId(catalog), str(uuid), _head(CatalogId(catalog), head)


def head_of(database: Database, catalog: CatalogId, *, or_dropped: bool = False) -> Head:
    """Where a live catalog stands now, or where a dropped one ended."""
    found = database.rows("head", catalog=catalog)
    if not found:
        raise CatalogNotFound(f"no catalog has the id {catalog}")
    *head, ended = found[0]
    if ended is not None and not or_dropped:
        raise dropped(database, catalog)
    return _head(catalog, head)


def dropped(reader: Database | Session, catalog: CatalogId) -> CatalogNotFound:
    """The error for a catalog that is gone."""
    name, ended = reader.rows("catalog_name", catalog=catalog)[0]
    return CatalogNotFound(
        f'catalog "{name}" was dropped in snapshot {ended}: Lake.undrop_catalog brings it back'
    )


def _head(catalog: CatalogId, row: Iterable[Any]) -> Head:
    snapshot, schema_version, data_path, moment = row
    return Head(catalog, SnapshotId(snapshot), schema_version, data_path, as_time(moment))


def head_at(database: Database, head: Head, at: Moment) -> Head:
    """Where a catalog stood at a snapshot of the lake, or at a time."""
    at = moment_of(at)
    if isinstance(at, datetime):
        asked = aware(at)
        # A catalog's own snapshots rise in number and time, so only what is newer than all can still come.
        if asked >= head.snapshot_time:
            database.settle(asked)
        found = database.rows("catalog_at_time", catalog=head.catalog_id, time=asked)
    else:
        if not _exists(database, at):
            raise SnapshotNotFound(f"there is no snapshot {at}: `forklake snapshots` lists those that are")
        if at > head.snapshot_id:
            database.settle(SnapshotId(at))
        found = database.rows("catalog_at_snapshot", catalog=head.catalog_id, at=at)
    if not found:
        raise SnapshotNotFound(f"the catalog did not exist yet at {at}: its history starts later")
    snapshot, schema_version, moment = found[0]
    return replace(
        head, snapshot_id=SnapshotId(snapshot), schema_version=schema_version, snapshot_time=as_time(moment)
    )


def catalog_named_at(database: Database, name: str, at: Moment) -> CatalogId:
    """The catalog that had a name at a snapshot of the lake or at a time.

    If none had it then, it is the fork that has the name now, if its history goes back to before it was made.
    """
    moment = _settled(database, at)
    if isinstance(moment, datetime):
        found = database.rows("catalog_by_name_at_time", name=name, time=moment)
    else:
        found = database.rows("catalog_by_name_at", name=name, at=moment)
    if found:
        return CatalogId(found[0][0])
    for catalog, *_ in database.rows("catalog_by_name", name=name):
        points = database.rows("fork_point", catalog=catalog)
        if isinstance(moment, datetime):
            stood = database.rows("catalog_at_time", catalog=catalog, time=moment)
        else:
            stood = database.rows("catalog_at_snapshot", catalog=catalog, at=moment)
        if points and stood and stood[0][0] <= points[0][0]:
            return CatalogId(catalog)
    _refuse_before_the_lake(database, moment)
    shown = at if isinstance(moment, datetime) else f"snapshot {at}"
    raise CatalogNotFound(f'no catalog was named "{name}" at {shown}')


def _settled(database: Database, at: Moment) -> SnapshotId | datetime:
    """A snapshot of the lake that is there or a time, after whatever may still come to stand before it."""
    given = moment_of(at)
    moment = aware(given) if isinstance(given, datetime) else SnapshotId(given)
    if not isinstance(moment, datetime) and not _exists(database, moment):
        raise SnapshotNotFound(f"there is no snapshot {at}: `forklake snapshots` lists those that are")
    database.settle(moment)
    return moment


def _refuse_before_the_lake(database: Database, at: SnapshotId | datetime) -> None:
    if isinstance(at, datetime) and not database.rows("time_is_known", time=at):
        raise SnapshotNotFound(f"there is no snapshot at {at}: `forklake snapshots` lists those that are")


def moment_of(at: object) -> int | datetime:
    """A snapshot id or a time; what is neither is refused. A time without a zone is local, also in text."""
    match at:
        case int() if not isinstance(at, bool):
            return at
        case datetime():
            return at
        case str():
            return _read_moment(at)
        case date():
            return datetime.combine(at, time())
        case _:
            raise InvalidArgument(
                f"a point in time is a snapshot id, a datetime or ISO text, not {type(at).__name__}"
            )


def _read_moment(text: str) -> datetime:
    if text.strip().isdecimal() and len(text.strip()) != len("20240131"):
        raise InvalidArgument(f"{text!r} is text: give the id of a snapshot as a number, {text.strip()}")
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgument(
            f"{text[:80]!r} is no time: write 2024-01-31 or 2024-01-31T12:00:00+00:00, or give a snapshot id"
        ) from None


def _exists(database: Database, at: int) -> bool:
    return 0 <= at < FOREVER and bool(database.rows("snapshot_exists", at=at))


def aware(moment: datetime) -> datetime:
    """A time without a zone is meant as local time, as everywhere in Python."""
    try:
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # At the very ends of the calendar there is no other zone.
        return moment.replace(tzinfo=UTC)


def catalogs(database: Database, at: Moment | None) -> list[CatalogInfo]:
    """Every catalog that lives, or that lived at a snapshot of the lake or at a time, by name."""
    moment = latest_snapshot(database) if at is None else _settled(database, at)
    if isinstance(moment, datetime):
        found = database.rows("catalogs_at_time", time=moment)
        if not found:
            _refuse_before_the_lake(database, moment)
    else:
        found = database.rows("catalogs_at", at=moment)
    # If a clock went back, two may have had a name at a time: the one that took it last is meant.
    named = {
        name: CatalogInfo(
            name,
            CatalogId(catalog),
            str(uuid),
            parent,
            None if fork_snapshot is None else SnapshotId(fork_snapshot),
            depth,
            as_time(created),
            None if expires is None else as_time(expires),
            None if parent is None else bool(orphaned),
        )
        for name, catalog, uuid, depth, parent, fork_snapshot, created, expires, orphaned in found
    }
    return list(named.values())


def latest_snapshot(database: Database) -> SnapshotId:
    """The number of the lake's last commit."""
    return SnapshotId(database.rows("latest_snapshot")[0][0])


def snapshots(database: Database, catalog: CatalogId | None) -> list[Snapshot]:
    """The history of the lake, or of one catalog with what it inherited, oldest first."""
    if catalog is None:
        # One that comes to stand later has a higher number than all that are shown.
        latest = latest_snapshot(database)
        database.settle(latest)
        found = database.rows("snapshots", at=latest)
    else:
        found = database.rows("snapshots_of_catalog", catalog=catalog)
    names = _names_of_others(database, {number for row in found for number in other_catalogs(row[3] or "")})
    return [
        Snapshot(
            SnapshotId(snapshot),
            as_time(moment),
            name,
            changes or "",
            author,
            message,
            None if extra is None else json.loads(extra),
            schema_version,
            footprint,
            {number: names(number, snapshot) for number in other_catalogs(changes or "")},
        )
        for snapshot, moment, schema_version, changes, author, message, extra, name, footprint in found
    ]


def _names_of_others(database: Database, catalogs: set[int]) -> Callable[[int, int], str]:
    """What catalogs were called at some snapshot, read in one query."""
    known: dict[int, list[tuple[int, str]]] = {}
    found = database.rows("names_of_catalogs", catalogs=json.dumps(sorted(catalogs))) if catalogs else ()
    for number, begin, name in found:
        known.setdefault(number, []).append((begin, name))

    def name_at(number: int, snapshot: int) -> str:
        names = [name for begin, name in known.get(number, ()) if begin <= snapshot]
        return names[-1] if names else f"catalog {number}"

    return name_at


class CatalogState:
    """The structure of a catalog at one schema version. It never changes, so what was read once is kept."""

    def __init__(self, database: Database, head: Head) -> None:
        """Read nothing yet."""
        self._database = database
        self.head = head
        self._schemas: dict[int, Schema] | None = None
        self._tables: dict[int, Table | None] = {}
        self._table_names: dict[tuple[int, str], int | None] = {}
        self._last_columns: dict[int, int] = {}
        self._histories: dict[int, list[ColumnName]] = {}
        self._partitionings: dict[int, dict[int, Partitioning]] = {}
        self._layouts: dict[int, tuple[Partitioning | None, SortOrder | None]] = {}
        self._tags: dict[int, list[Tag]] = {}
        self._column_tags: dict[int, list[Tag]] = {}

    @property
    def database(self) -> Database:
        """Where it is read from."""
        return self._database

    def schemas(self) -> dict[int, Schema]:
        """Every schema, by id."""
        if self._schemas is None:
            self._schemas = {row[2]: _schema(row) for row in self._rows("schemas")}
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
            self._keep(self._rows("table_by_id", table=table), table)
        return self._tables[table]

    def table_named(self, schema: SchemaId, name: str) -> Table | None:
        """A table with its columns, by name."""
        key = (schema, name)
        if key not in self._table_names:
            found = self._rows("table_by_name", schema=schema, name=name)
            self._table_names[key] = found[0][2] if found else None
            if found:
                self._keep(found, found[0][2])
        table = self._table_names[key]
        return None if table is None else self.table(TableId(table))

    def prepare(self, numbers: Sequence[int]) -> None:
        """Read what is known of many tables, and the tags of any objects, in as many steps as of one."""
        wanted = {
            number for number in numbers if number not in self._column_tags or number not in self._layouts
        }
        if wanted:
            self._prepare_tables(wanted)
        objects = {number for number in numbers if number not in self._tags}
        if objects:
            tags: dict[int, list[Tag]] = {number: [] for number in objects}
            for row in self._rows("tags_of_objects", objects=json.dumps(sorted(objects))):
                tags[row[2]].append(_tag(row))
            self._tags |= tags

    def _prepare_tables(self, wanted: set[int]) -> None:
        listed = json.dumps(sorted(wanted))
        columns = _by_table(self._rows("columns_of_tables", tables=listed))
        partitionings = _by_table(self._rows("partitionings_of_tables", tables=listed))
        orders = _by_table(self._rows("sort_orders_of_tables", tables=listed))
        tables: dict[int, Table | None] = dict.fromkeys(wanted)
        for row in self._rows("tables_by_ids", tables=listed):
            tables[row[2]] = _table(row, build_columns(columns.get(row[2], ())))
        tags: dict[int, list[Tag]] = {table: [] for table in wanted}
        for row in self._rows("tags_of_columns_of_tables", tables=listed):
            tags[row[2]].append(_column_tag(row))
        for table in wanted:
            self._keep_layout(TableId(table), partitionings.get(table, ()), orders.get(table, ()))
        # Others may read the same state meanwhile: they find all of a table or nothing.
        self._tables |= tables
        self._column_tags |= tags

    def tables_in(self, schema: SchemaId) -> list[Table]:
        """Every table of a schema, without columns."""
        return [_table(row, ()) for row in self._rows("tables_in_schema", schema=schema)]

    def taken(self, schema: SchemaId, name: str) -> str | None:
        """Whether a `table` or a `view` has a name."""
        if self._table_names.get((schema, name)) is not None:
            return "table"
        found = self._rows("name_taken", schema=schema, name=name)
        return found[0][0] if found else None

    def last_column_id(self, table: TableId) -> int:
        """The highest column id that a table ever used up to the present, so that none is used twice."""
        if table not in self._last_columns:
            found = self._database.rows("last_column_id", catalog=self.head.catalog_id, table=table)
            self._last_columns[table] = found[0][0] or 0
        return self._last_columns[table]

    def views(self) -> list[View]:
        """List the views."""
        return [_view(row) for row in self._rows("views")]

    def view_named(self, schema: SchemaId, name: str) -> View | None:
        """A view by name."""
        found = self._rows("view_by_name", schema=schema, name=name)
        return _view(found[0]) if found else None

    def macros(self) -> list[Macro]:
        """List the macros with their overloads."""
        found = self._rows("macros")
        if not found:
            return []
        catalog = self.head.catalog_id
        parameters: dict[tuple[int, int], list[MacroParameter]] = {}
        for macro, impl, name, kind, default in self._database.rows("macro_parameters", catalog=catalog):
            parameters.setdefault((macro, impl), []).append(MacroParameter(name, kind, default))
        impls: dict[int, list[MacroImpl]] = {}
        for macro, impl, dialect, sql, kind in self._database.rows("macro_implementations", catalog=catalog):
            given = tuple(parameters.get((macro, impl), ()))
            impls.setdefault(macro, []).append(MacroImpl(sql, given, kind, dialect))
        return [
            Macro(MacroId(macro), SchemaId(schema), name, tuple(impls.get(macro, ())), _origin(source, begin))
            for source, begin, macro, schema, name in found
        ]

    def tags(self, object_id: int) -> list[Tag]:
        """The tags of a schema, table, view or macro."""
        if object_id not in self._tags:
            self._tags[object_id] = [_tag(row) for row in self._rows("tags_of_object", object=object_id)]
        return self._tags[object_id]

    def column_history(self, table: TableId) -> list[ColumnName]:
        """Every name that a column or nested field ever had, with the snapshot that gave it."""
        if table not in self._histories:
            found = self._database.rows("column_names", catalog=self.head.catalog_id, table=table)
            self._histories[table] = _column_names(found)
        return self._histories[table]

    def partitionings(self, table: TableId) -> dict[int, Partitioning]:
        """Every partitioning that a table had up to now, by id."""
        self._read_layout(table)
        return self._partitionings[table]

    def layout(self, table: TableId) -> tuple[Partitioning | None, SortOrder | None]:
        """How a table is partitioned and sorted."""
        self._read_layout(table)
        return self._layouts[table]

    def _read_layout(self, table: TableId) -> None:
        if table not in self._layouts:
            parts, orders = self._rows("partitionings", table=table), self._rows("sort_orders", table=table)
            self._keep_layout(table, parts, orders)

    def _keep_layout(self, table: TableId, parts: Iterable[Row], orders: Iterable[Row]) -> None:
        at = self.head.snapshot_id
        partitionings: dict[int, Partitioning] = {}
        live: set[int] = set()
        for number, source, begin, end, _, column, transform in parts:
            known = partitionings.get(number) or Partitioning(number, table, (), _origin(source, begin))
            part = PartitionField(ColumnId(column), transform)
            partitionings[number] = replace(known, fields=(*known.fields, part))
            live |= {number} if end is None or at < end else set()
        order: SortOrder | None = None
        for number, source, begin, _, expression, direction, nulls in orders:
            known_order = order or SortOrder(number, table, (), _origin(source, begin))
            key = SortKey(split_name(expression, "column")[0], direction, nulls)
            order = replace(known_order, keys=(*known_order.keys, key))
        current = partitionings[max(live)] if live else None
        self._partitionings[table], self._layouts[table] = partitionings, (current, order)

    def column_tags(self, table: TableId) -> list[Tag]:
        """The tags of every column of a table."""
        if table not in self._column_tags:
            self._column_tags[table] = [
                _column_tag(row) for row in self._rows("tags_of_columns", table=table)
            ]
        return self._column_tags[table]

    def rows_of_object(self, object_id: int) -> dict[RowKey, Origin]:
        """The stored rows that end when an object is dropped, other than its own."""
        return _row_keys(self._rows("rows_of_object", object=object_id))

    def rows_in_schema(self, schema: SchemaId, *, but: Set[int]) -> dict[RowKey, Origin]:
        """The stored rows that end when all in a schema is dropped, `but` what belongs to some objects."""
        return _row_keys(row for row in self._rows("rows_in_schema", schema=schema) if row[0] not in but)

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
            state._column_tags = self._column_tags
            state._partitionings, state._layouts = self._partitionings, self._layouts
        for before, _ in pairs:
            if isinstance(before, Table):
                state._tables[before.id] = None
                state._table_names[before.schema_id, before.name] = None
            elif isinstance(before, Schema) and state._schemas is not None:
                del state._schemas[before.id]
        # All that left comes first: a name may pass from one table to another.
        for _, after in pairs:
            if isinstance(after, Table):
                state._tables[after.id] = after
                state._table_names[after.schema_id, after.name] = after.id
                self._count_columns(state, after)
            elif isinstance(after, Schema) and state._schemas is not None:
                state._schemas[after.id] = after
        return state

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
        self._tables[table] = _table(found[0], columns)

    def _rows(self, statement: str, **params: object) -> list[Row]:
        return self._database.rows(
            statement, catalog=self.head.catalog_id, at=self.head.snapshot_id, **params
        )


def _column_names(rows: Iterable[Row]) -> list[ColumnName]:
    """Names of columns from their versions, in order; a column that was gone in between begins anew."""
    names: dict[ColumnName, None] = {}
    ends: dict[ColumnId, tuple[SnapshotId, SnapshotId | None]] = {}
    for column, parent, name, begin, end in rows:
        if begin == end:
            names[ColumnName(column, parent, name, None)] = None
            continue
        start, last = ends.get(column, (begin, begin))
        if last is not None and last < begin:
            start = begin
        ends[column] = (start, end)
        names[ColumnName(column, parent, name, start)] = None
    return list(names)


def _origin(source: int, begin: int) -> Origin:
    return Origin(CatalogId(source), SnapshotId(begin))


def _schema(row: Row) -> Schema:
    source, begin, schema, uuid, name, path = row
    return Schema(SchemaId(schema), str(uuid), name, path, _origin(source, begin))


def _table(row: Row, columns: tuple[Column, ...]) -> Table:
    source, begin, table, uuid, schema, name, path = row
    return Table(TableId(table), str(uuid), SchemaId(schema), name, path, columns, _origin(source, begin))


def _by_table(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Rows by the table that each begins with."""
    found: dict[int, list[Row]] = {}
    for table, *row in rows:
        found.setdefault(table, []).append(tuple(row))
    return found


def _tag(row: Row) -> Tag:
    source, begin, owner, key, value = row
    return Tag(owner, key, value, origin=_origin(source, begin))


def _column_tag(row: Row) -> Tag:
    source, begin, owner, key, value, column = row
    return Tag(owner, key, value, ColumnId(column), origin=_origin(source, begin))


def _view(row: Row) -> View:
    source, begin, view, uuid, schema, name, sql, dialect, aliases = row
    names = tuple(json.loads(aliases)) if aliases else ()
    return View(ViewId(view), str(uuid), SchemaId(schema), name, sql, dialect, names, _origin(source, begin))


def _row_keys(rows: Iterable[Row]) -> dict[RowKey, Origin]:
    return {
        RowKey(entity, entity_id, sub_id, sub_key): _origin(source, begin)
        for _, entity, entity_id, sub_id, sub_key, source, begin in rows
    }


def build_columns(rows: Iterable[Row]) -> tuple[Column, ...]:
    """Put nested fields under their parents."""
    children: dict[int | None, list[Row]] = {}
    for row in rows:
        children.setdefault(row[3], []).append(row)

    def build(row: Row) -> Column:
        source, begin, column, _, order, name, kind, initial, default, nullable, default_kind, dialect = row
        nested = tuple(build(child) for child in children.pop(column, ()))
        if kind in ("list", "struct", "map") and not nested:
            raise CorruptMetadata(f'column "{name}" is a {kind} without fields')
        return Column(
            ColumnId(column),
            name,
            kind,
            bool(nullable),
            initial,
            None if default is None else Default(default, default_kind or "literal", dialect or "duckdb"),
            nested,
            order,
            _origin(source, begin),
        )

    columns = tuple(build(row) for row in children.pop(None, ()))
    if children:
        raise CorruptMetadata(
            f"fields {sorted(row[2] for rows in children.values() for row in rows)} have no parent"
        )
    return columns
