"""A catalog as DuckDB's own DuckLake extension sees it: its metadata, copied row by row into an empty lake.

Files stay where they are, and nothing is translated but names of columns; inlined rows are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

import forklake
from tests.extensions import load

_TABLES = (
    "schema",
    "table",
    "column",
    "schema_versions",
    "data_file",
    "delete_file",
    "file_column_stats",
    "table_stats",
    "table_column_stats",
    "column_mapping",
    "name_mapping",
    "snapshot",
)


@contextmanager
def stock_client(
    raw: Callable[..., Any], catalog: forklake.Catalog, root: str, folder: Path
) -> Generator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the catalog attached as `lake`, read by the extension; the copy is made in `folder`."""
    file = folder / f"{catalog.name}-{catalog.snapshot}.ducklake"
    with _duckdb() as connection:
        connection.execute(f"ATTACH 'ducklake:{file}' AS lake (DATA_PATH '{root}')")
        connection.execute("CREATE TABLE lake.a_schema_version (a INTEGER)")
        connection.execute("DETACH lake")
    with duckdb.connect(str(file)) as copy:
        for name in _TABLES:
            _copy(copy, raw, catalog.id, name)
        for (table,) in copy.execute("SELECT DISTINCT table_id FROM ducklake_table").fetchall():
            copy.execute(
                f"CREATE TABLE ducklake_inlined_delete_{table} "
                "(file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT)"
            )
            rows = raw(
                "SELECT data_file_id, position, begin_snapshot FROM visible_inlined_delete "
                f"WHERE catalog_id = {catalog.id} AND table_id = {table}"
            )
            _insert(copy, f"ducklake_inlined_delete_{table}", rows)
    with _duckdb() as connection:
        connection.execute(f"ATTACH 'ducklake:{file}' AS lake (READ_ONLY)")
        yield connection


@contextmanager
def _duckdb() -> Generator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        load(connection, "ducklake")
        yield connection


def _copy(copy: duckdb.DuckDBPyConnection, raw: Callable[..., Any], catalog: int, name: str) -> None:
    wanted = [row[0] for row in copy.execute(f"DESCRIBE ducklake_{name}").fetchall()]
    copy.execute(f"DELETE FROM ducklake_{name}")
    where = f"FROM visible_{name} WHERE catalog_id = {catalog}"
    if name == "data_file":
        where += " AND file_format <> 'inlined'"
    rows = raw(f"SELECT {', '.join(wanted)} {where}")
    _insert(copy, f"ducklake_{name}", rows)
    if name in ("schema", "table"):
        # Paths of files are relative to that of the lake here, and to that of their table there.
        copy.execute(f"UPDATE ducklake_{name} SET path = '', path_is_relative = true")


def _insert(copy: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        copy.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
