"""Parquet files that somebody else wrote: which of their columns is which of a table's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from forklake.data.conform import id_of, initial_of
from forklake.data.defaults import default_of
from forklake.data.footer import footer_stats
from forklake.data.partition import NULL_FOLDER
from forklake.data.storage import Storage
from forklake.data.summary import summary
from forklake.data.writer import footer_size
from forklake.errors import ForklakeError, InvalidArgument, InvalidData, UnknownType
from forklake.model.arrow import from_arrow_field
from forklake.model.columns import Columns
from forklake.model.entities import Column, Default
from forklake.model.files import ColumnStats, WrittenFile
from forklake.model.ids import ColumnId
from forklake.model.mapping import MappedName
from forklake.model.types import Decimal, Scalar, can_widen, to_sql

MappingKind = Literal["field_id", "by_name", "by_position"]
By = MappingKind | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Existing:
    """A file that fits a table."""

    written: WrittenFile
    names: tuple[MappedName, ...]
    """What the file calls the columns; empty if field ids say it all."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """How files are looked at."""

    storage: Storage
    columns: Columns
    mapping: By
    allow_missing: bool = False
    ignore_extra: bool = False

    def inspect(self, path: str, relative: bool) -> Existing:
        """Match one file with the table, or say why it does not fit."""
        address = self.storage.address(path, relative)
        try:
            with self.storage.open_input(path, relative) as stream:
                size = stream.size()
                metadata = pq.ParquetFile(stream).metadata
        except pa.ArrowException as error:
            raise InvalidData(f"{address} is not a Parquet file that can be read: {error}") from error
        return _Match(self, address, metadata).existing(path, relative, size)


@dataclass(slots=True)
class _Match:
    """One file, while its columns are matched."""

    inspection: Inspection
    address: str
    metadata: pq.FileMetaData
    names: list[MappedName] = field(default_factory=list[MappedName])
    leaves: dict[ColumnId, int] = field(default_factory=dict[ColumnId, int])

    def existing(self, path: str, relative: bool, size: int) -> Existing:
        columns = self.inspection.columns
        schema = self.metadata.schema.to_arrow_schema()
        places = dict(_first_leaves(schema))
        hive = {} if self.inspection.mapping == "field_id" else hive_values(path)
        found = self._top(schema)
        for column in columns:
            if column.id in found:
                at = found[column.id]
                self._match(column, schema.field(at), places[at], None)
        constants = [self._constant(column, hive) for column in columns if column.id not in found]
        self._refuse_extra(schema, set(found.values()))
        stats = footer_stats(self.metadata, columns, leaves=self.leaves)
        stats = (*stats, *constants)
        self._check_required(stats)
        written = WrittenFile(path, self.metadata.num_rows, size, footer_size(self.metadata), stats, relative)
        nested = any(column.children for column in columns)
        plain = self.inspection.mapping == "field_id" and not nested
        return Existing(written, () if plain else tuple(self.names))

    def _top(self, schema: pa.Schema) -> dict[ColumnId, int]:
        """Where each column of the table is in the file."""
        columns = self.inspection.columns
        match self.inspection.mapping:
            case "field_id":
                ids = {id_of(field): at for at, field in enumerate(schema)}
                if not any(number is not None for number in ids):
                    raise InvalidData(f"{self.address} has no field ids: pass mapping='by_name'")
                return {column.id: ids[column.id] for column in columns if column.id in ids}
            case "by_name":
                return _by_name(columns, schema.names)
            case "by_position":
                return {column.id: at for at, column in enumerate(columns) if at < len(schema)}
            case named:
                return self._explicit(named, schema)

    def _explicit(self, named: Mapping[str, str], schema: pa.Schema) -> dict[ColumnId, int]:
        found: dict[ColumnId, int] = {}
        for source, target in named.items():
            at = schema.get_field_index(source)
            if at < 0:
                raise InvalidData(
                    f'{self.address} has no column "{source}": it has {", ".join(schema.names)}'
                )
            columns = [column for column in self.inspection.columns if column.name.lower() == target.lower()]
            if not columns:
                raise InvalidArgument(f'the mapping names "{target}", which the table does not have')
            found[columns[0].id] = at
        return found

    def _match(self, column: Column, given: pa.Field, leaf: int, parent: ColumnId | None) -> None:
        self.names.append(MappedName(column.id, given.name, parent))
        type = given.type
        if not column.children:
            self._check_type(column, given, leaf)
            self.leaves[column.id] = leaf
            return
        inside = _fields(type)
        if (column.type, len(inside) if column.type != "struct" else 0) not in _NESTED or not _is(
            column, type
        ):
            raise self._misfit(column, str(type))
        places = dict(_first_leaves(inside, leaf))
        if column.type != "struct":
            for at, child in enumerate(column.children):
                self._match(child, inside[at], places[at], column.id)
            return
        found = self._struct(column, inside)
        for child in column.children:
            if child.id in found:
                self._match(child, inside[found[child.id]], places[found[child.id]], column.id)
            elif not self.inspection.allow_missing:
                raise InvalidData(
                    f'{self.address} has no field "{child.name}" in "{column.name}": pass allow_missing=True'
                )
        extra = [f.name for at, f in enumerate(inside) if at not in found.values()]
        if extra and not self.inspection.ignore_extra:
            raise InvalidData(
                f'{self.address} has fields in "{column.name}" that the table does not have: '
                f"{', '.join(extra)}; pass ignore_extra=True to leave them out"
            )

    def _struct(self, column: Column, inside: list[pa.Field]) -> dict[ColumnId, int]:
        match self.inspection.mapping:
            case "field_id":
                ids = {id_of(field): at for at, field in enumerate(inside)}
                return {child.id: ids[child.id] for child in column.children if child.id in ids}
            case "by_position":
                return {child.id: at for at, child in enumerate(column.children) if at < len(inside)}
            case _:
                return _by_name(column.children, [field.name for field in inside])

    def _check_type(self, column: Column, given: pa.Field, leaf: int) -> None:
        physical = self.metadata.schema.column(leaf).physical_type
        wanted = column.data_type
        if physical == "INT96" and wanted in (Scalar("timestamp"), Scalar("timestamptz")):
            return
        try:
            found = from_arrow_field(given)
        except UnknownType as error:
            raise self._misfit(column, str(given.type)) from error
        same = found == wanted or can_widen(found, wanted)
        if not same and (found, wanted) not in _READ_ALIKE and not _is_whole_decimal(found, wanted):
            raise self._misfit(column, to_sql(found))

    def _misfit(self, column: Column, given: str) -> InvalidData:
        return InvalidData(
            f'{self.address}: column "{column.name}" is {given[:80]} there and {to_sql(column.data_type)} '
            "in the table: only types that fit without loss can be read"
        )

    def _constant(self, column: Column, hive: Mapping[str, str | None]) -> ColumnStats:
        """A column that is not in the file: its value stands in the path, or all rows have its default."""
        rows = self.metadata.num_rows
        name = next((name for name in hive if name.lower() == column.name.lower()), None)
        if name is not None:
            self.names.append(MappedName(column.id, name, is_partition=True))
            return _repeated(column, self._value(column, hive[name]), rows)
        if not self.inspection.allow_missing:
            raise InvalidData(f'{self.address} has no column "{column.name}": pass allow_missing=True')
        return _repeated(column, initial_of(column, 1), rows)

    def _value(self, column: Column, text: str | None) -> pa.Array:
        if text is None:
            return pa.nulls(1)
        try:
            return default_of(replace(column, default=Default(text, "literal")), 1)
        except (ForklakeError, ValueError, ArithmeticError, pa.ArrowException) as error:
            raise InvalidData(
                f'{self.address}: its folder says {text!r} for "{column.name}", which is no '
                f"{to_sql(column.data_type)}"
            ) from error

    def _refuse_extra(self, schema: pa.Schema, used: set[int]) -> None:
        extra = [name for at, name in enumerate(schema.names) if at not in used]
        if extra and not self.inspection.ignore_extra:
            raise InvalidData(
                f"{self.address} has columns that the table does not have: {', '.join(extra[:10])}; "
                "pass ignore_extra=True to leave them out"
            )

    def _check_required(self, stats: Iterable[ColumnStats]) -> None:
        required = {column.id: column.name for column in self.inspection.columns if not column.nullable}
        for entry in stats:
            if entry.column_id in required and entry.null_count != 0:
                raise InvalidData(
                    f'{self.address}: column "{required[entry.column_id]}" is NOT NULL, and may be NULL there'
                )


_NESTED = {("list", 1), ("map", 2), ("struct", 0)}
_READ_ALIKE = {
    (Scalar("varchar"), Scalar("json")),
    (Scalar("json"), Scalar("varchar")),
    (Scalar("blob"), Scalar("uuid")),
    (Scalar("time"), Scalar("timetz")),
}


def _is_whole_decimal(found: object, wanted: object) -> bool:
    """DuckDB writes a HUGEINT as a double or decimal; a decimal of no fraction reads as one."""
    return isinstance(found, Decimal) and found.scale == 0 and wanted == Scalar("int128")


def _is(column: Column, type: pa.DataType) -> bool:
    tests: dict[str, Callable[[pa.DataType], bool]] = {
        "struct": pa.types.is_struct,
        "map": pa.types.is_map,
        "list": lambda t: not (pa.types.is_struct(t) or pa.types.is_map(t)),
    }
    return tests[column.type](type)


def _fields(type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    return [type.field(at) for at in range(type.num_fields)]


def _first_leaves(fields: Iterable[pa.Field], start: int = 0) -> Iterator[tuple[int, int]]:
    """For each field, the place of its first leaf among all of the file."""
    for at, given in enumerate(fields):
        yield at, start
        start += _count(given)


def _count(given: pa.Field) -> int:
    if isinstance(given.type, pa.BaseExtensionType) or not given.type.num_fields:
        return 1
    return sum(_count(inner) for inner in _fields(given.type))


def _by_name(columns: Columns, names: list[str]) -> dict[ColumnId, int]:
    exact = {name: at for at, name in enumerate(names)}
    folded = {name.lower(): at for at, name in reversed(list(enumerate(names)))}
    found: dict[ColumnId, int] = {}
    for column in columns:
        at = exact.get(column.name, folded.get(column.name.lower()))
        if at is not None:
            found[column.id] = at
    return found


def hive_values(path: str) -> dict[str, str | None]:
    """The values that stand in the folders of a path: `region=eu/year=2024/`."""
    folders = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == NULL_FOLDER else unquote(value) for name, _, value in folders}


def _repeated(column: Column, one: pa.Array, rows: int) -> ColumnStats:
    known = summary(column.id, column.data_type, one)
    return replace(known, value_count=rows, null_count=rows * (known.null_count or 0))
