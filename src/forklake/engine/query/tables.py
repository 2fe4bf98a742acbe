"""Tables of a lake in a workbench: first as stand-ins without rows, then as views of what plans read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from forklake.commit.staged import BUFFER, FIRST_ROW_ID, NOT_YET, ROWS_OF_A_FILE
from forklake.data.storage.storage import Storage
from forklake.engine.query.filters import stand_in_column
from forklake.engine.query.one_table import Reads
from forklake.engine.query.workbench import Workbench
from forklake.engine.scan_sql import FILE_NAME, PLACE, POSITION, ROW_ID, SNAPSHOT, Relation, Wanted, relation
from forklake.engine.sql_text import shown_as, text
from forklake.errors import UnknownType
from forklake.lazy.arrow import pa
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.names import quoted
from forklake.model.sql.predicate import Predicate
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import Scalar, to_sql
from forklake.scan.first_rows import with_first_rows
from forklake.scan.scan_plan import ScanPlan, Source, plan_scan
from forklake.store.retention import check_retained

_VIRTUAL: Mapping[str, tuple[str, str]] = {
    "rowid": (ROW_ID, "BIGINT"),
    "snapshot_id": (SNAPSHOT, "BIGINT"),
    "filename": (FILE_NAME, "VARCHAR"),
    "file_row_number": (POSITION, "BIGINT"),
    "file_index": (PLACE, "BIGINT"),
}
_PROVISIONAL: Mapping[str, str] = {
    "rowid": f"CASE WHEN {ROW_ID} < 0 THEN {FIRST_ROW_ID + ROWS_OF_A_FILE * BUFFER} - {ROW_ID} "
    f"+ 2 * mod({ROWS_OF_A_FILE} + mod({ROW_ID}, {ROWS_OF_A_FILE}), {ROWS_OF_A_FILE}) ELSE {ROW_ID} END",
    "snapshot_id": f"nullif({SNAPSHOT}, {NOT_YET})",
}
"""The same of rows that the transaction has added: no snapshot yet, and ids that are far from all others."""
VIRTUAL = frozenset(_VIRTUAL)
"""Columns that every table has, and that `*` does not show."""


@dataclass(slots=True)
class QueryTable:
    """A table, at one snapshot, as a query names it."""

    catalog: str
    schema: str
    name: str
    """Where its view is; another name than that of the table for one at a past snapshot."""
    source: Source
    prefix: str
    """What names of its stand-in and its Arrow tables begin with."""
    virtual: set[str] = field(default_factory=set[str])
    places: bool = False
    """Whether the rows have to be found again, to be changed."""
    reads: Reads = field(default_factory=Reads)
    """What the query reads of it, as far as that can be told."""
    plan: ScanPlan | None = None
    relation: Relation | None = None
    shown: frozenset[ColumnId] = frozenset()
    """The columns that are read."""

    @property
    def view(self) -> str:
        """The name of the view."""
        return f"{quoted(self.catalog)}.{quoted(self.schema)}.{quoted(self.name)}"

    def stand_in(self, workbench: Workbench) -> None:
        """Let the view show no rows, in columns that tell whose they are."""
        columns = self.source.table.columns
        fields = [pa.field(stand_in_column(self.prefix, column), _arrow_type(column)) for column in columns]
        tables = {f"{self.prefix}none": pa.schema(fields).empty_table()}
        workbench.register(tables)
        selected = [_stood_in(self.prefix, column) for column in columns]
        selected += [f"CAST(NULL AS {_VIRTUAL[name][1]}) AS {name}" for name in sorted(self.virtual)]
        selected += [f"CAST(NULL AS BIGINT) AS {name}" for name in (ROW_ID, PLACE, POSITION) if self.places]
        self._create(workbench, f"SELECT {', '.join(selected)} FROM {self.prefix}none", tables)

    def read(self, storage: Storage, pruning: Predicate | None) -> ScanPlan:
        """Plan which files are read: those that may have rows that the query uses."""
        reads = Reads() if self.places else self.reads
        plan = plan_scan(self.source, pruning, storage, needed=reads.columns)
        if reads.first is not None:
            indexes = self.source.find_indexes()
            plan = with_first_rows(plan, indexes, storage, reads.first, reads.condition)
        reader = self.source.reader
        if self.source.is_stored:
            # It may have been expired while it was planned, and some of its rows be gone.
            check_retained(reader.database, reader.catalog, reader.at)
        self.plan = plan
        columns = self.source.table.columns
        if plan.held and reads.columns is not None:
            # Columns that no index has would have to be read from files.
            columns = tuple(column for column in columns if column.id in reads.columns)
        self.shown = frozenset(column.id for column in columns)
        wanted = Wanted(
            columns,
            row_id="rowid" in self.virtual or self.places,
            snapshot="snapshot_id" in self.virtual,
            place=bool(self.virtual & {"file_row_number", "file_index"}) or self.places,
            file_name="filename" in self.virtual,
            prefix=self.prefix,
        )
        self.relation = relation(plan, storage, wanted)
        return plan

    def show(self, workbench: Workbench) -> None:
        """Let the view show what was planned."""
        found = self.relation
        if found is None:
            raise AssertionError("a table is planned before its rows are shown")
        workbench.register(found.tables)
        selected = [
            quoted(column.name) if column.id in self.shown else _not_read(column)
            for column in self.source.table.columns
        ]
        shown = {name: _VIRTUAL[name][0] for name in sorted(self.virtual)}
        if any(place.file.begin == NOT_YET for place in found.places):
            shown |= {name: sql for name, sql in _PROVISIONAL.items() if name in shown}
        selected += [f"{sql} AS {name}" for name, sql in shown.items()]
        selected += [ROW_ID, PLACE, POSITION] if self.places else []
        self._create(workbench, f"SELECT {', '.join(selected)} FROM ({found.sql})", found.tables)

    def _create(self, workbench: Workbench, query: str, tables: Mapping[str, pa.Table]) -> None:
        workbench.add_schema(self.catalog, self.schema)
        types = tuple(column.data_type for column in self.source.table.columns)
        workbench.add_view(self.view, query, types, tuple(rows.schema for rows in tables.values()))


def files_outside(plan: ScanPlan, storage: Storage) -> Iterator[str]:
    """Files of a plan that are not in the folder of the lake."""
    for place in plan.files:
        for file in (place.file, place.file.deletes):
            if file is not None and not file.path_is_relative:
                yield storage.address(file.path, False)


def _not_read(column: Column) -> str:
    """A column that the query does not use; if it did, that would be an error, and no wrong answer."""
    message = text(f'column "{column.name}" was not read')
    return f"CAST(error({message}) AS {to_sql(column.data_type)}) AS {quoted(column.name)}"


def _arrow_type(column: Column) -> pa.DataType:
    try:
        return to_arrow(shown_as(column.data_type))
    except UnknownType:
        # Nothing is pruned by what Arrow does not know.
        return pa.bool_()


def _stood_in(prefix: str, column: Column) -> str:
    name, type = stand_in_column(prefix, column), column.data_type
    is_same = shown_as(type) == type and not pa.types.is_boolean(_arrow_type(column))
    shown = name if is_same or type == Scalar("boolean") else f"CAST({name} AS {to_sql(type)})"
    shown = shown if type != Scalar("geometry") else f"CAST(NULL AS {to_sql(type)})"
    return f"{shown} AS {quoted(column.name)}"
