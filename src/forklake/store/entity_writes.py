"""Writing entities: the versions that begin and end in a commit, and what goes with them, as sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forklake.model.entities import Macro, Origin
from forklake.model.index import Index
from forklake.model.snapshots import Head
from forklake.model.sql.macro_sql import stored_default
from forklake.model.table.layout import Partitioning, SortOrder
from forklake.model.table.partition_and_sort import written_sort_key
from forklake.store.backend import Row, Session
from forklake.store.entity_rows import STORED, Entity, EntityName, RowKey
from forklake.store.row_sets import (
    BURNT_COLUMNS,
    ENDS,
    ENTITIES,
    INDEX_COLUMNS,
    INHERITED_ENDS,
    MACRO_IMPLS,
    MACRO_PARAMETERS,
    PARTITION_COLUMNS,
    SCHEMA_VERSIONS,
    SORT_EXPRESSIONS,
    RowSet,
)


class EntityWrites:
    """Rows of entities that a commit ends and adds."""

    def __init__(self, head: Head, ended: Mapping[RowKey, Origin]) -> None:
        """Begin with rows that end."""
        self._catalog, self._snapshot = head.catalog_id, head.snapshot_id
        self._ended = dict(ended)
        self._added: dict[RowSet, list[Row]] = {}

    def end(self, rows: Mapping[RowKey, Origin]) -> None:
        """Let stored rows end."""
        self._ended |= rows

    def begin(self, key: RowKey, values: tuple[Any, ...]) -> None:
        """Let a version of a row begin, with values as `rows_of` gives them."""
        self._add(ENTITIES[key.entity], (self._catalog, self._snapshot, *values))

    def add_parts(self, entity: Entity) -> None:
        """Add rows that come with a new entity and never change."""
        for into, row in _parts(entity):
            self._add(into, (self._catalog, *row))

    def own_all(self) -> None:
        """What was inherited has become the catalog's own."""
        self._ended = {key: replace(origin, source=self._catalog) for key, origin in self._ended.items()}

    def send(self, session: Session) -> None:
        """Store everything. Ends come first, so that a name can pass from one object to another."""
        own: dict[EntityName, list[Row]] = {}
        masks: list[Row] = []
        catalog, snapshot = self._catalog, self._snapshot
        for key, origin in self._ended.items():
            if origin.source == catalog:
                values = STORED[key.entity].key_values(key)
                own.setdefault(key.entity, []).append((*values, origin.begin))
            else:
                # An ancestor's row is not ours to touch: it ends for us and our descendants only.
                masks.append(
                    (catalog, key.entity, key.entity_id, key.sub_id, key.sub_key, origin.begin, snapshot)
                )
        for entity, rows in own.items():
            session.end_rows(ENDS[entity], rows, catalog=catalog, end=snapshot)
        if masks:
            session.insert(INHERITED_ENDS, masks)
        for into, rows in self._added.items():
            session.insert(into, rows)

    def _add(self, into: RowSet, row: Row) -> None:
        self._added.setdefault(into, []).append(row)


def burn_columns(session: Session, head: Head, columns: Iterable[tuple[int, int, str]]) -> None:
    """Columns that were there for no time at all: their ids in tables stay taken, and their names known."""
    rows = [(head.catalog_id, *column, head.snapshot_id, head.snapshot_id) for column in columns]
    if rows:
        session.insert(BURNT_COLUMNS, rows)


def end_files(session: Session, head: Head, tables: Sequence[int]) -> None:
    """The files of dropped tables end with them, also those that others added since the drop was staged.

    Files that were inherited are left alone: nobody reaches them without the table.
    """
    listed = json.dumps(tables)
    for statement in ("end_data_files", "end_delete_files", "end_index_files"):
        session.execute(statement, catalog=head.catalog_id, tables=listed, snapshot=head.snapshot_id)


def add_schema_versions(session: Session, head: Head, tables: Iterable[int]) -> None:
    """Note which tables have another shape from a commit on."""
    session.insert(
        SCHEMA_VERSIONS,
        [(head.catalog_id, head.snapshot_id, head.schema_version, table) for table in tables],
    )


def _parts(entity: Entity) -> Iterator[tuple[RowSet, Row]]:
    match entity:
        case Macro():
            for place, impl in enumerate(entity.implementations):
                yield MACRO_IMPLS, (entity.id, place, impl.dialect, impl.sql, impl.kind)
                for index, given in enumerate(impl.parameters):
                    about = (given.name, given.type, *stored_default(given.default))
                    yield MACRO_PARAMETERS, (entity.id, place, index, *about)
        case Partitioning():
            for place, part in enumerate(entity.fields):
                row = (entity.id, entity.table_id, place, part.column_id, part.transform)
                yield PARTITION_COLUMNS, row
        case SortOrder():
            for place, key in enumerate(entity.keys):
                about = (written_sort_key(key), "duckdb", key.direction, key.nulls)
                yield SORT_EXPRESSIONS, (entity.id, entity.table_id, place, *about)
        case Index():
            columns = [(column, "key") for column in entity.keys]
            columns += [(column, "include") for column in entity.include]
            for place, (column, role) in enumerate(columns):
                yield INDEX_COLUMNS, (entity.id, place, column, role)
        case _:
            pass
