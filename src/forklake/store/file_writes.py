"""Writing rows about files of tables: they wait until all tables of a commit are done, and go as sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forklake.model.ids import CatalogId, SnapshotId
from forklake.model.names import is_absolute
from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.model.table.name_mapping import Mapping as NameMapping
from forklake.store.backend import Row, Session
from forklake.store.row_sets import (
    DATA_FILES,
    DELETE_FILES,
    FILE_STATS,
    INLINED_DELETES,
    INLINED_FILES,
    MAPPED_NAMES,
    MAPPINGS,
    PARTITION_VALUES,
    RowSet,
)

_AT_ONCE = 20_000
"""How many rows wait at most, so that a commit of very many files takes no more memory than others."""


def add_inlined_deletes(
    session: Session, head: Head, tables: Iterable[tuple[int, Iterable[tuple[int, int]]]]
) -> None:
    """Store at once which rows are deleted without a delete file: by tables, files with positions."""
    session.insert(
        INLINED_DELETES,
        [
            (head.catalog_id, table, file, position, head.snapshot_id)
            for table, positions in tables
            for file, position in positions
        ],
    )


class FileWrites:
    """Rows that wait to be stored, of all tables of a commit together; very many are sent in between."""

    def __init__(self, session: Session, head: Head) -> None:
        """Nothing waits."""
        self._session = session
        self._catalog: CatalogId = head.catalog_id
        self._snapshot: SnapshotId = head.snapshot_id
        self._rows: dict[RowSet, list[Row]] = {}
        self._waiting = 0

    def add_data_file(
        self,
        table: int,
        file: int,
        record_count: int,
        row_id_start: int | None,
        path: str,
        path_is_relative: bool,
        file_size_bytes: int,
        footer_size: int | None,
        *,
        partition: int | None = None,
        mapping: int | None = None,
        newest_row: int | None = None,
    ) -> None:
        """A Parquet file."""
        about = (record_count, row_id_start, path, path_is_relative, "parquet", file_size_bytes, footer_size)
        row = (self._catalog, table, file, self._snapshot, *about, partition, mapping, newest_row)
        self._add(DATA_FILES, [row])

    def add_inlined_file(
        self, table: int, file: int, record_count: int, row_id_start: int | None, content: str
    ) -> None:
        """A file whose rows live in the database."""
        about = (record_count, row_id_start, "", True, "inlined", 0, 0, None, None, None)
        self._add(DATA_FILES, [(self._catalog, table, file, self._snapshot, *about)])
        self._add(INLINED_FILES, [(self._catalog, table, file, content)])

    def add_stats(self, table: int, file: int, stats: Iterable[ColumnStats]) -> None:
        """What is known of the columns in a file."""
        catalog = self._catalog
        self._add(
            FILE_STATS,
            [
                (
                    catalog,
                    table,
                    file,
                    entry.column_id,
                    entry.size_bytes,
                    entry.value_count,
                    entry.null_count,
                    entry.min_value,
                    entry.max_value,
                    entry.contains_nan,
                    entry.distinct_count,
                    entry.min_key,
                    entry.max_key,
                )
                for entry in stats
            ],
        )

    def add_partition_values(self, table: int, file: int, values: Sequence[str | None]) -> None:
        """The partition that a file belongs to."""
        if values:
            rows = [(self._catalog, table, file, place, value) for place, value in enumerate(values)]
            self._add(PARTITION_VALUES, rows)

    def add_mapping(self, table: int, number: int, mapping: NameMapping) -> None:
        """The names that imported files have for columns."""
        self._add(MAPPINGS, [(self._catalog, table, number, mapping.kind, self._snapshot)])
        # DuckLake numbers the entries of a mapping, and names the parent of one by its number.
        places = {name.column_id: place for place, name in enumerate(mapping.names)}
        self._add(
            MAPPED_NAMES,
            [
                (
                    self._catalog,
                    number,
                    place,
                    name.source_name,
                    name.column_id,
                    None if name.parent is None else places[name.parent],
                    name.is_partition,
                )
                for place, name in enumerate(mapping.names)
            ],
        )

    def add_delete_file(
        self,
        table: int,
        delete_file: int,
        data_file: int,
        path: str,
        delete_count: int,
        file_size_bytes: int,
        footer_size: int,
        *,
        has_ended: bool,
    ) -> None:
        """A delete file. Where the data file goes at the same time, only the change feed needs it."""
        span = (self._snapshot, self._snapshot if has_ended else None)
        about = (path, not is_absolute(path), "parquet", delete_count, file_size_bytes, footer_size)
        self._add(DELETE_FILES, [(self._catalog, table, delete_file, *span, data_file, *about)])

    def add_inlined_deletes(self, table: int, file: int, positions: Iterable[int]) -> None:
        """Rows of a file that are deleted without a delete file."""
        catalog, snapshot = self._catalog, self._snapshot
        rows = [(catalog, table, file, position, snapshot) for position in positions]
        if rows:
            self._add(INLINED_DELETES, rows)

    def send(self) -> None:
        """Store what waits."""
        waiting, self._rows, self._waiting = self._rows, {}, 0
        for into, rows in waiting.items():
            self._session.insert(into, rows)

    def _add(self, into: RowSet, rows: Sequence[Row]) -> None:
        self._rows.setdefault(into, []).extend(rows)
        self._waiting += len(rows)
        if self._waiting >= _AT_ONCE:
            self.send()
