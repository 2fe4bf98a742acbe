"""From a table, a snapshot and a predicate to the files to be read. Engines only execute the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload

from forklake.data.inlined import InlinedRows, decode_all
from forklake.data.parquet.positions import joined
from forklake.data.statistics import summary_of_default
from forklake.data.storage.storage import Storage
from forklake.display import MOST_ROWS, html_list, html_record, html_table, html_title
from forklake.lazy.arrow import pa
from forklake.lazy.properties import lazy_property
from forklake.model.entities import Table
from forklake.model.ids import ColumnId, DataFileId, MappingId, SnapshotId
from forklake.model.sql.predicate import Predicate
from forklake.model.sql.predicate_tree import Node, Range, columns_of, is_one_range, keys_of, ranges
from forklake.model.table.files import ColumnStats, DataFile, FileStatistics
from forklake.model.table.layout import Partitioning
from forklake.model.table.name_mapping import Mapping as NameMapping
from forklake.scan.index_answers import IndexUse, Narrowed, narrow
from forklake.scan.partitions import point, skip_partition
from forklake.scan.prune import skip_reason
from forklake.scan.table_indexes import TableIndexes
from forklake.store.file_values import InlinedFiles
from forklake.store.files import MOST_NAMED, FileReader

_MOST_KEYS = 100
"""Up to how many single values the database compares with the bounds of each file."""

_FEW_ROWS = 10_000
"""As many as one thread reads before others have begun."""

_AS_IT_IS = Narrowed()

Positions: TypeAlias = "pa.Array"
"""Places of rows in a file, counted from 0, ascending."""


@dataclass(frozen=True, slots=True)
class ScanFile:
    """A Parquet file to read, with its deleted positions."""

    file: DataFile
    deleted: Positions | None = None
    """Inlined deleted positions, in addition to those in the delete file."""

    @property
    def path(self) -> str:
        """The path of the file, relative to the data path of the lake or absolute."""
        return self.file.path

    @property
    def live_rows(self) -> int:
        """The number of rows that are not deleted."""
        named = 0 if self.file.deletes is None else self.file.deletes.own_count
        return self.file.record_count - named - (0 if self.deleted is None else len(self.deleted))


@dataclass(frozen=True, slots=True)
class ScanRows:
    """Rows inside the plan: inlined ones, or those of an open transaction."""

    file: DataFile
    content: InlinedRows
    deleted: Positions | None = None

    @property
    def rows(self) -> pa.Table:
        """By field id, as they were written; columns may have changed since."""
        return self.content.table()

    @property
    def live_rows(self) -> int:
        """The number of rows that are not deleted."""
        return self.file.record_count - (0 if self.deleted is None else len(self.deleted))


class InlinedParts(Sequence[ScanRows]):
    """The rows of many small writes, as parts of a plan: each is made when somebody asks for it."""

    def __init__(self, files: InlinedFiles, deleted: Mapping[DataFileId, Positions]) -> None:
        """Read what the files hold."""
        self.files = files
        self.contents = decode_all(files.contents)
        self._deleted = deleted
        self._made: tuple[ScanRows, ...] | None = None

    @property
    def deleted(self) -> list[Positions | None] | None:
        """What each part has lost; None if none of them has lost anything."""
        lost = [self._deleted.get(file) for file in self.files.ids] if self._deleted else []
        return None if all(positions is None for positions in lost) else lost

    def parts(self) -> tuple[ScanRows, ...]:
        """All of them."""
        if self._made is None:
            self._made = tuple(
                ScanRows(file, content, self._deleted.get(file.id))
                for file, content in zip(self.files.files(), self.contents, strict=True)
            )
        return self._made

    def __len__(self) -> int:
        """How many parts there are."""
        return len(self.files)

    @overload
    def __getitem__(self, at: int) -> ScanRows: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ScanRows, ...]: ...
    def __getitem__(self, at: int | slice) -> ScanRows | tuple[ScanRows, ...]:
        """One of the parts, or some."""
        return self.parts()[at]

    def __iter__(self) -> Iterator[ScanRows]:
        """Each of the parts."""
        return iter(self.parts())

    def __eq__(self, other: object) -> bool:
        """Whether the parts are the same."""
        return isinstance(other, Sequence) and self.parts() == tuple(other)

    def __hash__(self) -> int:
        """Of the parts."""
        return hash(self.parts())

    def __reduce__(self) -> tuple[object, ...]:
        """As the parts themselves, for another process."""
        return tuple, (self.parts(),)


@dataclass(frozen=True, slots=True)
class Pruned:
    """A pruned file, with the reason."""

    path: str
    record_count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What a transaction has done to the rows of a table so far."""

    files: tuple[ScanFile, ...] = ()
    rows: tuple[ScanRows, ...] = ()
    retired: frozenset[DataFileId] = frozenset()
    deleted: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, Positions])
    mappings: Mapping[MappingId, NameMapping] = field(default_factory=dict[MappingId, NameMapping])

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done."""
        return not (self.files or self.rows or self.retired or self.deleted)


@dataclass(frozen=True, repr=False)
class ScanPlan:
    """A scan plan: what an engine has to know to read a table."""

    table: Table
    at: SnapshotId
    files: tuple[ScanFile, ...]
    rows: Sequence[ScanRows] = ()
    predicate: Predicate | None = None
    """The condition that rows of the files still have to match."""
    mappings: Mapping[MappingId, NameMapping] = field(default_factory=dict[MappingId, NameMapping])
    has_old_names: bool = False
    """Whether files may know fields inside structs by other names than the table does now."""
    steady: frozenset[ColumnId] = frozenset()
    """The columns that every file of ours knows by their present names, if it knows these at all."""
    promoted: frozenset[ColumnId] = frozenset()
    """The columns that files of ours may have in types which not every engine reads as those of the table."""
    wanted: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, "Positions"], repr=False)
    """Of some files, where the rows are that may match: others need not be read."""
    held: Mapping[DataFileId, pa.Table] = field(default_factory=dict[DataFileId, "pa.Table"], repr=False)
    """Of some files the rows that may match, as an index holds them: `position`, and columns by column id."""
    found: Mapping[DataFileId, Positions] = field(default_factory=dict[DataFileId, "Positions"], repr=False)
    """Of all files that indexes know, where the rows are that may match, few or many."""
    indexes: tuple[IndexUse, ...] = ()
    """What indexes saved, those that could not be read included."""
    find_pruned: Callable[[], tuple[Pruned, ...]] = field(default=tuple, repr=False, compare=False)

    @lazy_property
    def pruned(self) -> tuple[Pruned, ...]:
        """The files that need not be read; looked up when first asked for."""
        return self.find_pruned()

    @property
    def reads_few(self) -> bool:
        """Whether indexes said where the rows are that are read, and these are few."""
        if not (self.files and all(f.file.id in self.wanted or f.file.id in self.held for f in self.files)):
            return False
        counts = (
            len(found.get(place.file.id, ())) for place in self.files for found in (self.wanted, self.held)
        )
        return sum(counts) + sum(place.file.record_count for place in self.rows) <= _FEW_ROWS

    def __repr__(self) -> str:
        """How much is read."""
        return f"<ScanPlan of {self.table.name!r} at snapshot {self.at}: {self._amount()}>"

    def _amount(self) -> str:
        rows = sum(place.live_rows for place in (*self.files, *self.rows))
        return f"{rows:,} rows in {len(self.files):,} files and {len(self.rows):,} inlined writes"

    def _repr_html_(self) -> str:
        """For notebooks: the first files that are read; those that are not if somebody has asked for them."""
        known: tuple[Pruned, ...] | None = self.__dict__.get("pruned")
        facts = {
            "table": self.table.name,
            "at snapshot": self.at,
            "reads": self._amount(),
            "bytes": f"{sum(place.file.file_size_bytes for place in self.files):,}",
            "every row is checked against": None if self.predicate is None else self.predicate.text,
            "pruned": None if known is None else f"{len(known):,} files",
            "indexes": ", ".join(map(str, self.indexes)) or None,
        }
        names = ("file", "rows", "deleted", "bytes")
        files = [
            (each.path, each.live_rows, each.file.record_count - each.live_rows, each.file.file_size_bytes)
            for each in self.files[:MOST_ROWS]
        ]
        listed = html_table(names, files, len(self.files)) + html_list(known or (), title="pruned")
        return html_title("ScanPlan") + html_record(facts) + listed

    def __getstate__(self) -> dict[str, Any]:
        """All of it, for another process: what would be looked up later is looked up now."""
        return {**self.__dict__, "pruned": self.pruned, "find_pruned": tuple}


@dataclass(frozen=True, slots=True)
class Source:
    """A table as a scan finds it: its definition, its files, and when its columns appeared."""

    table: Table
    reader: FileReader
    begins: Mapping[ColumnId, SnapshotId]
    """When each column first appeared; a file that is older does not have it."""
    partitionings: Mapping[int, Partitioning]
    """Every partitioning that files may have been written under."""
    current: Partitioning | None
    has_old_names: bool = False
    steady: frozenset[ColumnId] = frozenset()
    """The columns that never had other names, as had nothing inside of them, and whose names no other had."""
    promoted: frozenset[ColumnId] = frozenset()
    """The columns in which something had a type that only DuckDB reads as the present one."""
    uncommitted: Uncommitted = field(default_factory=Uncommitted)
    find_indexes: Callable[[], TableIndexes] = field(default=TableIndexes, repr=False, compare=False)
    """The indexes of the table; looked up when a scan has a condition."""
    is_stored: bool = True
    """False for a table that a transaction has just made: the database knows nothing of it."""


def plan_scan(
    source: Source,
    predicate: Predicate | None = None,
    storage: Storage | None = None,
    keys: pa.Table | None = None,
    needed: Collection[ColumnId] | None = None,
) -> ScanPlan:
    """The files and rows that may hold what is looked for.

    Given the storage, indexes are asked too, and for the rows themselves if they hold all columns that are
    `needed`. With `keys`, in columns named by column id, nothing is looked
    for but rows that have one of them.
    """
    files, inlined = _candidates(source, predicate) if source.is_stored else ([], InlinedFiles())
    if predicate is not None and files and not _is_answered(source, predicate):
        files = _kept(source, predicate.tree, files)[0]
    if storage is None or (predicate is None and keys is None):
        return _finished(source, predicate, files, inlined)
    asked = [*files, *(place.file for place in source.uncommitted.files)]
    if not asked:
        return _finished(source, predicate, files, inlined)
    tree = None if predicate is None else predicate.tree
    narrowed = narrow(source.find_indexes(), source.table.columns, asked, storage, tree, keys, needed)
    return _finished(source, predicate, files, inlined, narrowed)


def plan_files(source: Source, files: Sequence[DataFile]) -> ScanPlan:
    """A plan that reads some files only, and all rows that came with it."""
    inlined = source.reader.inlined() if source.is_stored else InlinedFiles()
    return _finished(source, None, list(files), inlined)


def _finished(
    source: Source,
    predicate: Predicate | None,
    files: list[DataFile],
    inlined: InlinedFiles,
    narrowed: Narrowed = _AS_IT_IS,
) -> ScanPlan:
    reader, uncommitted = source.reader, source.uncommitted
    gone = uncommitted.retired
    by_index = {file.id: file for file in files if file.id in narrowed.pruned and file.id not in gone}
    files = [file for file in files if file.id not in gone and file.id not in narrowed.pruned]
    inlined = inlined.without(gone)
    files, deleted = with_deletes(source, files, inlined.ids)
    stored = [ScanFile(file, deleted.get(file.id)) for file in files]
    rows = InlinedParts(inlined, deleted)
    staged = (place.file for place in uncommitted.files)
    mapped = any(file.mapping_id is not None and file.mapping_id >= 0 for file in (*files, *staged))
    mappings = {**(reader.mappings() if mapped else {}), **uncommitted.mappings}
    return ScanPlan(
        source.table,
        reader.at,
        (*stored, *(place for place in uncommitted.files if place.file.id not in narrowed.pruned)),
        (*rows, *uncommitted.rows) if uncommitted.rows else rows,
        predicate,
        mappings,
        source.has_old_names,
        source.steady,
        source.promoted,
        narrowed.wanted,
        narrowed.held,
        narrowed.found,
        narrowed.uses,
        lambda: (
            *(() if predicate is None or not source.is_stored else _pruned(source, predicate)),
            *(
                Pruned(file.path, file.record_count, narrowed.pruned[number])
                for number, file in by_index.items()
            ),
        ),
    )


def with_deletes(
    source: Source, files: Sequence[DataFile], inlined: Sequence[DataFileId]
) -> tuple[list[DataFile], dict[DataFileId, Positions]]:
    """Files with their delete files, and what they and inlined ones have lost beside what those name."""
    found, positions = source.reader.with_deletes(files, inlined)
    deleted = {file: pa.array(listed, pa.int64()) for file, listed in positions.items()}
    for file, listed in source.uncommitted.deleted.items():
        deleted[file] = joined(deleted.get(file), listed)
    return found, deleted


def _candidates(source: Source, predicate: Predicate | None) -> tuple[list[DataFile], InlinedFiles]:
    """Files that may match, and inlined ones with their rows: those are read in any case."""
    if predicate is None or (found := _looked_up(source, predicate)) is None:
        return source.reader.files_and_inlined_rows()
    return found, source.reader.inlined()


def _looked_up(source: Source, predicate: Predicate) -> list[DataFile] | None:
    """Files that may match, found through whichever index leaves the fewest; None if no index helps."""
    reader = source.reader
    if source.current is not None:
        for place, partition_field in enumerate(source.current.fields):
            value = point(predicate.tree, partition_field, source.table.columns)
            if partition_field.transform.startswith("bucket") and value is not None:
                return reader.files_by_partition(source.current.id, place, value)
    hulls = ranges(predicate.tree)
    if not hulls:
        return None
    hull = hulls[0]
    few = MOST_NAMED if len(hulls) > 1 else None
    keys = keys_of(predicate.tree, hull.column_id)
    files = reader.files_by_key(
        hull.column_id, hull.low, hull.high, keys=keys if len(keys) <= _MOST_KEYS else (), most=few
    )
    if files is None:
        return _by_two(source, hulls)
    since = _younger_than_table(source, hull.column_id)
    if since is not None:
        known = {file.id for file in files}
        files += [file for file in reader.files_before(since) if file.id not in known]
    return files


def _by_two(source: Source, hulls: Sequence[Range]) -> list[DataFile]:
    """Files that two columns leave over; those that are older than one of them are not known by its index."""
    reader = source.reader
    files = reader.files_by_two_keys(hulls[0], hulls[1])
    begins = [_younger_than_table(source, hull.column_id) for hull in hulls[:2]]
    latest = max((begin for begin in begins if begin is not None), default=None)
    if latest is not None:
        known = {file.id for file in files}
        files += [file for file in reader.files_before(latest) if file.id not in known]
    return files


def _younger_than_table(source: Source, column: ColumnId) -> SnapshotId | None:
    """When a column was added, if there may be files that are older."""
    begin = source.begins.get(column)
    return None if begin is None or begin == min(source.begins.values()) else begin


def _is_answered(source: Source, predicate: Predicate) -> bool:
    """Whether the index has said all that statistics can say."""
    if not is_one_range(predicate.tree):
        return False
    (column,) = columns_of(predicate.tree)
    by_key = source.current is None or not any(
        part.column_id == column and part.transform.startswith("bucket") for part in source.current.fields
    )
    return by_key and _younger_than_table(source, column) is None


def _kept(
    source: Source, tree: Node, files: Sequence[DataFile]
) -> tuple[list[DataFile], list[tuple[DataFile, str]]]:
    """The files that may match, and the others with the reason why they do not."""
    columns = columns_of(tree)
    stats = source.reader.stats(files, columns)
    partitioned = any(file.partition_id is not None for file in files)
    values = source.reader.partition_values(files) if partitioned else {}
    kept: list[DataFile] = []
    skipped: list[tuple[DataFile, str]] = []
    for file in files:
        known = _with_defaults(source, file, stats.get(file.id, {}), columns)
        statistics = FileStatistics(file.record_count, known, file.partition_id, values.get(file.id, ()))
        reason = skip_reason(tree, statistics)
        partitioning = None if file.partition_id is None else source.partitionings.get(file.partition_id)
        if reason is None and partitioning is not None:
            reason = skip_partition(tree, partitioning, statistics.partition_values, source.table.columns)
        if reason is None:
            kept.append(file)
        else:
            skipped.append((file, reason))
    return kept, skipped


def _with_defaults(
    source: Source, file: DataFile, stats: dict[ColumnId, ColumnStats], columns: frozenset[ColumnId]
) -> dict[ColumnId, ColumnStats]:
    """What is known of a file, with the columns that were added after it was written."""
    missing = [c for c in columns if c not in stats and file.begin < source.begins.get(c, file.begin)]
    if not missing:
        return stats
    added = {column.id: column for column in source.table.columns if column.id in missing}
    return {**stats, **{key: summary_of_default(column, file.record_count) for key, column in added.items()}}


def _pruned(source: Source, predicate: Predicate) -> tuple[Pruned, ...]:
    files = [file for file in source.reader.files() if file.id not in source.uncommitted.retired]
    _, skipped = _kept(source, predicate.tree, files)
    return tuple(Pruned(file.path, file.record_count, reason) for file, reason in skipped)
