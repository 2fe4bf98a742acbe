"""Writing what a commit does to the rows of tables: a fixed number of set-based statements for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forklake.commit.inlining import InlinedRows, ReturnedRows, TableWrites
from forklake.commit.restored_files import Copy, write_returned
from forklake.commit.staged import AddedFile
from forklake.commit.table_statistics import Figures, KnownFigures, read_figures, widened, write_figures
from forklake.data.statistics import summary_of_default
from forklake.model.changes import REWRITTEN, UNLESS_THERE, Change, Verb
from forklake.model.ids import SnapshotId, TableId
from forklake.model.names import is_absolute
from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.scan.scan_plan import Positions
from forklake.store.backend import Allocation, Row, Session
from forklake.store.files import STATS_COLUMNS, stats_row

Renumber = Callable[[int], int]

_STATS = ("catalog_id", "table_id", "data_file_id", *STATS_COLUMNS)
_NAMES = (
    "catalog_id",
    "mapping_id",
    "column_id",
    "source_name",
    "target_field_id",
    "parent_column",
    "is_partition",
)
_AT_ONCE = 20_000
"""How many rows wait at most, so that a commit of very many files takes no more memory than others."""


def file_ids_needed(writes: Sequence[TableWrites]) -> int:
    """How many numbers a commit has to draw for files, delete files and mappings."""
    return sum(
        len(table.files)
        + len(table.deletes)
        + len(table.mappings)
        + (table.inlined is not None)
        + sum(1 + (file.deletes is not None) for file in table.returned)
        for table in writes
    )


def spaces_needed(writes: Sequence[TableWrites]) -> int:
    """How many spaces of row ids a commit may need."""
    return sum(table.is_inherited for table in writes)


def changes_of_rows(
    writes: Sequence[TableWrites], named: Callable[[int], Mapping[str, Any]]
) -> Iterator[Change]:
    """What a commit did to rows, as others have to know it."""
    for table in writes:
        about = named(table.table_id)
        moved = ((Verb.FLUSH, table.flushed), (Verb.COMPACT, table.moved - table.flushed))
        for verb, files in moved:
            if files:
                yield Change(verb, table.table_id, files=frozenset(files), **about)
        if table.inserts:
            detail = UNLESS_THERE if table.looked else None if table.adds_rows else REWRITTEN
            yield Change(Verb.INSERT, table.table_id, detail=detail, paths=table.imported, **about)
        if table.touched:
            yield Change(Verb.DELETE, table.table_id, files=frozenset(table.touched), **about)


def write_rows(
    session: Session,
    writes: Sequence[TableWrites],
    head: Head,
    at: SnapshotId,
    numbers: Allocation,
    ids: Renumber,
    spaces: Sequence[int],
    remembered: KnownFigures,
) -> dict[TableId, Figures]:
    """Add files, deletes and inlined rows, and count them. `at` is the snapshot that the commit follows."""
    known = read_figures(session, head, at, writes, spaces, remembered)
    free = iter(numbers.file_ids)
    sets = _Sets(session)
    tables = [_TableRows(table, known[table.table_id], head, free, ids, sets) for table in writes]
    for table in tables:
        table.collect()
    sets.send()
    write_returned(
        session,
        head,
        [copy for table in tables for copy in table.copies],
        [(table.table_id, list(table.returned.values()), table.defaults) for table in tables],
    )
    write_figures(session, head, [(table.table_id, table.before, table.figures) for table in tables])
    return {TableId(table.table_id): table.figures for table in tables}


class _Sets:
    """Rows that wait to be stored, of all tables together; very many are sent in between."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
        self._waiting = 0

    def add(self, table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        """Take rows of one kind."""
        self._rows.setdefault((table, columns), []).extend(rows)
        self._waiting += len(rows)
        if self._waiting >= _AT_ONCE:
            self.send()

    def send(self) -> None:
        """Store what waits."""
        waiting, self._rows, self._waiting = self._rows, {}, 0
        for (table, columns), rows in waiting.items():
            self._session.insert(table, columns, rows)


class _TableRows:
    """What is to be stored for one table, with the numbers that the commit was given."""

    def __init__(
        self,
        writes: TableWrites,
        figures: Figures,
        head: Head,
        free: Iterator[int],
        ids: Renumber,
        sets: _Sets,
    ) -> None:
        self.before = self.figures = figures
        self.table_id = ids(writes.table_id)
        self._bounds = dict(figures.bounds)
        self._next_row_id = figures.next_row_id
        self._records = self._bytes = 0
        """How many more there are."""
        self._writes = writes
        self._head = head
        self._free = free
        self._ids = ids
        self._sets = sets
        self._given: dict[int, int] = {}
        """What provisional ids of files and mappings became."""
        self.returned: dict[int, int] = {}
        """What provisional ids of files that count again became."""
        self.copies: list[Copy] = []
        self.defaults = writes.defaults

    def collect(self) -> None:
        """Number everything, in the order in which it was written."""
        self._add_mappings()
        for returned in self._writes.returned:
            self._bring_back(returned)
        for file in self._writes.files:
            self._add_file(file)
        if self._writes.inlined is not None:
            self._add_inlined(self._writes.inlined)
        self._add_deletes()
        adopted = self._writes.adopted
        self._widen((*adopted.stats, *adopted.defaults))
        self._records += adopted.rows - self._writes.removed
        self._bytes += adopted.file_size_bytes - self._writes.removed_bytes
        ids = self._next_row_id - self.before.next_row_id
        start = self.before.emptied() if self._writes.was_dropped else self.before
        counted = start.plus(rows=self._records, ids=ids, size=self._bytes)
        self.figures = replace(counted, bounds=self._bounds, is_stored=True)

    def _add(self, table: str, row: Mapping[str, Any]) -> None:
        values = (self._head.catalog_id, self.table_id, *row.values())
        self._sets.add(table, ("catalog_id", "table_id", *row), [values])

    def _widen(self, stats: Iterable[ColumnStats]) -> None:
        if self.before.is_stored:
            stats = list(stats)
            self._bounds |= widened(self._bounds, self._of_older_rows({entry.column_id for entry in stats}))
        self._bounds |= widened(self._bounds, stats)

    def _of_older_rows(self, columns: Collection[int]) -> list[ColumnStats]:
        """What rows have in columns that were added after them, and of which nothing is known yet."""
        missing = {column for column in columns if column not in self._bounds}
        if not missing:
            return []
        walked = (field for column in self._writes.columns for field in column.walk())
        return [summary_of_default(field, 1) for field in walked if field.id in missing]

    def _add_mappings(self) -> None:
        for mapping in self._writes.mappings:
            number = self._given[mapping.id] = next(self._free)
            about = {"mapping_id": number, "type": mapping.kind, "begin_snapshot": self._head.snapshot_id}
            self._add("ducklake_column_mapping", about)
            # DuckLake numbers the entries of a mapping, and names the parent of one by its number.
            places = {name.column_id: place for place, name in enumerate(mapping.names)}
            self._sets.add(
                "ducklake_name_mapping",
                _NAMES,
                [
                    (
                        self._head.catalog_id,
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

    def _bring_back(self, file: ReturnedRows) -> None:
        """Number a file that counts again; all that is known of it is copied where it is stored."""
        number = self.returned[file.id] = next(self._free)
        self.copies.append(Copy("data_file_id", file.past, number, number))
        if file.deletes is not None:
            self.copies.append(Copy("delete_file_id", file.deletes, next(self._free), number))
        if file.positions is not None:
            self._delete_inline(number, file.positions)
        self._records += file.live_rows
        self._bytes += file.file_size_bytes

    def _add_file(self, file: AddedFile) -> None:
        written = file.written
        number = self._given[file.id] = next(self._free)
        self._add_data_file(
            number,
            written.record_count,
            has_row_ids=written.has_row_ids,
            path=written.path,
            path_is_relative=written.path_is_relative,
            file_format="parquet",
            file_size_bytes=written.file_size_bytes,
            footer_size=written.footer_size,
            partition_id=None if written.partition_id is None else self._ids(written.partition_id),
            mapping_id=None if file.mapping_id is None else self._given[file.mapping_id],
            partial_max=file.newest_row,
        )
        catalog, table = self._head.catalog_id, self.table_id
        stats = tuple(written.stats)
        self._sets.add(
            "ducklake_file_column_stats",
            _STATS,
            [(catalog, table, number, *stats_row(entry)) for entry in stats],
        )
        for place, value in enumerate(written.partition_values):
            row = {"data_file_id": number, "partition_key_index": place, "partition_value": value}
            self._add("ducklake_file_partition_value", row)
        self._widen(stats)
        self._records += 0 if file.newest_row is not None else written.record_count
        self._bytes += written.file_size_bytes

    def _add_inlined(self, inlined: InlinedRows) -> None:
        number = next(self._free)
        self._add_data_file(
            number,
            inlined.record_count,
            has_row_ids=inlined.has_row_ids,
            path="",
            path_is_relative=True,
            file_format="inlined",
            file_size_bytes=0,
            footer_size=0,
            partition_id=None,
            mapping_id=None,
            partial_max=None,
        )
        self._add("ducklake_inlined_file", {"data_file_id": number, "content": inlined.content})
        self._widen(inlined.stats)
        self._records += inlined.record_count

    def _add_data_file(self, number: int, record_count: int, *, has_row_ids: bool, **about: Any) -> None:
        row = {
            "data_file_id": number,
            "begin_snapshot": self._head.snapshot_id,
            "record_count": record_count,
            "row_id_start": None if has_row_ids else self._next_row_id,
            **about,
        }
        self._add("ducklake_data_file", row)
        self._next_row_id += 0 if has_row_ids else record_count

    def _add_deletes(self) -> None:
        snapshot = self._head.snapshot_id
        for deletes in self._writes.deletes:
            row = {
                "delete_file_id": next(self._free),
                "begin_snapshot": snapshot,
                # Where the data file goes at the same time, only the change feed needs it.
                "end_snapshot": snapshot if deletes.data_file_id in self._writes.moved else None,
                "data_file_id": self._data_file(deletes.data_file_id, deletes.delete_count),
                "path": deletes.path,
                "path_is_relative": not is_absolute(deletes.path),
                "format": "parquet",
                "delete_count": deletes.delete_count,
                "file_size_bytes": deletes.file_size_bytes,
                "footer_size": deletes.footer_size,
            }
            self._add("ducklake_delete_file", row)
        for file, positions in self._writes.inlined_deletes:
            self._delete_inline(self._data_file(file, len(positions)), positions)

    def _delete_inline(self, file: int, positions: Positions) -> None:
        for position in positions.to_pylist():
            row = {"data_file_id": file, "position": position, "begin_snapshot": self._head.snapshot_id}
            self._add("ducklake_inlined_delete", row)

    def _data_file(self, file: int, deleted: int) -> int:
        """The number of a file that lost rows; those of a file that this commit adds do not count at all."""
        if file in self._given:
            self._records -= deleted
        return self._given.get(file, self.returned.get(file, file))
