"""The same filter over a table of as many files in other formats: pyiceberg, deltalake and stock DuckLake.

Like ours, their tables consist of metadata: what would be written for so many files, without the files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.dataset as ds

import forklake
from benchmarks.many_files import LOW, ROWS, WIDTH, Backend, Place, first_file, low, make_files, series, width
from benchmarks.report import Section, Target, table
from benchmarks.stock import attached, postgres
from benchmarks.timing import Timings, Work, cost, in_turns, same, seconds

AHEAD = 10.0
_COLUMNS = 8
_BY_HAND = "by hand:"
"""Shown, but no target: it filters one column that is known beforehand."""
_OURS = {"SQLite": "forklake, SQLite", "PostgreSQL": "forklake, PostgreSQL"}


def formats(server: str, folder: Path, *, files: int, rounds: int) -> Section:
    """Plan a point filter, and count the rows that meet it where that needs a single small file."""
    wanted = files // 2 * ROWS + 7
    contenders: dict[str, Work] = {}
    counting: dict[str, Work] = {}
    missing: list[str] = []
    with ExitStack() as stack:
        for backend in ("SQLite", "PostgreSQL"):
            place = Place(backend, server, folder, "formats")
            make_files(place, files=files, columns=_COLUMNS)
            ours = stack.enter_context(forklake.connect(place.url)).catalog("bench").table("t")
            contenders[_OURS[backend]] = lambda ours=ours: len(ours.scan(where=f"id = {wanted}").plan().files)
            counting[_OURS[backend]] = lambda ours=ours: ours.scan(where="id = 7").count()
            stock = stack.enter_context(_ducklake(backend, server, folder, files))
            counting[f"DuckLake, {backend}"] = lambda stock=stock: _one(
                stock, "SELECT count(*) FROM lake.t WHERE id = 7"
            )
        for name, make in {"pyiceberg": _iceberg, "deltalake": _delta}.items():
            try:
                import_module(name)
            except ImportError:
                missing.append(f"{name} is not installed: `make bench-data` installs it")
                continue
            contenders |= make(folder / name, files, wanted)
        same({title: work() for title, work in contenders.items()})
        same({title: work() for title, work in counting.items()})
        planned = in_turns(contenders, rounds)
        counted = in_turns(counting, rounds)
    lines = [*_lines("plan id = …", planned), *_lines("count of id = …", counted)]
    heading = ("", "", "median", "ahead, SQLite", "ahead, PostgreSQL")
    title = f"formats: {files:,} files x {_COLUMNS} columns, one of them needed"
    return Section(
        title, "\n".join([table(heading, lines), *missing]), [*_targets(planned), *_targets_of_stock(counted)]
    )


def _lines(title: str, timings: Timings) -> Iterator[Sequence[str]]:
    for place, timing in enumerate(timings.values()):
        ahead = [f"{cost(timing, timings[ours]):.1f}x" for ours in _OURS.values()]
        yield ("" if place else title, timing.title, seconds(timing.median), *ahead)


def _targets(timings: Timings) -> Iterator[Target]:
    for name in ("pyiceberg", "deltalake"):
        theirs = [timing for title, timing in timings.items() if title.startswith(name)]
        if theirs:
            fastest = min(theirs, key=lambda timing: timing.median)
            found = {backend: cost(fastest, timings[ours]) for backend, ours in _OURS.items()}
            told = ", ".join(f"{ahead:.1f}x on {backend}" for backend, ahead in found.items())
            what = f"planning is {AHEAD:g}x ahead of {fastest.title}"
            yield Target(min(found.values()) >= AHEAD, what, told)


def _targets_of_stock(timings: Timings) -> Iterator[Target]:
    for backend, ours in _OURS.items():
        found = cost(timings[f"DuckLake, {backend}"], timings[ours])
        yield Target(
            found > 1, f"a query that needs one file is ahead of DuckLake on {backend}", f"{found:.1f}x"
        )


def _iceberg(folder: Path, files: int, wanted: int) -> dict[str, Work]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    folder.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("main")
    made = catalog.create_table("main.t", first_file(_COLUMNS).schema)
    columns = range(1, _COLUMNS + 1)
    with made.transaction() as tx, tx.update_snapshot().fast_append() as update:
        for file in range(files):
            update.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"file://{folder}/main/t/data/{file:032}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(),
                    record_count=ROWS,
                    file_size_in_bytes=40_000,
                    column_sizes=dict.fromkeys(columns, 4_000),
                    value_counts=dict.fromkeys(columns, ROWS),
                    null_value_counts=dict.fromkeys(columns, 0),
                    nan_value_counts={},
                    lower_bounds={c: to_bytes(LongType(), low(file, c)) for c in columns},
                    upper_bounds={c: to_bytes(LongType(), low(file, c) + width(c)) for c in columns},
                    key_metadata=None,
                    split_offsets=[4],
                    equality_ids=None,
                    sort_order_id=None,
                    spec_id=0,
                )
            )

    def fresh() -> int:
        return len(list(catalog.load_table("main.t").scan(row_filter=f"id = {wanted}").plan_files()))

    return {"pyiceberg, SQL catalog": fresh}


def _delta(folder: Path, files: int, wanted: int) -> dict[str, Work]:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    names = first_file(_COLUMNS).schema.names
    made = DeltaTable.create(folder, first_file(_COLUMNS).schema)
    actions = [
        AddAction(
            f"{file:032}.parquet",
            40_000,
            {},
            0,
            True,
            json.dumps(
                {
                    "numRecords": ROWS,
                    "minValues": {name: low(file, c) for c, name in enumerate(names, 1)},
                    "maxValues": {name: low(file, c) + width(c) for c, name in enumerate(names, 1)},
                    "nullCount": dict.fromkeys(names, 0),
                }
            ),
        )
        for file in range(files)
    ]
    made.create_write_transaction(actions, mode="append", schema=made.schema())
    kept = DeltaTable(folder)

    def refreshed() -> Any:
        kept.update_incremental()
        return kept

    def of_dataset(opened: Any) -> int:
        found = opened.to_pyarrow_dataset().get_fragments(filter=ds.field("id") == wanted)
        return len(list(found))

    def of_actions() -> int:
        actions = pa.table(refreshed().get_add_actions(flatten=True))
        held = (ds.field("min.id") <= wanted) & (ds.field("max.id") >= wanted)
        return actions.filter(held).num_rows

    def of_uris(opened: Any) -> int:
        return len(opened.file_uris(file_pruning_predicate=f"id = {wanted}"))

    return {
        "deltalake file_uris, opened anew": lambda: of_uris(DeltaTable(folder)),
        "deltalake file_uris, kept open": lambda: of_uris(refreshed()),
        "deltalake to_pyarrow_dataset, kept open": lambda: of_dataset(refreshed()),
        # No plan of theirs: all that they hold in memory, filtered by hand.
        f"{_BY_HAND} deltalake get_add_actions, kept open": of_actions,
    }


_STOCK_FILES = """
INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format,
                                record_count, file_size_bytes, footer_size, row_id_start)
SELECT 1000000 + n, f.table_id, f.begin_snapshot, 'ducklake-' || (1000000000 + n) || '.parquet', true,
       'parquet', f.record_count, f.file_size_bytes, f.footer_size, n * {rows}
  FROM ducklake_data_file f, {files}
"""
_STOCK_STATS = """
INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes, value_count,
                                        null_count, min_value, max_value)
SELECT 1000000 + n, table_id, c, 4000, {rows}, 0, CAST(low AS VARCHAR), CAST(high AS VARCHAR)
  FROM (SELECT f.table_id, n, c, {low} AS low, {low} + {width} AS high
          FROM (SELECT DISTINCT table_id FROM ducklake_data_file) f, {files}, {columns}) g
"""


@contextmanager
def _ducklake(backend: Backend, server: str, folder: Path, files: int) -> Iterator[Any]:
    schema = "formats_stock"
    data = str(folder / f"stock_{backend}")
    address = f"sqlite:{folder}/{schema}.db" if backend == "SQLite" else postgres(server)
    within = None if backend == "SQLite" else schema
    if within is not None:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
    with attached(address, data, metadata_schema=within) as stock:
        stock.register("made", first_file(_COLUMNS))
        stock.execute("CREATE TABLE lake.t AS SELECT * FROM made")
    filled = {
        "rows": ROWS,
        "files": series(backend, "n", 1, files - 1),
        "columns": series(backend, "c", 1, _COLUMNS),
        "low": LOW,
        "width": WIDTH,
    }
    statements = [_STOCK_FILES.format_map(filled), _STOCK_STATS.format_map(filled)]
    if within is None:
        with sqlite3.connect(folder / f"{schema}.db") as database:
            for statement in statements:
                database.execute(statement)
        database.close()
    else:
        with psycopg.connect(server, options=f"-c search_path={schema}") as connection:
            for statement in statements:
                connection.execute(statement.encode())
        with psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}") as connection:
            connection.execute("ANALYZE ducklake_data_file, ducklake_file_column_stats")
    with attached(address, data, metadata_schema=within) as stock:
        yield stock


def _one(connection: Any, query: str) -> int:
    return connection.execute(query).fetchone()[0]
