"""Parquet files that somebody else wrote: which of their columns is which of a table's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from forklake.data.conform import id_of
from forklake.data.defaults import initial_of
from forklake.data.parquet.footer import ROW_ID, Seen, footer_stats
from forklake.data.parquet.hive import hive_values, value_of
from forklake.data.parquet.leaves import Fit, fit_of, shown
from forklake.data.parquet.value_checks import Doubt, Step, first_problem
from forklake.data.statistics import summary
from forklake.data.storage.storage import Storage
from forklake.errors import InvalidArgument, InvalidData
from forklake.lazy.arrow import pa, pq
from forklake.model.entities import Column
from forklake.model.ids import ROW_ID_COLUMN, SNAPSHOT_ID_COLUMN, ColumnId
from forklake.model.table.columns import Columns
from forklake.model.table.files import ColumnStats, WrittenFile
from forklake.model.table.name_mapping import MappedName
from forklake.model.types.data_types import to_sql

MappingKind = Literal["field_id", "by_name", "by_position"]
By = MappingKind | Mapping[str, str]

Signature = tuple[object, ...]

_MAGIC = b"PAR1"
_TAKEN = ("file_index", "file_row_number")
"""Names that DuckDB's reader gives to what we ask it for beside the columns of a file."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A file that fits a table."""

    written: WrittenFile
    names: tuple[MappedName, ...]
    """What the file calls the columns; empty if field ids say it all."""
    signature: Signature
    """Names and types of all its leaves. Files that differ in it cannot be read by one call."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """How files are looked at."""

    storage: Storage
    columns: Columns
    mapping: By
    allow_missing: bool = False
    ignore_extra: bool = False
    row_ids: bool = False
    """Whether rows carry ids that count here."""
    hive: bool = True
    """Whether folders such as `region=eu/` have values of columns."""

    def inspect(self, path: str, relative: bool) -> Existing:
        """Match one file with the table, or say why it does not fit."""
        address = self.storage.address(path, relative)
        if "?" in path and address.startswith("s3://"):
            raise InvalidData(f"DuckDB could not read {address}: give the file a name without ?")
        try:
            with self.storage.open_input(path, relative) as stream:
                file = pq.ParquetFile(stream)
                match = _Match(self, address, file.metadata, file.schema_arrow)
                return match.existing(file, path, relative, *_sizes(stream, file.metadata))
        except pa.ArrowException as error:
            raise InvalidData(f"{address} is not a Parquet file that can be read: {error}") from error


def signature_of(storage: Storage, path: str, relative: bool) -> Signature:
    """The signature of a file that a table has."""
    address = storage.address(path, relative)
    try:
        with storage.open_input(path, relative) as stream:
            return _signature(pq.ParquetFile(stream).metadata)
    except pa.ArrowException as error:
        raise InvalidData(f"{address} is not a Parquet file that can be read: {error}") from error


def _signature(metadata: pq.FileMetaData) -> Signature:
    leaves = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    # Columns are found by name, in whatever order they are; fields inside of them stay in theirs.
    leaves.sort(key=lambda leaf: leaf.path.partition(".")[0])
    about = ((leaf.path, leaf.physical_type, leaf.length, leaf.logical_type.to_json()) for leaf in leaves)
    return (*about, *_geometries(metadata))


def _geometries(metadata: pq.FileMetaData) -> list[str]:
    """The columns that GeoParquet describes: DuckDB reads their bytes as geometries."""
    text = (metadata.metadata or {}).get(b"geo")
    try:
        known = json.loads(text or b"{}").get("columns", {})
    except (ValueError, AttributeError):
        return []
    return sorted(known)


@dataclass(slots=True)
class _Match:
    """One file, while its columns are matched."""

    inspection: Inspection
    address: str
    metadata: pq.FileMetaData
    schema: pa.Schema
    names: list[MappedName] = field(default_factory=list[MappedName])
    leaves: dict[ColumnId, int] = field(default_factory=dict[ColumnId, int])
    doubts: list[Doubt] = field(default_factory=list[Doubt])
    never_nan: dict[ColumnId, bool] = field(default_factory=dict[ColumnId, bool])
    """Columns of floats that are integers in the file."""

    def existing(self, file: pq.ParquetFile, path: str, relative: bool, size: int, footer: int) -> Existing:
        columns = self.inspection.columns
        places = dict(_first_leaves(self.schema))
        by_id = self.inspection.mapping == "field_id"
        hive = {} if by_id or not self.inspection.hive else hive_values(path)
        found = self._top(hive)
        row_id = self._row_id() if self.inspection.row_ids else None
        self._refuse_extra({*found.values(), *(() if row_id is None else (row_id,))})
        if self.inspection.mapping == "by_name":
            # As for DuckDB and Spark, what a folder says comes before what the file has under that name.
            found = {c.id: found[c.id] for c in columns if c.id in found and self._folder(c, hive) is None}
        is_plain = self._is_plain()
        if not is_plain:
            self._check_names(found.values())
        constants: list[ColumnStats] = []
        for column in columns:
            at = found.get(column.id)
            if at is None:
                constants.append(self._constant(column, hive))
            elif pa.types.is_null(self.schema.field(at).type):
                constants.append(self._nothing(column))
            else:
                self._match(column, self.schema.field(at), places[at], None, (at,))
        stats = footer_stats(self.metadata, columns, leaves=self.leaves, seen=Seen(self.never_nan))
        stats = (*stats, *constants)
        self._check_required(stats, found)
        problem = first_problem(file, self.doubts)
        if problem is not None:
            raise InvalidData(f"{self.address}: {problem}")
        written = WrittenFile(path, self.metadata.num_rows, size, footer, stats, relative)
        if row_id is not None:
            carried = footer_stats(self.metadata, (ROW_ID,), leaves={ROW_ID.id: places[row_id]})
            if carried[0].null_count != 0:
                raise InvalidData(
                    f"{self.address} has a column of row ids, and may have rows without one: write rows that "
                    "are new into files of their own, without that column"
                )
            written = replace(written, stats=(*stats, *carried), has_row_ids=True)
        return Existing(written, () if is_plain else tuple(self.names), _signature(self.metadata))

    def _is_plain(self) -> bool:
        """Whether the file can be read by field ids alone."""
        if self.inspection.mapping != "field_id":
            return False
        nested = any(column.children for column in self.inspection.columns)
        # A file that was ours once may carry ids of rows, which are others here.
        known = () if self.inspection.row_ids else (ROW_ID_COLUMN,)
        carries = any(id_of(field) in (*known, SNAPSHOT_ID_COLUMN) for field in self.schema)
        unread = any(pa.types.is_null(field.type) for field in self.schema)
        return not (nested or carries or unread)

    def _row_id(self) -> int:
        """Where the ids of rows are in the file."""
        for at, given in enumerate(self.schema):
            if id_of(given) == ROW_ID_COLUMN and given.type == pa.int64() and self._is_plain():
                return at
        raise InvalidData(
            f"{self.address} has no column of row ids that could be read: they are BIGINT with the field id "
            f"{ROW_ID_COLUMN}, in files whose columns are not nested and have field ids"
        )

    def _geometries(self) -> list[str]:
        return _geometries(self.metadata)

    # ---- Finding columns ---

    def _top(self, hive: Mapping[str, str | None]) -> dict[ColumnId, int]:
        """Where each column of the table is in the file."""
        columns = self.inspection.columns
        match self.inspection.mapping:
            case "field_id":
                ids = {id_of(field): at for at, field in enumerate(self.schema)}
                if not any(number is not None for number in ids):
                    raise InvalidData(f"{self.address} has no field ids: pass mapping='by_name'")
                return {column.id: ids[column.id] for column in columns if column.id in ids}
            case "by_name":
                return _by_name(columns, self.schema.names)
            case "by_position":
                return {column.id: at for at, column in enumerate(columns) if at < len(self.schema)}
            case named:
                return self._explicit(named, hive)

    def _explicit(self, named: Mapping[str, str], hive: Mapping[str, str | None]) -> dict[ColumnId, int]:
        found: dict[ColumnId, int] = {}
        for source, target in named.items():
            column = _column(self.inspection.columns, target)
            if source in self.schema.names:
                found[column.id] = self.schema.names.index(source)
            elif source not in hive:
                raise InvalidData(
                    f'{self.address} has no column "{source}": it has {", ".join(self.schema.names)}'
                )
        return found

    def _check_names(self, used: Iterable[int]) -> None:
        """DuckDB finds columns by name, and ignores case."""
        folded = [name.lower() for name in self.schema.names]
        for name in _TAKEN:
            if name in folded:
                raise InvalidData(
                    f'{self.address} has a column "{name}", a name that DuckDB uses itself: '
                    "write the file with another name"
                )
        for at in used:
            if folded[at] in folded[:at]:
                raise InvalidData(
                    f'{self.address} has two columns "{self.schema.names[at]}", and case makes no '
                    "difference: write the file with other names"
                )

    def _refuse_extra(self, used: set[int]) -> None:
        extra = [name for at, name in enumerate(self.schema.names) if at not in used]
        if extra and not self.inspection.ignore_extra:
            raise InvalidData(
                f"{self.address} has columns that the table does not have: {_listed(extra)}; "
                "pass ignore_extra=True to leave them out"
            )

    # ---- Matching one column ---

    def _match(
        self, column: Column, given: pa.Field, leaf: int, parent: ColumnId | None, trail: tuple[Step, ...]
    ) -> None:
        self.names.append(MappedName(column.id, given.name, parent))
        if not column.children:
            self._check_type(column, given, leaf, trail)
            self.leaves[column.id] = leaf
            return
        inside = _fields(given.type)
        if not inside or _kind(given.type) != column.type:
            raise self._misfit(column, str(given.type), trail)
        places = dict(_first_leaves(inside, leaf))
        if column.type == "struct":
            found = self._struct(column, inside)
        else:
            found = {child.id: at for at, child in enumerate(column.children)}
        for child in column.children:
            at = found.get(child.id)
            # A field of a struct may be left out, and is NULL then.
            if at is not None and not (column.type == "struct" and pa.types.is_null(inside[at].type)):
                self._match(child, inside[at], places[at], column.id, (*trail, at))

    def _struct(self, column: Column, inside: list[pa.Field]) -> dict[ColumnId, int]:
        names = [field.name for field in inside]
        match self.inspection.mapping:
            case "field_id":
                ids = {id_of(field): at for at, field in enumerate(inside)}
                found = {child.id: ids[child.id] for child in column.children if child.id in ids}
            case "by_position":
                found = {child.id: at for at, child in enumerate(column.children) if at < len(inside)}
            case _:
                found = _by_name(column.children, names)
        if len({name.lower() for name in names}) < len(names):
            raise InvalidData(
                f'{self.address} has two fields of one name in "{column.name}", and case makes no '
                "difference: write the file with other names"
            )
        missing = [child.name for child in column.children if child.id not in found]
        if missing and not self.inspection.allow_missing:
            raise InvalidData(
                f'{self.address} has no field "{missing[0]}" in "{column.name}": pass allow_missing=True'
            )
        extra = [name for at, name in enumerate(names) if at not in found.values()]
        if extra and not self.inspection.ignore_extra:
            raise InvalidData(
                f'{self.address} has fields in "{column.name}" that the table does not have: '
                f"{_listed(extra)}; pass ignore_extra=True to leave them out"
            )
        return found

    def _check_type(self, column: Column, given: pa.Field, leaf: int, trail: tuple[Step, ...]) -> None:
        if _kind(given.type) is not None:
            raise self._misfit(column, str(given.type), trail)
        known = self.metadata.schema.column(leaf)
        if len(trail) == 1 and given.name in self._geometries():
            if column.type != "geometry":
                raise self._misfit(column, "GEOMETRY", trail)
            return
        if column.type == "float64" and known.physical_type == "INT32":
            self.never_nan[column.id] = False
        match fit_of(known, column.data_type):
            case Fit.NO:
                raise self._misfit(column, shown(known), trail)
            case Fit.LOOK:
                self.doubts.append(Doubt(column, self._path(trail), trail))
            case Fit.YES:
                pass

    def _misfit(self, column: Column, given: str, trail: tuple[Step, ...]) -> InvalidData:
        path = self._path(trail)
        other = "" if path.endswith(column.name) else f' ("{column.name}")'
        return InvalidData(
            f'{self.address}: column "{path}" is {given[:80]} there and {to_sql(column.data_type)} in the '
            f"table{other}: only types that fit without loss can be read"
        )

    def _path(self, trail: tuple[Step, ...]) -> str:
        """A column or nested field, by the names of the file."""
        given = self.schema.field(trail[0])
        path = given.name
        for step in trail[1:]:
            given = _fields(given.type)[step]
            path += f".{given.name}"
        return path

    # ---- What is not in the file ---

    def _constant(self, column: Column, hive: Mapping[str, str | None]) -> ColumnStats:
        """A column that is not in the file: its value stands in the path, or all rows have its default."""
        rows = self.metadata.num_rows
        name = self._folder(column, hive)
        if name is not None:
            self.names.append(MappedName(column.id, name, is_partition=True))
            try:
                return _repeated(column, value_of(hive[name], column), rows)
            except ValueError as error:
                raise InvalidData(
                    f'{self.address}: its folder says {hive[name]!r} for "{column.name}", which is no '
                    f"{to_sql(column.data_type)}"
                ) from error
        if not self.inspection.allow_missing:
            raise InvalidData(f'{self.address} has no column "{column.name}": pass allow_missing=True')
        return _repeated(column, initial_of(column, 1), rows)

    def _folder(self, column: Column, hive: Mapping[str, str | None]) -> str | None:
        """The name that a column has among the folders."""
        mapping = self.inspection.mapping
        if not isinstance(mapping, str):
            sources = (name for name, target in mapping.items() if target.lower() == column.name.lower())
            return next((name for name in sources if name in hive), None)
        return next((name for name in hive if name.lower() == column.name.lower()), None)

    def _nothing(self, column: Column) -> ColumnStats:
        """A column that is NULL in every row: its writer did not know its type."""
        if column.initial_default is not None:
            # What is not read from the file is this default, and not NULL.
            raise InvalidData(
                f'{self.address}: column "{column.name}" has no type there: write the file with one'
            )
        return _repeated(column, pa.nulls(1), self.metadata.num_rows)

    def _check_required(self, stats: Iterable[ColumnStats], found: Mapping[ColumnId, int]) -> None:
        required = {column.id: column for column in self.inspection.columns if not column.nullable}
        known = {entry.column_id: entry.null_count for entry in stats}
        for number, column in required.items():
            nulls, at = known.get(number), found.get(number)
            if nulls:
                raise InvalidData(
                    f'{self.address}: column "{column.name}" is NOT NULL, and NULL in {nulls} rows there'
                )
            if nulls is None and at is not None and self.schema.field(at).nullable:
                self.doubts.append(Doubt(column, column.name, (at,), is_required=True))


def _sizes(stream: pa.NativeFile, metadata: pq.FileMetaData) -> tuple[int, int]:
    """How long a file and its footer are; it must be whole, and not only have an end."""
    size = stream.size()
    stream.seek(size - len(_MAGIC) - 4)
    footer = int.from_bytes(stream.read(4), "little")
    room = size - 2 * len(_MAGIC) - 4 - footer
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(metadata.num_columns)]
    stream.seek(0)
    if stream.read(len(_MAGIC)) != _MAGIC or sum(chunk.total_compressed_size for chunk in chunks) > room:
        raise pa.ArrowInvalid("its beginning is missing")
    return size, footer


def _column(columns: Columns, name: str) -> Column:
    exact = [column for column in columns if column.name == name]
    found = exact or [column for column in columns if column.name.lower() == name.lower()]
    if not found:
        raise InvalidArgument(f'the mapping names "{name}", which the table does not have')
    return found[0]


def _kind(type: pa.DataType) -> str | None:
    """What a type of several parts is."""
    if isinstance(type, pa.BaseExtensionType):
        return _kind(type.storage_type)
    if pa.types.is_map(type) or pa.types.is_struct(type):
        return "map" if pa.types.is_map(type) else "struct"
    return "list" if type.num_fields == 1 else None


def _fields(type: pa.DataType) -> list[pa.Field]:
    if isinstance(type, pa.BaseExtensionType):
        return _fields(type.storage_type)
    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    return [type.field(at) for at in range(type.num_fields)]


def _first_leaves(fields: Iterable[pa.Field], start: int = 0) -> Iterator[tuple[int, int]]:
    """For each field, the place of its first leaf among all of the file."""
    for at, given in enumerate(fields):
        yield at, start
        start += _count(given)


def _count(given: pa.Field) -> int:
    return sum(map(_count, _fields(given.type))) or 1


def _by_name(columns: Columns, names: list[str]) -> dict[ColumnId, int]:
    exact = {name: at for at, name in enumerate(names)}
    folded = {name.lower(): at for at, name in reversed(list(enumerate(names)))}
    found: dict[ColumnId, int] = {}
    for column in columns:
        at = exact.get(column.name, folded.get(column.name.lower()))
        if at is not None:
            found[column.id] = at
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names[:10]) + (", …" if len(names) > 10 else "")


def _repeated(column: Column, one: pa.Array, rows: int) -> ColumnStats:
    known = summary(column.id, column.data_type, one)
    return replace(known, value_count=rows, null_count=rows * (known.null_count or 0))
