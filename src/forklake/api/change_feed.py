"""The change feed of a table: what happened to its rows between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forklake.api.result_formats import ResultFormats
from forklake.api.scoped import ScopedHandle, scope_of
from forklake.context.lake_context import LakeContext
from forklake.display import html_record, html_title
from forklake.engine.change_feed import KIND, ROW_COLUMN, SNAPSHOT_COLUMN, feed_query, feed_schema
from forklake.engine.condition import naming
from forklake.errors import InvalidArgument
from forklake.lazy.arrow import pa
from forklake.model.ids import SnapshotId
from forklake.model.names import QualifiedName
from forklake.model.sql.predicate import Predicate
from forklake.model.table.columns import Columns
from forklake.model.time_travel import AsOf
from forklake.scan.change_plan import ChangePlan, plan_changes, plan_places
from forklake.scan.scan_plan import Source

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, repr=False)
class ChangeFeed(ResultFormats):
    """The change feed: inserts, deletes, and pre- and post-images of updates between two snapshots."""

    _source: Source
    _context: LakeContext
    start: SnapshotId
    end: SnapshotId
    _predicate: Predicate | None = None

    def __repr__(self) -> str:
        """Of which table, after which snapshot and up to which."""
        return f"<{type(self).__name__} of {self._source.table.name!r} after {self.start} up to {self.end}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is asked for. Nothing is read."""
        facts = {
            "table": self._source.table.name,
            "after snapshot": self.start,
            "up to": self.end,
            "where": None if self._predicate is None else self._predicate.text,
        }
        return html_title(type(self).__name__) + html_record(facts)

    @property
    def source(self) -> Source:
        """The table, and what is known of its files."""
        return self._source

    @property
    def columns(self) -> Columns:
        """The columns of the table at the end of the range."""
        return self._source.table.columns

    @property
    def predicate(self) -> Predicate | None:
        """Which changes are asked for."""
        return self._predicate

    def plan(self) -> ChangePlan:
        """Plan the feed: files that were added and removed, and deleted positions."""
        return plan_changes(self._source, self.start, self.end, self._context.storage)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the feed."""
        return feed_schema(self._source.table.columns)

    def count(self) -> int:
        """The number of changes."""
        return sum(batch.num_rows for batch in self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Read all changes as an Arrow table."""
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the changes in batches."""
        engine = self._context.engine
        plan = self.plan()
        found = feed_query(engine, plan, plan_places(self._source, plan.deleted), self._predicate)
        with naming(self._predicate):
            for batch in engine.stream(found.sql, found.tables):
                yield batch.cast(self.schema)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The changes as a relation in a DuckDB connection of yours."""
        changes: Any = self.to_arrow()
        return connection.from_arrow(changes)


def check_names(source: Source) -> None:
    """Refuse a table whose columns would meet those of the feed."""
    for column in source.table.columns:
        if column.name.lower() in (KIND, SNAPSHOT_COLUMN, ROW_COLUMN):
            raise InvalidArgument(
                f'column "{column.name}" is named like a column of the change feed: rename it to see changes'
            )


def feed_between(catalog: ScopedHandle, name: QualifiedName, first: int, last: AsOf) -> ChangeFeed:
    """The changes of a table from one snapshot to another, both included; it is named as at the end."""
    scope = scope_of(catalog).at(last)
    draft = scope.read()
    source = draft.source(draft.table_named(name))
    check_names(source)
    if first > source.reader.at:
        raise InvalidArgument(f"the changes are asked for from {first} to {last}, which is before it")
    return ChangeFeed(source, scope.context, SnapshotId(first - 1), source.reader.at)
