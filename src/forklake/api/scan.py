"""A scan: what to read of a table, and the forms in which it can be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forklake.api.assignments import column_path
from forklake.api.result_formats import ResultFormats
from forklake.commit.draft import Draft
from forklake.context.lake_context import LakeContext
from forklake.display import MOST_ROWS, html_record, html_table, html_title
from forklake.engine.change_feed import ROW_COLUMN
from forklake.engine.condition import condition_of
from forklake.engine.duckdb_relation import to_relation
from forklake.engine.min_max import bound
from forklake.engine.select import Selection, count_rows, read_batches, read_table, result_schema
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.entities import Table
from forklake.model.ids import SnapshotId
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns, find
from forklake.model.types.data_types import to_sql
from forklake.scan.scan_plan import ScanPlan, Source, plan_scan
from forklake.store.retention import check_retained

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, repr=False)
class Scan(ResultFormats):
    """A read of a table at one snapshot. Nothing is read before a method asks for rows."""

    _source: Source
    _context: LakeContext
    _selection: Selection
    _predicate: Predicate | None
    _table: str
    """The name of the table, and of its catalog."""

    def __repr__(self) -> str:
        """Of which table at which snapshot, and whether all of its rows are asked for."""
        some = self._predicate is not None or self._selection.limit is not None
        return f"<Scan of {'some' if some else 'all'} rows of {self._table} at snapshot {self.at}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is asked for. Nothing is read."""
        facts = {
            "of": self._table,
            "at snapshot": self.at,
            "where": None if self._predicate is None else self._predicate.text,
            "limit": self._selection.limit,
        }
        columns = self._selection.columns
        rows = [(column.name, to_sql(column.data_type)) for column in columns[:MOST_ROWS]]
        listed = html_table(("column", "type"), rows, len(columns))
        return html_title("Scan") + html_record(facts) + listed

    def plan(self) -> ScanPlan:
        """Plan the scan: the files to read, and those that are pruned."""
        return self._planned(None)

    def _planned(self, columns: Columns | None) -> ScanPlan:
        """The plan; of files whose rows an index holds, with these columns, it has the rows."""
        needed = None
        if columns is not None and self._predicate is not None:
            names = self._predicate.columns
            named = [column for column in self._source.table.columns if column.name in names]
            needed = {column.id for column in (*columns, *named)}
        plan = plan_scan(self._source, self._predicate, self._context.storage, needed=needed)
        self._check_retained()
        return plan

    @property
    def _read(self) -> Columns | None:
        """The columns that are shown, if these are whole ones and nothing else."""
        chosen = self._selection
        return None if chosen.row_id or chosen.snapshot or chosen.inside else chosen.columns

    @property
    def at(self) -> SnapshotId:
        """The id of the snapshot that is read."""
        return self._source.reader.at

    @property
    def selection(self) -> Selection:
        """The columns to show, and what else."""
        return self._selection

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return result_schema(self._selection)

    def count(self) -> int:
        """The number of rows; without a condition, from the statistics."""
        limit = self._selection.limit
        if self._predicate is None:
            source = self._source
            if source.uncommitted.is_empty:
                counted = source.reader.totals().record_count if source.is_stored else 0
                self._check_retained()
            else:
                plan = self.plan()
                counted = sum(place.live_rows for place in (*plan.files, *plan.rows))
        else:
            counted = count_rows(self._context.engine, self._planned(()))
        return counted if limit is None else min(counted, limit)

    def min(self, column: str) -> Any:
        """The minimum of a column, without NULLs; from statistics if they are exact."""
        return self._bound(column, highest=False)

    def max(self, column: str) -> Any:
        """The maximum of a column, without NULLs; from statistics if they are exact."""
        return self._bound(column, highest=True)

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""
        return read_table(self._context.engine, self._planned(self._read), self._selection)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in batches, with bounded memory."""
        return read_batches(self._context.engine, self._planned(self._read), self._selection)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows as a relation in a DuckDB connection of yours, which reads the files itself."""
        return to_relation(connection, self._context.engine, self.plan(), self._selection)

    def _bound(self, name: str, *, highest: bool) -> Any:
        column = find(self._source.table.columns, [name])
        found = bound(self._context.engine, self._source, self._predicate, column, highest=highest)
        self._check_retained()
        return found

    def _check_retained(self) -> None:
        """Refuse what was found if the snapshot has been expired: some of its rows may be gone."""
        reader = self._source.reader
        if self._source.is_stored:
            check_retained(reader.database, reader.catalog, reader.at)


def scan_of(
    draft: Draft,
    table: Table,
    context: LakeContext,
    *,
    catalog: str,
    where: str | None,
    columns: Sequence[str] | None,
    limit: object,
    row_ids: bool,
) -> Scan:
    """A scan of a table as a draft shows it, checked."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidArgument(f"a limit is a whole number of rows, not {limit!r}")
    predicate = condition_of(context.engine, where, table.columns)
    selection = selection_of(table, columns, row_ids=row_ids, limit=limit)
    result_schema(selection)
    if row_ids and any(column.name.lower() == ROW_COLUMN for column in selection.columns):
        raise InvalidArgument(
            f'a column is named "{ROW_COLUMN}" like the id of rows: rename it, or choose other columns'
        )
    name = f"{draft.name_of(table)} of catalog {catalog!r}"
    return Scan(draft.source(table), context, selection, predicate, name)


def selection_of(table: Table, names: Sequence[str] | None, *, row_ids: bool, limit: int | None) -> Selection:
    """The columns to show, by their names; None means all."""
    if names is None:
        return Selection(table.columns, row_id=row_ids, limit=limit)
    if isinstance(names, str) or not names:
        raise InvalidArgument("columns are given as a list of at least one name")
    paths = [column_path(table.columns, name) for name in names]
    chosen = tuple(path[-1] for path in paths)
    if len({column.id for column in chosen}) < len(chosen):
        raise InvalidArgument("a column is named twice")
    shown = [column.name.lower() for column in chosen]
    for column in chosen:
        # As in SQL, s.x is shown as x.
        if shown.count(column.name.lower()) > 1:
            raise InvalidArgument(f'two columns would be shown as "{column.name}": read one of them apart')
    inside = {path[-1].id: path for path in paths if len(path) > 1}
    return Selection(chosen, row_id=row_ids, limit=limit, inside=inside)
