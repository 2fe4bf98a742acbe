"""Writing what a commit does to the rows of tables: a fixed number of set-based statements for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forklake.commit.index_writes import GivenIds
from forklake.commit.inlining import InlinedRows, ReturnedRows, TableWrites
from forklake.commit.staged import AddedFile
from forklake.commit.table_statistics import StatisticsCache, read_statistics
from forklake.data.statistics import summary_of_default
from forklake.model.changes import REWRITTEN, UNLESS_THERE, Change, Verb
from forklake.model.ids import ROW_ID_COLUMN, SnapshotId, TableId
from forklake.model.snapshots import Head
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import TableStatistics, widened
from forklake.scan.scan_plan import Positions
from forklake.store.backend import Allocation, Session
from forklake.store.copied_rows import Copy, add_defaults, return_files
from forklake.store.file_writes import FileWrites
from forklake.store.table_statistics import write_statistics

Renumber = Callable[[int], int]


def file_ids_needed(writes: Sequence[TableWrites]) -> int:
    """How many numbers a commit has to draw for files, delete files and mappings."""
    return sum(
        len(table.files)
        + len(table.deletes)
        + len(table.mappings)
        + len(table.inlined)
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
        if table.flushed:
            yield Change(Verb.FLUSH, table.table_id, files=table.flushed, **about)
        if table.moved - table.flushed:
            words = tuple(sorted(table.compacted))
            files = table.moved - table.flushed
            yield Change(Verb.COMPACT, table.table_id, files=files, words=words, **about)
        if table.inserts:
            detail = UNLESS_THERE if table.looked else None if table.adds_rows else REWRITTEN
            words = table.insert_words
            yield Change(
                Verb.INSERT, table.table_id, detail=detail, paths=table.imported, words=words, **about
            )
        if table.touched:
            words = table.delete_words
            yield Change(Verb.DELETE, table.table_id, files=table.touched, words=words, **about)


def write_rows(
    session: Session,
    writes: Sequence[TableWrites],
    head: Head,
    at: SnapshotId,
    numbers: Allocation,
    ids: Renumber,
    spaces: Sequence[int],
    remembered: StatisticsCache,
) -> tuple[dict[TableId, TableStatistics], GivenIds]:
    """Add files, deletes and inlined rows, and count them. `at` is the snapshot that the commit follows.

    Gives what there is of each table now, and what provisional ids of its files became.
    """
    known = read_statistics(session, head, at, writes, spaces, remembered)
    free = iter(numbers.file_ids)
    sets = FileWrites(session, head)
    tables = [_TableRows(table, known[table.table_id], free, ids, sets) for table in writes]
    for table in tables:
        table.collect()
    sets.send()
    return_files(session, head, [copy for table in tables for copy in table.copies])
    for table in tables:
        if table.returned:
            add_defaults(session, head, list(table.returned.values()), table.defaults)
    write_statistics(session, head, [(table.table_id, table.before, table.statistics) for table in tables])
    return (
        {TableId(table.table_id): table.statistics for table in tables},
        {one.table_id: {**table.given, **table.returned} for one, table in zip(writes, tables, strict=True)},
    )


class _TableRows:
    """What is to be stored for one table, with the numbers that the commit was given."""

    def __init__(
        self,
        writes: TableWrites,
        statistics: TableStatistics,
        free: Iterator[int],
        ids: Renumber,
        sets: FileWrites,
    ) -> None:
        self.before = self.statistics = statistics
        self.table_id = ids(writes.table_id)
        self._bounds = dict(statistics.bounds)
        self._next_row_id = statistics.next_row_id
        self._records = self._bytes = 0
        """How many more there are."""
        self._writes = writes
        self._free = free
        self._ids = ids
        self._sets = sets
        self.given: dict[int, int] = {}
        """What provisional ids of files and mappings became."""
        self.returned: dict[int, int] = {}
        """What provisional ids of files that count again became."""
        self.copies: list[Copy] = []
        self.defaults = writes.defaults
        self._unbounded: set[int] = {ROW_ID_COLUMN}
        """As in DuckLake, bounds are kept of what has values: not of a struct, nor of ids that rows carry."""
        for column in writes.columns:
            if column.children:
                self._unbounded |= {field.id for field in column.walk() if field.children}

    def collect(self) -> None:
        """Number everything, in the order in which it was written."""
        self._add_mappings()
        for returned in self._writes.returned:
            self._bring_back(returned)
        for file in self._writes.files:
            self._add_file(file)
        for inlined in self._writes.inlined:
            self._add_inlined(inlined)
        self._add_deletes()
        adopted = self._writes.adopted
        self._widen((*adopted.stats, *adopted.defaults))
        self._records += adopted.rows
        self._bytes += adopted.file_size_bytes
        start = self.before.emptied() if self._writes.was_dropped else self.before
        if not self._writes.was_dropped:
            self._records -= self._writes.removed
            self._bytes -= self._writes.removed_bytes
        ids = self._next_row_id - self.before.next_row_id
        counted = start.plus(rows=self._records, ids=ids, size=self._bytes)
        self.statistics = replace(counted, bounds=self._bounds, is_stored=True)

    def _widen(self, stats: Iterable[ColumnStats]) -> None:
        stats = [one for one in stats if one.column_id not in self._unbounded]
        if self.before.is_stored:
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
            number = self.given[mapping.id] = next(self._free)
            self._sets.add_mapping(self.table_id, number, mapping)

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
        number = self.given[file.id] = next(self._free)
        self._sets.add_data_file(
            self.table_id,
            number,
            written.record_count,
            self._row_ids(written.record_count, has_row_ids=written.has_row_ids),
            written.path,
            written.path_is_relative,
            written.file_size_bytes,
            written.footer_size,
            partition=None if written.partition_id is None else self._ids(written.partition_id),
            mapping=None if file.mapping_id is None else self.given.get(file.mapping_id, file.mapping_id),
            newest_row=file.newest_row,
        )
        stats = tuple(written.stats)
        self._sets.add_stats(self.table_id, number, stats)
        self._sets.add_partition_values(self.table_id, number, written.partition_values)
        self._widen(stats)
        self._records += 0 if file.newest_row is not None else written.record_count
        self._bytes += written.file_size_bytes

    def _add_inlined(self, inlined: InlinedRows) -> None:
        row_ids = self._row_ids(inlined.record_count, has_row_ids=inlined.has_row_ids)
        self._sets.add_inlined_file(
            self.table_id, next(self._free), inlined.record_count, row_ids, inlined.content
        )
        self._widen(inlined.stats)
        self._records += inlined.record_count

    def _row_ids(self, record_count: int, *, has_row_ids: bool) -> int | None:
        """The first of the row ids that a file is given; None if its rows carry theirs."""
        if has_row_ids:
            return None
        first, self._next_row_id = self._next_row_id, self._next_row_id + record_count
        return first

    def _add_deletes(self) -> None:
        for deletes in self._writes.deletes:
            self._sets.add_delete_file(
                self.table_id,
                next(self._free),
                self._data_file(deletes.data_file_id, deletes.delete_count),
                deletes.path,
                deletes.delete_count,
                deletes.file_size_bytes,
                deletes.footer_size,
                has_ended=deletes.data_file_id in self._writes.moved,
            )
        for file, positions in self._writes.inlined_deletes:
            self._delete_inline(self._data_file(file, len(positions)), positions)

    def _delete_inline(self, file: int, positions: Positions) -> None:
        self._sets.add_inlined_deletes(self.table_id, file, positions.to_pylist())

    def _data_file(self, file: int, deleted: int) -> int:
        """The number of a file that lost rows; those of a file that this commit adds do not count at all."""
        if file in self.given:
            self._records -= deleted
        return self.given.get(file, self.returned.get(file, file))
