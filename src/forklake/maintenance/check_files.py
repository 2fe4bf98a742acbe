"""Checking the files of a lake.

Each has to be there, as large and with as many rows as when it was committed, and what is stored of its
columns has to hold for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from forklake.context.lake_context import LakeContext
from forklake.data.inlined import decode
from forklake.data.parquet.footer import Seen, footer_stats, leaf_places
from forklake.errors import CorruptMetadata, StorageError
from forklake.lazy.arrow import pa, pq
from forklake.maintenance.check_data import data_stats, row_stats, wrong_positions
from forklake.model.entities import Column
from forklake.model.ids import CatalogId, ColumnId, TableId
from forklake.model.progress import OnProgress, Steps
from forklake.model.table.files import ColumnStats
from forklake.model.table.statistics import Bounds, outer_bounds
from forklake.model.types.sort_keys import HIGHEST, LOWEST
from forklake.store.garbage import named_files
from forklake.store.verify import (
    BoundsOf,
    CheckedFile,
    CheckedRows,
    bounds_of_tables,
    columns_of_tables,
    data_files,
    delete_files,
    inlined_files,
    mend_file_stats,
    names_of_mappings,
    stats_of_files,
)

_THREADS = 16
_AT_ONCE = 500
_MOST_TABLES = 2_000
"""Of how many tables columns are remembered."""

Columns = dict[ColumnId, tuple[Column, bool]]
Stats = dict[ColumnId, ColumnStats]


class Found(NamedTuple):
    """A difference, with numbers in place of names."""

    kind: str
    catalog: CatalogId | None
    table: TableId | None
    path: str | None
    message: str
    repaired: bool = False


class _Looked(NamedTuple):
    """What a look at a data file has shown."""

    problem: tuple[str, str] | None
    """What kind of difference, and what it is; None if the file is the one that was committed."""
    narrow: tuple[tuple[ColumnStats, str], ...] = ()
    """Statistics as they should be, and what is wrong with those that are stored."""


@dataclass(slots=True)
class FileCheck:
    """Looks at all files of a lake, so many at a time."""

    context: LakeContext
    repair: bool
    data: bool
    files: int = 0
    inlined: int = 0
    outside: dict[tuple[CatalogId, TableId, ColumnId], list[ColumnStats]] = field(
        default_factory=dict[tuple[CatalogId, TableId, ColumnId], list[ColumnStats]]
    )
    """Columns whose bounds in the statistics of their tables leave out inlined rows."""
    _columns: dict[TableId, Columns] = field(default_factory=dict[TableId, Columns])

    def run(self, progress: OnProgress | None) -> Iterator[Found]:
        """Every difference."""
        database = self.context.database
        steps = Steps(progress, "check files", "files", None)
        with ThreadPoolExecutor(_THREADS, "forklake-check") as pool:
            for batch in data_files(database, _AT_ONCE):
                yield from self._data_files(batch, pool)
                self.files += len(batch)
                steps.add(len(batch))
            for batch in delete_files(database, _AT_ONCE):
                looked = pool.map(self._delete_file, batch)
                yield from self._problems(zip(batch, looked, strict=True))
                self.files += len(batch)
                steps.add(len(batch))
        for batch in inlined_files(database, _AT_ONCE):
            self._know_columns(batch)
            bounds = bounds_of_tables(
                database, (file.catalog for file in batch), (file.table for file in batch)
            )
            yield from chain.from_iterable(self._inlined_rows(file, bounds) for file in batch)
            self.inlined += len(batch)
        steps.end()

    # ---- Data files ---

    def _data_files(self, batch: Sequence[CheckedFile], pool: ThreadPoolExecutor) -> Iterator[Found]:
        database = self.context.database
        stats = stats_of_files(database, (file.id for file in batch))
        mappings = names_of_mappings(database, (file.other for file in batch if file.other is not None))
        self._know_columns(batch)

        def look(file: CheckedFile) -> _Looked:
            names = None if file.other is None else mappings.get(file.other, {})
            known = stats.get((file.catalog, file.id), {})  # type: ignore[arg-type]
            return self._data_file(file, known, self._columns.get(file.table, {}), names)

        looked = list(pool.map(look, batch))
        mends = [
            (file.catalog, file.id, right)
            for file, one in zip(batch, looked, strict=True)
            for right, _ in one.narrow
        ]
        if mends and self.repair:
            with database.transaction() as session:
                mend_file_stats(session, mends)
                session.commit()
        yield from self._problems((file, one.problem) for file, one in zip(batch, looked, strict=True))
        for file, one in zip(batch, looked, strict=True):
            for _, message in one.narrow:
                yield self._found(file, "statistics", message, repaired=self.repair)

    def _data_file(
        self, file: CheckedFile, stored: Stats, columns: Columns, names: dict[str, ColumnId] | None
    ) -> _Looked:
        storage = self.context.storage
        try:
            problem = self._size_problem(file)
            if problem is not None:
                return _Looked(problem)
            with storage.open_input(file.path, file.path_is_relative) as stream:
                parquet = pq.ParquetFile(stream)
                metadata = parquet.metadata
                problem = _footer_problem(file, metadata)
                if problem is not None:
                    return _Looked(problem)
                places = leaf_places(metadata) if names is None else _places_by_name(metadata, names)
                wanted = tuple(
                    column for number, (column, _) in columns.items() if number in stored and number in places
                )
                nan = {
                    number: one.contains_nan for number, one in stored.items() if one.contains_nan is not None
                }
                known = footer_stats(metadata, wanted, leaves=places, seen=Seen(nan))
                looser = {one.column_id: one for one in known}
                if self.data:
                    looser |= data_stats(parquet, wanted, places)
        except StorageError as error:
            return _Looked(("file", str(error)))
        except (pa.ArrowException, OSError) as error:
            return _Looked(("file", f"the file cannot be read: {error}"))
        narrow: list[tuple[ColumnStats, str]] = []
        for number, seen in looser.items():
            column, is_same_type = columns[number]
            wrong = _narrow(stored[number], seen, texts=is_same_type and not self.data)
            if wrong is not None:
                narrow.append(
                    (_mended(stored[number], seen), f'statistics of column "{column.name}": {wrong}')
                )
        return _Looked(None, tuple(narrow))

    def _know_columns(self, batch: Iterable[CheckedFile | CheckedRows]) -> None:
        tables = {file.table for file in batch}
        if len(self._columns) > _MOST_TABLES:
            self._columns.clear()
        missing = [table for table in tables if table not in self._columns]
        if missing:
            self._columns.update(columns_of_tables(self.context.database, missing))

    # ---- Delete files and inlined rows ---

    def _delete_file(self, file: CheckedFile) -> tuple[str, str] | None:
        try:
            problem = self._size_problem(file)
            if problem is not None:
                return problem
            with self.context.storage.open_input(file.path, file.path_is_relative) as stream:
                parquet = pq.ParquetFile(stream)
                problem = _footer_problem(file, parquet.metadata)
                if problem is None and self.data:
                    problem = wrong_positions(parquet, file.other)
                return problem
        except StorageError as error:
            return "file", str(error)
        except (pa.ArrowException, OSError) as error:
            return "file", f"the file cannot be read: {error}"

    def _inlined_rows(self, file: CheckedRows, bounds: BoundsOf) -> Iterator[Found]:
        message = None
        if file.content is None:
            message = f"the rows of the inlined file {file.id} are missing"
        else:
            try:
                content = decode(file.content)
                rows = content.num_rows
                self._outside(file, content, bounds)
                if rows != file.record_count:
                    message = (
                        f"the inlined file {file.id} has {rows} rows and should have {file.record_count}"
                    )
            except CorruptMetadata as error:
                message = f"the inlined file {file.id}: {error}"
        if message is not None:
            yield Found("rows", file.catalog, file.table, None, message)

    def _outside(self, file: CheckedRows, rows: pa.Table, bounds: BoundsOf) -> None:
        """Note columns whose bounds in the statistics of the table leave out values of these rows."""
        columns = [column for column, _ in self._columns.get(file.table, {}).values()]
        for seen in row_stats(rows, columns):
            key = (file.catalog, file.table, seen.column_id)
            if key in bounds and _is_outside(bounds[key], seen):
                bounds[key] = bounds[key].with_stats(seen)
                self.outside.setdefault(key, []).append(seen)

    # ---- What is wrong ---

    def _size_problem(self, file: CheckedFile) -> tuple[str, str] | None:
        size = self.context.storage.info(file.path, file.path_is_relative).size
        if size == file.file_size_bytes:
            return None
        return "file", f"the file has {size} bytes and had {file.file_size_bytes} when it was committed"

    def _problems(self, looked: Iterable[tuple[CheckedFile, tuple[str, str] | None]]) -> Iterator[Found]:
        """Files that differ, unless nobody names them any more: they were collected meanwhile."""
        wrong = [(file, problem) for file, problem in looked if problem is not None]
        if not wrong:
            return
        named = named_files(self.context.database, (file.path for file, _ in wrong))
        for file, (kind, message) in wrong:
            if file.path in named:
                yield self._found(file, kind, message)

    def _found(self, file: CheckedFile, kind: str, message: str, *, repaired: bool = False) -> Found:
        address = file.path
        # A path that cannot be one is shown as it is stored.
        with suppress(StorageError):
            address = self.context.storage.address(file.path, file.path_is_relative)
        return Found(kind, file.catalog, file.table, address, message, repaired)


def _footer_problem(file: CheckedFile, metadata: pq.FileMetaData) -> tuple[str, str] | None:
    if file.footer_size and metadata.serialized_size != file.footer_size:
        return "file", (
            f"the footer has {metadata.serialized_size} bytes and had {file.footer_size} when the file was "
            "committed: it was overwritten"
        )
    if metadata.num_rows != file.record_count:
        return "rows", f"the file has {metadata.num_rows} rows and should have {file.record_count}"
    return None


def _places_by_name(metadata: pq.FileMetaData, names: dict[str, ColumnId]) -> dict[ColumnId, int]:
    """Where columns without parts are in a file that somebody else wrote."""
    paths = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    return {names[path]: at for at, path in enumerate(paths) if path in names}


def _narrow(stored: ColumnStats, seen: ColumnStats, *, texts: bool) -> str | None:
    """What is wrong with statistics, given what a file has; None where nothing is."""
    if stored.value_count != seen.value_count:
        return f"{stored.value_count} values were counted, and there are {seen.value_count}"
    if stored.null_count is not None and seen.null_count not in (None, stored.null_count):
        return f"{stored.null_count} NULLs were counted, and there are {seen.null_count}"
    if seen.min_key is None or seen.max_key is None:
        return None
    if stored.min_key is None or stored.max_key is None:
        # Where the file does not say how many are NULL, there may be nothing else.
        return None if seen.null_count is None else "they say that all values are NULL"
    if seen.min_key != LOWEST and stored.min_key > seen.min_key:
        return "the least value is below the lower bound"
    if seen.max_key != HIGHEST and stored.max_key < seen.max_key:
        return "the greatest value is above the upper bound"
    # As text, bounds say more of a type that has been another one.
    if texts and stored.min_key == seen.min_key and _differ(stored.min_value, seen.min_value):
        return f"the lower bound is {stored.min_value!r}, and the least value {seen.min_value!r}"
    if texts and stored.max_key == seen.max_key and _differ(stored.max_value, seen.max_value):
        return f"the upper bound is {stored.max_value!r}, and the greatest value {seen.max_value!r}"
    return None


def _is_outside(bounds: Bounds, seen: ColumnStats) -> bool:
    """Whether values are not within bounds."""
    if (seen.null_count and not bounds.contains_null) or (seen.contains_nan and bounds.contains_nan is False):
        return True
    if seen.min_key is None or seen.max_key is None:
        return False
    if bounds.min_key is None or bounds.max_key is None:
        return True
    return seen.min_key < bounds.min_key or seen.max_key > bounds.max_key


def _differ(one: str | None, other: str | None) -> bool:
    """Whether two texts are known, and are not the same."""
    return one is not None and other is not None and one != other


def _mended(stored: ColumnStats, seen: ColumnStats) -> ColumnStats:
    """Statistics that hold for the file. Bounds only become wider: they leave out no more than before."""
    nulls = stored.null_count if seen.null_count is None else seen.null_count
    nan = True if seen.contains_nan else stored.contains_nan
    right = replace(stored, value_count=seen.value_count, null_count=nulls, contains_nan=nan)
    if seen.min_key is None:
        return right
    bounds = outer_bounds(stored, seen)
    if stored.min_key == seen.min_key:
        bounds["min_value"] = seen.min_value
    if stored.max_key == seen.max_key:
        bounds["max_value"] = seen.max_value
    return replace(right, **bounds)
