"""What a table of a catalog consists of at one snapshot, and what is known of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from forklake.model.ids import CatalogId, ColumnId, DataFileId, MappingId, SnapshotId, TableId
from forklake.model.sql.predicate_tree import Range
from forklake.model.table.files import ColumnStats, DataFile, DeleteFile
from forklake.model.table.name_mapping import MappedName
from forklake.model.table.name_mapping import Mapping as NameMapping
from forklake.store.backend import Database, Row, Session
from forklake.store.file_values import InlinedFiles, PastFile, column_stats, data_file, delete_file, past_file
from forklake.store.snapshots import Footprint, footprints_between

ALL = 2**31 - 1
"""As many as there are."""
MOST_NAMED = 2000
"""Up to how many files are named one by one in a query; beyond, it reads those of the whole table."""
FEW_NAMED = 100
"""Up to how many inlined files are named where a span of numbers would do as well."""
_ID = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a table amounts to."""

    files: int
    record_count: int
    """Rows that are there: those that were deleted do not count."""
    file_size_bytes: int


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table amounts to; inlined rows are no files."""

    files: int = 0
    bytes: int = 0
    delete_files: int = 0
    delete_bytes: int = 0
    rows: int = 0
    """Rows that are there: those that were deleted do not count."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that a table gained, or that were lost or lost rows, in a span of snapshots."""

    files: list[PastFile]
    deletes: dict[DataFileId, list[DeleteFile]]
    """Delete files that stood at the start of the span or came within it, in order."""
    inlined: dict[DataFileId, list[tuple[int, SnapshotId]]]
    """Positions that were deleted inline up to the end of the span, and when."""
    footprints: list[Footprint]
    """What each commit of the span did."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """The files of one table, as a catalog sees them at a snapshot."""

    database: Database
    catalog: CatalogId
    table: TableId
    at: SnapshotId

    def files(self) -> list[DataFile]:
        """Every Parquet file."""
        return _in_order(self._rows("files"))

    def files_and_inlined_rows(self) -> tuple[list[DataFile], InlinedFiles]:
        """Every Parquet file, and the files whose rows live in the database."""
        rows = sorted(self._rows("files_and_inlined_rows"), key=_ID)
        files = [data_file(row[:-2]) for row in rows if row[-2] != "inlined"]
        return files, InlinedFiles([row for row in rows if row[-1] is not None and row[-2] == "inlined"])

    def files_by_key(
        self, column: ColumnId, low: str, high: str, *, keys: Sequence[str] = (), most: int | None = None
    ) -> list[DataFile] | None:
        """The Parquet files that have statistics of a column, and may hold a value between two keys.

        With `keys`, it is one of those that they may hold. None if there are, or may be, more than `most`.
        """
        where = {"column": column, "low": low, "high": high, "most": ALL if most is None else most + 1}
        if keys:
            rows = self._rows("files_by_keys", keys=json.dumps(keys), **where)
        else:
            rows = self._rows("files_by_key", **where)
        # Without a visible hit, nothing says whether there were too many that are not.
        if most is not None and (not rows or rows[0][-1] > most):
            return None
        return _in_order([row[:-1] for row in rows])

    def files_by_two_keys(self, one: Range, other: Range) -> list[DataFile]:
        """The Parquet files that may hold a value between two keys in each of two columns."""
        rows = self._rows(
            "files_by_two_keys",
            column=one.column_id,
            low=one.low,
            high=one.high,
            other=other.column_id,
            other_low=other.low,
            other_high=other.high,
        )
        return _in_order(rows)

    def files_before(self, since: SnapshotId) -> list[DataFile]:
        """The Parquet files that are older than a snapshot."""
        return _in_order(self._rows("files_before", since=since))

    def files_by_partition(self, partition: int, place: int, value: str) -> list[DataFile]:
        """The Parquet files of one partition, and all that were written under another partitioning."""
        inside = self._rows("files_by_partition", partition=partition, place=place, value=value)
        outside = self._rows("files_outside_partitioning", partition=partition)
        return [*_in_order(inside), *_in_order(outside)]

    def files_with_row(self, row: int) -> list[DataFile]:
        """The Parquet files that count a row id among those that were given to them."""
        return [data_file(found) for found in self._rows("files_with_row", row=row)]

    def inlined_files(self) -> list[tuple[DataFile, str]]:
        """The files whose rows live in the database, each with its content."""
        found = self.inlined()
        return list(zip(found.files(), found.contents, strict=True))

    def inlined(self) -> InlinedFiles:
        """The files whose rows live in the database."""
        return InlinedFiles(sorted(self._rows("inlined_files"), key=_ID))

    def with_deletes(
        self, files: Sequence[DataFile], inlined: Sequence[DataFileId] = ()
    ) -> tuple[list[DataFile], dict[DataFileId, list[int]]]:
        """The files, each with the delete file that applies to it; and positions that were deleted inline.

        `inlined` are files without delete files, of which only the latter is asked.
        """
        named = [file.id for file in files]
        deletes: dict[DataFileId, DeleteFile] = {
            row[0]: delete_file(row) for row in self._of("delete_files", named)
        }
        lost = self._inlined_deletes(named, inlined)
        wanted = {*named, *inlined} if lost else set[DataFileId]()
        positions: dict[DataFileId, list[int]] = {}
        before: Counter[DataFileId] = Counter()
        for file, position, begin in sorted(set(lost)):
            if file in wanted:
                positions.setdefault(file, []).append(position)
                before[file] += file in deletes and deletes[file].is_younger(begin)
        found = {file: replace(entry, inlined_before=before[file]) for file, entry in deletes.items()}
        if not found:
            return list(files), positions
        return [
            replace(file, deletes=found[file.id]) if file.id in found else file for file in files
        ], positions

    def has_deletes(self) -> bool:
        """Whether any row of the table was deleted and is still in a file."""
        return bool(self._rows("delete_files") or self._rows("inlined_deletes"))

    def stats(
        self, files: Sequence[DataFile], columns: Iterable[ColumnId]
    ) -> dict[DataFileId, dict[ColumnId, ColumnStats]]:
        """What is known of some columns in some files."""
        found: dict[DataFileId, dict[ColumnId, ColumnStats]] = {}
        wanted = _ids(columns)
        if len(files) > MOST_NAMED:
            rows = self.database.rows(
                "stats_of_table", catalog=self.catalog, table=self.table, columns=wanted
            )
        else:
            listed = _ids(file.id for file in files)
            rows = self.database.rows("stats_of_files", catalog=self.catalog, files=listed, columns=wanted)
        for file, *values in rows:
            stats = column_stats(values)
            found.setdefault(file, {})[stats.column_id] = stats
        return found

    def partition_values(self, files: Iterable[DataFile]) -> dict[DataFileId, tuple[str | None, ...]]:
        """The partition values of some files."""
        found: dict[DataFileId, tuple[str | None, ...]] = {}
        rows = self.database.rows(
            "partitions_of_files", catalog=self.catalog, files=_ids(file.id for file in files)
        )
        for file, _, value in rows:
            found[file] = (*found.get(file, ()), value)
        return found

    def changed(self, start: SnapshotId, end: SnapshotId) -> ChangedFiles:
        """What came and went after one snapshot and up to another."""
        span = {"catalog": self.catalog, "table": self.table, "start": start, "end": end}
        files = [past_file(row) for row in self.database.rows("files_changed", **span)]
        deletes: dict[DataFileId, list[DeleteFile]] = {}
        for row in self.database.rows("deletes_changed", **span):
            deletes.setdefault(row[0], []).append(delete_file(row))
        inlined: dict[DataFileId, list[tuple[int, SnapshotId]]] = {}
        for file, position, begin in sorted(
            self.database.rows("inlined_deletes", catalog=self.catalog, table=self.table, at=end)
        ):
            inlined.setdefault(file, []).append((position, begin))
        known = {past.file.id for past in files}
        touched = [file for file, versions in deletes.items() if any(v.begin > start for v in versions)]
        touched += [file for file, places in inlined.items() if any(begin > start for _, begin in places)]
        missing = sorted({file for file in touched if file not in known})
        if missing:
            files += [
                past_file(row)
                for row in self.database.rows(
                    "files_by_id", catalog=self.catalog, table=self.table, files=_ids(missing)
                )
            ]
        footprints = footprints_between(self.database, self.catalog, start, end)
        return ChangedFiles(files, deletes, inlined, footprints)

    def contents(self, files: Sequence[DataFile]) -> dict[DataFileId, str]:
        """The rows of inlined files, whether these still count or not."""
        return inlined_contents(self.database, self.catalog, [file.id for file in files])

    def bounds(self, column: ColumnId) -> list[tuple[SnapshotId, ColumnStats | None]]:
        """What is known of a column in every Parquet file, and when that file began."""
        return [
            (
                begin,
                None
                if count is None
                else ColumnStats(
                    column, count, nulls, low, high, low_key, high_key, None if nan is None else bool(nan)
                ),
            )
            for low_key, low, high_key, high, nulls, count, nan, begin in self._rows("bounds", column=column)
        ]

    def column_totals(self) -> dict[ColumnId, ColumnStats]:
        """What all Parquet files together know of each column."""
        return {
            column: ColumnStats(
                column,
                int(count),
                None if nulls is None else int(nulls),
                low,
                high,
                low_key,
                high_key,
                None if nan is None else bool(nan),
                None,
                None if size is None else int(size),
            )
            for column, count, nulls, low, high, low_key, high_key, nan, size in self._rows("column_totals")
        }

    def totals(self) -> Totals:
        """How many files, rows and bytes there are."""
        return totals_of(self.database, self.catalog, self.table, self.at)

    def mappings(self) -> dict[MappingId, NameMapping]:
        """The names that imported files have for the columns."""
        names: dict[MappingId, list[MappedName]] = {}
        kinds: dict[MappingId, str] = {}
        rows = self.database.rows("mappings", catalog=self.catalog, table=self.table)
        for mapping, kind, source, target, is_partition in rows:
            kinds[mapping] = kind
            # The table knows what is nested where; earlier versions stored another number for it.
            names.setdefault(mapping, []).append(MappedName(target, source, None, bool(is_partition)))
        return {key: NameMapping(key, tuple(found), kinds[key]) for key, found in names.items()}

    def _inlined_deletes(self, files: Sequence[DataFileId], inlined: Sequence[DataFileId]) -> list[Row]:
        """Of these files, and if many of them are inlined also of others that were made between those."""
        if len(inlined) <= FEW_NAMED:
            return self._of("inlined_deletes", [*files, *inlined])
        # Every inlined file comes with a plan, so hardly any other lies between.
        between = self._rows("inlined_deletes_between", low=min(inlined), high=max(inlined))
        return [*self._of("inlined_deletes", files), *between]

    def _of(self, statement: str, files: Sequence[DataFileId]) -> list[Row]:
        """Rows about these files, or about all files of the table if these are many."""
        if not files:
            return []
        if len(files) > MOST_NAMED:
            return self._rows(statement)
        return self._rows(f"{statement}_of", files=_ids(files))

    def _rows(self, statement: str, **params: object) -> list[Row]:
        return self.database.rows(statement, catalog=self.catalog, table=self.table, at=self.at, **params)


def totals_of(reader: Database | Session, catalog: CatalogId, table: TableId, at: SnapshotId) -> Totals:
    """How many files, rows and bytes a table has at a snapshot."""
    found = reader.rows("totals", catalog=catalog, table=table, at=at)
    files, records, size, deleted, inlined = found[0]
    return Totals(files, int(records) - int(deleted) - int(inlined), int(size))


def sizes_of_tables(database: Database, catalog: CatalogId, at: SnapshotId) -> dict[TableId, TableSize]:
    """How many files, rows and bytes each table of a catalog has at a snapshot; empty ones are left out."""
    return {
        table: TableSize(
            int(files),
            int(size),
            int(deletes),
            int(delete_size),
            int(records) - int(deleted) - int(deleted_inline),
        )
        for table, files, size, records, deletes, delete_size, deleted, deleted_inline in database.rows(
            "sizes_of_tables", catalog=catalog, at=at
        )
    }


def inlined_contents(
    database: Database, catalog: CatalogId, files: Sequence[DataFileId]
) -> dict[DataFileId, str]:
    """The rows of inlined files, whether these still count or not."""
    if not files:
        return {}
    return dict(database.rows("inlined_content", catalog=catalog, files=_ids(files)))


def tables_with_inlined_rows(database: Database, catalog: CatalogId, at: SnapshotId) -> list[TableId]:
    """The tables with rows that live in the database."""
    return [table for (table,) in database.rows("inlined_tables", catalog=catalog, at=at)]


def tables_with_files(database: Database, catalog: CatalogId, at: SnapshotId) -> list[TableId]:
    """The tables that have files or inlined rows."""
    return [table for (table,) in database.rows("tables_with_files", catalog=catalog, at=at)]


def _in_order(rows: Iterable[Row]) -> list[DataFile]:
    """Data files, sorted here: DuckDB takes longer to plan an ORDER BY than that takes."""
    return [data_file(row) for row in sorted(rows, key=_ID)]


def _ids(numbers: Iterable[int]) -> str:
    return json.dumps(list(numbers))
