"""What is written here, read by DuckDB's own DuckLake extension."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forklake
from forklake.distributed import base_files, write_part
from tests.interop.stock import stock_client
from tests.invariants import check_files

Raw = Callable[..., Any]
Same = Callable[[forklake.Catalog], None]


@pytest.fixture
def table(lake: forklake.Lake, catalog: forklake.Catalog) -> forklake.Table:
    """Rows are in a file; up to four at a time are deleted inline."""
    lake.set_option("data_inlining_row_limit", 4)
    table = catalog.create_table("t", "id BIGINT, v VARCHAR")
    table.append(rows(0, 100))
    return table


@pytest.fixture
def same(raw: Raw, lake: forklake.Lake, tmp_path: Path) -> Same:
    """Compares the table `t` of a catalog at each of its snapshots, and checks its files."""

    def compare(catalog: forklake.Catalog) -> None:
        check_files(lake)
        with stock_client(raw, catalog, lake.data_path, tmp_path) as stock:
            ((begin,),) = raw(
                f"SELECT min(begin_snapshot) FROM visible_table WHERE catalog_id = {catalog.id}"
            )
            snapshots = raw(f"SELECT snapshot_id FROM visible_snapshot WHERE catalog_id = {catalog.id}")
            for snapshot in sorted(number for (number,) in snapshots if number >= begin):
                found = stock.execute(
                    f"SELECT rowid, id, v FROM lake.t AT (VERSION => {snapshot}) ORDER BY ALL"
                ).fetchall()
                scan = catalog.table("t", at=snapshot).scan(row_ids=True)
                assert found == sorted((r["row_id"], r["id"], r["v"]) for r in scan.to_pylist())
                assert len(found) == catalog.table("t", at=snapshot).count()

    return compare


def rows(start: int, end: int) -> pa.Table:
    return pa.table({"id": range(start, end), "v": [f"v{at}" for at in range(start, end)]})


def test_rows_that_were_deleted_inline_and_by_files_stay_deleted(
    catalog: forklake.Catalog, table: forklake.Table, same: Same, raw: Raw
) -> None:
    for where in ("id IN (1, 3)", "id IN (5, 7, 9)", "id = 11", "id IN (13, 15)", "id BETWEEN 20 AND 40"):
        table.delete(where)
    assert len(raw("SELECT * FROM ducklake_inlined_delete")) == 5
    assert len(raw("SELECT * FROM ducklake_delete_file")) == 2
    same(catalog)
    table.rewrite_deletes()
    table.delete("id = 99")
    same(catalog)


def test_rows_of_updates_and_inserts_keep_their_ids(
    catalog: forklake.Catalog, table: forklake.Table, same: Same
) -> None:
    table.merge(rows(90, 110), on="id")
    table.update({"v": "'u'"}, "id < 10")
    same(catalog)
    table.compact()
    same(catalog)


def test_forks_delete_what_their_parents_have_not_deleted(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, same: Same
) -> None:
    table.delete("id IN (1, 3)")
    fork = lake.fork(catalog.name, "a_fork")
    fork.table("t").delete("id IN (2, 4)")
    fork.table("t").delete("id BETWEEN 10 AND 20")
    catalog.table("t").append(rows(200, 210))
    same(fork)
    lake.merge("a_fork", into=catalog.name)
    same(catalog)
    assert catalog.table("t").count() == 100 - 4 - 11 + 10
    fork.table("t").delete("id = 99")
    lake.merge("a_fork", into=catalog.name)
    catalog.table("t").delete("id BETWEEN 30 AND 50")
    same(catalog)
    lake.merge(catalog.name, into="a_fork")
    same(fork)


def test_an_inlined_delete_that_went_to_and_fro_is_there_once(
    lake: forklake.Lake, catalog: forklake.Catalog, table: forklake.Table, same: Same
) -> None:
    fork = lake.fork(catalog.name, "a_fork")
    fork.table("t").delete("id BETWEEN 10 AND 20")
    catalog.table("t").append(rows(200, 210))
    lake.merge("a_fork", into=catalog.name)
    catalog.table("t").delete("id = 7")
    lake.merge(catalog.name, into="a_fork")
    fork.table("t").delete("id BETWEEN 30 AND 40")
    lake.merge("a_fork", into=catalog.name)
    same(catalog)
    same(fork)


def test_distributed_deletes_name_no_inlined_position(
    catalog: forklake.Catalog, table: forklake.Table, same: Same
) -> None:
    table.delete("id IN (1, 3)")
    for start in (10, 30):
        ds = catalog.begin_distributed(["t"])
        (file,) = base_files(table.scan().plan())
        part = write_part(ds, "t", delete={file.id: range(start, start + 10)}, files=[file])
        catalog.commit_distributed(ds, [part])
        table.delete(f"id = {start + 15}")
    same(catalog)
    assert table.count() == 100 - 2 - 22


def test_nested_fields_of_imported_files_are_found(
    lake: forklake.Lake, catalog: forklake.Catalog, tmp_path: Path, raw: Raw
) -> None:
    table = catalog.create_table("t", "a INTEGER, s STRUCT(x BIGINT, y STRUCT(z VARCHAR)), l BIGINT[]")
    table.drop_column("a")
    table.add_column("b", "VARCHAR")
    values = [{"s": {"x": 1, "y": {"z": "one"}}, "l": [1, 2], "b": "b"}]
    path = tmp_path / "given.parquet"
    pq.write_table(pa.Table.from_pylist(values), path)
    table.add_files([str(path)], mapping="by_name")
    with stock_client(raw, catalog, lake.data_path, tmp_path) as stock:
        found = stock.sql("SELECT * FROM lake.t").to_arrow_table()
    assert found.to_pylist() == table.scan().to_pylist() == values
