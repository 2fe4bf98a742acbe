"""What a catalog counts of its tables: rows, bytes, the next row id, and the bounds of columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from forklake.commit.inlining import TableWrites
from forklake.model.ids import CatalogId, ColumnId, SnapshotId, TableId
from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.model.types.extremes import greatest, least
from forklake.store.backend import Row, Session

SPACE = 2**32
"""A fork numbers the rows that it adds to an inherited table from a multiple of this on."""
FIRST_SPACE = 2**16
"""Below, there is room for the rows of tables in the catalogs that made them."""

MOST_CATALOGS = 4096
MOST_TABLES = 1024

_FIGURES = ("catalog_id", "table_id", "record_count", "next_row_id", "file_size_bytes")
_BOUNDS = (
    "catalog_id",
    "table_id",
    "column_id",
    "contains_null",
    "contains_nan",
    "min_value",
    "max_value",
    "min_key",
    "max_key",
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a column over all rows that a table ever had."""

    contains_null: bool = False
    contains_nan: bool | None = None
    min_value: str | None = None
    max_value: str | None = None
    min_key: str | None = None
    max_key: str | None = None

    def with_stats(self, stats: ColumnStats) -> Bounds:
        """Wider, where a file goes beyond."""
        min_key, min_value = least((self.min_key, self.min_value), (stats.min_key, stats.min_value))
        max_key, max_value = greatest((self.max_key, self.max_value), (stats.max_key, stats.max_value))
        wider = Bounds(
            self.contains_null or stats.null_count != 0,
            self.contains_nan if stats.min_key is None else self._may_be_nan(stats),
            min_value,
            max_value,
            min_key,
            max_key,
        )
        return self if wider == self else wider

    def _may_be_nan(self, stats: ColumnStats) -> bool | None:
        """Certain only if every file is; None where one does not say, and for types without NaN."""
        if self.min_key is None:
            return stats.contains_nan
        both = (self.contains_nan, stats.contains_nan)
        return True if True in both else None if None in both else False


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one table."""

    record_count: int | None = 0
    """None in a fork that inherited the table: counting what is there would cost what the table holds."""
    next_row_id: int = 0
    file_size_bytes: int | None = 0
    bounds: dict[ColumnId, Bounds] = field(default_factory=dict[ColumnId, Bounds])
    is_stored: bool = False
    """Whether the catalog has a row of them."""

    @property
    def is_counted(self) -> bool:
        """Whether all rows that are there were counted."""
        return self.record_count is not None

    def emptied(self) -> Figures:
        """Of a table that was dropped: none of its rows are there, and its row ids stay given out."""
        return self if self.record_count is None else replace(self, record_count=0, file_size_bytes=0)

    def plus(self, *, rows: int = 0, ids: int = 0, size: int = 0) -> Figures:
        """After more rows, row ids given out, and bytes."""
        return replace(
            self,
            record_count=None if self.record_count is None else self.record_count + rows,
            next_row_id=self.next_row_id + ids,
            file_size_bytes=None if self.file_size_bytes is None else self.file_size_bytes + size,
        )


class KnownFigures:
    """Figures that our own last commits led to: while nobody else commits, they need not be read again."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._known: dict[CatalogId, tuple[SnapshotId, dict[TableId, Figures]]] = {}

    def at(self, catalog: CatalogId, snapshot: SnapshotId) -> dict[TableId, Figures]:
        """What is known of a catalog that stands at a snapshot."""
        known = self._known.get(catalog)
        return known[1] if known is not None and known[0] == snapshot else {}

    def put(
        self, catalog: CatalogId, base: SnapshotId, snapshot: SnapshotId, figures: Mapping[TableId, Figures]
    ) -> None:
        """Remember what a commit led from one snapshot to another has counted."""
        kept = self.at(catalog, base)
        if len(self._known) >= MOST_CATALOGS:
            self._known.clear()
        self._known[catalog] = (snapshot, {**(kept if len(kept) < MOST_TABLES else {}), **figures})


def read_figures(
    session: Session,
    head: Head,
    base: SnapshotId,
    writes: Sequence[TableWrites],
    spaces: Sequence[int],
    known: KnownFigures,
) -> dict[TableId, Figures]:
    """The figures of the tables that a commit writes to, as they stand under the lock."""
    tables = [table.table_id for table in writes if table.table_id >= 0]
    remembered = known.at(head.catalog_id, base)
    found = {table: remembered[table] for table in tables if table in remembered}
    missing = [table for table in tables if table not in found]
    if missing:
        listed = json.dumps(missing)
        for table, records, next_row_id, size, column, null, nan, *values in session.rows(
            "figures", catalog=head.catalog_id, tables=listed
        ):
            figures = found.setdefault(table, Figures(records, next_row_id, size, is_stored=True))
            if column is not None:
                figures.bounds[column] = Bounds(bool(null), None if nan is None else bool(nan), *values)
    free = iter(spaces)
    for table in writes:
        if table.table_id not in found:
            found[table.table_id] = Figures()
            if table.is_inherited:
                # A fork numbers its rows in a space of its own.
                found[table.table_id] = Figures(None, (FIRST_SPACE + next(free)) * SPACE, None)
    return found


def widened(bounds: dict[ColumnId, Bounds], stats: Iterable[ColumnStats]) -> dict[ColumnId, Bounds]:
    """The bounds that become wider."""
    wider: dict[ColumnId, Bounds] = {}
    for entry in stats:
        old = wider.get(entry.column_id) or bounds.get(entry.column_id)
        new = (old or Bounds()).with_stats(entry)
        if new is not old:
            wider[entry.column_id] = new
    return wider


def write_figures(session: Session, head: Head, figures: Sequence[tuple[int, Figures, Figures]]) -> None:
    """Store the figures of some tables, given as they were and as they are."""
    _write(session, "ducklake_table_stats", 2, _FIGURES, list(_figures_rows(head, figures)))
    _write(session, "ducklake_table_column_stats", 3, _BOUNDS, list(_bounds_rows(head, figures)))


def _write(
    session: Session, table: str, keys: int, columns: tuple[str, ...], rows: Sequence[tuple[bool, Row]]
) -> None:
    """Rows that are there are updated, others are added."""
    known = [row for is_known, row in rows if is_known]
    fresh = [row for is_known, row in rows if not is_known]
    if known:
        session.update(table, columns[:keys], columns[keys:], known)
    if fresh:
        session.insert(table, columns, fresh)


def _figures_rows(head: Head, figures: Sequence[tuple[int, Figures, Figures]]) -> Iterator[tuple[bool, Row]]:
    for table, before, after in figures:
        values = (after.record_count, after.next_row_id, after.file_size_bytes)
        yield before.is_stored, (head.catalog_id, table, *values)


def _bounds_rows(head: Head, figures: Sequence[tuple[int, Figures, Figures]]) -> Iterator[tuple[bool, Row]]:
    for table, before, after in figures:
        for column, bounds in after.bounds.items() if after.is_counted else ():
            if before.bounds.get(column) != bounds:
                yield column in before.bounds, (head.catalog_id, table, column, *astuple(bounds))
