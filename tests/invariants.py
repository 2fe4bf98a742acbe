"""Invariants of the files of all catalogs, which clients that others wrote rely on.

A position that is deleted is not deleted again: such clients unite delete files and inlined deletes without
removing duplicates. Where a file has a column of row ids, every row has one. And no value lies outside of the
bounds that are stored for its table. Files are read as Parquet, and not by the code that writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import forklake
from forklake.data.parquet.schema import ROW_ID_NAME
from forklake.model.ids import SnapshotId
from forklake.model.types.data_types import to_sql
from forklake.store.file_values import delete_file
from forklake.store.files import FileReader

_FIELD_IDS = {"file_path": b"2147483546", "pos": b"2147483545"}


def check_files(lake: forklake.Lake, catalogs: Iterable[str] | None = None) -> int:
    """Of every table of some catalogs, or of all, at each snapshot; gives how many delete files it saw."""
    seen = 0
    for name in [info.name for info in lake.catalogs()] if catalogs is None else catalogs:
        catalog = lake.catalog(name)
        for table in catalog.tables():
            reader = FileReader(lake._database, catalog.id, table.id, SnapshotId(catalog.snapshot))
            seen += _check_table(lake, reader)
            _check_bounds(reader, catalog.table((table.schema, table.name)))
    return seen


def _check_table(lake: forklake.Lake, reader: FileReader) -> int:
    changed = reader.changed(SnapshotId(-1), reader.at)
    counts = {past.file.id: past.file.record_count for past in changed.files}
    for past in changed.files:
        if not past.file.inlined and past.file.mapping_id is None:
            _check_row_ids(_local(lake, past.file.path))
    for file, inlined in changed.inlined.items():
        positions = [position for position, _ in inlined]
        assert sorted(set(positions)) == positions, f"deleted inline from {file}, twice or not in order"
        assert all(0 <= position < counts[file] for position in positions)
    rows = reader.database.rows(
        "deletes_changed", catalog=reader.catalog, table=reader.table, start=-1, end=reader.at
    )
    for *row, end in rows:
        version = delete_file(row)
        named = _named(_local(lake, version.path))
        assert sorted(set(named)) == named, f"{version.path} names positions twice or not in order"
        assert len(named) == version.delete_count
        assert all(0 <= position < counts[version.data_file_id] for position in named)
        # What was deleted inline by then, and stands beside it for as long as it counts.
        beside = {
            position
            for position, begin in changed.inlined.get(version.data_file_id, [])
            if end is None or begin < max(end, version.begin + 1)
        }
        both = beside & set(named)
        assert not both, f"{version.path} names {sorted(both)}, which are deleted inline as well"
    return len(rows)


def _local(lake: forklake.Lake, path: str) -> Path:
    return Path(lake.data_path) / path


# Files are written once, so they are read once.
@lru_cache(10_000)
def _named(path: Path) -> list[int]:
    schema = pq.read_schema(path)
    found = {field.name: field.metadata[b"PARQUET:field_id"] for field in schema}
    assert found == _FIELD_IDS
    return pq.read_table(path, columns=["pos"]).column("pos").to_pylist()


@lru_cache(10_000)
def _check_row_ids(path: Path) -> None:
    if ROW_ID_NAME in pq.read_schema(path).names:
        ids: pa.ChunkedArray = pq.read_table(path, columns=[ROW_ID_NAME]).column(0)
        assert not ids.null_count, f"{path} has a column of row ids, and rows without one"


def _check_bounds(reader: FileReader, table: forklake.Table) -> None:
    """What a catalog stores of its tables holds for every row that is there."""
    rows = reader.database.rows("table_statistics", catalog=reader.catalog, tables=f"[{reader.table}]")
    bounds = {row[4]: row[5:9] for row in rows}
    known = [column for column in table.columns if column.id in bounds and not column.children]
    if not known:
        return
    content = table.scan(columns=[column.name for column in known]).to_arrow()
    for column in known:
        _duckdb().register("content", pa.table({"v": content.column(column.name)}))
        outside = _outside(to_sql(column.data_type), *bounds[column.id])
        found = _duckdb().execute(f"SELECT v FROM content WHERE {outside}").fetchall()
        assert not found, f"{found[:3]} in {column.name}, which is said to be in {bounds[column.id]}"


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _outside(kind: str, null: object, nan: object, low: str | None, high: str | None) -> str:
    value = f"CAST(v AS {kind})"
    parts = [] if null else ["v IS NULL"]
    for sign, bound in (("<", low), (">", high)):
        if bound is not None:
            text = bound.replace("'", "''")
            parts.append(f"{value} {sign} CAST('{text}' AS {kind})")
    where = " OR ".join(parts) or "false"
    # NaN lies above all bounds; where a file does not say whether it has any, it may have.
    may_be_nan = kind in ("FLOAT", "DOUBLE") and (nan is None or bool(nan))
    return f"({where}) AND NOT isnan(v)" if may_be_nan else where
