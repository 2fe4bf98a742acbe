"""Segments on the local disk, files in memory, and what DuckDB finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa

from forklake.index.kind import Found, Kind, Part, Segment
from forklake.model.entities import Column
from forklake.model.ids import ColumnId
from forklake.model.index import IndexSpec, SegmentSummary
from forklake.model.sql.predicate import Predicate, parse_predicate
from forklake.model.types.arrow import to_arrow
from forklake.model.types.data_types import DataType, parse, to_ducklake_name

VALUES: dict[str, tuple[str, ...]] = {
    "TINYINT": ("-128", "-1", "0", "1", "127"),
    "INTEGER": ("-2147483648", "-1", "0", "1", "7", "2147483647"),
    "BIGINT": ("-9223372036854775808", "-5", "0", "1", "7", "9223372036854775807"),
    "UBIGINT": ("0", "1", "7", "18446744073709551615"),
    "HUGEINT": ("-99999999999999999999999999999999999999", "-129", "-128", "0", "127", "128", "7"),
    "DECIMAL(9,2)": ("-1.50", "0.00", "1.00", "1.01", "9999999.99"),
    "DECIMAL(30,3)": ("-1.500", "0.000", "1.000", "-0.128", "123456789012345678901234567.999"),
    "REAL": ("nan", "-inf", "-0.0", "0.0", "0.5", "1", "0.1", "inf"),
    "DOUBLE": ("nan", "-inf", "-0.0", "0.0", "0.5", "1", "0.1", "1e300", "inf"),
    "DATE": ("1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01"),
    "TIME": ("00:00:00", "12:30:00.000001", "23:59:59.999999"),
    "TIMESTAMP_S": ("1969-12-31 23:59:59", "1970-01-01 00:00:00", "2024-02-29 12:00:00"),
    "TIMESTAMP_MS": ("1969-12-31 23:59:59.999", "1970-01-01 00:00:00", "2024-02-29 00:00:00"),
    "TIMESTAMP": ("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-02-29 00:00:00"),
    "TIMESTAMPTZ": ("1969-12-31 23:59:59.999999+00", "1970-01-01 00:00:00+00", "2024-02-29 00:00:00+00"),
    "TIMESTAMP_NS": ("1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00.000000001", "2024-02-29 00:00:00"),
    "VARCHAR": ("", "a", "ab", "abc", "b", "Ünï", "x" * 31, "x" * 32, "x" * 33, "y" * 300, "y" * 301),
    "BLOB": ("", "a", "ab", "y" * 300, "y" * 301),
    "BOOLEAN": ("true", "false"),
    "UUID": (
        "00000000-0000-0000-0000-000000000000",
        "00000000-0000-0000-0000-000000000100",
        "80000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ),
}
"""Types of keys, with values as DuckDB and Arrow write them."""


@dataclass(frozen=True)
class LocalFile:
    """A segment in a folder."""

    path: Path
    facts: SegmentSummary

    @property
    def key(self) -> str:
        return str(self.path)

    @property
    def file_size_bytes(self) -> int:
        return self.path.stat().st_size

    def open(self) -> pa.NativeFile:
        return pa.OSFile(str(self.path))

    def local(self) -> Path:
        return self.path


def column(number: int, name: str, type: str) -> Column:
    return Column(ColumnId(number), name, to_ducklake_name(parse(type)), order=number)


def array(values: Sequence[str | None], type: str | DataType) -> pa.Array:
    """Values that are written as text."""
    target = to_arrow(parse(type) if isinstance(type, str) else type)
    if target == pa.uuid():
        raw = [None if value is None else UUID(value).bytes for value in values]
        return pa.ExtensionArray.from_storage(target, pa.array(raw, pa.binary(16)))
    if pa.types.is_time(target):
        days = [None if value is None else f"1970-01-01 {value}" for value in values]
        return pa.array(days, pa.string()).cast(pa.timestamp("us")).cast(target)
    return pa.array(values, pa.string()).cast(target)


@dataclass(frozen=True)
class Index:
    """An index of some columns, of whose segments each has a file of its own."""

    kind: Kind
    keys: tuple[Column, ...]
    folder: Path
    include: tuple[Column, ...] = ()
    params: Mapping[str, Any] = field(default_factory=lambda: {"row_group_rows": 3})

    @property
    def spec(self) -> IndexSpec:
        return IndexSpec(self.kind.name, self.keys, self.include, self.params)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.keys, *self.include)

    def build(self, name: str, files: Mapping[int, pa.Table]) -> Segment:
        """A segment of files by their ordinals; their columns have the names of the table."""
        path = self.folder / name
        parts = [Part(ordinal, self._batches(table)) for ordinal, table in files.items()]
        return Segment(LocalFile(path, self.kind.build(self.spec, parts, path)))

    def _batches(self, table: pa.Table) -> list[pa.RecordBatch]:
        rows = pa.table({str(known.id): table.column(known.name) for known in self.columns})
        return rows.to_batches(max_chunksize=5)

    def merge(self, name: str, segments: Sequence[Segment], ordinals: Sequence[Mapping[int, int]]) -> Segment:
        path = self.folder / name
        return Segment(LocalFile(path, self.kind.merge(self.spec, segments, ordinals, path)))


def condition(text: str, columns: tuple[Column, ...]) -> Predicate:
    return parse_predicate(text, columns)


def matching(table: pa.Table, predicate: Predicate) -> list[int]:
    """The positions of the rows that meet a condition, as DuckDB says."""
    rows = table.append_column("position", pa.array(range(table.num_rows)))
    connection = _duckdb()
    connection.register("rows", rows)
    found = connection.sql(f"SELECT position FROM rows WHERE {predicate.sql} ORDER BY position").fetchall()
    return [position for (position,) in found]


def in_order(table: pa.Table, where: str, order: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Columns of the rows that meet a condition, in an order."""
    connection = _duckdb()
    connection.register("rows", table)
    return connection.sql(f"SELECT {', '.join(names)} FROM rows WHERE {where} ORDER BY {order}").fetchall()


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def as_lists(found: Found) -> dict[tuple[int, int], list[int]]:
    return {key: positions.to_pylist() for key, positions in found.positions.items()}
